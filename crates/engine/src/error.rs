//! Why an operation of the engine was refused.

use std::fmt;

/// Why an operation was refused. It had no effect, unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The space may not, or the system can not, hold more (rule B1).
    SpaceFull {
        /// Tuples in the space.
        tuples: u64,
        /// Tuples that it may hold, if that is limited.
        tuples_max: Option<u64>,
        /// Bytes of the arena in use.
        used_bytes: u64,
        /// Bytes that the arena may have.
        max_bytes: u64,
        /// What the system said, if it was the one to refuse.
        system: Option<String>,
    },
    /// The tuple alone is larger than the space may ever be.
    TooLarge {
        /// What the tuple needs, in bytes.
        bytes: u64,
        /// What the space may hold, in bytes.
        max_bytes: u64,
    },
    /// A stated maximum was reached (rule B2).
    LimitExceeded {
        /// What there are too many of.
        what: &'static str,
        /// The maximum.
        limit: usize,
    },
    /// One atomic step would change more than the undo log can hold.
    TransactionTooBig {
        /// Words that one step may change.
        limit: usize,
    },
    /// A template that cannot be kept while its caller waits.
    Template(String),
    /// What the memory below said.
    Memory(tupelo_shm::Error),
    /// Something must be had first; never leaves the engine.
    #[doc(hidden)]
    Need(Need),
}

/// What an operation found missing. It is dropped, the missing is got while no lock is held, and the
/// operation begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Need {
    /// Neighbouring extents.
    Extents {
        /// So many.
        count: u32,
        /// How many extents the arena had, all told, when there were not.
        committed: u32,
    },
    /// A longer undo log.
    Log,
}

impl From<Need> for Error {
    fn from(need: Need) -> Self {
        Self::Need(need)
    }
}

impl From<tupelo_shm::Error> for Error {
    #[cold]
    fn from(error: tupelo_shm::Error) -> Self {
        match error {
            tupelo_shm::Error::LogFull => Self::Need(Need::Log),
            tupelo_shm::Error::LimitExceeded { what, limit } => Self::LimitExceeded { what, limit },
            error => Self::Memory(error),
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SpaceFull { tuples, tuples_max: Some(max), .. } if tuples >= max => {
                write!(f, "space is full: {tuples} tuples, and it was created for {max}")
            }
            Self::SpaceFull { tuples, used_bytes, max_bytes, system, .. } => {
                write!(f, "space is full: {tuples} tuples in {used_bytes} of {max_bytes} bytes")?;
                system.as_ref().map_or(Ok(()), |said| write!(f, " ({said})"))
            }
            Self::TooLarge { bytes, max_bytes } => {
                write!(f, "tuple needs {bytes} bytes, over the {max_bytes} that the space may hold")
            }
            Self::LimitExceeded { what, limit } => write!(f, "no more than {limit} {what}"),
            Self::TransactionTooBig { limit } => {
                write!(f, "one atomic step changes more than {limit} words: do it in smaller steps")
            }
            Self::Template(problem) => f.write_str(problem),
            Self::Memory(error) => error.fmt(f),
            Self::Need(need) => write!(f, "missing {need:?}"),
        }
    }
}
