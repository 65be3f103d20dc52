//! Blocks: what records and index tables are made of, cut from the extents that a partition owns.
//!
//! Sizes come in classes, so freed blocks are reused as they are: steady traffic touches no new memory.
//! Allocation and release happen inside the section that needs them and are two or three logged words.
//! A partition lists, per class, the extents that have room; an extent that becomes empty goes back to the
//! arena unless it is the only one of its list. What is larger than half an extent gets whole extents.
//!
//! Each size exists twice. Blocks for tuples are within the limit of the space. Blocks that serve takers (claims,
//! transactions, waits) are in extents of their own, which may lie *beyond* the limit: otherwise takers could never
//! empty a full space. Such blocks are only as many as the claims, transactions and waits use, so they need no limit.
//!
//! In front of that stands, for the smallest tuples, one *spare* block per class: the last one that was
//! freed, for the next put. Its extent counts it as in use, so it comes and goes by one logged word.
//!
//! The first granule of every block keeps two words for this file: the state (0 = free, see
//! [`crate::store::record`]) and the link of the free list. The link is used for nothing else while the block
//! is in use, so undoing an allocation finds the free list intact.

use tupelo_shm::{GRANULE, Section, Span, Store, View};

use crate::base::error::Error;
use crate::base::layout::{EXTENT_BYTES, EXTENT_GRANULES, Layout};
use crate::store::arena::{
    self, BLOCKS, BUMP, Entry, FREE_LIST, KIND, LIVE, NEXT, OWNER, PREVIOUS, RUN,
};
use crate::store::extension::EXTENSION_BYTES;
use crate::store::partition::{
    PARTIAL, PARTIAL_BEYOND, Partition, SPARE_BEYOND, SPARES, SPARES_COUNT,
};
use crate::store::{record, step};

/// Sizes of blocks, in granules. The largest are as many as an extent can be cut into 8, 6, 5, 4, 3 and 2 of. A tuple
/// with an array of 16 KiB is one of three.
const SIZES: [u16; 28] = [
    1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 170, 204,
    256, 341, 512,
];
pub(crate) const SIZES_COUNT: usize = SIZES.len();
/// How many lists of extents a partition has: those of tuples, and then those that may lie beyond the limit.
pub(crate) const CLASSES_COUNT: usize = 2 * SIZES_COUNT;
/// Sizes of the classes, in granules.
const CLASSES: [u16; CLASSES_COUNT] = {
    let mut classes = [0; CLASSES_COUNT];
    let mut class = 0;
    while class < CLASSES_COUNT {
        classes[class] = SIZES[class % SIZES_COUNT];
        class += 1;
    }
    classes
};

/// Largest block that is cut from an extent; beyond it, whole extents.
pub(crate) const BLOCK_BYTES_MAX: usize = SIZES[SIZES_COUNT - 1] as usize * GRANULE;

/// The class of tuples for blocks of this many granules, by table up to 16.
#[inline]
fn class_for(granules: usize) -> usize {
    const SMALL: [usize; 17] = {
        let mut table = [0; 17];
        let (mut granules, mut class) = (1, 0);
        while granules <= 16 {
            while (CLASSES[class] as usize) < granules {
                class += 1;
            }
            table[granules] = class;
            granules += 1;
        }
        table
    };
    if granules <= 16 {
        SMALL[granules]
    } else {
        SIZES.partition_point(|size| (*size as usize) < granules)
    }
}

/// The granules of a block of class `class`.
#[inline]
pub(crate) fn class_granules(class: usize) -> u32 {
    u32::from(CLASSES[class.min(CLASSES_COUNT - 1)])
}

/// The class of the first spare: two granules, the smallest record.
const SPARES_CLASS: usize = 1;

/// The class of extensions beyond the limit.
pub(crate) const EXTENSION_CLASS: usize = SIZES_COUNT + EXTENSION_BYTES / GRANULE - 1;
const _: () = assert!(CLASSES[EXTENSION_CLASS] as usize * GRANULE == EXTENSION_BYTES);

/// The word of the partition that holds the spare block of `class`, 0 if there is none; `None` if the class has
/// no spare.
#[inline(always)]
fn spare(class: usize) -> Option<usize> {
    let number = class.wrapping_sub(SPARES_CLASS);
    match class {
        _ if number < SPARES_COUNT => Some(SPARES + 4 * number),
        EXTENSION_CLASS => Some(SPARE_BEYOND),
        _ => None,
    }
}

/// The word of the partition with the list of extents for blocks of `class` that have room.
#[inline(always)]
pub(crate) fn list_of(class: usize) -> usize {
    if class < SIZES_COUNT {
        PARTIAL + 4 * class
    } else {
        PARTIAL_BEYOND + 4 * (class - SIZES_COUNT)
    }
}

/// The spare blocks of a partition: the word that holds it, its class, the block.
pub(crate) fn spares(partition: Partition<'_>) -> impl Iterator<Item = (usize, usize, u32)> {
    (0..CLASSES_COUNT).filter_map(move |class| {
        let at = spare(class)?;
        let block = partition.page().load(at);
        (block != 0).then_some((at, class, block))
    })
}

/// A size of small records: one of those of which a partition keeps a spare block.
#[derive(Clone, Copy)]
pub(crate) struct Small(usize);

impl Small {
    /// The size for so many bytes, if they are few.
    #[inline(always)]
    pub(crate) fn of(bytes: usize) -> Option<Self> {
        const GRANULES_MIN: usize = CLASSES[SPARES_CLASS] as usize;
        const { assert!(CLASSES[SPARES_CLASS + SPARES_COUNT] as usize == GRANULES_MIN + SPARES_COUNT) };
        let number = bytes.div_ceil(GRANULE).wrapping_sub(GRANULES_MIN);
        (number < SPARES_COUNT).then_some(Self(number))
    }
}

/// As [`allocate`], for a small record. Returns also what taking the block changes, which the caller stores: before it allocates
/// another one.
#[inline(always)]
pub(crate) fn allocate_small<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    Small(number): Small,
) -> Result<(u32, Store<'m>), Error> {
    let spare = partition.page().place(SPARES + 4 * number);
    let class = SPARES_CLASS + number;
    let mut block = spare.load();
    if block == 0 {
        block = allocate_in_extent(section, layout, partition, class)?;
    } else {
        section.note_allocated(block, class_granules(class));
    }
    // Where there was none, that stays so.
    Ok((block, (spare, 0)))
}

/// How many blocks of class `class` an extent holds.
#[inline]
pub(crate) fn capacity(class: usize) -> u32 {
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
    u32::from(CAPACITIES[class.min(CLASSES_COUNT - 1)])
}

/// The first granule of a block, whatever it is: the words that are this file's.
#[inline]
pub(crate) fn start<'m>(view: &View<'m>, block: u32) -> Span<'m, GRANULE> {
    view.at(block)
}

/// Words that allocating a block changes: the extent's list and count, its way out of the partition's list; or
/// the arena's set and the partition's list, for a new extent.
pub(crate) const ALLOCATE_WORDS: usize = 4 + arena::MARK_WORDS + 1;
/// Words that freeing a block changes: the block and its extent, the extent's way into the partition's list or
/// out of it, the arena's set.
pub(crate) const FREE_WORDS: usize = 3 + 4 + 2 + arena::MARK_WORDS;

/// Allocates a block of at least `bytes` bytes. Its contents are whatever it held before; its state word
/// is 0, and it is reachable by nobody.
///
/// # Errors
///
/// [`crate::base::error::Need::Extents`] if the arena must grow first, [`crate::base::error::Need::Reserve`] if it must for those who take.
#[inline(always)]
pub(crate) fn allocate<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    bytes: usize,
) -> Result<u32, Error> {
    if bytes > BLOCK_BYTES_MAX {
        return allocate_run(section, partition, bytes, (layout, layout.extents_max));
    }
    allocate_of(section, layout, partition, class_for(bytes.div_ceil(GRANULE)))
}

/// As [`allocate`], perhaps beyond the limit of the space, for what serves a caller.
///
/// # Errors
///
/// As [`allocate`].
#[inline(always)]
pub(crate) fn allocate_beyond<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    bytes: usize,
) -> Result<u32, Error> {
    if bytes > BLOCK_BYTES_MAX {
        return allocate_run(section, partition, bytes, (layout, layout.extents_all));
    }
    let class = SIZES_COUNT + class_for(bytes.div_ceil(GRANULE));
    allocate_of(section, layout, partition, class)
}

/// As [`allocate_beyond`], of an extension. A function of its own, so that it is compiled once.
#[inline(never)]
pub(crate) fn allocate_extension_beyond<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
) -> Result<u32, Error> {
    allocate_of(section, layout, partition, EXTENSION_CLASS)
}

/// Allocates a block of `class`.
#[inline(always)]
fn allocate_of<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    class: usize,
) -> Result<u32, Error> {
    if let Some(at) = spare(class) {
        let block = partition.page().load(at);
        if block != 0 {
            section.set(partition.page(), at, 0);
            section.note_allocated(block, class_granules(class));
            return Ok(block);
        }
    }
    allocate_in_extent(section, layout, partition, class)
}

/// Allocates a block of `class` from the first extent that has room, or from a new one.
#[inline(never)]
fn allocate_in_extent<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    class: usize,
) -> Result<u32, Error> {
    let mut number = partition.page().load(list_of(class));
    if number == 0 {
        number = add_extent(section, layout, partition, class)?;
    }
    Ok(allocate_from(section, layout, partition, class, number))
}

/// Allocates a block of `class` from the extent number `number` - 1, which has room.
#[inline(always)]
pub(crate) fn allocate_from<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    class: usize,
    number: u32,
) -> u32 {
    let entry = arena::entry(section.view(), layout, number - 1);
    let free = entry.load(FREE_LIST);
    let bump = entry.load(BUMP);
    let block = if free != 0 {
        let after = start(section.view(), free).load(record::FREE_NEXT);
        section.set_words([(entry.place(FREE_LIST), after), live(entry, 1)]);
        free
    } else {
        section.set_words([(entry.place(BUMP), bump.wrapping_add(1)), live(entry, 1)]);
        let inside = bump.wrapping_mul(class_granules(class));
        layout.extent_granule(number - 1).wrapping_add(inside)
    };
    if !has_room(entry, class) {
        unlist(section, layout, partition, number, class);
    }
    section.note_allocated(block, class_granules(class));
    if free == 0 {
        // The extent may have been cut in other sizes before: what was in the middle of a block is the begin of this one.
        start(section.view(), block).init(record::STATE, record::FREE);
    }
    block
}

/// The count of an extent's blocks in use, to be stored with `change` added.
#[inline(always)]
fn live(entry: Entry<'_>, change: i32) -> Store<'_> {
    (entry.place(LIVE), entry.load(LIVE).wrapping_add_signed(change))
}

#[inline]
/// Whether an extent for blocks of `class` has one that is not in use.
pub(crate) fn has_room(entry: Entry<'_>, class: usize) -> bool {
    entry.load(FREE_LIST) != 0 || entry.load(BUMP) < capacity(class)
}

/// Takes an extent from the arena for blocks of `class` and lists it. Returns its number + 1.
#[cold]
#[inline(never)]
fn add_extent<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    class: usize,
) -> Result<u32, Error> {
    let end = if class < SIZES_COUNT { layout.extents_max } else { layout.extents_all };
    let index = arena::take_below(end, section, layout, 1)?;
    let entry = arena::entry(section.view(), layout, index);
    // A free extent's entry means nothing: no log (R2).
    entry.init(KIND, BLOCKS | u32::try_from(class).unwrap_or(0) << 8);
    entry.init(OWNER, partition.scope());
    entry.init(LIVE, 0);
    entry.init(FREE_LIST, 0);
    entry.init(BUMP, 0);
    entry.init(PREVIOUS, 0);
    entry.init(NEXT, 0);
    section.set(partition.page(), list_of(class), index + 1);
    Ok(index + 1)
}

/// Puts an extent at the front of its list: its free blocks are the warmest.
fn list<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    number: u32,
    class: usize,
) {
    let at = list_of(class);
    let first = partition.page().load(at);
    let entry = arena::entry(section.view(), layout, number - 1);
    section.set(entry, PREVIOUS, 0);
    section.set(entry, NEXT, first);
    if first != 0 {
        let other = arena::entry(section.view(), layout, first - 1);
        section.set(other, PREVIOUS, number);
    }
    section.set(partition.page(), at, number);
}

/// Takes an extent out of its list.
fn unlist<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    number: u32,
    class: usize,
) {
    let entry = arena::entry(section.view(), layout, number - 1);
    let (previous, next) = (entry.load(PREVIOUS), entry.load(NEXT));
    if previous == 0 {
        section.set(partition.page(), list_of(class), next);
    } else {
        let other = arena::entry(section.view(), layout, previous - 1);
        section.set(other, NEXT, next);
    }
    if next != 0 {
        let other = arena::entry(section.view(), layout, next - 1);
        section.set(other, PREVIOUS, previous);
    }
}

/// Frees a block that nothing refers to any more.
#[inline]
pub(crate) fn free<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    block: u32,
) -> Result<(), Error> {
    let first = start(section.view(), block);
    free_at(section, layout, partition, block, first)
}

/// As [`free`], with the window on the block's first granule.
#[inline(always)]
pub(crate) fn free_at<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    block: u32,
    first: Span<'m, GRANULE>,
) -> Result<(), Error> {
    let release = release(section, layout, partition, block, first);
    free_to(section, layout, partition, (block, first), release)
}

/// Where a block goes that is freed.
#[derive(Clone, Copy)]
pub(crate) enum Release<'m> {
    /// To the next put, which changes these words.
    Spare([Store<'m>; 2]),
    /// Back to its extent, whose number and class these are.
    Extent(u32, usize),
    /// It is the extent, and those behind it.
    Run(u32, Entry<'m>),
}

/// Where `block` goes when it is freed, which is to happen in this section.
#[inline(always)]
pub(crate) fn release<'m>(
    section: &Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    block: u32,
    first: Span<'m, GRANULE>,
) -> Release<'m> {
    let index = layout.extent_of(block);
    let entry = arena::entry(section.view(), layout, index);
    let kind = entry.load(KIND);
    let class = (kind >> 8) as usize;
    if kind & 0xff != BLOCKS || class >= CLASSES_COUNT {
        return Release::Run(index, entry);
    }
    section.note_freed(block);
    match spare(class) {
        Some(at) if partition.page().load(at) == 0 => {
            let place = partition.page().place(at);
            Release::Spare([(first.place(record::STATE), record::FREE), (place, block)])
        }
        _ => Release::Extent(index, class),
    }
}

/// Frees a block that goes where [`release`] says.
#[inline(always)]
pub(crate) fn free_to<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    block: (u32, Span<'m, GRANULE>),
    release: Release<'m>,
) -> Result<(), Error> {
    match release {
        Release::Spare(stores) => {
            section.set_words(stores);
            Ok(())
        }
        Release::Extent(index, class) => {
            free_in_extent(section, layout, partition, block, (index, class))
        }
        Release::Run(index, entry) => free_run(section, layout, index, entry),
    }
}

/// Enters a block of `class` into the free list of the extent number `index`. Gives the extent back if that was its
/// last block in use and the partition has another.
#[inline(never)]
pub(crate) fn free_in_extent<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    (block, first): (u32, Span<'m, GRANULE>),
    (index, class): (u32, usize),
) -> Result<(), Error> {
    let entry = arena::entry(section.view(), layout, index);
    let had_room = has_room(entry, class);
    first.init(record::FREE_NEXT, entry.load(FREE_LIST));
    let stores = [
        (first.place(record::STATE), record::FREE),
        (entry.place(FREE_LIST), block),
        live(entry, -1),
    ];
    section.set_words(stores);
    if !had_room {
        list(section, layout, partition, index + 1, class);
    }
    let alone = entry.load(PREVIOUS) == 0 && entry.load(NEXT) == 0;
    if entry.load(LIVE) == 0 && !alone {
        unlist(section, layout, partition, index + 1, class);
        arena::give_back(section, layout, index, 1)?;
    }
    Ok(())
}

/// Gives the extents of one large block back.
#[cold]
#[inline(never)]
fn free_run<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    index: u32,
    entry: Entry<'m>,
) -> Result<(), Error> {
    if entry.load(KIND) & 0xff == RUN {
        return arena::give_back(section, layout, index, entry.load(LIVE));
    }
    section.view().violate();
    Ok(())
}

/// Whether a block of `partition`, in use or free, begins at `granule`. For references that were kept while the lock
/// was not: their block may be gone, and its memory, too.
pub(crate) fn begins_at<'m>(
    view: &View<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    granule: u32,
) -> bool {
    let index = layout.extent_of(granule);
    if index >= arena::line(view).load(arena::COMMITTED) || arena::is_free(view, layout, index) {
        return false;
    }
    let entry = arena::entry(view, layout, index);
    if entry.load(OWNER) != partition.scope() {
        return false;
    }
    let (kind, inside) = (entry.load(KIND), granule - layout.extent_granule(index));
    match kind & 0xff {
        BLOCKS => {
            let size = class_granules((kind >> 8) as usize);
            let number = inside / size;
            number * size == inside && number < entry.load(BUMP)
        }
        RUN => inside == 0,
        _ => false,
    }
}

/// Allocates whole extents for one large block, of the first `end`.
#[cold]
#[inline(never)]
fn allocate_run<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    bytes: usize,
    (layout, end): (&Layout, u32),
) -> Result<u32, Error> {
    let count = u32::try_from(bytes.div_ceil(EXTENT_BYTES)).unwrap_or(u32::MAX);
    let first = arena::take_below(end, section, layout, count)?;
    arena::mark_run(section, layout, first, count, partition.scope());
    Ok(layout.extent_granule(first))
}

/// Gives the extents back of which no block is in use but a spare one. They were kept as the only ones of their lists,
/// since the next block of the size was expected.
pub(crate) fn free_empty<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
) -> Result<(), Error> {
    free_spares(section, layout, partition)?;
    for class in 0..CLASSES_COUNT {
        let mut number = partition.page().load(list_of(class));
        for _ in 0..layout.extents_all {
            if number == 0 {
                break;
            }
            let entry = arena::entry(section.view(), layout, number - 1);
            let next = entry.load(NEXT);
            if entry.load(LIVE) == 0 {
                // Not a longer log: there is no room for one.
                step::commit_if_full(section)?;
                unlist(section, layout, partition, number, class);
                arena::give_back(section, layout, number - 1, 1)?;
            }
            number = next;
        }
    }
    Ok(())
}

/// Frees the spare blocks.
pub(crate) fn free_spares<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
) -> Result<(), Error> {
    for (at, class, block) in spares(partition) {
        step::commit_if_full(section)?;
        section.set(partition.page(), at, 0);
        let first = start(section.view(), block);
        let place = (layout.extent_of(block), class);
        free_in_extent(section, layout, partition, (block, first), place)?;
    }
    Ok(())
}
