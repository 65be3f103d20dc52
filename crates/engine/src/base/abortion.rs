//! Why a transaction was aborted.

use std::time::Duration;

/// What a transaction was that came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abortion {
    /// How long it was open.
    pub open: Duration,
    /// How long it might have been.
    pub ttl: Duration,
    /// Tuples that it had taken from spaces: they are back.
    pub takes: usize,
    /// Tuples that it would have put.
    pub puts: usize,
}
