//! What a section has changed, as far as a journal is to tell of it: noted where it happens, and appended to the ring when
//! the section commits ([`crate::journal`]). Where there is no journal, nothing is noted; but puts are where the keys of requests are
//! kept ([`crate::store::keys`]).

use tupelo_shm::{Note, Section};

use crate::store::Store;
use crate::store::record::{Record, SEQUENCE};

/// What a note says. What is told of a tuple that is there is read from its record when the section commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A tuple is there.
    Put,
    /// A tuple that was put for later is visible; the number is its id until now.
    Visible,
    /// A tuple is gone; the number is its id. Its block may be free.
    Taken,
    /// The lease of a tuple was moved.
    Lease,
    /// What is known of the attempts at a tuple has changed.
    Attempts,
    /// The request for which the section works was answered. In the ring alone: it is no change of a tuple.
    Answered,
    /// The step is one with a record of another journal. In the ring alone, too.
    Shared,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Put,
        Self::Visible,
        Self::Taken,
        Self::Lease,
        Self::Attempts,
        Self::Answered,
        Self::Shared,
    ];

    /// As it stands in a note, and in the ring.
    pub(crate) const fn number(self) -> u32 {
        self as u32 + 1
    }

    /// The kind with this number, if there is one.
    pub(crate) fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// Notes something about a tuple, after it was changed.
#[inline(always)]
fn note(store: &Store, section: &mut Section<'_>, (kind, reference, number): (Kind, u32, u64)) {
    if store.journal.is_on() {
        note_now(section, (kind, reference, number));
    }
}

#[cold]
#[inline(never)]
fn note_now(section: &mut Section<'_>, (kind, reference, number): (Kind, u32, u64)) {
    section.note(Note { kind: kind.number(), reference, number });
}

/// The tuple of `record` is there: linked, or a waiter's.
#[inline(always)]
pub(crate) fn put(store: &Store, section: &mut Section<'_>, record: Record<'_>) {
    if store.notes_puts {
        note_now(section, (Kind::Put, record.reference, 0));
    }
}

/// The tuple of `record`, whose id was `before`, is visible.
pub(crate) fn visible(store: &Store, section: &mut Section<'_>, record: Record<'_>, before: u64) {
    note(store, section, (Kind::Visible, record.reference, before));
}

/// The tuple with this id is gone.
#[inline(always)]
pub(crate) fn taken(store: &Store, section: &mut Section<'_>, id: u64) {
    note(store, section, (Kind::Taken, 0, id));
}

/// The lease of the tuple of `record` was moved.
pub(crate) fn lease(store: &Store, section: &mut Section<'_>, record: Record<'_>) {
    note(store, section, (Kind::Lease, record.reference, record.header.load64(SEQUENCE)));
}

/// What is known of the attempts at the tuple of `record` has changed. If it is gone when the section commits, that is all that is
/// told of it.
pub(crate) fn attempts(store: &Store, section: &mut Section<'_>, record: Record<'_>) {
    note(store, section, (Kind::Attempts, record.reference, record.header.load64(SEQUENCE)));
}
