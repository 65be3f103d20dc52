//! Removing a file with its spaces, or one space of it.

use std::path::Path;

use tupelo_shm::Directory;

use crate::error::Error;
use crate::gate;
use crate::memory::{Memory, begin_next};
use crate::storage::Storage;
use crate::together::end_settled;

/// Removes a file, with the memory of each of its spaces. Processes that have one open can change nothing any more.
///
/// # Errors
///
/// [`Error::NotFound`], [`Error::AccessDenied`]; [`Error::Corrupted`] for what is no file of a space, which stays. What the system
/// says.
pub fn remove(path: &Path, directory: &Directory) -> Result<(), Error> {
    {
        let _inside = gate::enter();
        match Storage::open(path) {
            Ok(mut storage) => disown(&mut storage, directory)?,
            // A file of a newer build is one of a space all the same.
            Err(Error::Newer { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let explained = |error| Error::io(path, "remove the file", &error);
    std::fs::remove_file(path).map_err(explained)?;
    for suffix in ["-wal", "-shm"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(explained(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Lets whoever has a space of the file open find that it is not theirs any more, and removes the memory of all.
fn disown(storage: &mut Storage, directory: &Directory) -> Result<(), Error> {
    let file = storage.file();
    let writing = storage.write()?;
    let headers = writing.headers()?;
    for (_, header) in &headers {
        begin_next(&writing, (file, header), directory)?;
    }
    writing.commit()?;
    for (_, header) in &headers {
        // It may be gone already.
        let _ = directory.remove(&Memory::of(file, header).name());
    }
    Ok(())
}

/// Removes the space of this name from a file, and its memory. The file stays, with its other spaces. Processes that have the space
/// open can change nothing any more.
///
/// # Errors
///
/// [`Error::NotFound`] if there is no file or no such space in it; as [`remove`].
pub fn remove_space(path: &Path, name: &str, directory: &Directory) -> Result<(), Error> {
    let _inside = gate::enter();
    let mut storage = Storage::open(path)?;
    let file = storage.file();
    end_settled(&mut storage, name, directory, |writing| {
        let not_found = || Error::NotFound { path: path.to_owned() };
        let header = writing.header(name)?.ok_or_else(not_found)?;
        // It may be gone already.
        let _ = directory.remove(&Memory::of(file, &header).name());
        writing.remove_space(&header)?;
        writing.commit_and_shrink()
    })
}
