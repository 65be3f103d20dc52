//! When a tuple is there: from when on, and until when (rules L1, L3).

use std::time::Duration;

use crate::base::clock;

/// When a tuple is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseTerms {
    /// How long it stays once it is visible (rule L1); `None`: for ever.
    pub lease: Option<Duration>,
    /// How long until it is visible (rule L3); `None`: it is at once.
    pub after: Option<Duration>,
}

/// The terms of a tuple on its way in, and the number of its lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) lease: Option<Duration>,
    pub(crate) after: Option<Duration>,
    pub(crate) number: u64,
}

impl Terms {
    /// The time, and when the first thing happens by itself, if anything does: the tuple is visible, or is gone.
    ///
    /// Who becomes visible first is the older one (rule L3). So that moment is by the clock that is the same for all processes,
    /// where the end of a lease is by the one that costs least.
    #[inline]
    pub(crate) fn now_and_first(&self) -> (u64, u64) {
        match self.after {
            Some(after) => clock::now_and_exactly_in(after),
            None => clock::now_and_in(self.lease.unwrap_or_default()),
        }
    }
}
