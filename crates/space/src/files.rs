//! The files of spaces as files: which there are, and what can be read of them.

use std::path::Path;

use tupelo_journal::{Error as Trouble, Examination, FileEntry};
use tupelo_shm::surroundings::outside;

use crate::durable::refused;
use crate::error::Error;
use crate::url::{Address, Place};

/// The spaces that are kept in the files of a directory, by name. None is opened.
///
/// # Errors
///
/// [`Error::Storage`], [`Error::AccessDenied`]: the directory cannot be read.
pub fn files_in(directory: &Path) -> Result<Vec<FileEntry>, Error> {
    tupelo_journal::files_in(directory).map_err(|trouble| match trouble {
        Trouble::NotFound { path } => {
            Error::Storage { problem: format!("{}: there is no such directory", path.display()) }
        }
        trouble => refused(trouble, "file://"),
    })
}

/// Looks through the file at the URL of a `file://` space, damaged or not. With `save_to`, also writes what can be read into a new file;
/// the old one stays as it is.
///
/// # Errors
///
/// [`Error::SpaceCorrupted`] if nothing of it can be read; [`Error::Misuse`] for a URL of another kind; [`Error::Storage`],
/// [`Error::AccessDenied`].
pub fn examine_file(url: &str, save_to: Option<&Path>) -> Result<Examination, Error> {
    let Place::File { path, .. } = Address::parse(url)?.place else {
        return Err(Error::Misuse {
            problem: format!("{url} is kept in no file"),
            hint: Some("name a space of a file, as in file:///srv/jobs.tupelo".into()),
        });
    };
    let found = outside(|| match save_to {
        Some(to) => tupelo_journal::save(&path, to),
        None => tupelo_journal::examine(&path),
    });
    found.map_err(|trouble| refused(trouble, url))
}
