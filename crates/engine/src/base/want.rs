//! What a blocked caller waits for.

/// What a blocked caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// To take a match: of all that wait for one tuple, the first in the wait queue gets it.
    Take,
    /// To read a match: everyone who waits for it gets a copy.
    Read,
    /// To be told that a match was put. The tuple goes its way.
    Put,
    /// To be told that a match was removed.
    Removal,
    /// To be told that there may be room for a put, first come first served.
    Room,
    /// To have what happens to matches written down.
    Events,
}

impl Want {
    /// Whether wait nodes that want this, by their number, are told of removals.
    pub(crate) const fn watches_removals(number: u32) -> bool {
        number == Self::Removal.number() || number == Self::Room.number()
    }

    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Take => 0,
            Self::Read => 1,
            Self::Put => 2,
            Self::Removal => 3,
            // 4 is a notifier's.
            Self::Room => 5,
            Self::Events => 6,
        }
    }
}
