//! The announcements of processes in a segment that they do work for others: a lock on a byte of its file, for as long
//! as they do the work.
//!
//! Nothing is stored for it in the segment. The kernel keeps the locks, answers questions about them, and lets go when
//! a process ends, however it ended. The hash of the announced text selects the byte, which lies beyond the end of any
//! file.
//! It is advice, not a promise: between the question and the answer a process may begin or end.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use crate::error::Error;
use crate::kept::Kept;
use crate::segment::Directory;

/// What this process announces, until it is dropped or the process ends.
#[derive(Debug)]
pub struct Announcement {
    _file: Kept<File>,
}

impl Directory {
    /// Announces in the segment that has the name `name` now that this process does `what`. Any number of processes may.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::AccessDenied`], [`Error::BadName`], [`Error::System`] where the file system has no locks.
    pub fn announce(&self, name: &str, what: &str) -> Result<Announcement, Error> {
        let path = self.path_of(name)?;
        let file = self.open(&path)?;
        let mut lock = lock(libc::F_RDLCK, what);
        control(&file, libc::F_OFD_SETLK, &mut lock)
            .map_err(|errno| Error::system("lock a byte of", Some(path), errno))?;
        Ok(Announcement { _file: Kept::new(file) })
    }

    /// Whether a process that lives, perhaps this one, has announced `what` in the segment that has the name `name` now.
    ///
    /// # Errors
    ///
    /// As [`Directory::announce`].
    pub fn is_announced(&self, name: &str, what: &str) -> Result<bool, Error> {
        let path = self.path_of(name)?;
        let file = self.open(&path)?;
        // A lock that excludes all others: the system names the conflicting lock, and does not take this one.
        let mut lock = lock(libc::F_WRLCK, what);
        control(&file, libc::F_OFD_GETLK, &mut lock)
            .map_err(|errno| Error::system("look for locks of", Some(path), errno))?;
        Ok(i32::from(lock.l_type) != libc::F_UNLCK)
    }
}

/// A lock of one byte.
fn lock(kind: i32, what: &str) -> libc::flock {
    // SAFETY: numbers, for which zeros are a value: that of an owner must be 0 in this kind of lock.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // Each of them fits: the system's own constants.
    #[expect(clippy::cast_possible_truncation, reason = "the constants are 0 to 2")]
    {
        lock.l_type = kind as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
    }
    lock.l_start = place(what);
    lock.l_len = 1;
    lock
}

/// The byte that stands for `what`: a hash (FNV-1a) in the upper half of the possible offsets of a file.
fn place(what: &str) -> i64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = what.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash >> 2).cast_signed() | 1 << 62
}

fn control(file: &File, command: i32, lock: &mut libc::flock) -> Result<(), Errno> {
    // SAFETY: an open file, and a lock that the system reads and writes during the call.
    let result =
        unsafe { libc::fcntl(file.as_fd().as_raw_fd(), command, std::ptr::from_mut(lock)) };
    if result == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}
