//! The base list: the records of a partition in the order of their puts (rule T2).

use tupelo_shm::{Section, Store as WordStore, View, Word};

use crate::base::layout::Layout;
use crate::store::partition::{FIRST, LAST, LAST_RETURNED, LIVE, NEXT_SEQUENCE, Partition};
use crate::store::record::{self, Header, NEXT, PREVIOUS, Record, SEQUENCE, STATE};
use crate::store::{Store, blocks, journal, stamps};

/// Words that linking a record changes: two neighbours, the count, its state.
pub(crate) const LINK_WORDS: usize = 4;
/// Words that unlinking one changes: two neighbours and the count.
pub(crate) const UNLINK_WORDS: usize = 3;
/// Words that putting one in the place of another changes: two neighbours, and its state.
pub(crate) const REPLACE_WORDS: usize = 3;

/// What appending a fresh record changes: it becomes the youngest.
#[inline(always)]
pub(crate) fn appending<'m>(
    view: &View<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
) -> [WordStore<'m>; LINK_WORDS] {
    linking(view, partition, record, partition.page().load(LAST), 0)
}

/// Puts a record back at the place that its sequence number gives it (rule T5). The search for the place runs from a
/// record that is near, or else from the front, where most records are taken from. It runs from the end at the same
/// time, since the records before this one may be back already.
pub(crate) fn restore<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    reference: u32,
) {
    let header = record::header(section.view(), reference);
    let sequence = header.load64(SEQUENCE);
    let (mut previous, mut next) = match near(section.view(), layout, partition, header) {
        0 => (0, partition.page().load(FIRST)),
        near => (near, record::header(section.view(), near).load(NEXT)),
    };
    let is_older = |other| record::header(section.view(), other).load64(SEQUENCE) < sequence;
    let mut youngest = partition.page().load(LAST);
    let mut steps = partition.steps_max(section.view());
    while next != 0 && is_older(next) {
        if is_older(youngest) {
            (previous, next) = (youngest, record::header(section.view(), youngest).load(NEXT));
            break;
        }
        (previous, next) = (next, record::header(section.view(), next).load(NEXT));
        youngest = record::header(section.view(), youngest).load(PREVIOUS);
        if steps == 0 || youngest == 0 {
            section.view().violate();
            return;
        }
        steps -= 1;
    }
    let record = record::at(section.view(), reference);
    let stores = linking(section.view(), partition, record, previous, next);
    section.set_words(stores);
    partition.page().init(LAST_RETURNED, reference);
}

/// A record of the list that is older than a record outside of it, which has this header, and is perhaps close to its
/// place. It is the record that was before it when it was taken out, or the record that came back last. Of many records
/// that come back, each belongs behind the one before. 0 if neither is there.
pub(crate) fn near(
    view: &View<'_>,
    layout: &Layout,
    partition: Partition<'_>,
    header: Header<'_>,
) -> u32 {
    let sequence = |header: Header<'_>| header.load64(SEQUENCE);
    [header.load(PREVIOUS), partition.page().load(LAST_RETURNED)]
        .into_iter()
        .filter(|other| is_listed(view, layout, partition, *other))
        .map(|other| (sequence(record::header(view, other)), other))
        .filter(|(other, _)| *other < sequence(header))
        .max()
        .map_or(0, |(_, other)| other)
}

/// Whether there is a record in the list at `reference`, which may be anything: a block that was one. It is if its
/// neighbour leads back to it, or the list ends with it.
fn is_listed(view: &View<'_>, layout: &Layout, partition: Partition<'_>, reference: u32) -> bool {
    let is_live = |reference| {
        blocks::begins_at(view, layout, partition, reference)
            && blocks::start(view, reference).load(STATE) == record::LIVE
    };
    if !is_live(reference) {
        return false;
    }
    match record::header(view, reference).load(NEXT) {
        0 => partition.page().load(LAST) == reference,
        next => is_live(next) && record::header(view, next).load(PREVIOUS) == reference,
    }
}

/// What linking a record in changes, which also says that it is live.
#[inline(always)]
fn linking<'m>(
    view: &View<'m>,
    partition: Partition<'m>,
    Record { reference, header }: Record<'m>,
    previous: u32,
    next: u32,
) -> [WordStore<'m>; LINK_WORDS] {
    // The links of a record outside of the list mean nothing: no log (R2).
    const { assert!(NEXT == PREVIOUS + 4 && PREVIOUS.is_multiple_of(8)) };
    header.init64(PREVIOUS, u64::from(next) << 32 | u64::from(previous));
    [
        (neighbour(view, partition, previous, NEXT, FIRST), reference),
        (neighbour(view, partition, next, PREVIOUS, LAST), reference),
        (partition.page().place(LIVE), partition.page().load(LIVE).wrapping_add(1)),
        (header.place(STATE), record::LIVE),
    ]
}

/// What taking a record out of the list changes.
#[inline(always)]
pub(crate) fn unlinking<'m>(
    view: &View<'m>,
    partition: Partition<'m>,
    header: Header<'m>,
) -> [WordStore<'m>; UNLINK_WORDS] {
    let (previous, next) = (header.load(PREVIOUS), header.load(NEXT));
    [
        (neighbour(view, partition, previous, NEXT, FIRST), next),
        (neighbour(view, partition, next, PREVIOUS, LAST), previous),
        (partition.page().place(LIVE), partition.page().load(LIVE).wrapping_sub(1)),
    ]
}

/// Puts a record in the place of another one, whose links it has.
pub(crate) fn replace<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    from: Record<'m>,
    to: Record<'m>,
) {
    let view = section.view();
    let (previous, next) = (from.header.load(PREVIOUS), from.header.load(NEXT));
    let stores = [
        (neighbour(view, partition, previous, NEXT, FIRST), to.reference),
        (neighbour(view, partition, next, PREVIOUS, LAST), to.reference),
        (to.header.place(STATE), record::LIVE),
    ];
    section.set_words(stores);
}

/// Whether both neighbours of what may be a record, or the ends of the list, lead to it.
pub(crate) fn is_between_neighbours(
    view: &View<'_>,
    partition: Partition<'_>,
    reference: u32,
) -> bool {
    let header = record::header(view, reference);
    let (previous, next) = (header.load(PREVIOUS), header.load(NEXT));
    neighbour(view, partition, previous, NEXT, FIRST).load() == reference
        && neighbour(view, partition, next, PREVIOUS, LAST).load() == reference
}

/// Where the list's link to one side of a place stands: the link `at` of the neighbour there, or the partition's
/// `end` if there is none.
#[inline(always)]
fn neighbour<'m>(
    view: &View<'m>,
    partition: Partition<'m>,
    neighbour: u32,
    at: usize,
    end: usize,
) -> Word<'m> {
    if neighbour == 0 {
        partition.page().place(end)
    } else {
        record::header(view, neighbour).place(at)
    }
}

/// Gives a record its place in the order of puts, which is at the moment `due_ns` if that is given.
#[inline(always)]
pub(crate) fn number<'m>(
    view: &View<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    due_ns: Option<u64>,
) {
    let next = partition.page().load64(NEXT_SEQUENCE);
    // Not undone by itself (`step::count_anew`): a number that was skipped does no harm.
    partition.page().init64(NEXT_SEQUENCE, next + 1);
    let sequence = if stamps::have_begun(view) { stamps::next(partition, due_ns) } else { next };
    record.header.init64(record::SEQUENCE, sequence);
}

/// As [`number`], in any space: where there is a journal, the number is one that no other tuple of the space has.
#[inline(always)]
pub(crate) fn number_any<'m>(
    store: &Store,
    view: &View<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    due_ns: Option<u64>,
) {
    number(view, partition, record, due_ns);
    if store.journal.is_on() {
        record.header.init64(record::SEQUENCE, journal::give_id(journal::line(view)));
    }
}

/// The last put of a section is not to be: it ends or begins anew, and is counted once.
#[cold]
#[inline(never)]
pub(crate) fn give_number_back(partition: Partition<'_>) {
    let next = partition.page().load64(NEXT_SEQUENCE);
    partition.page().init64(NEXT_SEQUENCE, next.wrapping_sub(1));
}
