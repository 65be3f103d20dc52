//! Subscriptions: what happens to tuples, told to those who asked for it (rules N1 to N3).
//!
//! A subscription is a wait node ([`crate::waiters`]) that stays in the wait queue, with a [`ring`] of events: copies of the
//! tuples, with the kinds of the events. The section that changes a tuple looks for matching wait nodes, as it does for
//! waiters, and stores the event in their rings ([`publish`]). So an event exists if and only if the change has happened.
//! The [subscription](crate::protocols::subscription) takes events out of its ring at its own pace.
//!
//! The ring is memory of the subscription's own, got when it begins. So whoever puts or takes never asks for memory
//! for it, never waits for it, and is never refused because of it: a ring that is full loses its oldest events.

pub(crate) mod publish;
pub(crate) mod ring;

/// What happened to a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// It is there: it was put, or became visible.
    Put,
    /// Somebody has it for good.
    Take,
    /// It is gone, and nobody has it: its lease ended or was cancelled, the last attempt at it failed, or it was dropped for
    /// another.
    Expire,
    /// It is there again: a claim of it, or a transaction, was aborted, or ran out, or its holder died.
    Return,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Put, Self::Take, Self::Expire, Self::Return];

    /// Its name, as in `subscribe(..., on="put")`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Take => "take",
            Self::Expire => "expire",
            Self::Return => "return",
        }
    }

    /// Its bit in a set of kinds, and its name in a ring.
    const fn bit(self) -> u32 {
        match self {
            Self::Put => 1,
            Self::Take => 2,
            Self::Expire => 4,
            Self::Return => 8,
        }
    }

    fn of_bit(bit: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.bit() == bit)
    }
}

/// What is to be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscribeTerms {
    /// A bit for each kind of event.
    pub(crate) kinds: u32,
    pub(crate) events_max: usize,
    pub(crate) bytes_max: Option<usize>,
}

impl SubscribeTerms {
    /// Events of these kinds, of which at most `events_max` wait; what is older is dropped then.
    pub fn new(kinds: impl IntoIterator<Item = EventKind>, events_max: usize) -> Self {
        let kinds = kinds.into_iter().fold(0, |set, kind| set | kind.bit());
        Self { kinds, events_max, bytes_max: None }
    }

    /// How many events may wait.
    pub fn events_max(&self) -> usize {
        self.events_max
    }

    /// Whether there is no kind of event that is to be heard.
    pub fn is_empty(&self) -> bool {
        self.kinds == 0
    }

    /// In how many bytes, if that was said.
    pub fn bytes_max(&self) -> Option<usize> {
        self.bytes_max
    }

    /// With a buffer of so many bytes, for tuples that are larger than most.
    #[must_use]
    pub fn with_bytes(self, bytes_max: Option<usize>) -> Self {
        Self { bytes_max, ..self }
    }
}

/// What an operation does to a tuple, for those who listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// An event.
    Published(EventKind),
    /// It is back after a call that had no effect (rule T5): nothing happened.
    Unpublished,
}

impl From<EventKind> for Happening {
    fn from(kind: EventKind) -> Self {
        Self::Published(kind)
    }
}

impl Happening {
    /// The bit of the event, if it is one.
    pub(crate) const fn bit(self) -> u32 {
        match self {
            Self::Published(kind) => kind.bit(),
            Self::Unpublished => 0,
        }
    }
}

/// The kinds of events of which the tuple is gone.
pub(crate) const REMOVALS: u32 = EventKind::Take.bit() | EventKind::Expire.bit();
