//! The page of a partition: what one lock protects of a shape.
//!
//! | bytes | what |
//! |---:|---|
//! | 0 | the lock line |
//! | 64 | read by every put and take, written seldom: waiters, indexes |
//! | 128 | written by every put and take: the base list and the counts |
//! | 192 | slabs with room, per size class |
//! | 304 | a spare block of each of the smallest sizes of records |
//! | 320 | masks of the waiters |
//! | 384 | what templates asked for without finding an index |
//! | 640 | the indexes |
//! | 1664 | slabs with room beyond the limit, per size class; a spare block there |
//! | 1784 | the last stamp |
//! | 1792 | which size classes have got a small slab |

use tupelo_shm::{GRANULE, Span, View};

use crate::base::clock::is_past;
use crate::base::layout::{self, PARTITION_BYTES};
use crate::store::sizes::SIZES_COUNT;

/// The number of the shape.
pub(crate) const SHAPE: usize = 64;
/// Wait nodes that are in the wait queue here: blocked callers, and subscriptions.
pub(crate) const WAITING: usize = 68;
/// Those among them that are told of removals.
pub(crate) const WATCHING_REMOVALS: usize = 72;
/// Which index slots are in use, a bit each.
pub(crate) const INDEX_SET: usize = 76;
/// The table of waiters: a block, 0 if nobody ever waited.
pub(crate) const WAITER_TABLE: usize = 80;
/// Records that are out of the lists but not gone: handed to a waiter, or in a take's hands.
pub(crate) const HELD: usize = 84;
/// The timing wheel: a block, 0 if nothing here was ever put on terms or claimed.
pub(crate) const WHEEL: usize = 92;
/// When the wheel has something to do next, in milliseconds (two words); 0: never. May be too early.
pub(crate) const DUE_MS: usize = 96;
/// First of the records that are claimed.
pub(crate) const CLAIMED: usize = 104;
/// First of the records that are dead, and how many there are.
pub(crate) const DEAD: usize = 108;
pub(crate) const DEAD_COUNT: usize = 112;
/// Records that are not visible yet.
pub(crate) const DELAYED_COUNT: usize = 116;
/// How many records have come back to their places, modulo 2^32. Only tells that some did: not undone.
pub(crate) const RETURNS: usize = 120;
/// Subscriptions that are in the wait queue here.
pub(crate) const SUBSCRIBED: usize = 124;

/// First and last record in the order of their puts.
pub(crate) const FIRST: usize = 128;
pub(crate) const LAST: usize = 132;
/// Records in the base list.
pub(crate) const LIVE: usize = 136;
/// The record that came back to its place last: the next one to do so often belongs behind it. A hint: not undone.
pub(crate) const LAST_RETURNED: usize = 140;
/// The number of the next put (two words), which is its sequence number unless puts are stamped. Grows, except that who
/// begins anew counts anew ([`crate::store::step::count_anew`]); a number may be skipped.
pub(crate) const NEXT_SEQUENCE: usize = 144;
/// Tuples taken so far (two words). Statistics: undone in steps of many ([`crate::store::step::count_anew`]).
pub(crate) const TAKES: usize = 152;

/// Tuples whose lease ends, whatever else becomes of them: in the lists, held, dead, or not visible yet.
pub(crate) const LEASED_COUNT: usize = 184;

/// What is known of the multi-shape waiters ([`crate::waiters::chain`]), in two words. They are twice the number of the
/// change of their line up to which it is known, and whether one could match a tuple of this shape. A hint: not undone.
pub(crate) const MULTI_SHAPE_KNOWN: usize = 168;

/// By when the first of the records is to be picked up that were handed over for a time, in milliseconds (two words); 0:
/// there is none. May be too early ([`crate::waiters::hand_off`]).
pub(crate) const HANDED_DUE_MS: usize = 176;

/// Heads of the lists of slabs with room: slab number + 1 ([`crate::store::slab`]).
pub(crate) const PARTIAL: usize = 192;

/// First of the records that open transactions have taken.
pub(crate) const ENLISTED: usize = 160;
/// First of the locks that open transactions have on what they have read.
pub(crate) const LOCKS: usize = 164;

/// Spare blocks: one per class, 0 if there is none.
pub(crate) const SPARES: usize = 304;
pub(crate) const SPARES_COUNT: usize = 4;

/// Masks of actual fields that waiters here are filed under: mask and count.
pub(crate) const WAITER_MASKS: usize = 320;
pub(crate) const WAITER_MASKS_MAX: usize = 8;

/// Masks that were looked up without an index of their own: mask, lookups, records scanned, spare.
pub(crate) const STATISTICS: usize = 384;
pub(crate) const STATISTICS_MAX: usize = 16;
pub(crate) const STATISTICS_BYTES: usize = 16;

/// The descriptors of the indexes.
pub(crate) const INDEXES: usize = 640;
pub(crate) const INDEXES_MAX: usize = 8;
pub(crate) const INDEX_BYTES: usize = 128;

/// As [`PARTIAL`], of blocks that may lie beyond the limit of the space ([`crate::store::blocks`]).
pub(crate) const PARTIAL_BEYOND: usize = INDEXES + INDEXES_MAX * INDEX_BYTES;
/// A spare block of those for an extension, 0 if there is none.
pub(crate) const SPARE_BEYOND: usize = PARTIAL_BEYOND + 4 * SIZES_COUNT;

/// The last sequence number that was a moment (two words; [`crate::store::stamps`]). Not undone.
pub(crate) const LAST_STAMP: usize = 1784;

/// The classes of blocks for which the partition has got a small slab, a bit each: for tuples, and beyond the limit.
pub(crate) const SMALL_SLABS: usize = 1792;

const _: () = assert!(PARTIAL + 4 * SIZES_COUNT <= SPARES);
const _: () = assert!(SPARES + 4 * SPARES_COUNT <= WAITER_MASKS);
const _: () = assert!(STATISTICS + STATISTICS_MAX * STATISTICS_BYTES <= INDEXES);
const _: () = assert!(SPARE_BEYOND + 4 <= LAST_STAMP && LAST_STAMP + 8 <= SMALL_SLABS);
const _: () = assert!(SMALL_SLABS + 8 <= PARTITION_BYTES && SIZES_COUNT <= 32);

/// A partition, as a window on its page.
#[derive(Clone, Copy)]
pub(crate) struct Partition<'m> {
    page: Span<'m, PARTITION_BYTES>,
    scope: u32,
}

impl<'m> Partition<'m> {
    /// The partition with this page and lock.
    #[inline(always)]
    pub(crate) fn new(page: Span<'m, PARTITION_BYTES>, scope: u32) -> Self {
        Self { page, scope }
    }

    /// The partition of shape `shape`, which exists.
    #[inline]
    pub(crate) fn of_shape(view: &View<'m>, shape: u32) -> Self {
        Self { page: view.span(layout::partition(shape)), scope: scope_of(shape) }
    }

    /// The partition that `scope` is the lock of.
    pub(crate) fn of_scope(view: &View<'m>, scope: u32) -> Self {
        Self { page: view.span(scope as usize * GRANULE), scope }
    }

    /// The page itself.
    #[inline(always)]
    pub(crate) fn page(self) -> Span<'m, PARTITION_BYTES> {
        self.page
    }

    /// How many records a walk through the partition meets at most: as many as it counts, and no more than
    /// the segment can hold, should the count be damaged.
    #[inline]
    pub(crate) fn steps_max(self, view: &View<'_>) -> u32 {
        self.page.load(LIVE).min(view.granules())
    }

    /// Whether somebody holds tuples that a search would find otherwise, or has locked some: they may be a dead
    /// process's.
    #[inline]
    pub(crate) fn hides_some(self) -> bool {
        self.page.load(HELD) | self.page.load(LOCKS) != 0
    }

    /// The scope of its lock.
    #[inline]
    pub(crate) fn scope(self) -> u32 {
        self.scope
    }
}

/// The shape whose partition `scope` is the lock of.
pub(crate) fn shape_of(scope: u32) -> u32 {
    (scope - scope_of(0)) / (scope_of(1) - scope_of(0))
}

/// The scope of the lock of shape `shape`'s partition.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "partitions lie in the first GiB")]
pub(crate) const fn scope_of(shape: u32) -> u32 {
    (layout::partition(shape) / GRANULE) as u32
}

/// Whether something is due in `partition`. For readers without the lock, who look before they believe what they found.
#[inline(always)]
pub(crate) fn is_behind(partition: Partition<'_>) -> bool {
    is_past(partition.page().load64(DUE_MS))
}

/// Whether something is due in `partition`, by who has looked at the clock: the exact one, or the one that is ahead.
#[inline]
pub(crate) fn is_behind_at(partition: Partition<'_>, now_ms: u64) -> bool {
    let due_ms = partition.page().load64(DUE_MS);
    // What the cheap clock does not know of yet, nobody would let happen.
    due_ms != 0 && due_ms <= now_ms && is_behind(partition)
}

/// Counts a take. Not undone by itself (`step::count_anew`).
#[inline]
pub(crate) fn count_take(partition: Partition<'_>) {
    partition.page().init64(TAKES, partition.page().load64(TAKES).wrapping_add(1));
}
