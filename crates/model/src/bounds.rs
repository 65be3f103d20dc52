//! Limits, and what a space says when one is reached (B1, B2).
//!
//! Nothing that is stored is ever dropped to make room: the newcomer is refused, and the refusal
//! changes nothing.

use std::fmt;

use crate::{Space, Tuple};

/// The most fields that a tuple can have (B2).
pub const ARITY_MAX: usize = tupelo_tuple::image::ARITY_MAX;

/// The most calls that can wait in one space (B2).
pub const WAITERS_MAX: usize = 65_536;

/// The limits of a space, chosen when it is created.
///
/// The model counts tuples and leaves bytes to the engines, which know their own layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The most tuples the space may hold, or `None` for no limit.
    pub tuples_max: Option<usize>,
}

/// Why an operation was refused. It had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The space holds as many tuples as it may (B1).
    SpaceFull {
        /// The limit, in tuples.
        tuples_max: usize,
    },
    /// A stated maximum is exceeded (B2).
    LimitExceeded {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The claim ran out, or has ended otherwise (K3).
    ClaimLost,
    /// The tuple of the lease is not there any more (L2).
    LeaseExpired,
    /// The lease of the transaction has ended: everything is as it was (X5).
    TransactionAborted,
}

impl Refusal {
    /// The code of the error, the same in every language.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SpaceFull { .. } => "TUP-005",
            Self::LimitExceeded { .. } => "TUP-017",
            Self::ClaimLost => "TUP-007",
            Self::LeaseExpired => "TUP-021",
            Self::TransactionAborted => "TUP-008",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SpaceFull { tuples_max } => write!(
                out,
                "space is full at {tuples_max} tuples: take some, or create it with a larger \
                 `tuples_max`"
            ),
            Self::LimitExceeded { what, max } => write!(out, "more than {max} {what}"),
            Self::ClaimLost => write!(out, "the claim ran out"),
            Self::LeaseExpired => write!(out, "the tuple of this lease is not there any more"),
            Self::TransactionAborted => write!(out, "the transaction was open for too long"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Space {
    /// Whether there is room for these tuples once `leaving` others are gone.
    ///
    /// A tuple that was handed to a waiter counts until the waiter has returned with it: the waiter may
    /// still be cancelled, and then the tuple needs its place (T5). So do the claimed, the dead and what
    /// transactions have taken, which may come back, and those that are not visible yet.
    pub(crate) fn admit(&self, tuples: &[&Tuple], leaving: usize) -> Result<(), Refusal> {
        tuples.iter().try_for_each(|tuple| Self::admit_fields(tuple))?;
        let away = self.dead.len() + self.delayed.len();
        let count = self.tuples.len() + self.held().count() + away + tuples.len();
        match self.limits.tuples_max {
            Some(tuples_max) if count > tuples_max + leaving => {
                Err(Refusal::SpaceFull { tuples_max })
            }
            _ => Ok(()),
        }
    }

    /// Whether a tuple has no more fields than it may have (B2).
    pub(crate) fn admit_fields(tuple: &Tuple) -> Result<(), Refusal> {
        if tuple.len() > ARITY_MAX {
            return Err(Refusal::LimitExceeded { what: "fields in a tuple", max: ARITY_MAX });
        }
        Ok(())
    }

    /// Whether one more call may wait.
    pub(crate) fn admit_wait(&self) -> Result<(), Refusal> {
        if self.waits.len() >= WAITERS_MAX {
            return Err(Refusal::LimitExceeded { what: "waiters in a space", max: WAITERS_MAX });
        }
        Ok(())
    }
}
