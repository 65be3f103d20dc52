//! What a space may hold, and what becomes of a put for which there is no room (rule B1).
//!
//! A space that drops its oldest tuples makes room before it puts. It drops tuples of the shape that is put, since only
//! tuples of one shape have an order of age (T2). If the shape has none left, it drops tuples of the shape that has
//! most. Held, dead and delayed tuples are never dropped. Nothing is dropped for a put that would not fit even then
//! ([`crate::recovery::fit`]). Each drop is a step of its own, as an expiry is.

use std::sync::atomic::Ordering;

use tupelo_shm::View;

use crate::base::error::Error;
use crate::base::layout::EXTENT_BYTES;
use crate::index::find::Hit;
use crate::index::links;
use crate::journal;
use crate::recovery::{enter, fit, provide, sweep};
use crate::store::fullness::drops_oldest;
use crate::store::incoming::Incoming;
use crate::store::partition::{self, FIRST, LIVE, Partition};
use crate::store::record::{self, Header};
use crate::store::{self, DROPPED, Store, count, registry, space_line};
use crate::time::list::List;
use crate::waiters::deliver;
use crate::waiters::events::EventKind;

pub(crate) use tupelo_tuple::WhenFull;

/// What a new space may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The most memory for tuples, in bytes. Rounded up to what can be had.
    pub size_bytes: u64,
    /// The most tuples; `None`: as many as fit.
    pub tuples_max: Option<u64>,
    /// What becomes of a put for which there is no room.
    pub when_full: WhenFull,
}

/// What a put asks of a space that may be full.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'s> {
    /// The shapes of its tuples, one each.
    pub(crate) shapes: &'s [u32],
    /// How many others go at the same moment.
    pub(crate) leaving: usize,
    /// What its largest tuple takes, in bytes.
    pub(crate) largest_bytes: usize,
}

/// What the largest of these tuples takes, in bytes.
pub(crate) fn largest_bytes(incoming: &[(Incoming<'_>, u32)]) -> usize {
    incoming.iter().map(|(one, _)| one.size.bytes).max().unwrap_or(0)
}

/// As [`crate::Engine::limits`] says.
pub(crate) fn limits(store: &Store) -> Limits {
    Limits {
        size_bytes: u64::from(store.layout.extents_max) * EXTENT_BYTES as u64,
        tuples_max: (store.tuples_max != 0).then_some(store.tuples_max),
        when_full: store.when_full,
    }
}

/// As [`crate::Engine::when_full`] says.
pub(crate) fn when_full(store: &Store) -> WhenFull {
    store.when_full
}

/// Refuses tuples that would not fit into an empty space together: nobody has to wait, or to go, for them.
pub(crate) fn require_fit(store: &Store, incoming: &[(Incoming<'_>, u32)]) -> Result<(), Error> {
    require_may_hold(store, incoming.len())?;
    let (bytes, max_bytes) = (bytes_of(incoming), max_bytes(store));
    if bytes > max_bytes { Err(Error::TooLarge { bytes, max_bytes }) } else { Ok(()) }
}

/// As [`require_fit`], beside the record that they come for, which keeps its memory until they are there.
pub(crate) fn require_fit_beside(
    store: &Store,
    record: Header<'_>,
    incoming: &[(Incoming<'_>, u32)],
) -> Result<(), Error> {
    let (bytes, max_bytes) = (bytes_of(incoming), max_bytes(store));
    let held_bytes = (record::HEADER_BYTES + record::image_bytes(record)) as u64;
    if bytes + held_bytes > max_bytes {
        return Err(Error::TooLargeBeside { bytes, held_bytes, max_bytes });
    }
    Ok(())
}

/// The most memory for tuples.
fn max_bytes(store: &Store) -> u64 {
    u64::from(store.layout.extents_max) * EXTENT_BYTES as u64
}

/// Refuses more tuples than the space may ever hold.
pub(crate) fn require_may_hold(store: &Store, tuples: usize) -> Result<(), Error> {
    let (tuples, tuples_max) = (tuples as u64, store.tuples_max);
    let is_too_many = tuples_max != 0 && tuples > tuples_max;
    if is_too_many { Err(Error::TooMany { tuples, tuples_max }) } else { Ok(()) }
}

/// Runs a put of what is `wanted`. In a space that drops its oldest tuples, drops them until there is room.
pub(crate) fn making_room<R>(
    store: &Store,
    wanted: Wanted<'_>,
    mut put: impl FnMut() -> Result<R, Error>,
) -> Result<R, Error> {
    let mut has_dropped = false;
    loop {
        let full = match put() {
            Err(Error::SpaceFull(full)) => full,
            done => return done,
        };
        // Whether it is of use is asked once, before anything is dropped.
        let may_drop = !full.is_for_others()
            && (has_dropped
                || fit::would_fit(store, wanted.largest_bytes, full.system_free_bytes)?);
        has_dropped = may_drop && makes_room(store, wanted.shapes, wanted.leaving)?;
        if !has_dropped {
            return Err(Error::SpaceFull(full));
        }
    }
}

/// Drops a tuple for a put of tuples of `shapes`, while `leaving` others go, if that is the space's way and helps.
/// Returns whether it did.
pub(crate) fn makes_room(store: &Store, shapes: &[u32], leaving: usize) -> Result<bool, Error> {
    let more = shapes.len().saturating_sub(leaving);
    if !drops_oldest(store) {
        return Ok(false);
    }
    if !may_have_room(store, more)? {
        // What the dead hold may be dropped (rule L5).
        sweep::recall(store)?;
        if !may_have_room(store, more)? {
            return Ok(false);
        }
    }
    drop_oldest(store, shapes)
}

/// Whether so many more tuples would fit: now, or once all that may be dropped is, if that is the space's way.
pub(crate) fn may_have_room(store: &Store, more: usize) -> Result<bool, Error> {
    let excess = excess_of(store, more);
    Ok(excess == 0 || drops_oldest(store) && has_to_drop(store, excess)?)
}

/// How many tuples so many more would be too many.
fn excess_of(store: &Store, more: usize) -> u64 {
    if store.tuples_max == 0 {
        return 0;
    }
    let view = store.memory.view();
    let tuples = count::tuples_settled(&view).unwrap_or_else(|| count::tuples(&view));
    (tuples + more as u64).saturating_sub(store.tuples_max)
}

/// Whether there are so many tuples that may be dropped.
fn has_to_drop(store: &Store, wanted: u64) -> Result<bool, Error> {
    let view = store.memory.view();
    let mut wanted = wanted;
    for shape in 0..registry::count(&view) {
        let partition = Partition::of_shape(&view, shape);
        let droppable = if List::Locks.is_empty(partition) {
            u64::from(partition.page().load(LIVE))
        } else {
            count_unread(store, shape, wanted)?
        };
        wanted = wanted.saturating_sub(droppable);
        if wanted == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How many tuples of a shape no open transaction has read; looks no further than `enough`.
fn count_unread(store: &Store, shape: u32, enough: u64) -> Result<u64, Error> {
    let section = enter::enter(store, partition::scope_of(shape))?;
    let partition = Partition::of_shape(section.view(), shape);
    let limit = usize::try_from(enough).unwrap_or(usize::MAX);
    let count = unread(section.view(), partition).take(limit).count() as u64;
    section.finish()?;
    Ok(count)
}

/// Drops one tuple. Returns whether there was one to drop.
#[cold]
fn drop_oldest(store: &Store, shapes: &[u32]) -> Result<bool, Error> {
    for shape in shapes {
        if drop_oldest_of(store, *shape)? {
            return Ok(true);
        }
    }
    let view = store.memory.view();
    let live = |shape: &u32| Partition::of_shape(&view, *shape).page().load(LIVE);
    let mut others: Vec<u32> = (0..registry::count(&view)).collect();
    others.sort_by_key(|shape| std::cmp::Reverse(live(shape)));
    // Others may take the last ones of a shape meanwhile, or have read all: then it is the next one's turn.
    for shape in others {
        if drop_oldest_of(store, shape)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Drops the oldest tuple of a shape, if it has any that nobody holds, and that no open transaction has read (X3).
fn drop_oldest_of(store: &Store, shape: u32) -> Result<bool, Error> {
    let delivery = provide::retry(store, || {
        let mut section = enter::enter(store, partition::scope_of(shape))?;
        let partition = Partition::of_shape(section.view(), shape);
        let Some(first) = unread(section.view(), partition).next() else {
            section.finish()?;
            return Ok(None);
        };
        let kinds = registry::kinds_of(store, section.view(), shape)
            .ok_or_else(|| store::damaged(store, "a partition of a shape that does not exist"))?;
        let record = record::at(section.view(), first);
        links::unlink_found(&mut section, partition, Hit { record, place: None });
        let delivery = deliver::publish_removal(
            store,
            &mut section,
            partition,
            (first, EventKind::Expire),
            kinds.as_slice(),
        )?;
        links::free_tuple(store, &mut section, partition, record)?;
        journal::commit(store, &mut section)?;
        Ok(Some(delivery))
    })?;
    let Some(delivery) = delivery else { return Ok(false) };
    space_line(&store.memory.view()).double(DROPPED).fetch_add(1, Ordering::Relaxed);
    delivery.wake(store);
    Ok(true)
}

/// The records of a partition that no open transaction has read, oldest first.
fn unread<'v, 'm>(
    view: &'v View<'m>,
    partition: Partition<'m>,
) -> impl Iterator<Item = u32> + use<'v, 'm> {
    let mut at = partition.page().load(FIRST);
    let all = (0..partition.steps_max(view)).map_while(move |_| {
        let (reference, header) = (at, (at != 0).then(|| record::header(view, at))?);
        at = header.load(record::NEXT);
        Some((reference, header))
    });
    let unread = all.filter(|(_, header)| header.load(record::SHAPE) & record::READ_MARK == 0);
    unread.map(|(reference, _)| reference)
}

/// What tuples need together, in bytes.
fn bytes_of(incoming: &[(Incoming<'_>, u32)]) -> u64 {
    incoming.iter().map(|(one, _)| one.size.bytes as u64).sum()
}
