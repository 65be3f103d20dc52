//! The arena: 64 KiB extents, free or owned by a partition, and their growth.
//!
//! A set of bits says which extents are committed and free; lowest first, so that the high ones empty and
//! can go back to the system. Extents are taken and returned inside the section of whoever needs them,
//! under the arena's lock, so a killed process leaves no extent between owners.

use tupelo_shm::{Section, Span, View, headroom};

use crate::base::error::{Error, Need};
use crate::base::layout::{
    self, CHUNK_EXTENTS, EXTENT_BYTES, EXTENT_ENTRY_BYTES, EXTENT_GRANULES, Layout, PAGE, head,
};
use crate::store::{Store, fullness, multi_shape, step};

/// The words of the arena's line.
type ArenaLine<'m> = Span<'m, 64>;
/// Extents that were ever committed; those above were never touched.
pub(crate) const COMMITTED: usize = 0;
/// Free extents among them.
pub(crate) const FREE: usize = 4;
/// No word of the set below this one has a free extent.
pub(crate) const HINT: usize = 8;
/// 1 if the system refused more memory when the arena was to grow last, 0 if it did not. A hint, not logged.
pub(crate) const REFUSED: usize = 16;

/// The entry of an extent, or of a slab that is no whole one ([`crate::store::slab`]). What it says counts while that is
/// owned.
pub(crate) type Entry<'m> = Span<'m, EXTENT_ENTRY_BYTES>;
/// What the extent is used for: [`BLOCKS`] or [`RUN`]; size class in the second byte.
pub(crate) const KIND: usize = 0;
/// Scope of the partition that owns it; the arena's own, if partitions share it, or if it has a log.
pub(crate) const OWNER: usize = 4;
/// Blocks in use; for a shared extent, which slabs are in use, a bit each; for the first one of a run, how many extents it has.
pub(crate) const LIVE: usize = 8;
/// First free block.
pub(crate) const FREE_LIST: usize = 12;
/// Blocks that were ever used.
pub(crate) const BUMP: usize = 16;
/// Neighbours in the list of slabs, or of shared extents, with room: number + 1, 0 at the ends.
pub(crate) const PREVIOUS: usize = 20;
pub(crate) const NEXT: usize = 24;

pub(crate) const BLOCKS: u32 = 1;
pub(crate) const RUN: u32 = 2;

/// Words that [`mark`] changes for up to 32 extents: two of the set, the count, the hint.
pub(crate) const MARK_WORDS: usize = 4;

/// Where the arena's line is.
pub(crate) fn line<'m>(view: &View<'m>) -> ArenaLine<'m> {
    view.span(head::ARENA)
}

/// The entry of extent `index`.
#[inline]
pub(crate) fn entry<'m>(view: &View<'m>, layout: &Layout, index: u32) -> Entry<'m> {
    if index >= layout.extents_all {
        // Zeros that are nobody's.
        return view.at(0);
    }
    view.span(layout::extent_entry(index))
}

/// Locks the arena for the rest of the section, unless it holds it already. Returns the scope that
/// `set` was directed to before.
pub(crate) fn enter(section: &mut Section<'_>) -> Result<u32, Error> {
    if section.holds(head::ARENA_SCOPE) {
        return Ok(section.focus(head::ARENA_SCOPE));
    }
    let before = section.focused();
    if multi_shape::may_concern_multi_shape(section) {
        // Locked before the arena, or not at all: others hold them while they ask for memory.
        multi_shape::enter_multi_shape(section)?;
    }
    section.enter_also(head::ARENA_SCOPE)?;
    Ok(before)
}

/// Free extents that are left to what serves callers who make room: tuples do not use them. So a space that the system
/// gives no more memory can be emptied, too: by claims, queues and transactions. As many as are in use, up to this.
const RESERVE_EXTENTS: u32 = CHUNK_EXTENTS / 4;

/// Takes `count` neighbouring extents of the first `end`. Returns the first of them.
///
/// # Errors
///
/// [`Need::Extents`] if there are none, [`Need::Reserve`] if too few would be left. The caller drops the section, grows
/// the arena and begins the operation again. So no thread waits for a lock while the kernel finds pages.
pub(crate) fn take_below(
    end: u32,
    section: &mut Section<'_>,
    layout: &Layout,
    count: u32,
) -> Result<u32, Error> {
    let before = enter(section)?;
    let committed = line(section.view()).load(COMMITTED);
    let missing = missing_reserve(section.view(), layout, count, end);
    let Some(first) = find(section.view(), layout, count, end).filter(|_| missing == 0) else {
        // Who can do without goes on in the same section.
        section.focus(before);
        return Err(match missing {
            0 => Need::Extents { count, end, committed },
            missing => Need::Reserve { count: missing, committed },
        }
        .into());
    };
    mark(section, layout, first, count, false)?;
    section.focus(before);
    Ok(first)
}

/// Takes `count` neighbouring extents, also beyond the limit of the space: for what serves callers who make room.
///
/// # Errors
///
/// As [`take_below`].
pub(crate) fn take_beyond(
    section: &mut Section<'_>,
    layout: &Layout,
    count: u32,
) -> Result<u32, Error> {
    take_below(layout.extents_all, section, layout, count)
}

/// Notes that `count` extents from `first`, just taken, are one block of `owner`'s.
pub(crate) fn mark_run(section: &Section<'_>, layout: &Layout, first: u32, count: u32, owner: u32) {
    let entry = entry(section.view(), layout, first);
    // A free extent's entry means nothing: no log (R2).
    entry.init(KIND, RUN);
    entry.init(OWNER, owner);
    entry.init(LIVE, count);
    // What an extent inside was before must not be taken for what it is.
    for inside in first + 1..first + count {
        self::entry(section.view(), layout, inside).init(KIND, 0);
    }
    section.note_allocated(layout.extent_granule(first), count.wrapping_mul(EXTENT_GRANULES));
}

/// Gives `count` extents from `first` back. They are free once the section commits.
pub(crate) fn give_back(
    section: &mut Section<'_>,
    layout: &Layout,
    first: u32,
    count: u32,
) -> Result<(), Error> {
    let before = enter(section)?;
    mark(section, layout, first, count, true)?;
    section.note_returned(layout.extent_granule(first), count.wrapping_mul(EXTENT_GRANULES));
    section.focus(before);
    Ok(())
}

/// How many more extents would have to be free, if `count` of the first `end` are taken, for the reserve to be left. Where no
/// more can ever be had there is none: the limit is the space's own then, and what makes room was beyond it.
fn missing_reserve(view: &View<'_>, layout: &Layout, count: u32, end: u32) -> u32 {
    let line = line(view);
    let (free, committed) = (line.load(FREE), line.load(COMMITTED));
    if end > layout.extents_max || free < count {
        // For the reserve's own users; or it is not only the reserve that is missing.
        return 0;
    }
    let used = committed.saturating_sub(free).saturating_add(count);
    let wanted = count.saturating_add(used.min(RESERVE_EXTENTS));
    wanted.saturating_sub(free).min(layout.extents_all.saturating_sub(committed))
}

/// Whether `count` neighbouring extents among the first `end` are free: a hint, unless the arena is locked.
pub(crate) fn has(view: &View<'_>, layout: &Layout, count: u32, end: u32) -> bool {
    find(view, layout, count, end).is_some()
}

/// The first of `count` neighbouring free extents among the first `end`.
fn find(view: &View<'_>, layout: &Layout, count: u32, end: u32) -> Option<u32> {
    let line = line(view);
    let committed = line.load(COMMITTED).min(end);
    let (mut run, mut index) = (0, line.load(HINT).saturating_mul(32));
    while index < committed {
        let word = free_word(view, layout, index / 32);
        if word == 0 {
            (run, index) = (0, (index / 32 + 1) * 32);
            continue;
        }
        run = if word >> (index % 32) & 1 == 1 { run + 1 } else { 0 };
        index += 1;
        if run == count {
            return Some(index - count);
        }
    }
    None
}

/// How many neighbouring extents can be had at most, with those that were never touched: a hint, unless the arena is locked.
pub(crate) fn longest_run(view: &View<'_>, layout: &Layout) -> u32 {
    let committed = line(view).load(COMMITTED).min(layout.extents_max);
    let (mut longest, mut run) = (0, 0);
    for index in 0..committed {
        run = if is_free(view, layout, index) { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest.max(run + (layout.extents_max - committed))
}

fn free_word(view: &View<'_>, layout: &Layout, word: u32) -> u32 {
    let pair: Span<'_, 8> = view.span(layout.free_word(word & !1));
    pair.load(4 * (word as usize & 1))
}

/// Marks extents as free or taken, and keeps the count and the hint.
pub(crate) fn mark(
    section: &mut Section<'_>,
    layout: &Layout,
    first: u32,
    count: u32,
    free: bool,
) -> Result<(), Error> {
    let end = first.saturating_add(count);
    if end > layout.extents_all {
        section.view().violate();
        return Ok(());
    }
    if count > 32 {
        step::beyond(section, count as usize / 32 + MARK_WORDS)?;
    }
    let mut index = first;
    while index < end {
        let word = index / 32;
        let here = (32 - index % 32).min(end - index);
        let bits = (u32::MAX >> (32 - here)) << (index % 32);
        let old = free_word(section.view(), layout, word);
        let pair: Span<'_, 8> = section.view().span(layout.free_word(word & !1));
        let at = 4 * (word as usize & 1);
        section.set(pair, at, if free { old | bits } else { old & !bits });
        index += here;
    }
    let line = line(section.view());
    let change = count.cast_signed();
    section.add(line, FREE, if free { change } else { -change });
    let hint = line.load(HINT);
    if free && first / 32 < hint {
        section.set(line, HINT, first / 32);
    } else if !free && first / 32 == hint && free_word(section.view(), layout, hint) == 0 {
        section.set(line, HINT, hint + 1);
    }
    Ok(())
}

/// Whether the first `end` extents of the arena can not have more memory, as far as is known. All of these are committed, or
/// the system refused more the last time. It is asked again once there is nothing else.
pub(crate) fn can_not_grow(view: &View<'_>, end: u32) -> bool {
    let line = line(view);
    line.load(COMMITTED) >= end || line.load(REFUSED) != 0
}

/// Extents with which a small arena begins: one for tuples, and one that is left to what serves takers.
const FIRST_EXTENTS: u32 = 2;
/// An arena grows by at least this part of itself.
const GROWTH: u32 = 8;
/// But by no more than this unless it must: 128 MiB, which the shortest log can note.
const GROWTH_EXTENTS_MAX: u32 = 2048;
const _: () = assert!(
    GROWTH_EXTENTS_MAX as usize / 32 + MARK_WORDS + step::STEP_WORDS <= tupelo_shm::LOG_ENTRIES_MIN
);

/// Commits more of the arena for a section that found no `count` neighbouring extents among the first `end`
/// when the arena had `committed`.
///
/// That section has been undone, so the extents that it had taken are free again, and may even be enough for this one
/// request. The arena grows all the same, or the section would fail at the same place for ever.
///
/// # Errors
///
/// [`Error::SpaceFull`] if the space may not grow that far, or the system has no room.
#[cold]
pub(crate) fn grow(store: &Store, count: u32, end: u32, committed: u32) -> Result<(), Error> {
    // Before the lock: it reads files.
    headroom::refresh();
    let mut section = Section::enter(&store.memory, head::ARENA_SCOPE)?;
    let layout = &store.layout;
    if line(section.view()).load(COMMITTED) != committed {
        // Somebody grew it meanwhile.
        return Ok(());
    }
    let tail = free_tail(section.view(), layout, committed);
    let missing = count - tail.min(count - 1);
    let left = end.saturating_sub(committed);
    if missing > left {
        return Err(fullness::full_for(store, count));
    }
    grow_by(store, &mut section, missing, end)?;
    section.commit()?;
    Ok(())
}

/// Commits `missing` more extents, so that tuples leave a reserve; as [`grow`]. In a space that tuples have filled they
/// lie beyond its limit, and make a chunk.
///
/// # Errors
///
/// [`Error::SpaceFull`] if the system has no room.
#[cold]
pub(crate) fn grow_reserve(store: &Store, missing: u32, committed: u32) -> Result<(), Error> {
    headroom::refresh();
    let mut section = Section::enter(&store.memory, head::ARENA_SCOPE)?;
    let layout = &store.layout;
    if line(section.view()).load(COMMITTED) != committed {
        return Ok(());
    }
    // While there are some that tuples may have, those serve as the reserve, too.
    let end = if committed < layout.extents_max { layout.extents_max } else { layout.extents_all };
    grow_by(store, &mut section, missing.min(end.saturating_sub(committed)), end)?;
    section.commit()?;
    Ok(())
}

/// Commits `missing` extents, which are more than none, below `end`, or more.
fn grow_by(store: &Store, section: &mut Section<'_>, missing: u32, end: u32) -> Result<(), Error> {
    let layout = &store.layout;
    let committed = line(section.view()).load(COMMITTED);
    // In chunks if there is room, else what is needed: a chunk can be a huge page, and each growth holds up all
    // callers if the process is stopped in it. A large arena by a part of itself, so that a long section begins
    // again only a few times. The arena of a space of at most a chunk becomes twice as large.
    // Beyond the limit not by a part of itself: by a chunk, which is what a space may take ahead there.
    let is_beyond = end > layout.extents_max;
    let part = if is_beyond { 0 } else { (committed / GROWTH).min(GROWTH_EXTENTS_MAX) };
    let wanted = committed.saturating_add(missing.max(part));
    let whole = if wanted < CHUNK_EXTENTS && layout.extents_max <= CHUNK_EXTENTS {
        wanted.next_power_of_two().max(FIRST_EXTENTS)
    } else {
        wanted.next_multiple_of(CHUNK_EXTENTS)
    };
    let extents = whole.min(end).saturating_sub(committed);
    let grown = commit_extents(store, committed, extents).or_else(|error| {
        if missing == extents { Err(error) } else { commit_extents(store, committed, missing) }
    });
    line(section.view()).init(REFUSED, u32::from(grown.is_err()));
    let extents = grown?;
    section.set(line(section.view()), COMMITTED, committed + extents);
    mark(section, layout, committed, extents, true)
}

/// Gets pages for `count` extents from `first` and for their entries.
fn commit_extents(store: &Store, first: u32, count: u32) -> Result<u32, Error> {
    let layout = &store.layout;
    let mapping = store.memory.mapping();
    let pages = |from: usize, to: usize| from / PAGE * PAGE..to.next_multiple_of(PAGE);
    let full = |error| fullness::full(store, Some(error));
    let entries = pages(layout::extent_entry(first), layout::extent_entry(first + count));
    mapping.commit(entries).map_err(full)?;
    let words = pages(layout.free_word(first / 32), layout.free_word((first + count) / 32 + 1));
    mapping.commit(words).map_err(full)?;
    let start = layout.arena + first as usize * EXTENT_BYTES;
    let end = start + count as usize * EXTENT_BYTES;
    mapping.commit(start..end).map_err(|error| {
        // What was had of it is of no use here, and may be all that others on the file system could have.
        let _ = mapping.release(start..end);
        full(error)
    })?;
    store.memory.raise_committed(end);
    Ok(count)
}

/// Whether extent `index` is committed and free.
pub(crate) fn is_free(view: &View<'_>, layout: &Layout, index: u32) -> bool {
    free_word(view, layout, index / 32) >> (index % 32) & 1 == 1
}

/// How many free extents end the committed part.
pub(crate) fn free_tail(view: &View<'_>, layout: &Layout, committed: u32) -> u32 {
    let tail = (0..committed).rev().take_while(|index| is_free(view, layout, *index)).count();
    u32::try_from(tail).unwrap_or(u32::MAX)
}
