//! The ring: so many bytes of the segment, used over and over. A position counts all bytes that were ever appended, so of
//! two positions the larger is the later; the remainder by the size of the ring says where it is.

use std::sync::atomic::Ordering;

use tupelo_shm::{Section, Span, View};

use crate::base::error::{Error, Need};
use crate::journal::record::{Leaves, Size};
use crate::store::Store;
use crate::store::journal::{self, BEGIN, END, Line};

/// What puts leave of a ring to what may not wait for room: takes, expiries, what becomes of the claims of the dead.
const RESERVE_SHARE: u64 = 4;
const RESERVE_BYTES_MAX: u64 = 1 << 20;
/// Half of that is for takes that have looked whether it is free: one of each thread.
const TAKES_SHARE: u64 = 2;

/// The ring of a space.
#[derive(Clone, Copy)]
pub(crate) struct Ring<'m> {
    line: Line<'m>,
    offset: usize,
    bytes: u64,
}

impl<'m> Ring<'m> {
    /// The ring of a journalled space.
    pub(crate) fn of(store: &Store, view: &View<'m>) -> Self {
        let layout = store.layout;
        let bytes = (layout.journal_bytes as u64).max(8);
        Self { line: journal::line(view), offset: layout.journal, bytes }
    }

    /// Where it ends, as far as is known: certain under its lock.
    pub(crate) fn end(self) -> u64 {
        self.line.load64(END)
    }

    /// Where it begins: what was before that may be overwritten.
    pub(crate) fn begin(self) -> u64 {
        // Acquire pairs with the Release of who drains: it has read what is overwritten from here on.
        self.line.double(BEGIN).load(Ordering::Acquire)
    }

    /// Whether it ends behind where it begins, and before it begins again. While nobody appends.
    pub(crate) fn is_sound(self) -> bool {
        let (end, begin) = (self.end(), self.begin());
        begin <= end && end - begin <= self.bytes
    }

    fn reserve_bytes(self) -> u64 {
        (self.bytes / RESERVE_SHARE).min(RESERVE_BYTES_MAX)
    }

    fn free_bytes(self) -> u64 {
        self.bytes.saturating_sub(self.end().saturating_sub(self.begin()))
    }

    /// Bytes that have to be left beside a record.
    fn left_bytes(self, size: Size) -> u64 {
        match size.leaves {
            Leaves::Reserve => self.reserve_bytes(),
            Leaves::Takes => self.reserve_bytes() / TAKES_SHARE,
            Leaves::Nothing => 0,
        }
    }

    /// Refuses a record that would not fit into an empty ring.
    pub(crate) fn require_fits(self, size: Size) -> Result<(), Error> {
        let most = self.bytes - self.left_bytes(size);
        if size.bytes <= most {
            return Ok(());
        }
        Err(Error::LimitExceeded {
            what: "bytes of changes in one step: the journal of the space has room for so many",
            limit: usize::try_from(most).unwrap_or(usize::MAX),
        })
    }

    /// Refuses a record for which there is no room now.
    pub(crate) fn require_room(self, size: Size) -> Result<(), Error> {
        let needed = size.bytes + self.left_bytes(size);
        if needed <= self.free_bytes() {
            return Ok(());
        }
        Err(Need::JournalRoom { bytes: u32::try_from(needed).unwrap_or(u32::MAX) }.into())
    }

    /// See [`crate::journal::has_room_for_take`].
    pub(crate) fn has_room_for_take(self) -> bool {
        self.free_bytes() >= self.reserve_bytes() / TAKES_SHARE
    }

    /// Bytes that have to be free before an operation goes on that has found too few.
    pub(crate) fn is_free(self, bytes: u64) -> bool {
        self.free_bytes() >= bytes.min(self.bytes)
    }

    /// Where a position is, and how many bytes follow it without a break.
    fn place(self, position: u64) -> (usize, usize) {
        let at = position % self.bytes;
        #[expect(clippy::cast_possible_truncation, reason = "a ring is far smaller")]
        (self.offset + at as usize, (self.bytes - at) as usize)
    }

    /// Copies what is at a position, across the end of the memory, too.
    pub(crate) fn read(self, view: &View<'_>, position: u64, out: &mut [u8]) {
        let (at, behind) = self.place(position);
        let (first, rest) = out.split_at_mut(behind.min(out.len()));
        view.copy_out(at, first);
        if !rest.is_empty() {
            view.copy_out(self.offset, rest);
        }
    }
}

/// Says that the ring ends here, if the section commits. The section is directed to its lock.
pub(crate) fn set_end(section: &mut Section<'_>, end: u64) {
    let line = journal::line(section.view());
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    let (low, high) = (end as u32, (end >> 32) as u32);
    section.set_words([(line.place(END), low), (line.place(END + 4), high)]);
}

/// Writes behind the end of a ring, where nobody reads.
pub(crate) struct Writer<'v, 'm> {
    view: &'v View<'m>,
    ring: Ring<'m>,
    position: u64,
}

impl<'v, 'm> Writer<'v, 'm> {
    /// Begins at the end.
    pub(crate) fn new(view: &'v View<'m>, ring: Ring<'m>) -> Self {
        Self { view, ring, position: ring.end() }
    }

    /// Writes a word of eight bytes. Words never lie across the end of the memory, which has a multiple of eight.
    pub(crate) fn word(&mut self, word: u64) {
        let (at, _) = self.ring.place(self.position);
        let place: Span<'_, 8> = self.view.span(at);
        place.init64(0, word);
        self.position += 8;
    }

    /// Writes two halves of a word.
    pub(crate) fn pair(&mut self, low: u32, high: u32) {
        self.word(u64::from(low) | u64::from(high) << 32);
    }

    /// Copies `bytes` bytes, a multiple of eight, that stand at `from` in the segment, also a multiple of eight.
    pub(crate) fn copy(&mut self, from: usize, bytes: usize) {
        let (at, behind) = self.ring.place(self.position);
        let first = behind.min(bytes);
        self.view.copy_across(from, at, first);
        if first < bytes {
            self.view.copy_across(from + first, self.ring.offset, bytes - first);
        }
        self.position += bytes as u64;
    }
}
