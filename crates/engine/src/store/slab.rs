//! Slabs: what the blocks of one size are cut from.
//!
//! A slab belongs to one partition. It is an extent of its own, or a *small* one: 4 KiB of an extent that partitions share.
//! The first slab that a partition gets for a size is small, so that a shape of few tuples takes little. Each further one is
//! an extent, unless the space can not grow: steady traffic should not come back to the arena for each few blocks.
//!
//! All slabs of a shared extent are for blocks of one class. So the entry of an extent tells the size of each block in it,
//! whether the extent is shared or not. A block that is taken or kept as a spare needs nothing else.
//!
//! The arena's lock guards which slabs of a shared extent are in use, and the list of the shared extents of a class that
//! have one left. A small slab is its partition's, with its entry, which lies in its first granule. A slab goes to another
//! partition only by the arena's lock. Whoever inherits a lock from a dead thread restores all that its section had
//! changed. So the entry of a slab is never restored in the hands of its next owner.
//!
//! Not here: moving small slabs together. A shared extent goes back when the last of its slabs does.

use tupelo_shm::{Section, Span, View, Word};

use crate::base::error::{Error, Need};
use crate::base::layout::{
    EXTENT_BYTES, EXTENT_GRANULES, Layout, SMALL_GRANULES, SMALL_SLAB_BYTES, head,
};
use crate::store::arena::{
    self, BLOCKS, BUMP, Entry, FREE_LIST, KIND, LIVE, NEXT, OWNER, PREVIOUS, RUN,
};
use crate::store::partition::{Partition, SMALL_SLABS};
use crate::store::sizes::{CLASSES, CLASSES_COUNT, SIZES_COUNT, class_granules};

/// Small slabs of a shared extent.
const SMALL_COUNT: u32 = EXTENT_GRANULES / SMALL_GRANULES;
/// All of these, a bit each.
const ALL: u32 = (1 << SMALL_COUNT) - 1;
/// Granules of a small slab that blocks are cut from: not its first one, which has its entry.
const SMALL_ROOM: u32 = SMALL_GRANULES - 1;
/// Marks the number of a small slab, which says which 4 KiB of the segment it is. Any other is that of an extent.
const SMALL: u32 = 1 << 31;

/// Words that getting a slab changes: the list and the mark of its partition. Then the bits of the shared extent and its
/// way out of its list, or the arena's set and that list.
pub(crate) const ADD_WORDS: usize = 2 + arena::MARK_WORDS + 2;
/// Words that giving a slab back changes: its way out of its list and the mark of its partition. Then the bits of the
/// shared extent, and its way into its list, or out of it and the arena's set.
pub(crate) const GIVE_BACK_WORDS: usize = UNLIST_WORDS + 1 + 1 + UNLIST_WORDS + arena::MARK_WORDS;
/// Words that [`list`] changes. The shared extent that it lists does not go back.
pub(crate) const LIST_WORDS: usize = 4;
/// Words that [`unlist`] changes.
pub(crate) const UNLIST_WORDS: usize = 2;
const _: () = assert!(LIST_WORDS <= UNLIST_WORDS + arena::MARK_WORDS);

/// The heads of the lists of shared extents, a word per class.
type Heads<'m> = Span<'m, { 4 * CLASSES_COUNT }>;

/// The list of the extents that partitions share for blocks of `class`, and that have a slab left: number + 1.
pub(crate) fn shared_list<'m>(view: &View<'m>, class: usize) -> Word<'m> {
    let heads: Heads<'m> = view.span(head::SHARED_EXTENTS);
    heads.place(4 * class.min(CLASSES_COUNT - 1))
}

/// The entry of a slab.
#[inline]
pub(crate) fn entry<'m>(view: &View<'m>, layout: &Layout, number: u32) -> Entry<'m> {
    if number < layout.extents_all {
        return arena::entry(view, layout, number);
    }
    // Else zeros that are nobody's.
    entry_seen(view, layout, number).unwrap_or_else(|| view.at(0))
}

/// As [`entry`], but `None`, and no violation, where there is none, or only in memory that is newer than the view.
pub(crate) fn entry_seen<'m>(view: &View<'m>, layout: &Layout, number: u32) -> Option<Entry<'m>> {
    if number < layout.extents_all {
        return Some(arena::entry(view, layout, number));
    }
    let first = first_granule(layout, number);
    let is_there = is_small(number) && layout.extent_of(first) < layout.extents_all;
    if is_there { view.window_at(first) } else { None }
}

/// Whether the slab is a small one.
#[inline]
fn is_small(number: u32) -> bool {
    number & SMALL != 0
}

/// Whether an extent is free once the slab is given back: a hint, unless the arena is locked.
pub(crate) fn frees_extent(view: &View<'_>, layout: &Layout, number: u32) -> bool {
    let shared = || arena::entry(view, layout, layout.extent_of(first_granule(layout, number)));
    !is_small(number) || (shared().load(LIVE) & ALL).is_power_of_two()
}

/// Where a slab begins.
#[inline]
fn first_granule(layout: &Layout, number: u32) -> u32 {
    if is_small(number) {
        number.wrapping_mul(SMALL_GRANULES)
    } else {
        layout.extent_granule(number)
    }
}

/// Where the first block of a slab begins.
#[inline]
pub(crate) fn first_block(layout: &Layout, number: u32) -> u32 {
    first_granule(layout, number).wrapping_add(number >> 31)
}

/// How many blocks of class `class` the slab holds.
#[inline]
pub(crate) fn capacity(number: u32, class: usize) -> u32 {
    /// Granules of an extent, as classes are counted.
    const EXTENT_LEN: u16 = 1024;
    const _: () = assert!(EXTENT_LEN as u32 == EXTENT_GRANULES);
    const CAPACITIES: [u16; CLASSES_COUNT] = {
        let mut capacities = [0; CLASSES_COUNT];
        let mut class = 0;
        while class < CLASSES_COUNT {
            capacities[class] = EXTENT_LEN / CLASSES[class];
            class += 1;
        }
        capacities
    };
    if is_small(number) {
        SMALL_ROOM / class_granules(class)
    } else {
        u32::from(CAPACITIES[class.min(CLASSES_COUNT - 1)])
    }
}

/// Whether the slab, for blocks of `class`, has one that is not in use.
#[inline]
pub(crate) fn has_room(entry: Entry<'_>, number: u32, class: usize) -> bool {
    entry.load(FREE_LIST) != 0 || entry.load(BUMP) < capacity(number, class)
}

/// The slab that `block` is cut from, which lies in extent `index`, with this entry.
#[inline]
pub(crate) fn of_block(index: u32, entry: Entry<'_>, block: u32) -> u32 {
    if is_shared(entry) { SMALL | (block / SMALL_GRANULES) } else { index }
}

/// Whether small slabs are cut from the extent for blocks that has this entry.
#[inline]
fn is_shared(entry: Entry<'_>) -> bool {
    entry.load(OWNER) == head::ARENA_SCOPE
}

/// Whether the extent for blocks that has this entry is shared, and has a slab left.
#[cfg(any(test, feature = "full-check"))]
pub(crate) fn has_small_left(entry: Entry<'_>) -> bool {
    is_shared(entry) && entry.load(LIVE) & ALL != ALL
}

/// The slabs in use in extent `index`, which is one for blocks, with this entry.
pub(crate) fn all_in(
    layout: &Layout,
    index: u32,
    entry: Entry<'_>,
) -> impl Iterator<Item = u32> + use<> {
    let is_shared = is_shared(entry);
    let used = if is_shared { entry.load(LIVE) & ALL } else { 1 };
    let first = SMALL | (layout.extent_granule(index) / SMALL_GRANULES);
    let parts = (0..SMALL_COUNT).filter(move |part| used >> part & 1 == 1);
    parts.map(move |part| if is_shared { first + part } else { index })
}

/// The blocks of `class` that the slab was ever cut into.
pub(crate) fn blocks(
    view: &View<'_>,
    layout: &Layout,
    number: u32,
    class: usize,
) -> impl Iterator<Item = u32> + use<> {
    let used = entry_seen(view, layout, number).map_or(0, |entry| entry.load(BUMP));
    let used = used.min(capacity(number, class));
    let (first, size) = (first_block(layout, number), class_granules(class));
    (0..used).map(move |block| first.wrapping_add(block * size))
}

/// Tells `visitor` the scopes of those to whom the extents belong that begin with extent `index`, and how many bytes of
/// them. Returns how many extents they are. To nobody belongs what is free, and the inside of a run.
pub(crate) fn owners(
    view: &View<'_>,
    layout: &Layout,
    index: u32,
    mut visitor: impl FnMut(u32, u64),
) -> u32 {
    if arena::is_free(view, layout, index) {
        return 1;
    }
    let own = arena::entry(view, layout, index);
    match own.load(KIND) & 0xff {
        RUN => {
            let extents = own.load(LIVE).max(1);
            visitor(own.load(OWNER), u64::from(extents) * EXTENT_BYTES as u64);
            extents
        }
        BLOCKS => {
            let bytes = if is_shared(own) { SMALL_SLAB_BYTES } else { EXTENT_BYTES };
            for number in all_in(layout, index, own) {
                if let Some(entry) = entry_seen(view, layout, number) {
                    visitor(entry.load(OWNER), bytes as u64);
                }
            }
            1
        }
        _ => 1,
    }
}

/// Whether a slab for blocks of `class` may be small.
fn may_be_small(class: usize) -> bool {
    class_granules(class) <= SMALL_ROOM
}

/// Whether somebody who needs a small slab for blocks of `class` would get one: a hint, unless the arena is locked.
pub(crate) fn has_small(view: &View<'_>, class: usize) -> bool {
    shared_list(view, class).load() != 0
}

/// Whether there is no more memory for slabs for blocks of `class` than the arena has, and a small slab is left.
fn is_left(view: &View<'_>, layout: &Layout, class: usize) -> bool {
    may_be_small(class) && arena::can_not_grow(view, end(layout, class)) && has_small(view, class)
}

/// The mark of a partition that it has got a small slab for `class`: the word of the page, and the bit.
fn small_mark(class: usize) -> (usize, u32) {
    (SMALL_SLABS + 4 * (class / SIZES_COUNT), 1 << (class % SIZES_COUNT))
}

/// Gets a slab for blocks of `class`, of which the partition has none with room, and lists it at `list`. Returns its number.
///
/// # Errors
///
/// [`Need`] if the arena must grow first.
#[cold]
#[inline(never)]
pub(crate) fn add<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    class: usize,
    list: Word<'m>,
) -> Result<u32, Error> {
    let (at, bit) = small_mark(class);
    let marks = partition.page().load(at);
    let number = if may_be_small(class) && marks & bit == 0 {
        let number = add_small(section, layout, partition, class)?;
        section.set(partition.page(), at, marks | bit);
        number
    } else {
        match arena::take_below(end(layout, class), section, layout, 1) {
            Ok(index) => {
                let entry = arena::entry(section.view(), layout, index);
                init(entry, BLOCKS | kind_of(class), partition.scope());
                index
            }
            // Where the space can not grow, what is left of a shared extent does as well.
            Err(Error::Need(_)) if is_left(section.view(), layout, class) => {
                add_small(section, layout, partition, class)?
            }
            // Whether the system has more memory is known only once it was asked.
            Err(error) if may_be_small(class) => return Err(need_of_small(error, class)),
            Err(error) => return Err(error),
        }
    };
    section.set_word(list, number + 1);
    Ok(number)
}

/// How many extents of the arena slabs for blocks of `class` may lie in.
#[inline]
pub(crate) fn end(layout: &Layout, class: usize) -> u32 {
    if class < SIZES_COUNT { layout.extents_max } else { layout.extents_all }
}

/// The class, as the kind of an extent has it.
fn kind_of(class: usize) -> u32 {
    u32::try_from(class).unwrap_or(0) << 8
}

/// Fills the entry of a slab, or of an extent, that is free: it means nothing, so no log (R2).
fn init(entry: Entry<'_>, kind: u32, owner: u32) {
    entry.init(KIND, kind);
    entry.init(OWNER, owner);
    for at in [LIVE, FREE_LIST, BUMP, PREVIOUS, NEXT] {
        entry.init(at, 0);
    }
}

/// Gets a small slab. Returns its number.
fn add_small<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    class: usize,
) -> Result<u32, Error> {
    let before = arena::enter(section)?;
    let shared = shared_with_room(section, layout, class);
    let number = shared.map(|index| take_small(section, layout, index, class, partition.scope()));
    section.focus(before);
    number
}

/// A shared extent for blocks of `class` that has a slab left, perhaps a new one. The section is directed to the arena.
fn shared_with_room(
    section: &mut Section<'_>,
    layout: &Layout,
    class: usize,
) -> Result<u32, Error> {
    let list = shared_list(section.view(), class);
    if let Some(index) = list.load().checked_sub(1) {
        return Ok(index);
    }
    let index = arena::take_below(end(layout, class), section, layout, 1)
        .map_err(|error| need_of_small(error, class))?;
    let entry = arena::entry(section.view(), layout, index);
    init(entry, BLOCKS | kind_of(class), head::ARENA_SCOPE);
    section.set_word(list, index + 1);
    Ok(index)
}

/// What is needed where a small slab does as well as the extent that was not found.
fn need_of_small(error: Error, class: usize) -> Error {
    let (count, committed, is_reserve) = match error {
        Error::Need(Need::Extents { count, committed, .. }) => (count, committed, false),
        Error::Need(Need::Reserve { count, committed }) => (count, committed, true),
        other => return other,
    };
    let class = u32::try_from(class).unwrap_or(u32::MAX);
    Need::SmallSlab { class, count, committed, is_reserve }.into()
}

/// Takes a slab of a shared extent, which has one left, for `owner`. The section is directed to the arena.
fn take_small(
    section: &mut Section<'_>,
    layout: &Layout,
    index: u32,
    class: usize,
    owner: u32,
) -> u32 {
    let shared = arena::entry(section.view(), layout, index);
    let used = shared.load(LIVE) & ALL;
    let part = (!used).trailing_zeros().min(SMALL_COUNT - 1);
    let first = layout.extent_granule(index).wrapping_add(part * SMALL_GRANULES);
    let number = SMALL | (first / SMALL_GRANULES);
    section.note_allocated(first, 1);
    // Before it is in use: who looks without the lock must not find what the last owner left there.
    init(entry(section.view(), layout, number), 0, owner);
    section.set(shared, LIVE, used | 1 << part);
    if used | 1 << part == ALL {
        unlist(section, layout, shared_list(section.view(), class), index);
    }
    number
}

/// Gives a slab for blocks of `class` back, none of which is in use. It is in the partition's `list`.
pub(crate) fn give_back<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    number: u32,
    class: usize,
    list: Word<'m>,
) -> Result<(), Error> {
    unlist(section, layout, list, number);
    if !is_small(number) {
        return arena::give_back(section, layout, number, 1);
    }
    let (at, bit) = small_mark(class);
    section.set(partition.page(), at, partition.page().load(at) & !bit);
    let before = arena::enter(section)?;
    let given = give_small_back(section, layout, number, class);
    section.focus(before);
    given
}

/// Gives a small slab back to its extent, and that to the arena if it was the last one. The section is directed to the arena.
fn give_small_back(
    section: &mut Section<'_>,
    layout: &Layout,
    number: u32,
    class: usize,
) -> Result<(), Error> {
    let first = first_granule(layout, number);
    let index = layout.extent_of(first);
    let part = first.wrapping_sub(layout.extent_granule(index)) / SMALL_GRANULES;
    let shared = arena::entry(section.view(), layout, index);
    let used = shared.load(LIVE) & ALL;
    let left = used & !(1 << part);
    section.set(shared, LIVE, left);
    section.note_returned(first, SMALL_GRANULES);
    let list = shared_list(section.view(), class);
    if left == 0 {
        unlist(section, layout, list, index);
        return arena::give_back(section, layout, index, 1);
    }
    if used == ALL {
        self::list(section, layout, list, index);
    }
    Ok(())
}

/// Puts a slab, or a shared extent, at the front of a list.
pub(crate) fn list<'m>(section: &mut Section<'m>, layout: &Layout, list: Word<'m>, number: u32) {
    let first = list.load();
    let entry = entry(section.view(), layout, number);
    section.set(entry, PREVIOUS, 0);
    section.set(entry, NEXT, first);
    if first != 0 {
        let other = self::entry(section.view(), layout, first - 1);
        section.set(other, PREVIOUS, number + 1);
    }
    section.set_word(list, number + 1);
}

/// Takes a slab, or a shared extent, out of its list.
pub(crate) fn unlist<'m>(section: &mut Section<'m>, layout: &Layout, list: Word<'m>, number: u32) {
    let entry = entry(section.view(), layout, number);
    let (previous, next) = (entry.load(PREVIOUS), entry.load(NEXT));
    if previous == 0 {
        section.set_word(list, next);
    } else {
        let other = self::entry(section.view(), layout, previous - 1);
        section.set(other, NEXT, next);
    }
    if next != 0 {
        let other = self::entry(section.view(), layout, next - 1);
        section.set(other, PREVIOUS, previous);
    }
}
