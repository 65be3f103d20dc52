//! Records in the hands of one thread between two sections: named in the thread's slot, so that whoever
//! finds the thread dead knows what to return or free.

use tupelo_shm::{ENGINE_WORDS, ENGINE_WORDS_COUNT, Section};

use crate::error::Error;

/// A place in the thread's slot that names a record. Ends in a section of the same thread.
pub(crate) struct Flight {
    word: usize,
}

impl Flight {
    /// Names `reference` as held by this thread, if the section commits.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] if the thread holds its maximum: a sink that takes large tuples inside of
    /// sinks that take large tuples.
    pub(crate) fn begin(section: &mut Section<'_>, reference: u32) -> Result<Self, Error> {
        let slot = section.thread().slot();
        let free = (0..ENGINE_WORDS_COUNT)
            .map(|index| ENGINE_WORDS + 4 * index)
            .find(|word| slot.load(*word) == 0);
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
