//! Why an operation of the engine was refused.

use std::fmt;

use tupelo_shm::Bytes;
use tupelo_tuple::{Class, Shape};

use crate::base::abortion::Abortion;
use crate::base::layout::SMALL_SLAB_BYTES;

/// Why an operation was refused. It had no effect, unless the variant says otherwise.
///
/// Small, since every step of a put hands one back or does not: what takes more than a few words is boxed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The space may not, or the system can not, hold more (rule B1).
    SpaceFull(Box<Fullness>),
    /// The tuple alone is larger than the space may ever be.
    TooLarge {
        /// What the tuple needs, in bytes.
        bytes: u64,
        /// What the space may hold, in bytes.
        max_bytes: u64,
    },
    /// The tuples are larger than the space may ever be beside the tuple that is claimed, which goes when they are there.
    TooLargeBeside {
        /// What they need, in bytes.
        bytes: u64,
        /// What the claimed one needs, in bytes.
        held_bytes: u64,
        /// What the space may hold, in bytes.
        max_bytes: u64,
    },
    /// There are more tuples than the space may ever hold.
    TooMany {
        /// How many.
        tuples: u64,
        /// How many it may hold.
        tuples_max: u64,
    },
    /// A stated maximum was reached (rule B2).
    LimitExceeded {
        /// What there are too many of.
        what: &'static str,
        /// The maximum.
        limit: usize,
    },
    /// The space has as many shapes (combinations of kinds) as it may (rule B2).
    TooManyShapes(Box<ManyShapes>),
    /// One atomic step would change more than the undo log can hold.
    TransactionTooBig {
        /// Words that one step may change.
        limit: usize,
    },
    /// The claim ran out, or its tuple was given to somebody else (rule K3).
    ClaimLost {
        /// The process that has the tuple now, if somebody has claimed it and it can be told.
        pid: Option<u32>,
    },
    /// The claim was settled already: done, or aborted.
    ClaimSettled,
    /// The claim belongs to the process that this one was forked from.
    ClaimForked,
    /// The lease of the transaction has ended (rules X5, X6): everything is as it was before it.
    Aborted(Box<Abortion>),
    /// Somebody has put a match of what was absent in the transaction ([`crate::Transaction::put_if_absent`]): everything is as it
    /// was before the transaction.
    NotAbsent,
    /// The transaction was committed, or aborted.
    TransactionEnded {
        /// Which of the two.
        committed: bool,
    },
    /// The transaction belongs to the process that this one was forked from.
    TransactionForked,
    /// A tuple is larger than the buffer of a subscription: what happened to it is missed (rule N2).
    EventTooLarge {
        /// The tuple's size, in bytes.
        bytes: u64,
        /// The buffer's.
        max_bytes: u64,
        /// That of a buffer with room for the event.
        enough_bytes: u64,
    },
    /// The tuple of the lease is not there any more (rule L2).
    LeaseExpired,
    /// Somebody has the tuple of the lease in hands (rule L2).
    LeaseHeld {
        /// The process that has claimed it, or taken it in an open transaction, if it can be told.
        pid: Option<u32>,
    },
    /// A template that cannot be kept while its caller waits.
    Template(Box<str>),
    /// The system refused something.
    System(Box<str>),
    /// The ring of the journal is full, and nobody drains it.
    JournalFull {
        /// So many bytes were to be free.
        bytes: u64,
        /// Bytes of the ring.
        journal_bytes: u64,
    },
    /// What a durable space is kept in refused something.
    Storage(Box<str>),
    /// What the memory below said.
    Memory(Box<tupelo_shm::Error>),
    /// The call was given up between two steps ([`crate::in_steps`]): its language has something to raise. Nothing happened.
    Interrupted,
    /// The call was given up between two steps ([`crate::in_steps`]): its time was over. Nothing happened.
    OutOfTime,
    /// Something must be had first; never leaves the engine.
    #[doc(hidden)]
    Need(Need),
}

const _: () = assert!(size_of::<Error>() <= 32);

/// The figures of a space that is full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fullness {
    /// What the space is called.
    pub space: String,
    /// Tuples in the space.
    pub tuples: u64,
    /// The shape that has most of them, and how many it has. `None` if there are none, or if tuples are dropped for others.
    pub fullest: Option<(Shape, u64)>,
    /// How many shapes have tuples. 0 if tuples are dropped for others.
    pub shapes: u32,
    /// Those that nobody can take now: claimed, dead, in a transaction, or there later. 0 if tuples are dropped for others.
    pub hidden: u64,
    /// Bytes of the arena that are buffers of subscriptions. 0 if tuples are dropped for others.
    pub buffers_bytes: u64,
    /// Tuples that it may hold, if that is limited.
    pub tuples_max: Option<u64>,
    /// Whether it was for the number of tuples that more were refused.
    pub too_many: bool,
    /// Bytes of the arena in use.
    pub used_bytes: u64,
    /// Bytes that the arena may have.
    pub max_bytes: u64,
    /// What the system said, if it was the one to refuse.
    pub system: Option<String>,
    /// Bytes that can still be had of the system, if it was the one to refuse.
    pub system_free_bytes: Option<u64>,
    /// Callers that waited for the room that there is; 0 if there is none.
    pub waiting: u32,
    /// If there is room, and not in one piece.
    pub in_pieces: Option<InPieces>,
}

/// What is missing in a space that is fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPieces {
    /// Bytes that are wanted in one piece.
    pub wanted_bytes: u64,
    /// The bytes of the largest piece.
    pub largest_bytes: u64,
}

impl Fullness {
    /// Whether most of the room is that of shapes with few tuples each.
    fn is_scattered(&self) -> bool {
        self.shapes > 1 && 2 * u64::from(self.shapes) * SMALL_SLAB_BYTES as u64 > self.used_bytes
    }

    /// Whether there is room, for those who waited for it: then nothing has to go for more.
    pub(crate) fn is_for_others(&self) -> bool {
        self.waiting > 0
    }
}

/// What an operation found missing. Its section is dropped, what is missing is got while no partition is locked, and
/// the operation begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Need {
    /// Neighbouring extents.
    Extents {
        /// So many.
        count: u32,
        /// Among the first so many.
        end: u32,
        /// How many extents the arena had, all told, when there were not.
        committed: u32,
    },
    /// Free extents that tuples leave to others.
    Reserve {
        /// So many more.
        count: u32,
        /// How many extents the arena had, all told, when there were not.
        committed: u32,
    },
    /// Memory for blocks of one size, for which a small slab is enough ([`crate::store::slab`]).
    SmallSlab {
        /// The class of the blocks.
        class: u32,
        /// So many extents are missing, if there is none: neighbouring ones, or of the reserve.
        count: u32,
        /// How many extents the arena had, all told, when they were.
        committed: u32,
        /// Whether they are missing in the reserve.
        is_reserve: bool,
    },
    /// Memory for more buckets of an index, which can do without.
    Table {
        /// The lock of its partition.
        scope: u32,
        /// The fields that it is over.
        mask: u32,
        /// How many keys it has.
        keys: u32,
        /// So many extents are missing: neighbouring ones, or of the reserve.
        count: u32,
        /// How many extents the arena had, all told, when they were.
        committed: u32,
        /// Whether they are missing in the reserve.
        is_reserve: bool,
    },
    /// A longer undo log.
    Log,
    /// Free bytes in the ring of a subscription.
    EventRoom {
        /// The wait node of the subscription.
        node: u32,
        /// So many.
        bytes: u32,
    },
    /// Free bytes in the ring of the journal.
    JournalRoom {
        /// So many.
        bytes: u32,
    },
    /// That everything happens that is due in the space: some tuples may be gone then.
    Time,
    /// That everything happens that is due in one partition.
    PartitionTime {
        /// Its lock.
        scope: u32,
    },
}

impl Need {
    /// The extents that a table or a small slab needs, which are to lie among the first `end`.
    pub(crate) fn of_memory(self, end: u32) -> Self {
        match self {
            Self::Table { count, committed, is_reserve, .. }
            | Self::SmallSlab { count, committed, is_reserve, .. } => {
                if is_reserve {
                    Self::Reserve { count, committed }
                } else {
                    Self::Extents { count, end, committed }
                }
            }
            other => other,
        }
    }
}

impl Error {
    /// Whether a lock was waited for whose holder lives and does not leave.
    pub(crate) fn is_stall(&self) -> bool {
        matches!(self, Self::Memory(error) if matches!(**error, tupelo_shm::Error::Stalled { .. }))
    }
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
            error => Self::Memory(Box::new(error)),
        }
    }
}

/// What the shapes of a space are that has no room for another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManyShapes {
    /// How many there may be.
    pub limit: usize,
    /// How many of them have one arity and class, the most.
    pub count: usize,
    /// That arity.
    pub arity: usize,
    /// That class, if they are of entries.
    pub class: Option<&'static Class>,
}

impl fmt::Display for ManyShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, count, arity, class } = self;
        write!(f, "no more than {limit} shapes (combinations of kinds); {count} of them are of ")?;
        match class {
            Some(class) => write!(f, "entries of {}", class.name())?,
            None => write!(f, "tuples of {arity} fields")?,
        }
        f.write_str(", which differ in kinds alone")
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SpaceFull(full) => full.fmt(f),
            Self::TooLarge { bytes, max_bytes } => {
                write!(f, "tuple needs {bytes} bytes, over the {max_bytes} that the space may hold")
            }
            Self::TooLargeBeside { bytes, held_bytes, max_bytes } => write!(
                f,
                "what is put needs {bytes} bytes, and the claimed tuple, which goes only then, {held_bytes}: over the \
                 {max_bytes} that the space may hold"
            ),
            Self::TooMany { tuples, tuples_max } => {
                write!(
                    f,
                    "{tuples} tuples at once are over the {tuples_max} that the space may hold"
                )
            }
            Self::LimitExceeded { what, limit } => write!(f, "no more than {limit} {what}"),
            Self::TooManyShapes(many) => fmt::Display::fmt(many, f),
            Self::TransactionTooBig { limit } => {
                write!(f, "one atomic step changes more than {limit} words")
            }
            Self::ClaimLost { pid: Some(pid) } => {
                write!(f, "the claim ran out, and process {pid} has the tuple now")
            }
            Self::ClaimLost { pid: None } => f.write_str("the claim ran out"),
            Self::ClaimSettled => f.write_str("the claim was settled already"),
            Self::ClaimForked => {
                f.write_str("the claim belongs to the process that this one was forked from")
            }
            Self::Aborted(abortion) => abortion.fmt(f),
            Self::NotAbsent => f.write_str(
                "another caller has put a match of what put_if_absent found absent: the transaction was rolled back",
            ),
            Self::TransactionEnded { committed } => {
                let how = if *committed { "committed" } else { "aborted" };
                write!(f, "the transaction was {how} already")
            }
            Self::TransactionForked => {
                f.write_str("the transaction belongs to the process that this one was forked from")
            }
            Self::EventTooLarge { bytes, max_bytes, .. } => {
                write!(
                    f,
                    "an event of a tuple of {bytes} bytes is missed: the buffer has {max_bytes}"
                )
            }
            Self::LeaseExpired => f.write_str("the tuple of this lease is not there any more"),
            Self::LeaseHeld { pid: Some(pid) } => write!(
                f,
                "the tuple of this lease is in the hands of process {pid}, which has claimed it, or taken it in an \
                 open transaction"
            ),
            Self::LeaseHeld { pid: None } => f.write_str(
                "the tuple of this lease is in somebody's hands (handed to a take, claimed, or taken in an open \
                 transaction)",
            ),
            Self::JournalFull { bytes, journal_bytes } => write!(
                f,
                "the journal has no room: {bytes} of its {journal_bytes} bytes are needed, and nobody drains it"
            ),
            Self::Template(problem) | Self::System(problem) | Self::Storage(problem) => {
                f.write_str(problem)
            }
            Self::Interrupted => f.write_str("the call was interrupted between two looks"),
            Self::OutOfTime => f.write_str("the time was over before every tuple was looked at"),
            Self::Memory(error) => error.fmt(f),
            Self::Need(need) => write!(f, "missing {need:?}"),
        }
    }
}

impl fmt::Display for Fullness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { space, tuples, hidden, used_bytes, max_bytes, waiting, .. } = self;
        if *waiting > 0 {
            return write!(
                f,
                "{space} is full: what room there is is for {waiting} who wait for it"
            );
        }
        let tuple_s = if *tuples == 1 { "tuple" } else { "tuples" };
        let is_full = if self.too_many && self.tuples_max.is_some_and(|max| *tuples < max) {
            "has no room for so many more"
        } else {
            "is full"
        };
        write!(f, "{space} {is_full}: {tuples} {tuple_s}")?;
        match self.tuples_max.filter(|max| self.too_many || tuples >= max) {
            Some(max) => write!(f, ", and it was created for {max}"),
            None => write!(f, " in {} of {}", Bytes(*used_bytes), Bytes(*max_bytes)),
        }?;
        if let Some(InPieces { wanted_bytes, largest_bytes }) = self.in_pieces {
            let (wanted, largest) = (Bytes(wanted_bytes), Bytes(largest_bytes));
            write!(
                f,
                "; the free memory is fragmented: {wanted} are needed in one piece, and the largest has {largest}"
            )?;
        }
        if let Some((shape, of_it)) = &self.fullest {
            write!(f, "; {} % of them are {shape}", 100 * of_it / tuples.max(of_it))?;
        }
        if self.is_scattered() {
            write!(
                f,
                "; each of {} shapes (combinations of kinds) takes {} or more: put fields that may be null into a list \
                 or a map",
                self.shapes,
                Bytes(SMALL_SLAB_BYTES as u64)
            )?;
        }
        if *hidden > 0 {
            write!(
                f,
                "; {hidden} of them nobody can take now (claimed, dead, in a transaction, or there later: see `tupelo stat`)"
            )?;
        }
        // Where they are what fills it.
        if !self.too_many && self.buffers_bytes > used_bytes / 4 {
            let buffers = Bytes(self.buffers_bytes);
            write!(
                f,
                "; {buffers} of that are buffers of subscriptions: smaller ones do (buffer, buffer_bytes)"
            )?;
        }
        self.system.as_ref().map_or(Ok(()), |said| write!(f, " ({said})"))
    }
}
