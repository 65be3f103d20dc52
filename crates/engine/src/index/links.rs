//! Linking a record into everything that finds it, and out again.
//!
//! A record carries a mark per index slot that it is linked in. While an index is being built or dropped
//! its cursor walks the base list; a record that leaves the list under the cursor moves it on.

use tupelo_shm::{Section, Store as WordStore, View};
use tupelo_tuple::{Field, Kind, TupleRef};

use crate::base::error::Error;
use crate::base::layout::Layout;
use crate::index::find::Hit;
use crate::index::{self, BUILDING, CURSOR, DROPPING, Index, MASK, READY, STATE, queue, ring};
use crate::store::blocks::{self, Release};
use crate::store::partition::{INDEX_SET, INDEXES_MAX, Partition, RETURNS};
use crate::store::record::{self, EXTENSION, Header, NEXT, Record, SHAPE, STATE as RECORD_STATE};
use crate::store::{Store, changes, extension, history, key, step};
use crate::time::{list, wheel};

/// Which index slots are being built or dropped, a bit each.
pub(crate) const WALKING: usize = 88;
/// Marks of the index slots in the record's shape word.
const LINKED_SHIFT: u32 = 16;

/// Notes whether the index in `slot` has a walking cursor.
pub(crate) fn set_walking<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    slot: usize,
    walks: bool,
) {
    let set = partition.page().load(WALKING);
    let set = if walks { set | 1 << slot } else { set & !(1 << slot) };
    section.set(partition.page(), WALKING, set);
}

/// Marks whether a record is linked in `slot`.
pub(crate) fn set_linked(section: &mut Section<'_>, reference: u32, slot: usize, linked: bool) {
    let header = record::header(section.view(), reference);
    let bit = 1 << (LINKED_SHIFT + u32::try_from(slot).unwrap_or(0));
    let word = header.load(SHAPE);
    section.set(header, SHAPE, if linked { word | bit } else { word & !bit });
}

/// The slots that a record is linked in.
#[inline]
pub(crate) fn linked(view: &View<'_>, reference: u32) -> u32 {
    linked_of(record::header(view, reference))
}

/// The slots that the record with this header is linked in.
#[inline]
fn linked_of(header: Header<'_>) -> u32 {
    header.load(SHAPE) >> LINKED_SHIFT & 0xff
}

/// Gives a record room for the links of `slot`, if its header has none.
pub(crate) fn ensure_extension<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    reference: u32,
    slot: usize,
) -> Result<(), Error> {
    if record::is_extended(slot) {
        extension::ensure(section, layout, partition, record::header(section.view(), reference))?;
    }
    Ok(())
}

/// Makes a filled record findable: the youngest of its shape.
#[inline(always)]
pub(crate) fn link_youngest<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    fields: &[Field<'_>],
) -> Result<(), Error> {
    link_youngest_with(store, section, partition, (record, fields), [])
}

/// As [`link_youngest`], together with `also`, which is stored before a block is allocated.
#[inline(always)]
pub(crate) fn link_youngest_with<'m, const K: usize>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (record, fields): (Record<'m>, &[Field<'_>]),
    also: [WordStore<'m>; K],
) -> Result<(), Error> {
    let set = index::set(partition);
    let header = record.header;
    // They mean nothing before the base list has the record, below. One whose time came in a section that was undone has
    // those of then.
    header.init(SHAPE, unmarked(header) | set << LINKED_SHIFT);
    match set {
        0 => {
            let base = queue::appending(section.view(), partition, record);
            section.set_together(base, also, []);
        }
        // Nearly always: one index, whose links the record has room for.
        1 | 2 => {
            let index = index::at(partition, set as usize / 2);
            let tag = key::tag_of_fields(fields, index.words.load(MASK), store.seed);
            let base = queue::appending(section.view(), partition, record);
            let added = (record, tag);
            ring::append_with(section, &store.layout, partition, index, added, (base, also))
                .inspect_err(|_| queue::give_number_back(partition))?;
        }
        _ => {
            section.set_words(also);
            let section = &mut *section;
            let linked = TupleRef::from(fields).apart(move |TupleRef { fields, .. }| {
                link_in_several(store, section, partition, record, fields)
            });
            linked.inspect_err(|_| queue::give_number_back(partition))?;
        }
    }
    if partition.page().load(WALKING) != 0 {
        include_in_walks(section, partition, record.reference);
    }
    Ok(())
}

/// Links the youngest record in all indexes and in the base list.
#[inline(never)]
fn link_in_several<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    fields: &[Field<'_>],
) -> Result<(), Error> {
    for slot in index::slots(partition.page().load(INDEX_SET)) {
        let index = index::at(partition, slot);
        let tag = key::tag_of_fields(fields, index.words.load(MASK), store.seed);
        ensure_extension(section, &store.layout, partition, record.reference, slot)?;
        ring::append(section, &store.layout, partition, index, (record, tag))?;
    }
    let stores = queue::appending(section.view(), partition, record);
    section.set_words(stores);
    Ok(())
}

/// Links a record that was held where it was before: same identity, age and place (rule T5).
pub(crate) fn link_back<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    kinds: &[Kind],
) -> Result<(), Error> {
    for slot in index::slots(partition.page().load(INDEX_SET)) {
        let index = index::at(partition, slot);
        link_back_in(store, section, partition, index, reference, kinds)?;
    }
    queue::restore(section, &store.layout, partition, reference);
    partition.page().init(RETURNS, partition.page().load(RETURNS).wrapping_add(1));
    for slot in index::slots(partition.page().load(WALKING)) {
        let index = index::at(partition, slot);
        let cursor = index.words.load(CURSOR);
        let passed = cursor == 0 || precedes(section.view(), reference, cursor);
        if index.words.load(STATE) == BUILDING && passed {
            link_back_in(store, section, partition, index, reference, kinds)?;
        }
    }
    Ok(())
}

fn link_back_in<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    index: Index<'m>,
    reference: u32,
    kinds: &[Kind],
) -> Result<(), Error> {
    let mask = index.words.load(MASK);
    let tag = key::tag_of_record(section.view(), reference, kinds, mask, store.seed);
    if record::is_extended(index.slot) {
        // It goes back to where it was, in a full space, too.
        let header = record::header(section.view(), reference);
        extension::ensure_beyond(section, &store.layout, partition, header)?;
    }
    ring::restore(section, &store.layout, partition, index, (reference, tag))?;
    set_linked(section, reference, index.slot, true);
    Ok(())
}

/// Takes a record that a search in this section has found out of everything that finds it, and frees it. In a space without a
/// journal.
#[inline(always)]
pub(crate) fn unlink_and_free<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    found: Hit<'m>,
) -> Result<(), Error> {
    let Record { reference, header } = found.record;
    if header.load(EXTENSION) != 0 {
        unlink_found(section, partition, found);
        return free_record_at(store, section, partition, found.record);
    }
    let first = header.part(0);
    match blocks::release(section, &store.layout, partition, reference, first) {
        Release::Spare(stores) => {
            unlink_with(section, partition, found, stores);
            Ok(())
        }
        other => {
            unlink_with(section, partition, found, []);
            blocks::free_to(section, &store.layout, partition, (reference, first), other)
        }
    }
}

/// Frees the record of a tuple that is linked nowhere: the tuple is gone.
#[inline(always)]
pub(crate) fn free_tuple<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
) -> Result<(), Error> {
    if store.journal.is_on() {
        return free_noted(store, section, partition, record);
    }
    free_record_at(store, section, partition, record)
}

/// As [`free_tuple`], where there is a journal.
#[cold]
#[inline(never)]
fn free_noted<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
) -> Result<(), Error> {
    let id = record.header.load64(record::SEQUENCE);
    free_record_at(store, section, partition, record)?;
    changes::taken(store, section, id);
    Ok(())
}

/// Frees the block of a record that is linked nowhere, and its extension. It is no tuple of the space, or not alone: a copy
/// for a reader, a lock, one that is not put yet.
#[inline]
pub(crate) fn free_record<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
) -> Result<(), Error> {
    let record = record::at(section.view(), reference);
    free_record_at(store, section, partition, record)
}

/// As [`free_record`], for a record that was found already.
#[inline(always)]
pub(crate) fn free_record_at<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
) -> Result<(), Error> {
    if record.header.load(EXTENSION) != 0 {
        free_extension(store, section, partition, record.header)?;
    }
    blocks::free_at(section, &store.layout, partition, record.reference, record.header.part(0))
}

#[inline(never)]
fn free_extension<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    header: Header<'m>,
) -> Result<(), Error> {
    if let Some(extension) = extension::of(section.view(), header) {
        extension::recount(section, partition, extension, false);
        let block = history::detach(section, extension);
        history::free(section, &store.layout, partition, block)?;
    }
    if record::is_extended_inside(header) {
        return Ok(());
    }
    blocks::free(section, &store.layout, partition, header.load(EXTENSION))
}

/// A build whose cursor had reached the end goes on with the new record.
#[cold]
fn include_in_walks<'m>(section: &mut Section<'m>, partition: Partition<'m>, reference: u32) {
    for slot in index::slots(partition.page().load(WALKING)) {
        let index = index::at(partition, slot);
        if index.words.load(STATE) == BUILDING && index.words.load(CURSOR) == 0 {
            section.set(index.words, CURSOR, reference);
        }
    }
}

/// Takes a live record out of everything that finds it. Its block stays; the caller frees or holds it.
pub(crate) fn unlink<'m>(section: &mut Section<'m>, partition: Partition<'m>, reference: u32) {
    let record = record::at(section.view(), reference);
    unlink_found(section, partition, Hit { record, place: None });
}

/// As [`unlink`], for what a search in this section found.
#[inline(always)]
pub(crate) fn unlink_found<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    found: Hit<'m>,
) {
    let Record { reference, header } = found.record;
    if header.load(EXTENSION) != 0 {
        wheel::disarm(section, partition, reference);
    }
    unlink_with(section, partition, found, []);
}

/// As [`unlink_found`], for a record without a timer, together with `also`.
#[inline(always)]
fn unlink_with<'m, const K: usize>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    found: Hit<'m>,
    also: [WordStore<'m>; K],
) {
    let Hit { record: Record { reference, header }, place } = found;
    let walking = partition.page().load(WALKING);
    if walking != 0 {
        move_cursors(section, partition, walking, reference, header.load(NEXT));
    }
    let linked = linked_of(header);
    if let Some((index, place)) = place
        && linked == 1 << index.slot
    {
        // Nearly always: in the one index that led to it, which is ready.
        let base = queue::unlinking(section.view(), partition, header);
        ring::unlink_with(section, index, found.record, place, (base, also));
        return;
    }
    unlink_from_several(section, partition, found, linked);
    let base = queue::unlinking(section.view(), partition, header);
    section.set_together(base, also, []);
}

/// Takes a record out of the indexes in the slots of `linked`.
#[inline(never)]
fn unlink_from_several<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    found: Hit<'m>,
    linked: u32,
) {
    for slot in index::slots(linked) {
        let index = index::at(partition, slot);
        // A dropped index has no table any more; its marks mean nothing.
        if matches!(index.words.load(STATE), READY | BUILDING) {
            let place = found.place.and_then(|(by, place)| (by.slot == slot).then_some(place));
            ring::unlink(section, index, found.record, place);
        }
    }
}

/// Forgets the marks of a record that is held: it is linked nowhere now.
pub(crate) fn hold(section: &mut Section<'_>, reference: u32, state: u32) {
    let header = record::header(section.view(), reference);
    section.set(header, SHAPE, unmarked(header));
    section.set(header, RECORD_STATE, state);
}

/// The shape word of a record without the marks of indexes.
#[inline]
pub(crate) fn unmarked(header: Header<'_>) -> u32 {
    header.load(SHAPE) & !(0xff << LINKED_SHIFT)
}

#[cold]
fn move_cursors<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    walking: u32,
    reference: u32,
    next: u32,
) {
    for slot in index::slots(walking) {
        let index = index::at(partition, slot);
        if matches!(index.words.load(STATE), BUILDING | DROPPING)
            && index.words.load(CURSOR) == reference
        {
            section.set(index.words, CURSOR, next);
        }
    }
}

/// Has the walks go on with a record that has come in the place of another one.
pub(crate) fn replace_in_walks<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    from: u32,
    to: u32,
) {
    let walking = partition.page().load(WALKING);
    move_cursors(section, partition, walking, from, to);
}

/// Whether the record at `reference` was put before `other`.
pub(crate) fn precedes(view: &View<'_>, reference: u32, other: u32) -> bool {
    let sequence = |reference| record::header(view, reference).load64(record::SEQUENCE);
    sequence(reference) < sequence(other)
}

/// Words that storing one tuple changes, its rare parts aside.
const PUT_WORDS: usize = 2 * blocks::ALLOCATE_WORDS // the record and its extension
    + wheel::ARM_WORDS
    + 4 // the extension's place, when the lease ends, how many are delayed
    + INDEXES_MAX * (ring::LINK_WORDS + 1) // the links and a mark or cursor
    + queue::LINK_WORDS
    + step::HAND_WORDS;

/// Words that taking one tuple out changes.
const TAKE_WORDS: usize = INDEXES_MAX * (ring::UNLINK_WORDS + 1) // the links and a cursor
    + queue::UNLINK_WORDS
    + 3 * blocks::FREE_WORDS // the record, its extension and its history
    + wheel::ARM_WORDS
    + list::LINK_WORDS
    + step::HAND_WORDS;
const _: () = assert!(PUT_WORDS <= step::STEP_WORDS && TAKE_WORDS <= step::STEP_WORDS);
