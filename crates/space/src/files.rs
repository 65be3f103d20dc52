//! The files of spaces as files: which there are, and what can be read of them.

use std::path::{Path, PathBuf};

use tupelo_journal::{Error as Trouble, Examination, FileEntry, SpaceOfFile};
use tupelo_shm::Directory;
use tupelo_shm::surroundings::outside;

use crate::durable::refused;
use crate::error::Error;
use crate::url::{Address, Place};

/// The files of spaces in a directory, by name. No space is opened.
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

/// The spaces of a file, in the order in which they were made. None is opened.
///
/// # Errors
///
/// [`Error::SpaceNotFound`], [`Error::SpaceCorrupted`], [`Error::VersionMismatch`]: it is no file of spaces that this build can read;
/// [`Error::Storage`], [`Error::AccessDenied`].
pub fn spaces_in(file: &Path) -> Result<Vec<SpaceOfFile>, Error> {
    let found = outside(|| tupelo_journal::spaces_in(file));
    found.map_err(|trouble| refused(trouble, &format!("file://{}", file.display())))
}

/// Looks through the file at the URL of a `file://` space, damaged or not: all of it, or the space that the URL names. With `save_to`, also writes what can be read into a new file;
/// the old one stays as it is.
///
/// # Errors
///
/// [`Error::SpaceCorrupted`] if nothing of it can be read; [`Error::Misuse`] for a URL of another kind; [`Error::Storage`],
/// [`Error::AccessDenied`].
pub fn examine_file(url: &str, save_to: Option<&Path>) -> Result<Examination, Error> {
    let (path, space) = place_of(url)?;
    let only = space.as_deref();
    let found = outside(|| match save_to {
        Some(to) => tupelo_journal::save(&path, only, to),
        None => tupelo_journal::examine(&path, only),
    });
    found.map_err(|trouble| refused(trouble, url))
}

/// Copies the file at the URL of a `file://` space into a new one: all its spaces, or only the one that the URL names. They are as at a
/// moment of this call, and others go on meanwhile.
///
/// # Errors
///
/// [`Error::SpaceNotFound`], and [`Error::Storage`] if the new file exists or cannot be written; [`Error::Misuse`] for a URL of another kind.
pub fn copy_file(url: &str, to: &Path) -> Result<(), Error> {
    let (path, space) = place_of(url)?;
    let directory = Directory::default();
    let copied = outside(|| tupelo_journal::copy(&path, space.as_deref(), to, &directory));
    copied.map_err(|trouble| refused(trouble, url))
}

/// Makes the file at the URL of a `file://` space as small as what is in all its spaces. Returns its bytes before and after, with those
/// of its log.
///
/// # Errors
///
/// [`Error::SpaceNotFound`], [`Error::Storage`]: what is in the file stays as it was; [`Error::Misuse`] for a URL of another kind.
pub fn compact_file(url: &str) -> Result<(u64, u64), Error> {
    let (path, _) = place_of(url)?;
    let compacted = outside(|| tupelo_journal::compact(&path, &Directory::default()));
    compacted.map_err(|trouble| refused(trouble, url))
}

/// The path of the file in a `file://` URL, and the name of the space behind `?space=`, if there is one. `None` for a URL of another
/// kind.
///
/// # Errors
///
/// [`Error::Misuse`] for a text that is no URL.
pub fn file_of(url: &str) -> Result<Option<(PathBuf, Option<String>)>, Error> {
    Ok(match Address::parse(url)?.place {
        Place::File { path, space, .. } => Some((path, (!space.is_empty()).then_some(space))),
        _ => None,
    })
}

/// As [`file_of`]; refuses a URL of another kind.
fn place_of(url: &str) -> Result<(PathBuf, Option<String>), Error> {
    file_of(url)?.ok_or_else(|| Error::Misuse {
        problem: format!("{url} is kept in no file"),
        hint: Some("name a space of a file, as in file:///srv/jobs.tupelo".into()),
    })
}
