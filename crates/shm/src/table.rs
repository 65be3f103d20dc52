//! The fixed part of a segment: identity, participants, thread slots. Everything after it is the engine's.
//!
//! | offset | size | what |
//! |---:|---:|---|
//! | 0 | 256 | identity ([`crate::superblock`]) |
//! | 256 | 256 | growth: committed granules; thread slots and participants ever used; commits over several segments |
//! | 4 KiB | 128 KiB | participants: one per process |
//! | 256 KiB | 16 MiB | thread slots, 4 KiB each: who, and the undo log |
//! | 17 MiB | | the engine's tables and its arena |
//!
//! The tables are sparse: a page costs memory once it is used.

use crate::access::GRANULE;

/// Offset of the number of committed granules: the limit of a view.
pub(crate) const COMMITTED: usize = 256;
/// Offset of the number of thread slots that were ever used: later ones are not committed.
pub(crate) const SLOTS_USED: usize = 264;
/// Offset of the number of participants that were ever used.
pub(crate) const PARTICIPANTS_USED: usize = 268;

/// Offset of the number of the last commit over several segments that began here (8 bytes).
pub(crate) const GROUPS: usize = 272;

/// Most processes in one space at a time (rule B2).
pub const PARTICIPANTS_MAX: usize = 1024;
/// Bytes of a participant.
pub(crate) const PARTICIPANT_BYTES: usize = 128;
/// Offset of the participants.
const PARTICIPANTS: usize = 4096;

/// Most threads in one space at a time (rule B2).
pub const THREADS_MAX: usize = 4096;
/// Bytes of a thread slot: a page, so that the logs of two threads share no line.
pub const SLOT_BYTES: usize = 4096;
/// Offset of the thread slots.
const SLOTS: usize = 256 << 10;

/// Where the engine's part of the segment begins.
pub(crate) const ENGINE_BASE: usize = 17 << 20;

const _: () = assert!(PARTICIPANTS + PARTICIPANTS_MAX * PARTICIPANT_BYTES <= SLOTS);
const _: () = assert!(SLOTS + THREADS_MAX * SLOT_BYTES <= ENGINE_BASE);
const _: () = assert!(ENGINE_BASE.is_multiple_of(GRANULE));

/// Offset of participant number `index`.
#[inline]
pub(crate) const fn participant(index: usize) -> usize {
    PARTICIPANTS + index * PARTICIPANT_BYTES
}

/// Offset of thread slot number `index`.
#[inline]
pub(crate) const fn slot(index: usize) -> usize {
    SLOTS + index * SLOT_BYTES
}
