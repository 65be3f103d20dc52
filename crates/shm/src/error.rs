//! What can go wrong with a segment, as figures a caller can act on.
//!
//! Every variant is a refusal: the call had no effect on what other processes see. Misuse of this crate
//! (a range outside the mapping, say) panics instead. The crate above translates these into its own
//! errors, so a message here speaks of files, bytes and processes, never of tuples.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::removal::Removal;

/// Why an operation on a segment was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no room for more memory (rule B1). Nothing was allocated.
    Full {
        /// The requested size, in bytes.
        wanted_bytes: u64,
        /// What could still be had under the limit, in bytes.
        available_bytes: u64,
        /// The limit itself, in bytes.
        limit_bytes: u64,
        /// Whose limit it is.
        limit: Limit,
    },
    /// The process may not reserve that much address space.
    AddressSpace {
        /// The range that was asked for, in bytes.
        wanted_bytes: u64,
        /// What stands against it.
        limit: AddressLimit,
    },
    /// There is no segment of that name, and the caller did not want to create one.
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file exists, but this user may not use it.
    AccessDenied {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The user it belongs to.
        owner: u32,
        /// The user that asked.
        user: u32,
    },
    /// The segment is damaged (rule C5).
    Corrupted {
        /// The finding, and the correct value.
        what: Cow<'static, str>,
    },
    /// The segment was removed, or another has its name now: nothing of it can be had any more.
    Removed {
        /// How, by whom and when.
        removal: Removal,
    },
    /// The segment was made by a build whose memory layout this build does not know.
    VersionMismatch {
        /// The layout of the segment.
        found: String,
        /// The layout of this build.
        expected: String,
    },
    /// The segment belongs to processes whose numbers, or whose clock, mean nothing here.
    OtherNamespace {
        /// Which kind of namespace: `pid` or `time`.
        kind: &'static str,
        /// The namespace of the segment's creator, as in `/proc/self/ns`.
        found: u64,
        /// The namespace of this process.
        expected: u64,
    },
    /// No segment can have that name.
    BadName {
        /// The name as it was given.
        name: String,
        /// The mistake.
        problem: Cow<'static, str>,
    },
    /// A living process holds a lock and does not let it go: it is stopped, or starved.
    Stalled {
        /// The process.
        pid: u32,
    },
    /// A table of the segment has no free place.
    LimitExceeded {
        /// The capacity of the table.
        what: &'static str,
        /// How many it holds at most.
        limit: usize,
    },
    /// The calling thread already holds the lock: the call came from a signal handler.
    Reentrant,
    /// The memory is private, and this process is a fork of its owner.
    CopiedByFork,
    /// The operation changes more words than the undo log of a thread holds. It changed none.
    LogFull,
    /// The system refused a call for a reason that has no variant of its own.
    System {
        /// The attempted operation, as a verb: `open`, `map`.
        action: &'static str,
        /// The file it was attempted on, if there is one.
        path: Option<PathBuf>,
        /// The system's error number.
        code: i32,
    },
}

/// What kept a process from reserving addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressLimit {
    /// `RLIMIT_AS`, of which the process has used some.
    Process {
        /// The addresses that the process has, in bytes.
        used_bytes: u64,
        /// The limit itself, in bytes.
        limit_bytes: u64,
    },
    /// The system counts mappings as memory (`vm.overcommit_memory` is 2), and has no more.
    Overcommit,
    /// The system did not say. A process may have 65 530 mappings, and 128 TiB of addresses.
    System,
}

/// Whose limit kept a segment from growing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The size of the file system, `/dev/shm` as a rule.
    Filesystem,
    /// The user's or project's disk quota; the size is that of the file system, and nothing counts as left.
    Quota,
    /// The memory limit of the control group (the container).
    ControlGroup,
    /// `RLIMIT_FSIZE`, the largest file the process may write.
    FileSize,
    /// The range that was reserved when the segment was created.
    Reserve,
}

impl Error {
    /// A damaged segment; `what` has the finding and the correct value.
    pub fn corrupted(what: impl Into<Cow<'static, str>>) -> Self {
        Self::Corrupted { what: what.into() }
    }

    /// A segment in which a process has found damage before.
    #[cold]
    pub(crate) fn poisoned() -> Self {
        Self::corrupted("an earlier operation found a contradiction in it")
    }

    /// Names the action that the system refused.
    pub(crate) fn system(
        action: &'static str,
        path: Option<PathBuf>,
        errno: rustix::io::Errno,
    ) -> Self {
        Self::System { action, path, code: errno.raw_os_error() }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    #[expect(clippy::too_many_lines, reason = "one text per variant")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { wanted_bytes, available_bytes, limit_bytes, limit } => {
                let (wanted, available) = (Bytes(*wanted_bytes), Bytes(*available_bytes));
                write!(
                    f,
                    "no room for {wanted} more: {available} left of {}",
                    Bytes(*limit_bytes)
                )?;
                f.write_str(limit.way_out())
            }
            Self::AddressSpace { wanted_bytes, limit } => {
                write!(f, "can not reserve {} of address space", Bytes(*wanted_bytes))?;
                match limit {
                    AddressLimit::Process { used_bytes, limit_bytes } => write!(
                        f,
                        ": {} of {} are used; close and remove spaces, raise `ulimit -v`, or create the space \
                         with a smaller size",
                        Bytes(*used_bytes),
                        Bytes(*limit_bytes)
                    ),
                    AddressLimit::Overcommit => f.write_str(
                        ", which this system counts as memory: create the space with a smaller \
                         size, or set vm.overcommit_memory to 0 or 1",
                    ),
                    AddressLimit::System => f.write_str(
                        ": close and remove spaces, create the space with a smaller size, or raise \
                         vm.max_map_count if this process has as many mappings",
                    ),
                }
            }
            Self::NotFound { path } => write!(f, "there is no space at {}", path.display()),
            Self::AccessDenied { path, mode, owner, user } if owner == user => write!(
                f,
                "{0} is yours, and its mode {mode:04o} does not let you use it: `chmod u+rw {0}`, or \
                 use another name",
                path.display()
            ),
            Self::AccessDenied { path, mode, owner, user } => write!(
                f,
                "{} belongs to user {owner} with mode {mode:04o} and can not be used by user {user}: \
                 run as user {owner}, or use another name",
                path.display()
            ),
            Self::Corrupted { what } => write!(f, "the space is damaged: {what}"),
            Self::Removed { removal } => removal.fmt(f),
            Self::VersionMismatch { found, expected } => write!(
                f,
                "the space has {found}, this build expects {expected}: use the build that created it, \
                 or create the space anew"
            ),
            Self::OtherNamespace { kind, found, expected } => write!(
                f,
                "the space belongs to {kind} namespace {found}, this process to {expected}: let the \
                 containers share one {kind} namespace, or use another name. If all processes of the other \
                 one have ended, as after the restart of a container, there are two ways: `tupelo adopt` or \
                 connect(..., adopt=True) takes the space over with its tuples; `tupelo rm` or \
                 connect(..., fresh=True) begins anew, and keeps none"
            ),
            Self::BadName { name, problem } => {
                write!(f, "{name:?} can not name a space: {problem}")
            }
            Self::Stalled { pid } => write!(
                f,
                "process {pid} holds a lock of the space and does not go on: continue it (SIGCONT) or \
                 end it, and the space goes on without it"
            ),
            Self::LimitExceeded { what, limit } => {
                write!(
                    f,
                    "there can be no more than {limit} {what}: end some, or use another space"
                )
            }
            Self::Reentrant => f.write_str(
                "the operation interrupted another one of the same thread: do not use a space in a \
                 signal handler",
            ),
            Self::CopiedByFork => f.write_str(
                "this is private memory of the parent process, of which a fork has but a copy",
            ),
            Self::LogFull => {
                f.write_str("the operation changes more than one step can undo: split it")
            }
            Self::System { action, path, code } => {
                write!(f, "can not {action}")?;
                if let Some(path) = path {
                    write!(f, " {}", path.display())?;
                }
                write!(f, ": {}", io::Error::from_raw_os_error(*code))
            }
        }
    }
}

impl Limit {
    /// Whose limit it is and what lifts it: the end of a sentence that gave the figures.
    const fn way_out(self) -> &'static str {
        match self {
            Self::Filesystem => {
                " on the file system: take or remove something, or mount it larger (Docker gives \
                 /dev/shm 64 MiB; see --shm-size)"
            }
            Self::Quota => {
                " on the file system, within this user's quota: free some, or raise the quota"
            }
            Self::ControlGroup => {
                " of the control group's memory: take or remove something, or raise the container's \
                 memory limit"
            }
            Self::FileSize => {
                " per file: raise `ulimit -f`, or create the space with a smaller size"
            }
            Self::Reserve => " reserved: take something, or create the space with a larger size",
        }
    }
}

/// A size for a person to read: `64 MiB`, `1.5 GiB`, `70412 bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["TiB", "GiB", "MiB", "KiB"];
        for (index, unit) in UNITS.iter().enumerate() {
            let unit_bytes = 1_u64 << (40 - 10 * index);
            if self.0 >= unit_bytes {
                let (whole, rest) = (self.0 / unit_bytes, self.0 % unit_bytes);
                let tenths = rest * 10 / unit_bytes;
                return match tenths {
                    0 => write!(f, "{whole} {unit}"),
                    _ => write!(f, "{whole}.{tenths} {unit}"),
                };
            }
        }
        write!(f, "{} bytes", self.0)
    }
}
