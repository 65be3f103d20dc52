//! Records with the same tag: a ring through the records, oldest first, whose leader is in the table.

use tupelo_shm::{Section, Store, View};

use super::Index;
use super::table::{self, Place};
use crate::base::error::{Error, Need};
use crate::base::layout::Layout;
use crate::index::{links, queue};
use crate::store::partition::Partition;
use crate::store::record::{
    self, BUCKET_NEXT, Link, RING_NEXT, RING_PREVIOUS, Record, SEQUENCE, TAG,
};

/// Words that linking a record changes: two neighbours, and two of the table for a new leader. A split of
/// a bucket comes on top.
pub(crate) const LINK_WORDS: usize = 4;
/// Words that unlinking one changes: the same.
pub(crate) const UNLINK_WORDS: usize = 4;
/// Words that putting one in the place of another changes: two neighbours, and the leader.
pub(crate) const REPLACE_WORDS: usize = 3;

/// Links the youngest record of its tag. Nobody can reach its link yet.
pub(crate) fn append<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    index: Index<'m>,
    added: (Record<'m>, u32),
) -> Result<(), Error> {
    append_with(section, layout, partition, index, added, ([], []))
}

/// As [`append`], together with `also`.
#[inline(always)]
pub(crate) fn append_with<'m, const A: usize, const B: usize>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    index: Index<'m>,
    (record, tag): (Record<'m>, u32),
    also: ([Store<'m>; A], [Store<'m>; B]),
) -> Result<(), Error> {
    let reference = record.reference;
    let link = record::link_of(section.view(), record.header, index.slot);
    link.init(TAG, tag);
    let bucket = table::bucket(section.view(), index, tag);
    match table::find_in(section.view(), index, bucket, tag) {
        None => {
            link.init(RING_NEXT, reference);
            link.init(RING_PREVIOUS, reference);
            table::insert(section, index, bucket, (reference, link), also);
            table::grow(section, layout, partition, index)
        }
        Some(place) => {
            insert_before(section, index, (reference, link), place.leader());
            section.set_together(also.0, also.1, []);
            Ok(())
        }
    }
}

/// Links a record at the place that its sequence number gives it (rule T5). Needs no memory: it would be lost in a full
/// space otherwise.
pub(crate) fn restore<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    index: Index<'m>,
    (reference, tag): (u32, u32),
) -> Result<(), Error> {
    let Some(place) = table::find(section.view(), index, tag) else {
        let record = record::at(section.view(), reference);
        return match append(section, layout, partition, index, (record, tag)) {
            // It is linked, and only the table has not grown for it: the next new tag's will.
            Err(Error::Need(Need::Table { .. })) => Ok(()),
            done => done,
        };
    };
    let link = record::link(section.view(), reference, index.slot);
    link.init(TAG, tag);
    let leader = place.leader();
    let older = |view: &View<'_>, other| sequence(view, other) < sequence(view, reference);
    if !older(section.view(), leader) {
        // It becomes the leader.
        insert_before(section, index, (reference, link), leader);
        let old = record::link(section.view(), leader, index.slot);
        let after = old.load(BUCKET_NEXT);
        link.init(BUCKET_NEXT, after);
        section.set(old, BUCKET_NEXT, 0);
        place.set(section, reference);
        return Ok(());
    }
    // Close to one that is near in the base list, too; or to the leader, since it was taken as the oldest; or to the youngest,
    // since those before it are back.
    let header = record::header(section.view(), reference);
    let near = queue::near(section.view(), layout, partition, header);
    let near = if is_in(section.view(), index, near, tag) { near } else { leader };
    let mut at = next(section.view(), index, near);
    let mut youngest = previous(section.view(), index, leader);
    let mut steps = partition.steps_max(section.view());
    while at != leader && older(section.view(), at) && steps > 0 {
        if older(section.view(), youngest) {
            at = next(section.view(), index, youngest);
            break;
        }
        at = next(section.view(), index, at);
        youngest = previous(section.view(), index, youngest);
        steps -= 1;
    }
    insert_before(section, index, (reference, link), at);
    Ok(())
}

/// Whether the ring of `tag` has the record at `reference`, which is in the base list; or is none: 0.
fn is_in(view: &View<'_>, index: Index<'_>, reference: u32, tag: u32) -> bool {
    reference != 0
        && links::linked(view, reference) >> index.slot & 1 == 1
        && record::link(view, reference, index.slot).load(TAG) == tag
}

/// Takes a record out of its ring, and out of the table if it was the leader. Other records may be linked in the same
/// section. If a search by this index found the record in this section, `place` is where it saw the leader of the tag.
#[inline(never)]
pub(crate) fn unlink<'m>(
    section: &mut Section<'m>,
    index: Index<'m>,
    Record { reference, header }: Record<'m>,
    place: Option<Place<'m>>,
) {
    let link = record::link_of(section.view(), header, index.slot);
    let (next, previous) = (link.load(RING_NEXT), link.load(RING_PREVIOUS));
    let place = match place {
        Some(place) => place,
        None => match table::find(section.view(), index, link.load(TAG)) {
            Some(place) => place,
            None => return section.view().violate(),
        },
    };
    if place.leader() == reference {
        let after = link.load(BUCKET_NEXT);
        if next == reference {
            table::keep_tag(section, index, (reference, link.load(TAG)));
            section.set_words(table::removal(index, place, after));
            return;
        }
        let recoverer = record::link(section.view(), next, index.slot);
        section.set(recoverer, BUCKET_NEXT, after);
        place.set(section, next);
    }
    let link = record::link(section.view(), previous, index.slot);
    section.set(link, RING_NEXT, next);
    let link = record::link(section.view(), next, index.slot);
    section.set(link, RING_PREVIOUS, previous);
}

/// As [`unlink`], for a record at whose tag's leader a search has arrived by this index, together with `also`. Nothing is to
/// be linked in the same section after it.
#[inline(always)]
pub(crate) fn unlink_with<'m, const A: usize, const B: usize>(
    section: &mut Section<'m>,
    index: Index<'m>,
    record: Record<'m>,
    place: Place<'m>,
    also: ([Store<'m>; A], [Store<'m>; B]),
) {
    let link = record::link_of(section.view(), record.header, index.slot);
    // Nearly always: the only one with its tag.
    if place.leader() == record.reference && link.load(RING_NEXT) == record.reference {
        let removal = table::removal(index, place, link.load(BUCKET_NEXT));
        section.set_together(removal, also.0, also.1);
        return;
    }
    unlink(section, index, record, Some(place));
    section.set_together(also.0, also.1, []);
}

/// Puts a record in the place of another one, whose links it has.
pub(crate) fn replace<'m>(
    section: &mut Section<'m>,
    index: Index<'m>,
    from: Record<'m>,
    to: Record<'m>,
) {
    let link = record::link_of(section.view(), to.header, index.slot);
    let Some(place) = table::find(section.view(), index, link.load(TAG)) else {
        return section.view().violate();
    };
    if place.leader() == from.reference {
        place.set(section, to.reference);
    }
    let (next, previous) = (link.load(RING_NEXT), link.load(RING_PREVIOUS));
    if next == from.reference {
        link.init(RING_NEXT, to.reference);
        link.init(RING_PREVIOUS, to.reference);
        return;
    }
    let after = record::link(section.view(), next, index.slot);
    section.set(after, RING_PREVIOUS, to.reference);
    let before = record::link(section.view(), previous, index.slot);
    section.set(before, RING_NEXT, to.reference);
}

#[inline]
fn insert_before<'m>(
    section: &mut Section<'m>,
    index: Index<'m>,
    (reference, link): (u32, Link<'m>),
    next: u32,
) {
    let after = record::link(section.view(), next, index.slot);
    let previous = after.load(RING_PREVIOUS);
    link.init(BUCKET_NEXT, 0);
    link.init(RING_NEXT, next);
    link.init(RING_PREVIOUS, previous);
    let before = record::link(section.view(), previous, index.slot);
    section.set(before, RING_NEXT, reference);
    section.set(after, RING_PREVIOUS, reference);
}

/// The next record of the ring.
#[inline]
pub(crate) fn next(view: &View<'_>, index: Index<'_>, reference: u32) -> u32 {
    record::link(view, reference, index.slot).load(RING_NEXT)
}

/// The previous record of the ring.
#[inline]
pub(crate) fn previous(view: &View<'_>, index: Index<'_>, reference: u32) -> u32 {
    record::link(view, reference, index.slot).load(RING_PREVIOUS)
}

#[inline]
fn sequence(view: &View<'_>, reference: u32) -> u64 {
    record::header(view, reference).load64(SEQUENCE)
}
