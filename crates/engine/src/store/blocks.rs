//! Blocks: what records and index tables are made of, cut from the slabs of a partition ([`crate::store::slab`]).
//!
//! Sizes come in classes, so freed blocks are reused as they are: steady traffic touches no new memory.
//! Allocation and release happen inside the section that needs them and are two or three logged words.
//! A partition lists, per class, the slabs that have room; a slab that becomes empty goes back unless it is the only
//! one of its list. What is larger than half an extent gets whole extents.
//!
//! Each size exists twice. Blocks for tuples are within the limit of the space. Blocks that serve takers (claims,
//! transactions, waits) are in slabs of their own, which may lie *beyond* the limit: otherwise takers could never
//! empty a full space. Such blocks are only as many as the claims, transactions and waits use, so they need no limit.
//!
//! In front of that stands, for the smallest tuples, one *spare* block per class: the last one that was
//! freed, for the next put. Its slab counts it as in use, so it comes and goes by one logged word.
//!
//! The first granule of every block keeps two words for this file: the state (0 = free, see
//! [`crate::store::record`]) and the link of the free list. The link is used for nothing else while the block
//! is in use, so undoing an allocation finds the free list intact.

use tupelo_shm::{GRANULE, Section, Span, Store, View, Word};

use crate::base::error::Error;
use crate::base::layout::{EXTENT_BYTES, Layout};
use crate::store::arena::{
    self, BLOCKS, BUMP, Entry, FREE_LIST, KIND, LIVE, NEXT, OWNER, PREVIOUS, RUN,
};
use crate::store::extension::EXTENSION_BYTES;
use crate::store::partition::{
    PARTIAL, PARTIAL_BEYOND, Partition, SPARE_BEYOND, SPARES, SPARES_COUNT,
};
use crate::store::sizes::{
    BLOCK_BYTES_MAX, CLASSES, CLASSES_COUNT, SIZES_COUNT, class_for, class_granules,
};
use crate::store::{record, slab, step};

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

/// The word of the partition with the list of slabs for blocks of `class` that have room: slab number + 1.
#[inline(always)]
pub(crate) fn list_of(partition: Partition<'_>, class: usize) -> Word<'_> {
    partition.page().place(if class < SIZES_COUNT {
        PARTIAL + 4 * class
    } else {
        PARTIAL_BEYOND + 4 * (class - SIZES_COUNT)
    })
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
        block = allocate_in_slab(section, layout, partition, class)?;
    } else {
        section.note_allocated(block, class_granules(class));
    }
    // Where there was none, that stays so.
    Ok((block, (spare, 0)))
}

/// The first granule of a block, whatever it is: the words that are this file's.
#[inline]
pub(crate) fn start<'m>(view: &View<'m>, block: u32) -> Span<'m, GRANULE> {
    view.at(block)
}

/// Words that allocating a block changes: a new slab; the slab's list and count, its way out of the partition's list.
pub(crate) const ALLOCATE_WORDS: usize = slab::ADD_WORDS + 2 + slab::UNLIST_WORDS;
/// Words that freeing a block changes: the block and its slab, the slab's way into the partition's list, and back.
pub(crate) const FREE_WORDS: usize = 3 + slab::LIST_WORDS + slab::GIVE_BACK_WORDS;

/// Allocates a block of at least `bytes` bytes. Its contents are whatever it held before; its state word
/// is 0, and it is reachable by nobody.
///
/// # Errors
///
/// [`crate::base::error::Need`] of memory if the arena must grow first.
#[inline(always)]
pub(crate) fn allocate<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    bytes: usize,
) -> Result<u32, Error> {
    allocate_from_class(section, layout, partition, bytes, 0)
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
    allocate_from_class(section, layout, partition, bytes, SIZES_COUNT)
}

/// Allocates a block of one of the classes that begin with `first_class`, or extents that lie where theirs do.
#[inline(always)]
fn allocate_from_class<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    bytes: usize,
    first_class: usize,
) -> Result<u32, Error> {
    if bytes > BLOCK_BYTES_MAX {
        return allocate_run(section, layout, partition, bytes, slab::end(layout, first_class));
    }
    let class = first_class + class_for(bytes.div_ceil(GRANULE));
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
    allocate_in_slab(section, layout, partition, class)
}

/// Allocates a block of `class` from the first slab that has room, or from a new one.
#[inline(never)]
fn allocate_in_slab<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    class: usize,
) -> Result<u32, Error> {
    let list = list_of(partition, class);
    let number = match list.load() {
        0 => slab::add(section, layout, partition, class, list)?,
        first => first - 1,
    };
    Ok(allocate_from(section, layout, number, class, list))
}

/// Allocates a block of `class` from the slab `number`, which has room and is in `list`.
#[inline(always)]
pub(crate) fn allocate_from<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    number: u32,
    class: usize,
    list: Word<'m>,
) -> u32 {
    let entry = slab::entry(section.view(), layout, number);
    let free = entry.load(FREE_LIST);
    let bump = entry.load(BUMP);
    let block = if free != 0 {
        let after = start(section.view(), free).load(record::FREE_NEXT);
        section.set_words([(entry.place(FREE_LIST), after), live(entry, 1)]);
        free
    } else {
        section.set_words([(entry.place(BUMP), bump.wrapping_add(1)), live(entry, 1)]);
        let inside = bump.wrapping_mul(class_granules(class));
        slab::first_block(layout, number).wrapping_add(inside)
    };
    if !slab::has_room(entry, number, class) {
        slab::unlist(section, layout, list, number);
    }
    section.note_allocated(block, class_granules(class));
    if free == 0 {
        // The slab may have been cut in other sizes before: what was in the middle of a block is the begin of this one.
        start(section.view(), block).init(record::STATE, record::FREE);
    }
    block
}

/// The count of a slab's blocks in use, to be stored with `change` added.
#[inline(always)]
fn live(entry: Entry<'_>, change: i32) -> Store<'_> {
    (entry.place(LIVE), entry.load(LIVE).wrapping_add_signed(change))
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
    /// Back to its slab, for blocks of this class.
    Slab(usize),
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
        _ => Release::Slab(class),
    }
}

/// Frees a block that goes where [`release`] says.
#[inline(always)]
pub(crate) fn free_to<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    (block, first): (u32, Span<'m, GRANULE>),
    release: Release<'m>,
) -> Result<(), Error> {
    match release {
        Release::Spare(stores) => {
            section.set_words(stores);
            Ok(())
        }
        Release::Slab(class) => free_in_slab(section, layout, partition, block, first, class),
        Release::Run(index, entry) => free_run(section, layout, index, entry),
    }
}

/// Enters a block of `class` into the free list of its slab. Gives the slab back if that was its last
/// block in use and the partition has another.
#[inline(never)]
pub(crate) fn free_in_slab<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    block: u32,
    first: Span<'m, GRANULE>,
    class: usize,
) -> Result<(), Error> {
    let index = layout.extent_of(block);
    let extent = arena::entry(section.view(), layout, index);
    let number = slab::of_block(index, extent, block);
    let entry = slab::entry(section.view(), layout, number);
    let had_room = slab::has_room(entry, number, class);
    first.init(record::FREE_NEXT, entry.load(FREE_LIST));
    let stores = [
        (first.place(record::STATE), record::FREE),
        (entry.place(FREE_LIST), block),
        live(entry, -1),
    ];
    section.set_words(stores);
    let list = list_of(partition, class);
    if !had_room {
        slab::list(section, layout, list, number);
    }
    let alone = entry.load(PREVIOUS) == 0 && entry.load(NEXT) == 0;
    if entry.load(LIVE) == 0 && !alone {
        slab::give_back(section, layout, partition, number, class, list)?;
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
    let extent = arena::entry(view, layout, index);
    let kind = extent.load(KIND);
    let is_its = |entry: Entry<'_>| entry.load(OWNER) == partition.scope();
    match kind & 0xff {
        BLOCKS => {
            let number = slab::of_block(index, extent, granule);
            if !slab::all_in(layout, index, extent).any(|other| other == number) {
                return false;
            }
            let entry = slab::entry_seen(view, layout, number);
            let Some(entry) = entry.filter(|entry| is_its(*entry)) else { return false };
            let inside = granule.wrapping_sub(slab::first_block(layout, number));
            let size = class_granules((kind >> 8) as usize);
            let block = inside / size;
            block * size == inside && block < entry.load(BUMP)
        }
        RUN => is_its(extent) && granule == layout.extent_granule(index),
        _ => false,
    }
}

/// Allocates whole extents for one large block, of the first `end`.
#[cold]
#[inline(never)]
fn allocate_run<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    bytes: usize,
    end: u32,
) -> Result<u32, Error> {
    let count = u32::try_from(bytes.div_ceil(EXTENT_BYTES)).unwrap_or(u32::MAX);
    let first = arena::take_below(end, section, layout, count)?;
    arena::mark_run(section, layout, first, count, partition.scope());
    Ok(layout.extent_granule(first))
}

/// Gives the slabs back of which no block is in use but a spare one. They were kept as the only ones of their lists,
/// since the next block of the size was expected.
pub(crate) fn free_empty<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
) -> Result<(), Error> {
    free_spares(section, layout, partition)?;
    for class in 0..CLASSES_COUNT {
        let list = list_of(partition, class);
        let mut next = list.load();
        for _ in 0..layout.extents_all {
            let Some(number) = next.checked_sub(1) else { break };
            let entry = slab::entry(section.view(), layout, number);
            next = entry.load(NEXT);
            if entry.load(LIVE) == 0 {
                // Not a longer log: there is no room for one.
                step::commit_if_full(section)?;
                slab::give_back(section, layout, partition, number, class, list)?;
            }
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
        free_in_slab(section, layout, partition, block, first, class)?;
    }
    Ok(())
}
