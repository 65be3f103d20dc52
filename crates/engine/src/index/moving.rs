//! Moving a record to another block of its partition, which is locked: the same tuple, with the same number and age, at the
//! same places in all that finds it. So extents of which few blocks are in use can be emptied
//! ([`crate::recovery::compact`]).
//!
//! Only what nothing else refers to is moved: records in the lists without an extension, so without a timer, and that no
//! open transaction has read. Who has noted a place without the lock (a scan, a reader) finds no such record there, as if it
//! had been taken, and looks for the number.

use tupelo_shm::{Section, View};

use crate::index::{self, BUILDING, READY, STATE, links, queue, ring};
use crate::store::blocks;
use crate::store::partition::{INDEXES_MAX, LAST_RETURNED, Partition};
use crate::store::record::{self, EXTENSION, HEADER_BYTES, READ_MARK, SHAPE};
use crate::store::step;

/// Words that moving a record changes: the lists' and the cursors', and those of both blocks.
const MOVE_WORDS: usize = queue::REPLACE_WORDS
    + INDEXES_MAX * (ring::REPLACE_WORDS + 1)
    + blocks::ALLOCATE_WORDS
    + blocks::FREE_WORDS;
const _: () = assert!(MOVE_WORDS <= step::STEP_WORDS);

/// Whether the block at `reference` is a record of the partition that may be moved.
pub(crate) fn is_movable(view: &View<'_>, partition: Partition<'_>, reference: u32) -> bool {
    let header = record::header(view, reference);
    header.load(record::STATE) == record::LIVE
        && header.load(EXTENSION) == 0
        && header.load(SHAPE) & READ_MARK == 0
        && queue::is_between_neighbours(view, partition, reference)
}

/// Moves a record that [may be](is_movable) moved to a block of its size, which was just allocated.
pub(crate) fn move_record<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    from: u32,
    to: u32,
) {
    let view = section.view();
    let [from, to] = [from, to].map(|reference| record::at(view, reference));
    // Nobody can reach it yet: no log (R2). The first two words are the allocator's.
    for word in (8..HEADER_BYTES).step_by(8) {
        to.header.init64(word, from.header.load64(word));
    }
    record::copy_image(view, from.reference, to.reference);
    for slot in index::slots(links::linked(view, from.reference)) {
        let index = index::at(partition, slot);
        // A dropped index has no table any more; its marks mean nothing.
        if matches!(index.words.load(STATE), READY | BUILDING) {
            ring::replace(section, index, from, to);
        }
    }
    links::replace_in_walks(section, partition, from.reference, to.reference);
    queue::replace(section, partition, from, to);
    if partition.page().load(LAST_RETURNED) == from.reference {
        partition.page().init(LAST_RETURNED, to.reference);
    }
}
