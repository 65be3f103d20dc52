//! Limits, and the answer of a space when one is reached (B1, B2).
//!
//! No stored tuple is ever dropped to make room, unless the space has that policy: the newcomer is refused, and the
//! refusal changes nothing. No call waits for room here: a call that would, finds the space full.

use std::fmt;

use crate::events::EventKind;
use crate::order::shape;
use crate::space::Stored;
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
    /// What becomes of a put for which there is no room.
    pub when_full: WhenFull,
}

/// What becomes of a put for which there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused.
    #[default]
    Error,
    /// It waits, if it may. In the model it may not.
    Wait,
    /// The oldest tuples are dropped for it.
    DropOldest,
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
    /// This space, or its possible states after making room for these tuples, while the tuples at `leaving` go. It
    /// drops the oldest tuple of the first of their shapes that has one, and so on. If no shape has one, it drops the
    /// oldest tuple of any of the largest shapes. Tuples that an open transaction has read stay (X3). Nothing is
    /// dropped if that would not make enough room.
    pub(crate) fn with_room(&self, tuples: &[&Tuple], leaving: usize) -> Vec<Self> {
        let Some(tuples_max) = self.limits.tuples_max else { return vec![self.clone()] };
        let excess = self.count_with(tuples).saturating_sub(tuples_max + leaving);
        let drops = self.limits.when_full == WhenFull::DropOldest;
        let may_go = self.tuples.iter().filter(|stored| stored.readers.is_empty()).count();
        if !drops || excess == 0 || excess > may_go || tuples.len() > tuples_max {
            return vec![self.clone()];
        }
        let without = |place| {
            let mut after = self.clone();
            let dropped = after.remove(place);
            after.publish(EventKind::Expire, &dropped.tuple);
            after.with_room(tuples, leaving)
        };
        self.oldest_for(tuples).into_iter().flat_map(without).collect()
    }

    /// The places of the tuples of which one is dropped next.
    fn oldest_for(&self, tuples: &[&Tuple]) -> Vec<u64> {
        let may_go = || self.tuples.iter().filter(|stored| stored.readers.is_empty());
        let oldest = |like: &Tuple| {
            may_go().find(|stored| shape(&stored.tuple) == shape(like)).map(|stored| stored.place)
        };
        if let Some(place) = tuples.iter().find_map(|tuple| oldest(tuple)) {
            return vec![place];
        }
        let count = |stored: &&Stored| {
            self.tuples.iter().filter(|other| shape(&other.tuple) == shape(&stored.tuple)).count()
        };
        let most = may_go().map(|stored| count(&stored)).max();
        let fullest = may_go().filter(|stored| Some(count(stored)) == most);
        let mut places: Vec<u64> = fullest.filter_map(|stored| oldest(&stored.tuple)).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Drops what these tuples need room for, if the space was made so; then as [`Space::admit`].
    pub(crate) fn make_room(&mut self, tuples: &[&Tuple], leaving: usize) -> Result<(), Refusal> {
        if let Some(with_room) = self.with_room(tuples, leaving).into_iter().next() {
            *self = with_room;
        }
        self.admit(tuples, leaving)
    }

    /// How many tuples there would be with these.
    fn count_with(&self, tuples: &[&Tuple]) -> usize {
        let away = self.dead.len() + self.delayed.len();
        self.tuples.len() + self.held().count() + away + tuples.len()
    }

    /// Whether there is room for these tuples once `leaving` others are gone.
    ///
    /// A tuple that was handed to a waiter counts until the waiter has returned with it: the waiter may still be
    /// cancelled, and then the tuple needs its place (T5). Claimed tuples, dead tuples and tuples that transactions
    /// have taken count too, as they may come back. Tuples that are not visible yet count as well.
    pub(crate) fn admit(&self, tuples: &[&Tuple], leaving: usize) -> Result<(), Refusal> {
        tuples.iter().try_for_each(|tuple| Self::admit_fields(tuple))?;
        match self.limits.tuples_max {
            Some(tuples_max) if self.count_with(tuples) > tuples_max + leaving => {
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
