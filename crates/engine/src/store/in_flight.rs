//! In-flight slots: words of a thread's slot that name the records in its hands between two sections. So whoever finds
//! the thread dead knows what to return or free.

use std::sync::atomic::Ordering;

use tupelo_shm::{ENGINE_WORDS, ENGINE_WORDS_COUNT, Section, Slot};

use crate::base::error::Error;

/// What a word names whose record is settled, until that is certain. Its thread may live, and is inside of no lock of the one
/// who settles: a word that was free already would soon name another record, and an undo would write the old one over it.
const SETTLED: u32 = u32::MAX;

/// The places in a slot that name records.
pub(crate) fn words() -> impl Iterator<Item = usize> {
    (0..ENGINE_WORDS_COUNT).map(|index| ENGINE_WORDS + 4 * index)
}

/// The record that a word of a thread's slot names; 0 if none.
pub(crate) fn named(slot: Slot<'_>, word: usize) -> u32 {
    match slot.load(word) {
        SETTLED => 0,
        reference => reference,
    }
}

/// What a word of any thread's slot names is settled, if the section commits. [`free`] comes after that.
pub(crate) fn settle(section: &mut Section<'_>, slot: Slot<'_>, word: usize) {
    let slot = section.view().span::<{ tupelo_shm::SLOT_BYTES }>(section.view().offset_of(slot));
    section.set(slot, word, SETTLED);
}

/// A word whose record is settled for certain may name another.
pub(crate) fn free(slot: Slot<'_>, word: usize) {
    // Another sweeper may have been here, and the slot be another thread's, who names something. After the commit, in memory,
    // too: who recovers from a death between them is to find the commit.
    let _ = slot.word(word).compare_exchange(SETTLED, 0, Ordering::Release, Ordering::Relaxed);
}

/// A place in the thread's slot that names a record. Ends in a section of the same thread.
pub(crate) struct InFlight {
    word: usize,
}

impl InFlight {
    /// Names `reference` as held by this thread, if the section commits.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] if the thread holds its maximum: a visitor that takes large tuples inside of
    /// visitors that take large tuples.
    pub(crate) fn begin(section: &mut Section<'_>, reference: u32) -> Result<Self, Error> {
        let slot = section.thread().slot();
        let free = words().find(|word| slot.load(*word) == 0);
        let word = free.ok_or(Error::LimitExceeded {
            what: "large tuples in one thread's hands",
            limit: ENGINE_WORDS_COUNT,
        })?;
        section.set(slot, word, reference);
        Ok(Self { word })
    }

    /// The word of the slot.
    pub(crate) fn word(&self) -> usize {
        self.word
    }

    /// The record is in order again, if the section commits.
    pub(crate) fn end(&self, section: &mut Section<'_>) {
        let slot = section.thread().slot();
        section.set(slot, self.word, 0);
    }
}
