//! The undo log in a thread's slot: what its open section has changed, and what stood there before.
//!
//! The first entries stand in the slot, the entries of a long section in a run of extents. [`crate::section`] describes
//! how sections write it. This module has the meaning of a dead thread's log.

use std::sync::atomic::{Ordering, compiler_fence};

use crate::access::{GRANULE, Span, View};
use crate::error::Error;
use crate::link;
use crate::section::Section;
use crate::table::SLOT_BYTES;
use crate::thread::{COUNT, ENTRIES, LINK, RUN, RUN_ENTRIES, Slot, Thread, slot_of};

/// Size of an entry, in bytes.
pub const ENTRY_BYTES: usize = 16;
/// Entries inside the slot: eight times the number of changes of a put with eight indexes.
pub(crate) const INLINE_ENTRIES: u32 = 252;
/// Words that every section may change, whatever run its thread's log has.
pub const LOG_ENTRIES_MIN: usize = INLINE_ENTRIES as usize;
const _: () = assert!(INLINE_ENTRIES as usize == (SLOT_BYTES - ENTRIES) / ENTRY_BYTES);

/// One logged store. Two words, as it stands in the log, so that it travels in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    offset: usize,
    tag: u64,
}

/// A scope as a log entry has it: shifted to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScopeTag(u64);

impl ScopeTag {
    /// No scope: that of nothing.
    pub(crate) const NONE: Self = Self(0);

    #[inline(always)]
    pub(crate) fn new(scope: u32) -> Self {
        Self(u64::from(scope) << 32)
    }

    #[inline(always)]
    pub(crate) fn scope(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl LogEntry {
    /// `old` stood at `offset`, which `scope` protects.
    #[inline(always)]
    pub(crate) fn new(offset: usize, scope: ScopeTag, old: u32) -> Self {
        Self { offset, tag: scope.0 | u64::from(old) }
    }

    fn scope(self) -> u32 {
        ScopeTag(self.tag).scope()
    }

    /// The same entry, marked as restored.
    fn restored(self) -> Self {
        Self { offset: self.offset, tag: self.tag | ScopeTag::new(RESTORED).0 }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half of the tag is meant")]
    fn old(self) -> u32 {
        self.tag as u32
    }

    #[inline(always)]
    fn write(self, place: Span<'_, ENTRY_BYTES>) {
        place.init64(0, self.offset as u64);
        place.init64(8, self.tag);
    }
}

impl<'m> Thread<'m> {
    /// How many entries the log holds at most.
    #[inline(always)]
    pub fn log_capacity(&self) -> u32 {
        INLINE_ENTRIES.saturating_add(self.slot().load(RUN_ENTRIES))
    }

    /// Writes entry number `index` into the log's run. Returns whether it had room.
    #[cold]
    #[inline(never)]
    pub(crate) fn log_in_run(&self, view: &View<'m>, index: u32, entry: LogEntry) -> bool {
        let has_room = index < self.log_capacity();
        if has_room {
            entry.write(run_entry(view, self.slot(), index));
        }
        has_room
    }

    pub(crate) fn logged(&self, view: &View<'m>, index: u32) -> LogEntry {
        logged(view, self.slot(), index)
    }
}

/// Where the log's run in `slot` begins, if it has one.
pub fn log_run(slot: Slot<'_>) -> Option<u32> {
    let granule = slot.load(RUN);
    (granule != 0).then_some(granule)
}

/// Writes entry number `index`, which is below [`INLINE_ENTRIES`], into the log of `slot`; it counts only
/// after [`set_count`].
#[inline(always)]
pub(crate) fn write(slot: Slot<'_>, index: usize, entry: LogEntry) {
    entry.write(slot.part(ENTRIES + index * ENTRY_BYTES));
}

/// Says how many entries the log of `slot` has.
#[inline(always)]
pub(crate) fn set_count(slot: Slot<'_>, count: u32) {
    // Release, for processors that store out of order. A reader of a living thread's log must not take the rest of an
    // earlier section for a part of this one.
    slot.word(COUNT).store(count, Ordering::Release);
}

/// Says where the note of the log in `slot` begins, after the stores before it: entry + 1, or 0 for none.
pub(crate) fn set_link(slot: Slot<'_>, start: u32) {
    compiler_fence(Ordering::SeqCst);
    slot.init(LINK, start);
}

/// Gives the log in `slot`, the caller's own or a dead thread's, a run of `bytes` bytes from `granule` for long
/// sections, or none. Returns the beginning of its old run. The section is to be short.
pub fn set_log_run<'m>(
    section: &mut Section<'m>,
    slot: Slot<'m>,
    granule: u32,
    bytes: usize,
) -> Option<u32> {
    let old = log_run(slot);
    let entries = u32::try_from(bytes / ENTRY_BYTES).unwrap_or(u32::MAX / 2);
    section.set(slot, RUN_ENTRIES, entries);
    section.set(slot, RUN, granule);
    old
}

fn run_entry<'m>(view: &View<'m>, slot: Slot<'m>, index: u32) -> Span<'m, ENTRY_BYTES> {
    let run = slot.load(RUN) as usize * GRANULE;
    view.span(run + (index - INLINE_ENTRIES) as usize * ENTRY_BYTES)
}

/// Where entry number `index` of the log in `slot` is.
fn entry_place<'m>(view: &View<'m>, slot: Slot<'m>, index: u32) -> Span<'m, ENTRY_BYTES> {
    if index < INLINE_ENTRIES {
        slot.part(ENTRIES + index as usize * ENTRY_BYTES)
    } else {
        run_entry(view, slot, index)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "addresses have 64 bits")]
fn logged<'m>(view: &View<'m>, slot: Slot<'m>, index: u32) -> LogEntry {
    let place = entry_place(view, slot, index);
    LogEntry { offset: place.load64(0) as usize, tag: place.load64(8) }
}

/// Marks the scope of an entry that was restored. Scopes are granules of lock lines, far below it.
pub(crate) const RESTORED: u32 = 1 << 31;

/// Restores the uncommitted changes of the thread with slot `number` in `scope`, newest first, and marks them. Changes
/// that the log of another segment has committed stay, and are marked as well.
///
/// Killed in between, the next recoverer restores the rest, and perhaps one entry again. That is the oldest restored entry,
/// so its value is the final one.
///
/// # Errors
///
/// The system's error if the other log cannot be asked: nothing was restored.
pub(crate) fn restore(view: &View<'_>, number: u32, scope: u32) -> Result<(), Error> {
    let Some(slot) = slot_of(view, number) else { return Ok(()) };
    let is_left = |index| logged(view, slot, index).scope() == scope;
    // Only an owner that left something here is known to be dead.
    let stays = slot.load(LINK) != 0
        && (0..count(view, slot)).any(is_left)
        && link::is_committed_elsewhere(view, number)?;
    for index in (0..count(view, slot)).rev() {
        let entry = logged(view, slot, index);
        if entry.scope() == scope {
            if !stays {
                put_back(view, &entry);
            }
            compiler_fence(Ordering::SeqCst);
            entry.restored().write(entry_place(view, slot, index));
        }
    }
    Ok(())
}

/// The scopes that the section of the thread with slot `number` changed and that were not restored yet, ascending. None
/// unless `scope` was restored from it: then the log is another section's.
pub(crate) fn left_with(view: &View<'_>, number: u32, scope: u32) -> Vec<u32> {
    let Some(slot) = slot_of(view, number) else { return Vec::new() };
    let scopes = (0..count(view, slot)).map(|index| logged(view, slot, index).scope());
    let mut scopes: Vec<u32> = scopes.collect();
    if !scopes.contains(&(scope | RESTORED)) {
        return Vec::new();
    }
    scopes.retain(|scope| scope & RESTORED == 0);
    scopes.sort_unstable();
    scopes.dedup();
    scopes
}

/// Writes the entry with number `index`, which does not count.
pub(crate) fn write_beyond<'m>(view: &View<'m>, slot: Slot<'m>, index: u32, words: [u64; 2]) {
    let place = entry_place(view, slot, index);
    place.init64(0, words[0]);
    place.init64(8, words[1]);
}

/// How many entries the log in `slot` has.
fn count(view: &View<'_>, slot: Slot<'_>) -> u32 {
    // The count in a damaged slot may be too large.
    let room = view.limit().saturating_sub(slot.load(RUN) as usize * GRANULE) / ENTRY_BYTES;
    let room = u32::try_from(room).unwrap_or(u32::MAX);
    let run_entries = slot.load(RUN_ENTRIES).min(room);
    slot.word(COUNT).load(Ordering::Acquire).min(INLINE_ENTRIES.saturating_add(run_entries))
}

/// Stores the old value where it stood.
pub(crate) fn put_back(view: &View<'_>, entry: &LogEntry) {
    let pair: Span<'_, 8> = view.span(entry.offset & !7);
    pair.init(entry.offset & 4, entry.old());
}

/// The scopes that the log in `slot` mentions, ascending.
pub(crate) fn mentioned_scopes(view: &View<'_>, slot: Slot<'_>) -> Vec<u32> {
    let scope = |index| logged(view, slot, index).scope() & !RESTORED;
    let mut scopes: Vec<u32> = (0..count(view, slot)).map(scope).collect();
    scopes.sort_unstable();
    scopes.dedup();
    scopes
}
