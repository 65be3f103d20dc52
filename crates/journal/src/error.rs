//! Why a space in a file can not be used, or can not be kept.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// What went wrong with the file of a space.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file, and it was not to be created.
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The system, or the file's owner, does not let this user write to it.
    AccessDenied {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// The file is no space, or was damaged.
    Corrupted {
        /// The file.
        path: PathBuf,
        /// What was found in it.
        problem: String,
    },
    /// A newer build has made the file, with another layout.
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its layout.
        found: i64,
        /// The newest that this build knows.
        known: i64,
    },
    /// Another build has made the memory of the file, and not all of its changes are in the file.
    OnlyInOldMemory {
        /// The file.
        path: PathBuf,
        /// The file of the memory.
        memory: PathBuf,
        /// How much of its journal is not in the file, in bytes.
        bytes: u64,
    },
    /// The space was opened anew while the memory of this process could not be found, or was removed from the file: what is done here
    /// does not count any more.
    TakenOver {
        /// The file.
        path: PathBuf,
        /// The generation of the memory that this process has.
        own: u64,
        /// The generation that the file has now; 0: the file does not have the space any more.
        found: u64,
    },
    /// The file was removed, or another one was put in its place, while it was open.
    Replaced {
        /// Where it was.
        path: PathBuf,
    },
    /// Another subscriber goes on with the subscription, or it was ended.
    SubscriptionOver {
        /// The file.
        path: PathBuf,
    },
    /// The system refused to read or write.
    Storage {
        /// The file.
        path: PathBuf,
        /// What was tried, and what the system said.
        problem: String,
    },
    /// What the engine says.
    Engine(tupelo_engine::Error),
    /// What the shared memory says.
    Memory(tupelo_shm::Error),
}

impl Error {
    /// What SQLite says about the file at `path`, when it was asked to do `action`.
    #[cold]
    pub(crate) fn sqlite(path: &Path, action: &str, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let code = error.sqlite_error_code();
        let problem = match code {
            Some(ErrorCode::DiskFull) => format!("cannot {action}: the disk is full"),
            Some(ErrorCode::SystemIoFailure) => {
                format!("cannot {action}: the disk failed to {}", failed_call(error))
            }
            _ => format!("cannot {action}: {error}"),
        };
        match code {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Self::Corrupted { path, problem }
            }
            // A value of a kind that we never write there.
            None if matches!(error, rusqlite::Error::FromSqlConversionFailure(..)) => {
                Self::Corrupted { path, problem }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Self::AccessDenied { path, problem }
            }
            _ => Self::Storage { path, problem },
        }
    }

    /// What the system says about the file at `path`, when it was asked to do `action`.
    #[cold]
    pub(crate) fn io(path: &Path, action: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let (path, problem) = (path.to_owned(), format!("cannot {action}: {error}"));
        match error.kind() {
            ErrorKind::NotFound => Self::NotFound { path },
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                Self::AccessDenied { path, problem }
            }
            _ => Self::Storage { path, problem },
        }
    }
}

/// What the disk was asked for when it failed.
fn failed_call(error: &rusqlite::Error) -> &'static str {
    use rusqlite::ffi;
    match error.sqlite_error().map(|error| error.extended_code) {
        Some(ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ) => "read",
        Some(ffi::SQLITE_IOERR_WRITE) => "write",
        Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC) => "sync what was written",
        Some(ffi::SQLITE_IOERR_TRUNCATE | ffi::SQLITE_IOERR_SHMSIZE) => {
            "change the length of a file"
        }
        Some(ffi::SQLITE_IOERR_LOCK | ffi::SQLITE_IOERR_UNLOCK | ffi::SQLITE_IOERR_RDLOCK) => {
            "lock a file"
        }
        Some(ffi::SQLITE_IOERR_DELETE) => "remove a file",
        _ => "do what was asked for (an I/O error)",
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { path } => write!(f, "there is no file {}", path.display()),
            Self::AccessDenied { path, problem }
            | Self::Corrupted { path, problem }
            | Self::Storage { path, problem } => write!(f, "{}: {problem}", path.display()),
            Self::SubscriptionOver { path } => write!(
                f,
                "{}: another subscriber goes on with the subscription, or it was ended",
                path.display()
            ),
            Self::Newer { path, found, known } => write!(
                f,
                "{} has layout {found}, and this build knows layouts up to {known}",
                path.display()
            ),
            Self::TakenOver { path, found: 0, .. } => {
                write!(f, "the space was removed from {}", path.display())
            }
            Self::OnlyInOldMemory { path, memory, bytes } => write!(
                f,
                "{} can not be opened yet: {bytes} bytes of changes are only in its memory {}, which another version has made",
                path.display(),
                memory.display()
            ),
            Self::TakenOver { path, own, found } => write!(
                f,
                "{} was opened anew elsewhere (generation {found}), and this program has the memory of generation {own}",
                path.display()
            ),
            Self::Replaced { path } => write!(
                f,
                "{} was removed, or replaced by another file, while this program had it open",
                path.display()
            ),
            Self::Engine(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<tupelo_engine::Error> for Error {
    #[cold]
    fn from(error: tupelo_engine::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<tupelo_shm::Error> for Error {
    #[cold]
    fn from(error: tupelo_shm::Error) -> Self {
        Self::Memory(error)
    }
}
