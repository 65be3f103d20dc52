//! What is done to a file as a whole, with all its spaces: it is copied, or made smaller. No memory is made for that.

use std::path::Path;

use tupelo_shm::Directory;

use crate::error::Error;
use crate::gate;
use crate::storage::Storage;
use crate::together::settle;

/// Writes what is in a file at a moment of this call into another one, which must not exist. Before that, the memory of all spaces brings
/// its changes to the file. The copy has all spaces, or only the one of this name. Others go on meanwhile.
///
/// # Errors
///
/// [`Error::NotFound`] if there is no such file or no such space in it. What the engine and SQLite say, and what the system says about
/// the other file: that may be there in part then.
pub fn copy(
    path: &Path,
    only: Option<&str>,
    to: &Path,
    directory: &Directory,
) -> Result<(), Error> {
    let _inside = gate::enter();
    let mut storage = Storage::open(path)?;
    settle_all(&mut storage, directory)?;
    let Some(only) = only else { return storage.copy_to(to) };
    let not_found = || Error::NotFound { path: path.to_owned() };
    storage.header(only)?.ok_or_else(not_found)?;
    storage.copy_to(to)?;
    let mut copy = Storage::open(to)?;
    let writing = copy.write()?;
    // It may have been removed since; then it is not in the copy either.
    writing.header(only)?.ok_or_else(not_found)?;
    for (name, header) in writing.headers()? {
        if name != only {
            writing.remove_space(&header)?;
        }
    }
    writing.commit()?;
    copy.compact().map(drop)
}

/// Makes a file as small as what is in it. Returns the bytes that it had before, with its log, and those that it has now. Whoever waits
/// for the disk meanwhile waits until this is done.
///
/// # Errors
///
/// As [`copy`]; what is in the file stays as it was.
pub fn compact(path: &Path, directory: &Directory) -> Result<(u64, u64), Error> {
    let _inside = gate::enter();
    let mut storage = Storage::open(path)?;
    settle_all(&mut storage, directory)?;
    storage.compact()
}

fn settle_all(storage: &mut Storage, directory: &Directory) -> Result<(), Error> {
    for (name, header) in storage.headers()? {
        settle(storage, (&name, &header), directory)?;
    }
    Ok(())
}
