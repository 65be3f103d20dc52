//! Which indexes a partition has: learned from what templates ask for.
//!
//! A lookup without an index of its own notes how many records it looked at in vain. When a mask has cost as many looks
//! as there are records, an index over it is built. That is ski rental: rent until the rent paid equals the price, then
//! buy. It costs at most twice as much as the best plan in hindsight. A build goes through the base list in steps and
//! commits often, so others go on meanwhile. A killed builder leaves its cursor, and the next lookup that asks for the
//! mask continues. Dropping is the same walk.

use tupelo_shm::{GRANULE, Section, Span, View};
use tupelo_tuple::{Kind, PatternRef};

use super::{
    BUCKETS, BUILDING, CURSOR, DROPPING, GROWTH, Index, KEYS, LEVEL, LOOKUPS, MASK, NONE, READY,
    SEGMENTS, SEGMENTS_MAX, STATE, ring, table,
};
use crate::base::error::{Error, Need};
use crate::base::layout::EXTENT_GRANULES;
use crate::index::links;
use crate::store::key::{self, Key};
use crate::store::partition::{
    FIRST, INDEX_SET, INDEXES_MAX, LIVE, Partition, SHAPE, STATISTICS, STATISTICS_BYTES,
    STATISTICS_MAX,
};
use crate::store::{Store, blocks, record, registry, step};

/// Records that a build handles before it lets others in: about 20 us.
pub(crate) const STEP_RECORDS: u32 = 256;
/// Records in an extent, at most.
pub(crate) const RECORDS_PER_EXTENT_MAX: u64 = EXTENT_GRANULES as u64 / 2;
/// Partitions with fewer records than this are searched as they are.
const LIVE_MIN: u32 = 64;

/// Words of a mask's statistics.
type Note<'m> = Span<'m, STATISTICS_BYTES>;
const NOTE_MASK: usize = 0;
const NOTE_LOOKUPS: usize = 4;
const NOTE_SCANNED: usize = 8;

/// Notes that a lookup by `mask` looked at `scanned` records in vain. Returns whether the mask has now
/// earned an index.
///
/// The notes are hints: they are stored without the log, and a killed process may lose one.
pub(crate) fn note(partition: Partition<'_>, mask: u32, scanned: u32) -> bool {
    if mask == 0 || scanned == 0 {
        return false;
    }
    let notes = (0..STATISTICS_MAX).map(|number| note_at(partition, number));
    let place = |wanted: u32| notes.clone().find(|note| note.load(NOTE_MASK) == wanted);
    let note = place(mask).or_else(|| place(0)).unwrap_or_else(|| cheapest(partition));
    if note.load(NOTE_MASK) != mask {
        note.init(NOTE_MASK, mask);
        note.init(NOTE_LOOKUPS, 0);
        note.init(NOTE_SCANNED, 0);
    }
    note.init(NOTE_LOOKUPS, note.load(NOTE_LOOKUPS).saturating_add(1));
    let total = note.load(NOTE_SCANNED).saturating_add(scanned);
    note.init(NOTE_SCANNED, total);
    total >= partition.page().load(LIVE).max(LIVE_MIN)
}

fn note_at(partition: Partition<'_>, number: usize) -> Note<'_> {
    partition.page().part(STATISTICS + number % STATISTICS_MAX * STATISTICS_BYTES)
}

/// The note that matters least.
fn cheapest(partition: Partition<'_>) -> Note<'_> {
    let notes = (0..STATISTICS_MAX).map(|number| note_at(partition, number));
    notes.min_by_key(|note| note.load(NOTE_SCANNED)).unwrap_or_else(|| note_at(partition, 0))
}

pub(crate) fn forget(partition: Partition<'_>, mask: u32) {
    for number in 0..STATISTICS_MAX {
        let note = note_at(partition, number);
        if note.load(NOTE_MASK) == mask {
            note.init(NOTE_MASK, 0);
        }
    }
}

/// One lock hold of [`crate::recovery::learning::learn`]. Returns whether there is nothing left to do.
pub(crate) fn learn_step(store: &Store, scope: u32, mask: u32) -> Result<bool, Error> {
    let mut section = Section::enter(&store.memory, scope)?;
    let partition = Partition::of_scope(section.view(), scope);
    let known = (0..INDEXES_MAX)
        .map(|slot| super::at(partition, slot))
        .find(|index| index.words.load(STATE) != NONE && index.words.load(MASK) == mask);
    match known {
        Some(index) => match index.words.load(STATE) {
            BUILDING => build_step(store, &mut section, partition, index),
            DROPPING => drop_step(&mut section, partition, index),
            _ => Ok(true),
        },
        None => begin(store, &mut section, partition, mask),
    }
}

/// Starts an index in a free slot, or the dropping of the least used one.
fn begin<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    mask: u32,
) -> Result<bool, Error> {
    let indexes = (0..INDEXES_MAX).map(|slot| super::at(partition, slot));
    let all: Vec<Index<'m>> = indexes.collect();
    if let Some(index) = all.iter().find(|index| index.words.load(STATE) == NONE) {
        let block = blocks::allocate(
            section,
            &store.layout,
            partition,
            table::BUCKETS_MIN as usize * GRANULE,
        )?;
        table::clear_first_segment(section, block);
        for segment in 1..SEGMENTS_MAX {
            index.words.init(SEGMENTS + 4 * segment, 0);
        }
        index.words.init(GROWTH, 0);
        section.set(index.words, SEGMENTS, block);
        section.set(index.words, MASK, mask);
        section.set(index.words, KEYS, 0);
        section.set(index.words, BUCKETS, table::BUCKETS_MIN);
        section.set(index.words, LEVEL, table::level_of(table::BUCKETS_MIN));
        section.set(index.words, LOOKUPS, 0);
        section.set(index.words, CURSOR, partition.page().load(FIRST));
        section.set(index.words, STATE, BUILDING);
        links::set_walking(section, partition, index.slot, true);
        section.commit()?;
        forget(partition, mask);
        return Ok(false);
    }
    if let Some(index) = all.iter().find(|index| index.words.load(STATE) == DROPPING) {
        drop_step(section, partition, *index)?;
        return Ok(false);
    }
    let Some(victim) = all
        .iter()
        .filter(|index| index.words.load(STATE) == READY)
        .min_by_key(|index| index.words.load(LOOKUPS))
    else {
        return Ok(true);
    };
    for index in &all {
        // What was used long ago must not count for ever.
        index.words.init(LOOKUPS, index.words.load(LOOKUPS) / 2);
    }
    retire(store, section, partition, *victim)?;
    Ok(false)
}

/// Frees the table of an index; its marks are cleared by [`drop_step`].
fn retire<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    index: Index<'m>,
) -> Result<(), Error> {
    section.set(index.words, STATE, DROPPING);
    section.set(index.words, CURSOR, partition.page().load(FIRST));
    let set = partition.page().load(INDEX_SET);
    section.set(partition.page(), INDEX_SET, set & !(1 << index.slot));
    links::set_walking(section, partition, index.slot, true);
    for block in table::segments(index) {
        step::begin(section)?;
        // The allocator's link takes the place of a table entry, which an undo needs: with the log.
        let header = record::header(section.view(), block);
        section.set(header, record::FREE_NEXT, 0);
        blocks::free(section, &store.layout, partition, block)?;
    }
    Ok(section.commit()?)
}

/// Lets an index over `mask` of the partition with lock `scope` do without a larger table until it has a quarter more
/// keys. No memory for one was found when it had `keys` keys.
#[cold]
pub(crate) fn postpone_growth(
    store: &Store,
    scope: u32,
    mask: u32,
    keys: u32,
) -> Result<(), Error> {
    let section = Section::enter(&store.memory, scope)?;
    let partition = Partition::of_scope(section.view(), scope);
    let indexes = (0..INDEXES_MAX).map(|slot| super::at(partition, slot));
    for index in indexes.filter(|index| index.words.load(MASK) == mask) {
        // By the keys that it had: those of a section that begins anew are gone, and come again.
        index.words.init(GROWTH, keys.saturating_add(keys / 4));
    }
    Ok(section.finish()?)
}

/// Links the next records. Returns whether the index is ready.
fn build_step<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    index: Index<'m>,
) -> Result<bool, Error> {
    let mask = index.words.load(MASK);
    let Some(kinds) = registry::kinds_of(store, section.view(), partition.page().load(SHAPE))
    else {
        return Ok(section.commit().map(|()| true)?);
    };
    for _ in 0..STEP_RECORDS {
        let reference = index.words.load(CURSOR);
        if reference == 0 {
            let set = partition.page().load(INDEX_SET);
            section.set(partition.page(), INDEX_SET, set | 1 << index.slot);
            section.set(index.words, STATE, READY);
            links::set_walking(section, partition, index.slot, false);
            section.commit()?;
            return Ok(true);
        }
        step::commit_if_full(section)?;
        build_one(store, section, partition, index, (reference, mask), kinds.as_slice())?;
    }
    section.commit()?;
    Ok(false)
}

fn build_one<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    index: Index<'m>,
    (reference, mask): (u32, u32),
    kinds: &[Kind],
) -> Result<(), Error> {
    let tag = key::tag_of_record(section.view(), reference, kinds, mask, store.seed);
    links::ensure_extension(section, &store.layout, partition, reference, index.slot)?;
    let record = record::at(section.view(), reference);
    ring::append(section, &store.layout, partition, index, (record, tag))
        .map_err(|error| required(store, error))?;
    links::set_linked(section, reference, index.slot, true);
    let next = younger(section.view(), reference);
    section.set(index.words, CURSOR, next);
    Ok(())
}

/// What a build ended with. A build does not do without buckets, as an index does that has all records: each key that
/// it links would walk through a chain of nearly all before it.
fn required(store: &Store, error: Error) -> Error {
    match error {
        Error::Need(need @ Need::Table { .. }) => need.of_memory(store.layout.extents_max).into(),
        error => error,
    }
}

/// The record behind the one at `reference` in the order of puts.
fn younger(view: &View<'_>, reference: u32) -> u32 {
    let next = record::header(view, reference).load(record::NEXT);
    if next != 0 && !links::precedes(view, reference, next) {
        // The list leads back into itself: nobody would see the end of it.
        view.violate();
        return 0;
    }
    next
}

/// Clears the marks of the next records. Returns whether the slot is free.
fn drop_step<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    index: Index<'m>,
) -> Result<bool, Error> {
    for _ in 0..STEP_RECORDS {
        let reference = index.words.load(CURSOR);
        if reference == 0 {
            section.set(index.words, STATE, NONE);
            section.set(index.words, MASK, 0);
            links::set_walking(section, partition, index.slot, false);
            break;
        }
        links::set_linked(section, reference, index.slot, false);
        let next = younger(section.view(), reference);
        section.set(index.words, CURSOR, next);
        step::commit_if_full(section)?;
    }
    section.commit()?;
    Ok(false)
}

/// Uses beyond this are not counted: a table in steady use costs its readers no store.
const LOOKUPS_COUNTED: u32 = 1024;

/// Counts a use of an index. A hint: not logged.
#[inline]
pub(crate) fn used(index: Index<'_>) {
    let lookups = index.words.load(LOOKUPS);
    if lookups < LOOKUPS_COUNTED {
        index.words.init(LOOKUPS, lookups + 1);
    }
}

/// The index over exactly the fields of `mask`.
#[inline]
pub(crate) fn exact(partition: Partition<'_>, mask: u32) -> Option<Index<'_>> {
    super::ready(partition).find(|index| index.words.load(MASK) == mask)
}

/// The best index for patterns that fix the fields of `mask`: one over exactly those, or else over the most
/// of them. Returns it with the tag to look up.
pub(crate) fn best<'m>(
    partition: Partition<'m>,
    patterns: &[PatternRef<'_>],
    key: Key,
    seed: u64,
) -> Option<(Index<'m>, u32)> {
    let mask = key.mask;
    let mut best: Option<Index<'m>> = None;
    let mut fields_best = 0;
    for index in super::ready(partition) {
        let covers = index.words.load(MASK);
        let fields = covers.count_ones();
        if covers & !mask == 0 && fields > fields_best {
            (best, fields_best) = (Some(index), fields);
            if covers == mask {
                break;
            }
        }
    }
    best.map(|index| {
        let covers = index.words.load(MASK);
        let tag =
            if covers == mask { key.tag } else { key::tag_of_patterns(patterns, covers, seed) };
        (index, tag)
    })
}

#[cfg(test)]
mod tests;
