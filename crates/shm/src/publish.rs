//! Files that get their name last.
//!
//! A new file has no name (`O_TMPFILE`) until it is complete; a creator that is killed leaves nothing. Where the file
//! system cannot do that, and for the moment in which one file replaces another, it has a temporary name. Its maker
//! holds a file lock while it needs that name. The lock ends with the maker, so a process that can take the lock may
//! remove a dead maker's file. No process number is looked at, since makers may live in other pid namespaces.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::error::{Error, Limit};
use crate::names;
use crate::segment::{Directory, open_file};
use crate::superblock::random_word;

/// Tries to make a file under a temporary name that a cleaner does not remove at once.
const TRIES_MAX: u32 = 100;

/// A file that others cannot find yet. Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Unpublished {
    file: File,
    /// The temporary name, if the file system insists on one.
    name: Option<PathBuf>,
}

impl Unpublished {
    /// Makes an empty file in the directory.
    ///
    /// # Errors
    ///
    /// [`Error::AccessDenied`] if this user cannot create files there; [`Error::System`] otherwise.
    pub(crate) fn new(directory: &Directory, mode: u32) -> Result<Self, Error> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match open_file(directory.path(), flags, Mode::from_raw_mode(mode)) {
            Ok(file) if has_proc() => Self { file, name: None }.with_mode(mode),
            Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                Self::with_temporary_name(directory, mode)
            }
            Err(errno) => Err(directory.refused("create a file in", directory.path(), errno)),
        }
    }

    /// The file itself.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// Makes the file `bytes` long. It takes no memory for that.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if the process may not write files of that size.
    pub(crate) fn set_length(&self, bytes: usize) -> Result<(), Error> {
        let wanted_bytes = bytes as u64;
        // Beyond the limit the kernel sends SIGXFSZ, which kills; so ask first.
        let limit_bytes = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        if limit_bytes < wanted_bytes {
            let (available_bytes, limit) = (limit_bytes, Limit::FileSize);
            return Err(Error::Full { wanted_bytes, available_bytes, limit_bytes, limit });
        }
        rustix::io::retry_on_intr(|| rustix::fs::ftruncate(&self.file, wanted_bytes))
            .map_err(|errno| Error::system("set the length of a new file", None, errno))
    }

    /// As [`new`](Self::new), for file systems that know no files without names.
    pub(crate) fn with_temporary_name(directory: &Directory, mode: u32) -> Result<Self, Error> {
        sweep(directory);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        for _ in 0..TRIES_MAX {
            let name = temporary_name(directory)?;
            let file = match open_file(&name, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => file,
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(directory.refused("create", &name, errno)),
            };
            let unpublished = Self { file, name: Some(name) };
            unpublished.hold()?;
            // Between creation and lock a cleaner may have taken the file for a dead maker's.
            if rustix::fs::fstat(&unpublished.file).is_ok_and(|status| status.st_nlink > 0) {
                return unpublished.with_mode(mode);
            }
        }
        Err(Error::system(
            "create a temporary file in",
            Some(directory.path().into()),
            Errno::AGAIN,
        ))
    }

    /// Sets the permissions to exactly `mode`: a umask is meant for files people create by hand.
    fn with_mode(self, mode: u32) -> Result<Self, Error> {
        match rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode)) {
            Ok(()) => Ok(self),
            Err(errno) => Err(Error::system("set the mode of a new file", None, errno)),
        }
    }

    /// Locks the file, so that no cleaner removes it.
    fn hold(&self) -> Result<(), Error> {
        rustix::io::retry_on_intr(|| rustix::fs::flock(&self.file, FlockOperation::LockExclusive))
            .map_err(|errno| Error::system("lock a new file", self.name.clone(), errno))
    }

    /// Gives the file its name. `false`: the name is taken, and nothing happened.
    pub(crate) fn publish(&self, path: &Path) -> Result<bool, Error> {
        match self.link(path) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(Error::system("create", Some(path.into()), errno)),
        }
    }

    /// Gives the file its name, in place of a file that had it, in one step.
    pub(crate) fn replace(&self, directory: &Directory, path: &Path) -> Result<(), Error> {
        sweep(directory);
        self.hold()?;
        let name = temporary_name(directory)?;
        self.link(&name).map_err(|errno| Error::system("create", Some(name.clone()), errno))?;
        let renamed = rustix::fs::rename(&name, path);
        if renamed.is_err() {
            let _ = rustix::fs::unlink(&name);
        }
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        // In a directory like /dev/shm only the owner of a file may replace it.
        renamed.map_err(|errno| directory.refused("replace", path, errno))
    }

    /// Adds a name, which must be free.
    fn link(&self, path: &Path) -> Result<(), Errno> {
        let Some(name) = &self.name else {
            // The direct way (AT_EMPTY_PATH) is a privilege on most kernels.
            let file = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            return rustix::fs::linkat(CWD, file, CWD, path, AtFlags::SYMLINK_FOLLOW);
        };
        rustix::fs::linkat(CWD, name, CWD, path, AtFlags::empty())
    }
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = rustix::fs::unlink(name);
            // Others may have the description by a fork; the name is gone, so must be the lock.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

/// Removes temporary names whose makers are dead. Failing costs nothing now: the next one tries again.
fn sweep(directory: &Directory) {
    let Ok(entries) = fs::read_dir(directory.path()) else { return };
    for entry in entries.flatten() {
        if !entry
            .file_name()
            .to_str()
            .is_some_and(|name| names::is_temporary(name, directory.user()))
        {
            continue;
        }
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let Ok(file) = rustix::fs::open(entry.path(), flags, Mode::empty()) else { continue };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = rustix::fs::unlink(entry.path());
        }
    }
}

fn temporary_name(directory: &Directory) -> Result<PathBuf, Error> {
    Ok(directory.path().join(names::temporary_name(directory.user(), random_word()?)))
}

/// Whether a file without a name can be given one.
fn has_proc() -> bool {
    fs::exists("/proc/self/fd").unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use tupelo_crashtest::{Exit, fork, shared_words};

    use super::*;
    use std::sync::atomic::Ordering;

    /// A directory of its own in shared memory, removed at the end.
    fn in_scratch(name: &str, test: impl FnOnce(&Directory)) {
        let path = PathBuf::from(format!("/dev/shm/tupelo-publish-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        test(&Directory::new(&path));
        fs::remove_dir_all(path).unwrap();
    }

    fn files(directory: &Directory) -> Vec<String> {
        let entries = fs::read_dir(directory.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_with_a_temporary_name_is_published_and_replaces_like_one_without() {
        in_scratch("both", |directory| {
            let path = directory.path().join("final");
            for make in [Unpublished::new, Unpublished::with_temporary_name] {
                let (first, second) =
                    (make(directory, 0o640).unwrap(), make(directory, 0o600).unwrap());
                assert_eq!(first.publish(&path), Ok(true));
                assert_eq!(second.publish(&path), Ok(false), "the name is taken");
                second.replace(directory, &path).unwrap();
                drop((first, second));
                assert_eq!(files(directory), ["final"]);
                fs::remove_file(&path).unwrap();
            }
        });
    }

    #[test]
    fn a_file_that_is_not_published_leaves_nothing() {
        in_scratch("dropped", |directory| {
            drop(Unpublished::new(directory, 0o600).unwrap());
            drop(Unpublished::with_temporary_name(directory, 0o600).unwrap());
            assert_eq!(files(directory), [""; 0]);
        });
    }

    #[test]
    fn what_a_dead_maker_left_is_swept_and_what_a_living_one_needs_is_not() {
        in_scratch("swept", |directory| {
            let ready = shared_words(1);
            let maker = fork(|| {
                let file = Unpublished::with_temporary_name(directory, 0o600).unwrap();
                ready[0].store(1, Ordering::Release);
                loop {
                    std::hint::black_box(&file);
                    std::thread::park();
                }
            });
            while ready[0].load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            sweep(directory);
            assert_eq!(files(directory).len(), 1);
            assert_eq!(maker.kill(), Exit::Killed(9));
            sweep(directory);
            assert_eq!(files(directory).len(), 0);
        });
    }
}
