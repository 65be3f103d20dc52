//! Where the file behind a mapping is, of which no descriptor is kept.
//!
//! A file is the same as long as its device and inode are: neither is given to another while the file is mapped.
//! A look at a path here only explains, or decides what to keep for later: it changes no file.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, Stat, StatVfs, Timespec, Timestamps, UTIME_NOW, utimensat};
use rustix::io::Errno;

use crate::error::{Error, Limit};
use crate::segment::Directory;

/// A file whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl From<&Stat> for FileIdentity {
    fn from(status: &Stat) -> Self {
        Self { device: status.st_dev, inode: status.st_ino }
    }
}

/// Where the file of a segment is, and which one it is.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) directory: Directory,
    file: FileIdentity,
    /// Which directory that is, since its path may lead elsewhere later; `None` if it could not be asked.
    place: Option<FileIdentity>,
    name: OnceLock<String>,
}

impl Home {
    /// That of an open file in `directory`, of which no name is known.
    pub(crate) fn new(file: &File, directory: &Directory) -> Result<Self, Error> {
        let status =
            rustix::fs::fstat(file).map_err(|errno| Error::system("inspect", None, errno))?;
        let (directory, file) = (directory.absolute(), FileIdentity::from(&status));
        let place = place_of(&directory);
        Ok(Self { directory, file, place, name: OnceLock::new() })
    }

    pub(crate) const fn file(&self) -> FileIdentity {
        self.file
    }

    /// Notes the name of the segment, unless it is known.
    pub(crate) fn set_name(&self, name: &str) {
        self.name.get_or_init(|| name.to_owned());
    }

    /// The name of the segment; `None` if it never had one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.get().map(String::as_str)
    }

    fn path(&self) -> Option<PathBuf> {
        self.directory.path_of(self.name()?).ok()
    }

    /// The status of the file, if it still has its name.
    pub(crate) fn status(&self) -> Option<Stat> {
        let status = rustix::fs::lstat(self.path()?).ok()?;
        (FileIdentity::from(&status) == self.file).then_some(status)
    }

    /// Whether the file has lost its name. False where that can not be told: a process may have another root by now, or
    /// may not look there.
    pub(crate) fn is_missing(&self) -> bool {
        let Some(path) = self.path() else { return false };
        let is_here = match rustix::fs::lstat(path) {
            Ok(status) => FileIdentity::from(&status) == self.file,
            Err(errno) => errno != Errno::NOENT,
        };
        !is_here && self.place.is_some() && self.place == place_of(&self.directory)
    }

    /// The file system, if it can be asked.
    fn file_system(&self) -> Option<StatVfs> {
        rustix::fs::statvfs(self.directory.path()).ok()
    }

    /// Notes in the file that it was in use until now: stores through a mapping leave no date.
    pub(crate) fn touch(&self) {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        if let (Some(_), Some(path)) = (self.status(), self.path()) {
            // A date for people, who miss nothing without it.
            let _ = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
        }
    }

    /// An error if the file system is too small for `bytes`, however empty it is.
    pub(crate) fn check_size(&self, bytes: usize) -> Result<(), Error> {
        let is_too_small = |system: &StatVfs| system.f_blocks != 0 && total(system) < bytes as u64;
        match self.file_system().filter(is_too_small) {
            Some(system) => Err(full(bytes, Some(&system))),
            None => Ok(()),
        }
    }

    /// Whether the file system says that it has `bytes` left, or has no limit.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let has_room = |system: StatVfs| system.f_blocks == 0 || left(&system) >= bytes as u64;
        self.file_system().is_some_and(has_room)
    }

    /// Why the system has no page for some of `range`. It does not say, so the possible causes are asked.
    pub(crate) fn refusal(&self, range: &Range<usize>) -> Error {
        let short =
            self.status().filter(|status| status.st_size.cast_unsigned() < range.end as u64);
        if let Some(status) = short {
            return Error::corrupted(format!(
                "its file was cut short to {} bytes, and is used up to {}",
                status.st_size, range.end
            ));
        }
        full(range.len(), self.file_system().as_ref())
    }
}

fn place_of(directory: &Directory) -> Option<FileIdentity> {
    rustix::fs::stat(directory.path()).ok().map(|status| FileIdentity::from(&status))
}

fn left(system: &StatVfs) -> u64 {
    system.f_bavail * system.f_frsize
}

fn total(system: &StatVfs) -> u64 {
    system.f_blocks * system.f_frsize
}

/// The file system has no `bytes` left; or it has, and a quota does not.
fn full(wanted_bytes: usize, system: Option<&StatVfs>) -> Error {
    let (wanted_bytes, left_bytes) = (wanted_bytes as u64, system.map_or(0, left));
    let limit_bytes = system.map_or(0, total);
    let is_quota = limit_bytes != 0 && left_bytes >= wanted_bytes;
    // A quota may leave less than the file system has.
    let (limit, available_bytes) =
        if is_quota { (Limit::Quota, 0) } else { (Limit::Filesystem, left_bytes) };
    Error::Full { wanted_bytes, available_bytes, limit_bytes, limit }
}
