//! Every refusal, with its code, its figures, and what to type next.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::explain::{Explanation, shortened};

/// Characters of a template in a message: it may have a book in it.
pub(crate) const TEMPLATE_CHARACTERS_MAX: usize = 500;

/// Why a call was refused. It had no effect, unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Nothing matched in time (rule O3).
    Timeout {
        /// The operation: `take`, `read`, ….
        verb: &'static str,
        /// The template, in the text notation.
        template: String,
        /// How long was waited.
        timeout: Duration,
        /// The space.
        url: String,
        /// Why nothing matched.
        explanation: Box<Explanation>,
    },
    /// The connection to a server was lost, or there is none.
    ConnectionLost {
        /// The attempts, and their outcomes.
        problem: String,
        /// What to type next.
        hint: Option<String>,
        /// Whether the call may have had its effect: the answer was lost.
        may_have_happened: bool,
    },
    /// The engine of the space cannot do this.
    Unsupported {
        /// What, and which engine.
        problem: String,
        /// The operations it can do, and the engine that can do this.
        hint: String,
    },
    /// What came over a connection makes no sense.
    Protocol {
        /// What came.
        problem: String,
    },
    /// The call was given up while it waited for a server, or computed for long: its language has something to raise.
    Interrupted {
        /// The interrupted operation.
        problem: String,
    },
    /// The call's time was over before every tuple was looked at ([`crate::in_steps`]). Nothing happened.
    OutOfTime,
    /// The limit of the space, or the system's memory, allows no more (rule B1).
    SpaceFull {
        /// The figures.
        problem: String,
        /// Whether there may be room when others have taken something: a tuple larger than the whole space never fits.
        may_pass: bool,
        /// Whether it is the system that has no more for the space.
        by_system: bool,
    },
    /// There is no such space, and it was not to be created.
    SpaceNotFound {
        /// The space.
        url: String,
    },
    /// This handle was closed.
    SpaceClosed {
        /// The space.
        url: String,
    },
    /// The claim ran out, or its tuple is another holder's (rule K3).
    ClaimLost {
        /// The known details.
        problem: String,
    },
    /// The lease has ended, or its tuple was taken (rule L2).
    LeaseExpired {
        /// The problem that was found.
        problem: String,
        /// Whether the tuple still exists, and is held by another caller.
        is_held: bool,
    },
    /// The transaction's time ran out: everything is as it was before it (rules X5, X6).
    Aborted {
        /// The reason, in words.
        problem: String,
        /// The template that it was waiting for, and the space.
        waited_for: Option<String>,
    },
    /// The file of the space is not this user's to use.
    AccessDenied {
        /// Whose it is.
        problem: String,
        /// What to type next, if the refusing side knows.
        hint: Option<String>,
    },
    /// The memory of the space, or the file that it is kept in, is damaged (rule C5).
    SpaceCorrupted {
        /// The problem that was found.
        problem: String,
        /// What to type next, if that is not to remove the space.
        hint: Option<String>,
    },
    /// The file that a space is kept in can not be read or written (rule C4).
    Storage {
        /// The file, and what the system said.
        problem: String,
    },
    /// The call had its effect in memory, and whether it is on disk nobody knows (rule C4).
    DurabilityUnknown {
        /// The file, and what the system said.
        problem: String,
    },
    /// The space was removed, or a fresh one took its name: nothing of this one can be had any more.
    SpaceRemoved {
        /// How, by which process and when.
        problem: String,
    },
    /// A process that is stopped holds a lock.
    Stalled {
        /// The process; 0 if unknown.
        pid: u32,
    },
    /// A stated maximum was reached (rule B2).
    LimitExceeded {
        /// What there are too many of, and the maximum.
        problem: String,
        /// What would be right.
        hint: Cow<'static, str>,
    },
    /// More than one atomic step can change.
    TransactionTooBig {
        /// The figures.
        problem: String,
    },
    /// The space was made by a build with another memory layout.
    VersionMismatch {
        /// Both layouts.
        problem: String,
        /// What to do about it; `None` if that is to use one version.
        hint: Option<String>,
    },
    /// A value that no field can hold.
    NotEncodable {
        /// Which one, and what would be right.
        problem: String,
    },
    /// A template that makes no sense.
    Template {
        /// The mistake.
        problem: String,
    },
    /// A call that makes no sense.
    Misuse {
        /// The mistake.
        problem: String,
        /// What would be right.
        hint: Option<String>,
    },
    /// The system refused something.
    System {
        /// The error of the server.
        problem: String,
    },
}

/// How the message of [`Error::DurabilityUnknown`] begins.
pub(crate) const IN_EFFECT: &str = "the call is in effect in memory, and not known to be on disk: ";

/// Of a call that looked at tuples until its time was over.
const OUT_OF_TIME: &str = "the time was over before every tuple was looked at";

impl Error {
    /// The code, as in `TUP-003`: the same in every language.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ConnectionLost { .. } | Self::Interrupted { .. } => "TUP-002",
            Self::Timeout { .. } | Self::OutOfTime => "TUP-003",
            Self::NotEncodable { .. } => "TUP-004",
            Self::SpaceFull { .. } => "TUP-005",
            Self::AccessDenied { .. } => "TUP-006",
            Self::ClaimLost { .. } => "TUP-007",
            Self::Aborted { .. } => "TUP-008",
            Self::VersionMismatch { .. } => "TUP-012",
            Self::SpaceNotFound { .. } => "TUP-013",
            Self::SpaceClosed { .. } => "TUP-014",
            Self::SpaceCorrupted { .. } => "TUP-015",
            Self::Stalled { .. } => "TUP-016",
            Self::LimitExceeded { .. } => "TUP-017",
            Self::TransactionTooBig { .. } => "TUP-018",
            Self::Template { .. } => "TUP-001",
            Self::Misuse { .. } => "TUP-019",
            Self::System { .. } => "TUP-020",
            Self::LeaseExpired { .. } => "TUP-021",
            Self::Unsupported { .. } => "TUP-022",
            Self::Protocol { .. } => "TUP-023",
            Self::Storage { .. } => "TUP-024",
            Self::DurabilityUnknown { .. } => "TUP-025",
            Self::SpaceRemoved { .. } => "TUP-026",
        }
    }

    /// How many of `what` were given, if there were too many.
    #[cold]
    pub(crate) fn with_given(self, what: &str, given: usize) -> Self {
        match self {
            Self::LimitExceeded { problem, hint } if problem.ends_with(what) => {
                Self::LimitExceeded { problem: format!("{problem}, not {given}"), hint }
            }
            error => error,
        }
    }

    /// Whether a put that was refused may find room later.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::SpaceFull { may_pass: true, .. })
    }

    /// What happened, with the values; no code, no way out.
    pub fn message(&self) -> String {
        match self {
            Self::Timeout { verb: _, template, timeout, url, .. } => {
                let template = shortened(template, TEMPLATE_CHARACTERS_MAX);
                format!("nothing matched {template} within {} s in {url}", timeout.as_secs_f64())
            }
            Self::OutOfTime => OUT_OF_TIME.into(),
            Self::SpaceNotFound { url } => format!("there is no space {url}"),
            Self::SpaceClosed { url } => format!("this handle of {url} was closed"),
            Self::Stalled { pid: 0 } => {
                "a process, nobody knows which, holds a lock of the space and does not run (stopped?)".into()
            }
            Self::Stalled { pid } => {
                format!("process {pid} holds a lock of the space and does not run (stopped?)")
            }
            Self::Aborted { problem, waited_for: Some(waited_for) } => {
                format!("{problem}; it was waiting for {waited_for}")
            }
            Self::ConnectionLost { problem, may_have_happened: true, .. } => {
                format!("{problem}; whether the call has had its effect, nobody knows")
            }
            Self::DurabilityUnknown { problem } => {
                format!("{IN_EFFECT}{problem}")
            }
            Self::Aborted { problem, waited_for: None }
            | Self::ConnectionLost { problem, .. }
            | Self::Unsupported { problem, .. }
            | Self::Protocol { problem }
            | Self::Interrupted { problem }
            | Self::SpaceFull { problem, .. }
            | Self::ClaimLost { problem }
            | Self::LeaseExpired { problem, .. }
            | Self::AccessDenied { problem, .. }
            | Self::SpaceCorrupted { problem, .. }
            | Self::Storage { problem }
            | Self::SpaceRemoved { problem }
            | Self::LimitExceeded { problem, .. }
            | Self::TransactionTooBig { problem }
            | Self::VersionMismatch { problem, .. }
            | Self::NotEncodable { problem }
            | Self::Template { problem }
            | Self::Misuse { problem, .. }
            | Self::System { problem } => problem.clone(),
        }
    }

    /// The nearest thing that would have worked, or what to type next.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Timeout { explanation, .. } => explanation.to_string(),
            Self::SpaceFull { may_pass: false, .. } => {
                "create the space with larger limits (size, tuples_max), or put it in smaller parts".into()
            }
            Self::SpaceFull { by_system: true, .. } => {
                "are the takers running? take some tuples, or give the system more room, as the message says: a larger size of the space would not help".into()
            }
            Self::SpaceFull { .. } => {
                "are the takers running? take some tuples, wait for room with a timeout, or create the space with larger limits (size, tuples_max)".into()
            }
            Self::SpaceNotFound { url } => {
                format!("{}; connect creates one unless create is false", where_to_look(url))
            }
            Self::OutOfTime => "a condition is asked of one tuple after the other: fix what can be fixed in the template, so that fewer are left, or wait longer".into(),
            Self::SpaceClosed { .. } => "connect again".into(),
            Self::ClaimLost { .. } => {
                "nothing was confirmed: the tuple is another's work now, or will be. Claim with a longer ttl, or extend the claim while the work goes on".into()
            }
            Self::Aborted { waited_for: Some(_), .. } => {
                "another transaction may hold it and wait for what this one held: take in the same order everywhere, or try again".into()
            }
            Self::Aborted { waited_for: None, .. } => {
                "slow work does not belong inside a transaction: use claim(), or a longer ttl. If another caller was first, begin again".into()
            }
            Self::LeaseExpired { is_held: true, .. } => {
                "it may be consumed, or come back: renew the lease for a moment, and it will not stay then".into()
            }
            Self::LeaseExpired { .. } => "put the tuple again, with a longer lease or one that is kept alive".into(),
            Self::SpaceCorrupted { hint: None, .. } => {
                "nothing of a shm:// space can be had any more: remove it with `tupelo rm URL`, and begin anew. Connect to a file:// space again: its memory is made anew from the file".into()
            }
            Self::Storage { .. } => {
                "free space on the disk, or look at what the system said, and try again; what was acknowledged is in the file".into()
            }
            Self::DurabilityUnknown { .. } => {
                "do not repeat the call: the change is there, and comes to the file with the next call that can write. Free space on the disk, or look at what the system said".into()
            }
            Self::SpaceRemoved { .. } => {
                "connect again: that finds the space that has the name now, or makes one. What was in the old one is gone".into()
            }
            Self::Stalled { pid: 0 } => "`tupelo doctor` names the processes that are stopped".into(),
            Self::Stalled { pid } => format!("let it go on with `kill -CONT {pid}`, or end it with `kill -9 {pid}`"),
            Self::TransactionTooBig { .. } => "do it in smaller steps, or with a limit".into(),
            Self::VersionMismatch { hint: None, .. } => {
                "use the same version everywhere, or another name for the new version's space".into()
            }
            Self::Misuse { hint, .. } | Self::ConnectionLost { hint, .. } => return hint.clone(),
            Self::Unsupported { hint, .. }
            | Self::AccessDenied { hint: Some(hint), .. }
            | Self::VersionMismatch { hint: Some(hint), .. }
            | Self::SpaceCorrupted { hint: Some(hint), .. } => hint.clone(),
            Self::AccessDenied { hint: None, .. } => {
                "run as the owner of the file, have it removed, or give your space another name".into()
            }
            Self::Protocol { .. } => {
                "is the other side a tupelo program? docs/protocol.md has every frame".into()
            }
            Self::LimitExceeded { hint, .. } => hint.clone().into_owned(),
            Self::NotEncodable { .. }
            | Self::Template { .. }
            | Self::System { .. }
            | Self::Interrupted { .. } => return None,
        })
    }
}

/// Where to look for a space that was not found.
fn where_to_look(url: &str) -> &'static str {
    match url.split_once("://") {
        Some(("mem", _)) => "a mem:// space is one of this process alone",
        Some(("file", _)) => "look at the path; `tupelo ls FILE` lists the spaces in a file",
        _ => "`tupelo ls` lists the spaces that are there",
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.message())?;
        let Some(hint) = self.hint() else { return Ok(()) };
        hint.lines().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// What to do about too many of `what`.
fn way_out(what: &str) -> &'static str {
    match what {
        "fields in a tuple" => "put some of them together in a list, which is one field",
        "events in a buffer" | "bytes in a buffer of events" => {
            "give a smaller buffer: what does not fit is counted, and the next event says how much that was"
        }
        _ if what.starts_with("bytes of changes in one step") => {
            "do it in smaller steps, or make the space with a larger size: the journal grows with it"
        }
        "spaces in one transaction" | "spaces in one commit" => {
            "use fewer spaces in one transaction, or tell them apart by a field of the tuples"
        }
        "spaces in one file" => {
            "remove one, as in `tupelo rm 'file:///srv/shop.tupelo?space=old'`, or use another file"
        }
        "blocked callers in one space" => {
            "`tupelo top` shows how many wait for which shape: end some, or use another space"
        }
        "large tuples in one thread's hands" => {
            "let a visitor make what it makes of the tuple, and take no other one meanwhile"
        }
        _ => "end some, or use another space",
    }
}

impl From<tupelo_engine::Error> for Error {
    #[cold]
    fn from(error: tupelo_engine::Error) -> Self {
        use tupelo_engine::Error as Engine;
        match error {
            Engine::SpaceFull(ref fullness) => Self::SpaceFull {
                problem: error.to_string(),
                may_pass: true,
                by_system: fullness.system.is_some(),
            },
            Engine::TooLarge { .. } | Engine::TooLargeBeside { .. } | Engine::TooMany { .. } => {
                Self::SpaceFull { problem: error.to_string(), may_pass: false, by_system: false }
            }
            Engine::Interrupted => Self::Interrupted { problem: error.to_string() },
            Engine::OutOfTime => Self::OutOfTime,
            Engine::LimitExceeded { what, .. } => {
                Self::LimitExceeded { problem: error.to_string(), hint: way_out(what).into() }
            }
            Engine::TooManyShapes(_) => Self::LimitExceeded {
                problem: error.to_string(),
                hint: "each combination of kinds is a shape: put fields that may be null, or of several kinds, into a list \
                       or a map, which is one field"
                    .into(),
            },
            Engine::EventTooLarge { enough_bytes, .. } => Self::LimitExceeded {
                problem: error.to_string(),
                hint: format!(
                    "subscribe with buffer_bytes={enough_bytes}, or more: as much for each such event that may wait (tupelo watch --buffer-bytes {enough_bytes})"
                )
                .into(),
            },
            Engine::TransactionTooBig { limit } => Self::TransactionTooBig {
                problem: format!(
                    "too much for one atomic step, which changes some 600 000 tuples at most ({limit} words of memory)"
                ),
            },
            Engine::ClaimLost { .. } => Self::ClaimLost { problem: error.to_string() },
            Engine::LeaseExpired => {
                Self::LeaseExpired { problem: error.to_string(), is_held: false }
            }
            Engine::LeaseHeld { .. } => {
                Self::LeaseExpired { problem: error.to_string(), is_held: true }
            }
            Engine::ClaimSettled => Self::Misuse {
                problem: error.to_string(),
                hint: Some("call done() or abort() once, and all else before".into()),
            },
            Engine::Aborted(_) | Engine::NotAbsent => {
                Self::Aborted { problem: error.to_string(), waited_for: None }
            }
            Engine::TransactionEnded { .. } => Self::Misuse {
                problem: error.to_string(),
                hint: Some("begin another transaction".into()),
            },
            Engine::TransactionForked => Self::Misuse {
                problem: error.to_string(),
                hint: Some("begin the transaction in the process that does the work".into()),
            },
            Engine::ClaimForked => Self::Misuse {
                problem: error.to_string(),
                hint: Some("claim in the process that does the work".into()),
            },
            Engine::Template(problem) => Self::Template { problem: problem.into() },
            Engine::JournalFull { .. } | Engine::Storage(_) => {
                Self::Storage { problem: error.to_string() }
            }
            Engine::Memory(error) => (*error).into(),
            error => Self::System { problem: error.to_string() },
        }
    }
}

impl From<tupelo_shm::Error> for Error {
    #[cold]
    fn from(error: tupelo_shm::Error) -> Self {
        use tupelo_shm::Error as Memory;
        let problem = error.to_string();
        match error {
            Memory::Full { .. } => Self::SpaceFull { problem, may_pass: true, by_system: true },
            Memory::NotFound { path } => Self::SpaceNotFound { url: path.display().to_string() },
            Memory::AccessDenied { .. } => Self::AccessDenied { problem, hint: None },
            Memory::Corrupted { .. } => Self::SpaceCorrupted { problem, hint: None },
            Memory::Removed { .. } => Self::SpaceRemoved { problem },
            Memory::VersionMismatch { .. } => Self::VersionMismatch { problem, hint: None },
            Memory::Stalled { pid } => Self::Stalled { pid },
            Memory::LimitExceeded { what, .. } => {
                Self::LimitExceeded { problem, hint: way_out(what).into() }
            }
            Memory::CopiedByFork => Self::Misuse {
                problem: "a mem:// space stays in the process that opened it; this is a fork of it"
                    .into(),
                hint: Some("use shm://NAME, or open the space after the fork".into()),
            },
            Memory::BadName { .. } => Self::Misuse { problem, hint: None },
            _ => Self::System { problem },
        }
    }
}

impl From<tupelo_tuple::DecodeError> for Error {
    fn from(error: tupelo_tuple::DecodeError) -> Self {
        let problem = format!("a field does not decode: {error}");
        Self::SpaceCorrupted { problem, hint: None }
    }
}

impl From<tupelo_tuple::EncodeError> for Error {
    fn from(error: tupelo_tuple::EncodeError) -> Self {
        Self::NotEncodable { problem: error.to_string() }
    }
}
