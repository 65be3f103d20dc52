//! A refusal, as it is sent.

use std::fmt;

/// Codes that the protocol itself needs to know, as in `docs/protocol.md`; a fault may have any other of `crates/cli/errors/`.
pub mod code {
    /// The connection was lost, or there is none.
    pub const CONNECTION_LOST: &str = "TUP-002";
    /// Versions of the protocol that do not go together.
    pub const VERSION_MISMATCH: &str = "TUP-012";
    /// Over a limit.
    pub const LIMIT_EXCEEDED: &str = "TUP-017";
    /// The system refused something.
    pub const SYSTEM: &str = "TUP-020";
    /// A call that makes no sense.
    pub const MISUSE: &str = "TUP-019";
    /// What engine there is can not do this.
    pub const UNSUPPORTED: &str = "TUP-022";
    /// What came is no frame of the protocol.
    pub const PROTOCOL: &str = "TUP-023";
}

/// Why a request was refused, or a connection ends. The request had no effect, unless the code says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// As in `TUP-005`: the same in every language.
    pub code: String,
    /// What happened, with the values.
    pub message: String,
    /// What to type next.
    pub hint: Option<String>,
    /// Whether the same request may succeed later ([`Fault::MAY_PASS`]), and the like.
    pub flags: u64,
}

impl Fault {
    /// Of a space that is full: there may be room later.
    pub const MAY_PASS: u64 = 1;
    /// Of a space that is full: it is the system that has no more.
    pub const BY_SYSTEM: u64 = 2;
    /// Of a connection that was lost: the operation may have happened.
    pub const MAY_HAVE_HAPPENED: u64 = 4;
    /// Of a call that was interrupted where it was made.
    pub const INTERRUPTED: u64 = 8;
    /// Of a connection that was made again: what the call was about has ended with the session before. Never sent.
    pub const SESSION_ENDED: u64 = 16;

    /// A fault without flags.
    pub fn new(code: &str, message: impl Into<String>, hint: Option<&str>) -> Self {
        let hint = hint.map(str::to_owned);
        Self { code: code.to_owned(), message: message.into(), hint, flags: 0 }
    }

    /// What came is no frame of the protocol.
    pub fn protocol(message: impl Into<String>) -> Self {
        let hint = "is the other side a tupelo program? docs/protocol.md has every frame";
        Self::new(code::PROTOCOL, message, Some(hint))
    }

    /// A call that makes no sense.
    pub fn misuse(message: impl Into<String>, hint: &str) -> Self {
        Self::new(code::MISUSE, message, Some(hint))
    }

    /// Over a limit: `message` says which.
    pub fn limit(message: impl Into<String>, hint: &str) -> Self {
        Self::new(code::LIMIT_EXCEEDED, message, Some(hint))
    }

    /// The same with more flags.
    #[must_use]
    pub fn with_flags(mut self, flags: u64) -> Self {
        self.flags |= flags;
        self
    }

    /// Whether it has this flag.
    pub const fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  {hint}"))
    }
}

impl From<tupelo_tuple::DecodeError> for Fault {
    fn from(error: tupelo_tuple::DecodeError) -> Self {
        Self::protocol(format!("a frame that does not decode: {error}"))
    }
}

impl From<tupelo_tuple::EncodeError> for Fault {
    fn from(error: tupelo_tuple::EncodeError) -> Self {
        Self::limit(format!("what can not be sent: {error}"), "send it in smaller parts")
    }
}
