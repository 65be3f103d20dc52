//! Which calls of the kernel concern files, and what they would do to them.

use std::path::{Path, PathBuf};

use crate::calls::{Call, TracedCalls};

/// What a call would do to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileCall {
    /// Opens it; makes it if it is not there, when `creates` says so.
    Open {
        /// The file.
        path: PathBuf,
        /// Whether it may be made.
        creates: bool,
    },
    /// Reads from it.
    Read {
        /// The file.
        path: PathBuf,
    },
    /// Locks a part of it, asks for a lock, or for another thing of a descriptor.
    Lock {
        /// The file.
        path: PathBuf,
    },
    /// Writes these bytes.
    Write {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// Gives it this length.
    Truncate {
        /// The file.
        path: PathBuf,
        /// How long it will be.
        length: u64,
    },
    /// Waits until what was written to it is on the disk; of a directory, its names.
    Sync {
        /// The file.
        path: PathBuf,
    },
    /// Removes its name.
    Remove {
        /// The file.
        path: PathBuf,
    },
}

impl FileCall {
    /// The file that it concerns.
    pub fn path(&self) -> &Path {
        match self {
            Self::Open { path, .. }
            | Self::Read { path }
            | Self::Lock { path }
            | Self::Write { path, .. }
            | Self::Truncate { path, .. }
            | Self::Sync { path }
            | Self::Remove { path } => path,
        }
    }

    /// Whether it may change what a later reader finds.
    pub const fn changes(&self) -> bool {
        match self {
            Self::Open { creates, .. } => *creates,
            Self::Read { .. } | Self::Lock { .. } => false,
            Self::Write { .. }
            | Self::Truncate { .. }
            | Self::Sync { .. }
            | Self::Remove { .. } => true,
        }
    }
}

impl TracedCalls {
    /// What a call would do to a file; `None` if it concerns none.
    ///
    /// # Panics
    ///
    /// If the process passes an address where it has nothing.
    pub fn file_call(&self, call: &Call) -> Option<FileCall> {
        let [first, second, third, fourth, ..] = call.arguments;
        let file = || self.file_of(first);
        let path_at = |address| self.text_at(address).ok().map(PathBuf::from);
        let length = |length: usize| length as u64;
        Some(match call.number {
            libc::SYS_openat => {
                let creates = third & libc::O_CREAT.unsigned_abs() as usize != 0;
                FileCall::Open { path: path_at(second)?, creates }
            }
            libc::SYS_read | libc::SYS_pread64 => FileCall::Read { path: file()? },
            libc::SYS_fcntl => FileCall::Lock { path: file()? },
            libc::SYS_write => {
                let (path, bytes) = (file()?, self.bytes_at(second, third));
                FileCall::Write { path, offset: self.offset_of(first), bytes }
            }
            libc::SYS_pwrite64 => {
                let (path, bytes) = (file()?, self.bytes_at(second, third));
                FileCall::Write { path, offset: length(fourth), bytes }
            }
            libc::SYS_ftruncate => FileCall::Truncate { path: file()?, length: length(second) },
            libc::SYS_fsync | libc::SYS_fdatasync => FileCall::Sync { path: file()? },
            libc::SYS_unlink => FileCall::Remove { path: path_at(first)? },
            libc::SYS_unlinkat => FileCall::Remove { path: path_at(second)? },
            _ => return None,
        })
    }
}
