//! Learned indexes: hash tables over the masks of actual fields that templates use.
//!
//! A template may name any set of fields. Nobody declares keys: a partition notices which masks are looked up without
//! an index, and builds one when the scans have cost as much as building would ([`learn`]). A table ([`table`]) maps
//! the hash of the masked fields, the *tag*, to the oldest record with it, the *leader*. Records of one tag form a ring
//! through themselves ([`ring`]), oldest first. So insertion, the oldest match, and removal from the middle are all
//! O(1). A million equal keys do not slow another key down, and no memory is allocated per key.
//!
//! | word | descriptor of an index |
//! |---:|---|
//! | 0 | mask of fields |
//! | 4 | state |
//! | 8 | cursor: the next record to be linked (building) or cleared (dropping) |
//! | 12 | keys (leaders) in the table |
//! | 16 | buckets in use |
//! | 20 | lookups, for choosing a victim |
//! | 24.. | segments of the bucket array: blocks; each but the first as long as all before |
//! | 120 | ones up to the highest bit of the number of buckets |
//! | 124 | up to how many keys the table does without more buckets, since no memory was found for them; a hint |

pub(crate) mod find;
pub(crate) mod learn;
pub(crate) mod links;
pub(crate) mod moving;
pub(crate) mod queue;
pub(crate) mod ring;
pub(crate) mod table;

use tupelo_shm::Span;

use crate::store::partition::{INDEX_BYTES, INDEX_SET, INDEXES, INDEXES_MAX, Partition};
use crate::store::record;

pub(crate) const MASK: usize = 0;
pub(crate) const STATE: usize = 4;
pub(crate) const CURSOR: usize = 8;
pub(crate) const KEYS: usize = 12;
pub(crate) const BUCKETS: usize = 16;
pub(crate) const LOOKUPS: usize = 20;
pub(crate) const SEGMENTS: usize = 24;
pub(crate) const SEGMENTS_MAX: usize = 24;
pub(crate) const LEVEL: usize = 120;
pub(crate) const GROWTH: usize = 124;
const _: () = assert!(SEGMENTS + 4 * SEGMENTS_MAX <= LEVEL && GROWTH + 4 <= INDEX_BYTES);

/// The slot is free.
pub(crate) const NONE: u32 = 0;
/// Records before the cursor are linked, those from it on are not.
pub(crate) const BUILDING: u32 = 1;
/// Every record is linked.
pub(crate) const READY: u32 = 2;
/// The table is gone; records from the cursor on still carry the slot's mark.
pub(crate) const DROPPING: u32 = 3;

/// One of a partition's indexes, as a window on its descriptor.
#[derive(Clone, Copy)]
pub(crate) struct Index<'m> {
    pub(crate) slot: usize,
    pub(crate) words: Span<'m, INDEX_BYTES>,
}

/// The index in `slot` of `partition`.
#[inline]
pub(crate) fn at(partition: Partition<'_>, slot: usize) -> Index<'_> {
    Index { slot, words: partition.page().part(INDEXES + (slot % INDEXES_MAX) * INDEX_BYTES) }
}

/// The slots of the indexes that are ready, a bit each.
#[inline]
pub(crate) fn set(partition: Partition<'_>) -> u32 {
    partition.page().load(INDEX_SET) & ((1 << INDEXES_MAX) - 1)
}

/// The indexes that are ready, and so hold every record.
#[inline]
pub(crate) fn ready(partition: Partition<'_>) -> impl Iterator<Item = Index<'_>> {
    slots(partition.page().load(INDEX_SET)).map(move |slot| at(partition, slot))
}

/// The numbers of the bits that are set, among the slots that exist.
#[inline]
pub(crate) fn slots(set: u32) -> impl Iterator<Item = usize> {
    record::bits(set & ((1 << INDEXES_MAX) - 1))
}
