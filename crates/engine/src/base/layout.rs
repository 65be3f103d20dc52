//! Where things are in the engine's part of a segment. Offsets are bytes from the start of the segment.
//!
//! | region | what |
//! |---|---|
//! | head | the locks and counts of the whole space |
//! | directory | shapes by signature: tables, each twice as long as the one before |
//! | shapes | one entry per shape: arity and kinds |
//! | classes | a page per shape of entries: the names of their class |
//! | partitions | what one lock protects: the tuples of a shape, their indexes, their waiters |
//! | wait nodes | one per blocked caller |
//! | raised | a bit per wait node, for those who wait by a notifier |
//! | keys | what requests with a key were answered, where a server keeps that |
//! | extents | who owns each 64 KiB of the arena, and which are free |
//! | journal | the ring of a journalled space; no bytes in others |
//! | arena | the tuples themselves |
//!
//! Every region but the arena has a fixed maximum (rule B2) and is sparse: pages cost memory when used.
#![allow(clippy::cast_possible_truncation, reason = "a segment has at most 2^32 granules")]

use tupelo_shm::{GRANULE, Memory};
use tupelo_tuple::CLASS_BYTES_MAX;

/// A page: regions begin at one, and are committed by them.
pub(crate) const PAGE: usize = 4096;

/// What a partition, a wait node, a run is counted in.
pub(crate) const EXTENT_BYTES: usize = 64 << 10;
/// Granules of an extent.
pub(crate) const EXTENT_GRANULES: u32 = (EXTENT_BYTES / GRANULE) as u32;
/// Bytes of a small slab, the least memory of a shape with tuples ([`crate::store::slab`]).
pub(crate) const SMALL_SLAB_BYTES: usize = 4 << 10;
/// Granules of a small slab.
pub(crate) const SMALL_GRANULES: u32 = (SMALL_SLAB_BYTES / GRANULE) as u32;
/// Extents by which the arena grows: 2 MiB, half a millisecond of the kernel's time.
pub(crate) const CHUNK_EXTENTS: u32 = 32;

/// Words that one atomic step may change: a quarter of a million tuples, or fewer with many indexes.
pub(crate) const LOG_ENTRIES_MAX: u32 = 1 << 22;
/// Addresses for long logs, in extents per extent of tuples. A log entry has 16 bytes. A tuple of the smallest size,
/// 128 bytes, with eight indexes has some 50 entries. Twice that, since a log is copied as it grows.
const LOG_SHARE: u32 = 16;
/// But no more than two of the longest logs need, each while it is taking the place of one of a quarter.
const LOG_EXTENTS_MAX: u32 = 2 * (LOG_ENTRIES_MAX + LOG_ENTRIES_MAX / 4) / LOG_ENTRIES_PER_EXTENT;
/// Log entries that an extent holds.
pub(crate) const LOG_ENTRIES_PER_EXTENT: u32 = EXTENT_GRANULES * 4;

/// Most shapes in a space (rule B2).
pub const SHAPES_MAX: usize = 65_536;
/// Those that are kept for tuples of Tupelo's own: locks, queues, tasks.
pub(crate) const SHAPES_KEPT: usize = 64;
/// The same, as shapes are counted.
pub(crate) const SHAPES_COUNT_MAX: u32 = SHAPES_MAX as u32;
/// Most blocked callers in a space (rule B2).
pub const WAITERS_MAX: usize = 65_536;
/// The same, as wait nodes are counted.
pub(crate) const WAITERS_COUNT_MAX: u32 = WAITERS_MAX as u32;

/// The head of the space: one line per lock, one per group of words that change together.
pub(crate) mod head {
    use crate::base::layout::{GRANULE, Memory};

    const BASE: usize = Memory::engine_base();
    /// Bytes of the head: one page.
    pub(crate) const BYTES: usize = super::PAGE;

    const fn line(number: usize) -> usize {
        BASE + number * GRANULE
    }
    const fn scope(number: usize) -> u32 {
        (line(number) / GRANULE) as u32
    }

    /// The lock that makes puts queue up in a space with a limit of tuples. Locked before partitions ([`crate::recovery::quota`]).
    pub(crate) const QUOTA_SCOPE: u32 = scope(9);
    /// The lock of waiters whose template spans several shapes. Locked before the arena.
    pub(crate) const MULTI_SHAPE_SCOPE: u32 = scope(0);
    /// Words about multi-shape waiters.
    pub(crate) const MULTI_SHAPE: usize = line(1);
    /// The lock of the table of shapes. Held alone.
    pub(crate) const REGISTRY_SCOPE: u32 = scope(2);
    /// Words about shapes.
    pub(crate) const REGISTRY: usize = line(3);
    /// The lock of the free wait nodes. Held alone.
    pub(crate) const NODES_SCOPE: u32 = scope(4);
    /// Words about wait nodes.
    pub(crate) const NODES: usize = line(5);
    /// The lock of the arena: the last one to take, so that any section may ask for memory.
    pub(crate) const ARENA_SCOPE: u32 = scope(6);
    /// Words about the arena.
    pub(crate) const ARENA: usize = line(7);
    /// The right to sweep. Locked before all others, and never waited for.
    pub(crate) const SWEEP_SCOPE: u32 = scope(10);
    /// The lock of the journal: the last one of all, held from when a section appends until it is over.
    pub(crate) const JOURNAL_SCOPE: u32 = scope(13);
    /// The lock of the keys of requests: behind all others but the journal's, held from when a section notes an answer until it is over.
    pub(crate) const KEYS_SCOPE: u32 = scope(15);
    /// The right to drain the journal. Held while nothing else is, and nothing is stored under it.
    pub(crate) const DRAIN_SCOPE: u32 = scope(14);
    /// The lock of the memory that wait nodes have outside of themselves, which is a partition without tuples.
    /// Locked before the multi-shape waiters and the arena, and beside no other partition.
    pub(crate) const NODE_MEMORY_SCOPE: u32 = scope(32);
    const _: () = assert!(line(32) + super::PARTITION_BYTES <= BASE + BYTES);
    /// All locks but the partitions'.
    pub(crate) const SCOPES: [u32; 10] = [
        MULTI_SHAPE_SCOPE,
        REGISTRY_SCOPE,
        NODES_SCOPE,
        ARENA_SCOPE,
        QUOTA_SCOPE,
        SWEEP_SCOPE,
        JOURNAL_SCOPE,
        DRAIN_SCOPE,
        KEYS_SCOPE,
        NODE_MEMORY_SCOPE,
    ];
    /// Words about the keys of requests.
    pub(crate) const KEYS: usize = line(16);
    /// Words about the journal.
    pub(crate) const JOURNAL: usize = line(12);
    /// Words that are set at creation, or by atomic operations alone.
    pub(crate) const SPACE: usize = line(8);
    /// Words about the time: the same.
    pub(crate) const TIME: usize = line(11);
    /// The lists of extents that partitions share, a word per class of blocks: four lines.
    pub(crate) const SHARED_EXTENTS: usize = line(17);
}

/// Sizes of the entries of the regions.
pub(crate) const SHAPE_BYTES: usize = 128;
/// Entries of the shortest table of the directory, and of the longest, as powers of two.
pub(crate) const DIRECTORY_BITS_MIN: u32 = 10;
pub(crate) const DIRECTORY_BITS_MAX: u32 = SHAPES_MAX.ilog2() + 1;
pub(crate) const PARTITION_BYTES: usize = 2048;
pub(crate) const CLASS_PAGE_BYTES: usize = PAGE;
pub(crate) const NODE_BYTES: usize = 256;
pub(crate) const EXTENT_ENTRY_BYTES: usize = 32;

const DIRECTORY: usize = Memory::engine_base() + head::BYTES;
const DIRECTORY_ENTRY_BYTES: usize = 4;
/// What a new space has at once: the head, and the first table of the directory of shapes.
pub(crate) const INITIAL_BYTES: usize = head::BYTES + directory_bytes(DIRECTORY_BITS_MIN);
const SHAPES: usize = directory_table(DIRECTORY_BITS_MAX + 1);
const PARTITIONS: usize = SHAPES + SHAPES_MAX * SHAPE_BYTES;
/// Shapes have one partition each.
const PARTITIONS_MAX: usize = SHAPES_MAX;
const CLASSES: usize = PARTITIONS + PARTITIONS_MAX * PARTITION_BYTES;
const NODES: usize = CLASSES + SHAPES_MAX * CLASS_PAGE_BYTES;
/// A bit per wait node, for those who wait by a notifier.
const RAISED: usize = NODES + WAITERS_MAX * NODE_BYTES;
/// Bytes of these bits.
pub(crate) const RAISED_BYTES: usize = WAITERS_MAX / 8;
/// What requests with a key were answered ([`crate::store::keys`]).
pub(crate) const KEYS: usize = RAISED + RAISED_BYTES;
/// Bytes of that.
pub(crate) const KEYS_BYTES: usize = 4 * 4096 * 48;
const EXTENTS: usize = KEYS + KEYS_BYTES;

const _: () = assert!(SHAPES.is_multiple_of(PAGE) && DIRECTORY.is_multiple_of(PAGE));
const _: () = assert!(PARTITIONS.is_multiple_of(PAGE) && NODES.is_multiple_of(PAGE));
const _: () = assert!(CLASSES.is_multiple_of(PAGE) && CLASS_BYTES_MAX <= CLASS_PAGE_BYTES);
const _: () = assert!(RAISED.is_multiple_of(PAGE) && EXTENTS.is_multiple_of(PAGE));
const _: () =
    assert!(EXTENTS / GRANULE > WAITERS_MAX, "the number of a node is no granule of the arena");

/// Offset of shape number `index`.
#[inline]
pub(crate) const fn shape(index: u32) -> usize {
    SHAPES + index as usize * SHAPE_BYTES
}

/// Bytes of the table of the directory that has `1 << bits` entries.
pub(crate) const fn directory_bytes(bits: u32) -> usize {
    DIRECTORY_ENTRY_BYTES << bits
}

/// Where that begins: behind all shorter ones.
pub(crate) const fn directory_table(bits: u32) -> usize {
    DIRECTORY + directory_bytes(bits) - directory_bytes(DIRECTORY_BITS_MIN)
}

/// Offset of entry `index` of that.
#[inline]
pub(crate) const fn directory(bits: u32, index: usize) -> usize {
    directory_table(bits) + index * DIRECTORY_ENTRY_BYTES
}

/// Offset of the partition of shape `index`.
#[inline]
pub(crate) const fn partition(index: u32) -> usize {
    PARTITIONS + index as usize * PARTITION_BYTES
}

/// Offset of the names of the class of shape `index`.
#[inline]
pub(crate) const fn class(index: u32) -> usize {
    CLASSES + index as usize * CLASS_PAGE_BYTES
}

/// Offset of wait node `index`.
#[inline]
pub(crate) const fn node(index: u32) -> usize {
    NODES + index as usize * NODE_BYTES
}

/// Offset of the word with the bit of wait node `index`.
#[inline]
pub(crate) const fn raised(index: u32) -> usize {
    RAISED + 4 * (index / 32) as usize
}

/// Offset of the entry of extent `index`.
#[inline]
pub(crate) const fn extent_entry(index: u32) -> usize {
    EXTENTS + index as usize * EXTENT_ENTRY_BYTES
}

/// The places that depend on the size of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Extents that tuples can have.
    pub(crate) extents_max: u32,
    /// Extents that the arena can have: those beyond [`Layout::extents_max`] are for what serves who empties a full
    /// space: long undo logs, and the blocks of claims, transactions and waiting calls ([`crate::store::blocks`]).
    pub(crate) extents_all: u32,
    /// Offset of the arena.
    pub(crate) arena: usize,
    bitmap: usize,
    /// Offset of the ring of the journal.
    pub(crate) journal: usize,
    /// Bytes of it: pages; 0 if the space is not journalled.
    pub(crate) journal_bytes: usize,
}

impl Layout {
    /// The layout of a space whose tuples may have `extents_max` extents, with a journal of `journal_bytes`, 0 for none.
    pub(crate) const fn new(extents_max: u32, journal_bytes: usize) -> Self {
        let for_logs = extents_max.saturating_mul(LOG_SHARE);
        let for_logs = if for_logs < LOG_EXTENTS_MAX { for_logs } else { LOG_EXTENTS_MAX };
        let extents_all = extents_max.saturating_add(for_logs);
        let table_bytes = (extents_all as usize * EXTENT_ENTRY_BYTES).next_multiple_of(PAGE);
        let bitmap = EXTENTS + table_bytes;
        let bitmap_bytes = (extents_all as usize).div_ceil(8).next_multiple_of(PAGE);
        let journal = bitmap + bitmap_bytes;
        let journal_bytes = journal_bytes.next_multiple_of(PAGE);
        let arena = (journal + journal_bytes).next_multiple_of(2 << 20);
        Self { extents_max, extents_all, arena, bitmap, journal, journal_bytes }
    }

    /// Bytes of address space that the whole segment needs.
    pub(crate) const fn reserve_bytes(&self) -> usize {
        self.arena + self.extents_all as usize * EXTENT_BYTES
    }

    /// Offset of word `index` of the set of free extents.
    #[inline]
    pub(crate) const fn free_word(&self, index: u32) -> usize {
        self.bitmap + index as usize * 4
    }

    /// First granule of extent `index`.
    #[inline]
    pub(crate) const fn extent_granule(&self, index: u32) -> u32 {
        // Wraps only for an index from a damaged word, which then leads nowhere.
        ((self.arena / GRANULE) as u32).wrapping_add(index.wrapping_mul(EXTENT_GRANULES))
    }

    /// The extent that holds granule `granule`; beyond the last one for what is not in the arena.
    #[inline]
    pub(crate) const fn extent_of(&self, granule: u32) -> u32 {
        granule.wrapping_sub((self.arena / GRANULE) as u32) / EXTENT_GRANULES
    }
}
