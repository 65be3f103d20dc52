//! What a process keeps of the journal of a space, and the words of the head about it.
//!
//! | bytes | what |
//! |---:|---|
//! | 0 | where the ring ends: bytes that were ever appended (two words), under the lock of the journal |
//! | 8 | where it begins: bytes that were released (two words), by who has the right to drain |
//! | 16 | bytes of the ring (two words); 0: the space is not journalled. Set at creation |
//! | 24 | the id of the next tuple (two words) |
//! | 32 | how often bytes were released, modulo 2^32: who waits for that sleeps on it |
//! | 40 | in how many batches they were released (two words), by who has the right to drain |
//!
//! Whatever layout a build has, the first three are in this place: a later build asks what a segment of an earlier one has not
//! brought to its file ([`end_of`]).

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use tupelo_shm::{Directory, Span, View};

use crate::base::error::Error;
use crate::base::layout::head;

/// The line of the head.
pub(crate) type Line<'m> = Span<'m, 64>;
/// Where the ring ends.
pub(crate) const END: usize = 0;
/// Where it begins.
pub(crate) const BEGIN: usize = 8;
/// Bytes of it.
pub(crate) const BYTES: usize = 16;
/// The id of the next tuple. A number may be skipped.
const NEXT_ID: usize = 24;
/// How often bytes were released.
pub(crate) const RELEASES: usize = 32;
/// In how many batches.
pub(crate) const BATCHES: usize = 40;

/// Smallest ring: what is left of it for takes has a record of every thread that there can be.
pub(crate) const JOURNAL_BYTES_MIN: u64 = 1 << 20;
/// Largest ring.
pub(crate) const JOURNAL_BYTES_MAX: u64 = 1 << 30;

/// Where the line is, in bytes from the beginning of a segment.
const PLACE: u64 = (17 << 20) + 768;
const _: () = assert!(PLACE == head::JOURNAL as u64, "earlier builds have it there");
/// Bytes of what is in the same place for all builds.
const FROZEN_BYTES: usize = 24;

/// Makes room in a ring that is full, for so many bytes.
pub(crate) type Drainer = Box<dyn Fn(u64) -> Result<(), Error> + Send + Sync>;

/// What a process keeps of the journal of a space.
pub(crate) struct Journal {
    is_on: bool,
    /// What an operation does that finds the ring full.
    pub(crate) drainer: OnceLock<Drainer>,
}

impl Journal {
    /// For a ring of so many bytes; 0 for none.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { is_on: bytes != 0, drainer: OnceLock::new() }
    }

    /// Whether changes are told of.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }
}

/// The words of the head about the journal.
#[inline]
pub(crate) fn line<'m>(view: &View<'m>) -> Line<'m> {
    view.span(head::JOURNAL)
}

/// As [`crate::Engine::journal_end_of`] says.
pub(crate) fn end_of(directory: &Directory, name: &str) -> Result<Option<u64>, tupelo_shm::Error> {
    let mut bytes = [0; FROZEN_BYTES];
    directory.read_at(name, PLACE, &mut bytes)?;
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    let (end, begin, ring_bytes) = (word(END), word(BEGIN), word(BYTES));
    let is_ring = (JOURNAL_BYTES_MIN..=JOURNAL_BYTES_MAX).contains(&ring_bytes)
        && end.checked_sub(begin).is_some_and(|waiting| waiting <= ring_bytes);
    Ok(is_ring.then_some(end))
}

/// Gives out the id of a tuple. Under the lock of its partition, so that of two tuples there the later has the larger one.
pub(crate) fn give_id(line: Line<'_>) -> u64 {
    line.double(NEXT_ID).fetch_add(1, Ordering::Relaxed)
}

/// The id that the next tuple will have.
pub(crate) fn next_id(line: Line<'_>) -> u64 {
    line.double(NEXT_ID).load(Ordering::Relaxed)
}

/// Has the next tuple get this id. While nobody else uses the space.
pub(crate) fn set_next_id(line: Line<'_>, id: u64) {
    line.double(NEXT_ID).store(id, Ordering::Relaxed);
}
