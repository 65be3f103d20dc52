//! `try_read` and `read_or_wait`: copying a match without storing anything in shared memory (rules O1, O3, O4).
//!
//! A reader notes the partition's sequence, finds and copies, and checks that the sequence is the same and
//! even: then nobody was inside meanwhile and all it saw belongs together. What it sees in a race may be
//! garbage; views bound every access, walks are bounded by the number of records, and the copy is used
//! only after the check. After a few failed attempts it takes the lock.

use std::sync::Arc;

use tupelo_tuple::{TemplateRef, TupleView};

use crate::Engine;
use crate::base::error::Error;
use crate::base::visitor::visitor_once;
use crate::base::want::Want;
use crate::index::find::{Order, Purpose, Search};
use crate::operations::by_age::Limit;
use crate::operations::filtered::{self, FilterResults, has_condition};
use crate::operations::targets::{self, Target};
use crate::operations::versioned_reference::{self, TRIED_BYTES_MAX};
use crate::operations::wait::{self, Outcome};
use crate::operations::{bulk, by_age, take};
use crate::recovery::{enter, sweep};
use crate::store::partition::{self, HELD, Partition};
use crate::store::record::{self, ImageBuffer};
use crate::store::registry::{self, Kinds};
use crate::store::{self, Store};

/// Attempts without the lock. A section is about as long as an attempt: whoever fails more often than this
/// is among constant writers, and waits less in the queue for the lock.
const ATTEMPTS: u32 = 4;

/// What a lookup that finds nothing says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Miss {
    /// That there is nothing, also nothing that a dead process holds (rule L5).
    Final,
    /// Only that its caller should join the wait queue.
    Preliminary,
}

/// As [`crate::Engine::try_read`] says.
#[inline(always)]
pub(crate) fn try_read<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    order: Order,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    let mut kinds = Kinds::new();
    if let [one] = template
        && let Some(key) = kinds.select(one, store.seed)
    {
        let Some(shape) = registry::find_shape(store, &kinds) else {
            return Ok(store::require_sound(store).map(|()| None)?);
        };
        let search = Search::by_key(one.patterns, &kinds, key, store.seed, Purpose::Read);
        return read_from(store, shape, &search, (order, Miss::Final, Limit::NONE), visitor);
    }
    TemplateRef::apart(template, move |template| read_multi_shape(store, template, order, visitor))
}

/// As [`crate::Engine::read_or_wait`] says.
#[inline]
pub(crate) fn read_or_wait<R, E: From<Error>>(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    order: Order,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Outcome<R>, E> {
    let mut kinds = Kinds::new();
    let read = if let [one] = template
        && let Some(key) = kinds.select(one, engine.seed)
    {
        match registry::find_shape(engine, &kinds) {
            Some(shape) => {
                let search = Search::by_key(one.patterns, &kinds, key, engine.seed, Purpose::Read);
                let how = (order, Miss::Preliminary, Limit::NONE);
                read_from(engine, shape, &search, how, visitor)?
            }
            None => None,
        }
    } else {
        let read = move |template: &[TemplateRef<'_>]| {
            read_multi_shape_or_wait(engine, template, order, visitor)
        };
        return TemplateRef::apart(template, read);
    };
    match read {
        Some(result) => Ok(Outcome::Done(result)),
        None => TemplateRef::apart(template, move |template| {
            Ok(Outcome::Waits(wait::waiter(engine, template, Want::Read)?))
        }),
    }
}

/// As [`crate::Engine::read_or_wait`], whatever the template.
#[cold]
fn read_multi_shape_or_wait<R, E: From<Error>>(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    order: Order,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Outcome<R>, E> {
    if has_condition(template) {
        let read = |known: &mut FilterResults| {
            filtered::read_filtered(engine, template, order, known, visitor)
        };
        return filtered::found_or_waits(engine, template, Want::Read, read);
    }
    match read_multi_shape(engine, template, order, visitor)? {
        Some(result) => Ok(Outcome::Done(result)),
        None => Ok(Outcome::Waits(wait::waiter(engine, template, Want::Read)?)),
    }
}

#[inline(always)]
fn read_from<R, E: From<Error>>(
    store: &Store,
    shape: u32,
    search: &Search<'_>,
    (order, miss, limit): (Order, Miss, Limit),
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    let view = store.memory.view();
    let partition = Partition::of_shape(&view, shape);
    let random = store::random_for(store, order);
    let mut buffer = ImageBuffer::new();
    for _ in 0..ATTEMPTS {
        let Some(sequence) = view.begin_read(partition.scope()) else {
            std::hint::spin_loop();
            continue;
        };
        let found = limit.admitted(search.pick(&view, partition, order, random));
        if partition::is_behind(partition) {
            // What was found may have ended, and what was not may be there.
            (store.callbacks.catch_up)(store, partition.scope())?;
            continue;
        }
        let Some(hit) = found.hit else {
            if view.unchanged(partition.scope(), sequence) && !view.violated() {
                if miss == Miss::Final && partition.page().load(HELD) != 0 {
                    sweep::recall(store)?;
                    break;
                }
                take::learn_if(store, found.learn, partition.scope())?;
                return Ok(None);
            }
            view.forgive();
            continue;
        };
        let bytes = record::image_bytes(hit.record.header);
        if bytes > ImageBuffer::SHORT_BYTES {
            // Whether that is its size is known before anything is allocated for it.
            if !view.unchanged(partition.scope(), sequence) || view.violated() {
                view.forgive();
                continue;
            }
            if bytes > TRIED_BYTES_MAX {
                break;
            }
        }
        let tuple = buffer.copy_sized(&view, hit.record, bytes, search.kinds);
        if view.unchanged(partition.scope(), sequence) && !view.violated() {
            let result = visitor(tuple)?;
            take::learn_if(store, found.learn, partition.scope())?;
            return Ok(Some(result));
        }
        view.forgive();
    }
    search.apart(move |search| read_locked(store, shape, search, (order, miss, limit), visitor))
}

/// Reads under the lock: after lost races, and what is too large to be copied optimistically.
#[cold]
#[inline(never)]
fn read_locked<R, E: From<Error>>(
    store: &Store,
    shape: u32,
    search: &Search<'_>,
    (order, miss, limit): (Order, Miss, Limit),
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    let Some(kinds) = registry::kinds_of(store, &store.memory.view(), shape) else {
        return Err(store::damaged(store, "a shape that was found does not exist").into());
    };
    let scope = partition::scope_of(shape);
    let copy = versioned_reference::copy_match(store, |large| {
        let mut section = enter::enter(store, scope)?;
        let partition = Partition::of_shape(section.view(), shape);
        let random = store::random_for(store, order);
        let mut found = limit.admitted(search.pick(section.view(), partition, order, random));
        if found.hit.is_none() && miss == Miss::Final && partition.hides_some() {
            // Known only now, perhaps: locking has undone what a process left here that died inside.
            drop(section);
            sweep::recall(store)?;
            section = enter::enter(store, scope)?;
            found = limit.admitted(search.pick(section.view(), partition, order, random));
        }
        let place = found.hit.map(|hit| (shape, hit.record.reference));
        let seen = place.map(|place| large.of(section.view(), place, &kinds));
        section.commit()?;
        drop(section);
        take::learn_if(store, found.learn, scope)?;
        Ok(seen)
    })?;
    copy.map(|copy| visitor(copy.view())).transpose()
}

/// Reads from the shape that has the match that `order` asks for; the last look is as in `take_multi_shape`.
#[cold]
fn read_multi_shape<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    order: Order,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    if has_condition(template) {
        return filtered::read_filtered(
            store,
            template,
            order,
            &mut FilterResults::default(),
            visitor,
        );
    }
    let mut visit = visitor_once(visitor);
    let targets = targets::targets(store, template, Purpose::Read).all;
    let read = by_age::in_turn(store, &targets, order, |target, limit| {
        let class = target.kinds.class();
        match target.search(store.seed) {
            Some(search) => {
                let with_class = |tuple: TupleView<'_>| visit(tuple.of_class(class));
                // A miss is final below.
                let how = (order, Miss::Preliminary, limit);
                read_from(store, target.shape, &search, how, with_class)
            }
            None => read_from_union(store, target, (order, limit), &mut visit),
        }
    })?;
    if read.is_some() {
        return Ok(read);
    }
    bulk::read_chosen(store, template, order, visit)
}

/// Reads from a shape that several alternatives of a template can match.
fn read_from_union<R, E: From<Error>>(
    store: &Store,
    target: &Target<'_>,
    (order, limit): (Order, Limit),
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    let scope = partition::scope_of(target.shape);
    let copy = versioned_reference::copy_match(store, |large| {
        let mut section = enter::enter(store, scope)?;
        let random = store::random_for(store, order);
        let (reference, learn) = target.pick_noting(section.view(), order, random, store.seed);
        let place = (target.shape, reference);
        let is_one = reference != 0 && limit.admits(record::header(section.view(), reference));
        let seen = is_one.then(|| large.of(section.view(), place, &target.kinds));
        section.commit()?;
        drop(section);
        take::learn_if(store, learn, scope)?;
        Ok(seen)
    })?;
    copy.map(|copy| visitor(copy.view())).transpose()
}
