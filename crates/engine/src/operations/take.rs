//! `try_take` and `take_or_wait`: removing the match that the order asks for (rules O3, O4, T1, T2, C3).

use std::sync::Arc;

use tupelo_shm::Section;
use tupelo_tuple::{Kind, TemplateRef, TupleView};

use crate::Engine;
use crate::base::error::Error;
use crate::base::visitor::visitor_once;
use crate::base::want::Want;
use crate::index::find::{Hit, Order, Purpose, Search};
use crate::index::links;
use crate::journal;
use crate::operations::bulk;
use crate::operations::by_age::{self, Limit};
use crate::operations::filtered::{self, FilterResults, has_condition};
use crate::operations::targets::{self, Target};
use crate::operations::wait::{self, Outcome};
use crate::recovery::{abandoned, enter, held, learning, provide, sweep};
use crate::store::in_flight::InFlight;
use crate::store::partition::{self, HELD, Partition, count_take};
use crate::store::record::{self, ImageBuffer, Record};
use crate::store::registry::{self, Kinds};
use crate::store::{self, Store};
use crate::waiters::chain;
use crate::waiters::deliver::{self, Delivery};
use crate::waiters::events::{EventKind, Happening};

/// As [`crate::Engine::try_take`] says.
#[inline(always)]
pub(crate) fn try_take<R, E: From<Error>>(
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
        let search = Search::by_key(one.patterns, &kinds, key, store.seed, Purpose::Take);
        return take_from(store, shape, &search, (order, Limit::NONE), visitor);
    }
    TemplateRef::apart(template, move |template| take_multi_shape(store, template, order, visitor))
}

/// As [`crate::Engine::take_or_wait`] says.
#[inline]
pub(crate) fn take_or_wait<R, E: From<Error>>(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    order: Order,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Outcome<R>, E> {
    let mut kinds = Kinds::new();
    if let [one] = template
        && let Some(key) = kinds.select(one, engine.seed)
    {
        let Some(shape) = registry::find_shape(engine, &kinds) else {
            let waiter =
                move |template: &[TemplateRef<'_>]| wait::waiter(engine, template, Want::Take);
            return Ok(Outcome::Waits(TemplateRef::apart(template, waiter)?));
        };
        let search = Search::by_key(one.patterns, &kinds, key, engine.seed, Purpose::Take);
        return take_or_wait_at(engine, shape, &search, order, visitor);
    }
    TemplateRef::apart(template, move |template| {
        take_multi_shape_or_wait(engine, template, order, visitor)
    })
}

/// As [`crate::Engine::take_or_wait`], whatever the template.
#[cold]
fn take_multi_shape_or_wait<R, E: From<Error>>(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    order: Order,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Outcome<R>, E> {
    if has_condition(template) {
        let take = |known: &mut FilterResults| {
            filtered::take_filtered(engine, template, order, known, visitor)
        };
        return filtered::found_or_waits(engine, template, Want::Take, take);
    }
    match take_multi_shape(engine, template, order, visitor)? {
        Some(result) => Ok(Outcome::Done(result)),
        None => Ok(Outcome::Waits(wait::waiter(engine, template, Want::Take)?)),
    }
}

/// Takes from one partition, or joins the wait queue there.
#[inline]
fn take_or_wait_at<R, E: From<Error>>(
    engine: &Arc<Engine>,
    shape: u32,
    search: &Search<'_>,
    order: Order,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Outcome<R>, E> {
    let (section, partition) = enter::enter_partition(engine, shape)?;
    let found = search.pick(section.view(), partition, order, store::random_for(engine, order));
    if let Some(hit) = found.hit {
        return take_hit(engine, section, partition, search, (hit, found.learn), visitor)
            .map(Outcome::Done);
    }
    let waiter = search.apart(move |search| wait::wait_in(engine, section, partition, search))?;
    learn_if(engine, found.learn, partition.scope())?;
    Ok(Outcome::Waits(waiter))
}

/// Takes from one partition, what the limit admits.
#[inline(always)]
fn take_from<R, E: From<Error>>(
    store: &Store,
    shape: u32,
    search: &Search<'_>,
    (order, limit): (Order, Limit),
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    let (section, partition) = enter::enter_partition(store, shape)?;
    let found = search.pick(section.view(), partition, order, store::random_for(store, order));
    let found = limit.admitted(found);
    let Some(hit) = found.hit else {
        let somebody_holds = limit.is_none() && partition.hides_some();
        section.finish().map_err(Error::from)?;
        sweep::see_to_crowd(store);
        if somebody_holds {
            return search.apart(move |search| take_recalled(store, shape, search, order, visitor));
        }
        return Ok(learn_if(store, found.learn, partition.scope()).map(|()| None)?);
    };
    take_hit(store, section, partition, search, (hit, found.learn), visitor).map(Some)
}

/// Takes what a search has found in the partition of `section`; `learn` says what else it has shown.
#[inline(always)]
fn take_hit<'m, R, E: From<Error>>(
    store: &'m Store,
    mut section: Section<'m>,
    partition: Partition<'m>,
    search: &Search<'_>,
    (hit, learn): (Hit<'m>, u32),
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<R, E> {
    let scope = partition.scope();
    // Who is told of it may need room first: then the tuple is held until there is.
    if record::must_be_held(hit.record.header, search.is_refusable)
        || chain::watching_removals(&section, partition)
        || store.journal.is_on()
    {
        // Not the search itself: it would have to be in memory then, for every take.
        let kinds = (search.kinds, search.is_refusable);
        let result = take_hit_published(store, section, partition, kinds, hit, visitor);
        // It is taken: that an index could not be had must not lose it.
        let _ = learn_if(store, learn, scope);
        return result;
    }
    let mut buffer = ImageBuffer::new();
    let tuple = buffer.copy_of(section.view(), hit.record, search.kinds);
    links::unlink_and_free(store, &mut section, partition, hit)?;
    count_take(partition);
    section.finish().map_err(Error::from)?;
    sweep::see_to_crowd(store);
    // As above.
    let _ = learn_if(store, learn, scope);
    visitor(tuple)
}

/// As [`take_hit`], of what somebody is told of: at once, if only the journal is, and has room.
#[cold]
#[inline(never)]
fn take_hit_published<'m, R, E: From<Error>>(
    store: &'m Store,
    mut section: Section<'m>,
    partition: Partition<'m>,
    (kinds, is_refusable): (&[Kind], bool),
    hit: Hit<'m>,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<R, E> {
    if record::must_be_held(hit.record.header, is_refusable)
        || chain::watching_removals(&section, partition)
        || !journal::has_room_for_take(store, section.view())
    {
        let reference = hit.record.reference;
        return take_held(store, section, partition, reference, kinds, visitor);
    }
    let mut buffer = ImageBuffer::new();
    let tuple = buffer.copy_of(section.view(), hit.record, kinds);
    links::unlink_found(&mut section, partition, hit);
    free_journalled(store, &mut section, partition, hit.record)?;
    journal::commit_take(store, &mut section)?;
    drop(section);
    sweep::see_to_crowd(store);
    visitor(tuple)
}

/// Takes from one partition after what the dead held has come back to it. Apart, so that the first attempt is
/// no loop, before which the compiler would put what only the second needs.
#[cold]
#[inline(never)]
fn take_recalled<R, E: From<Error>>(
    store: &Store,
    shape: u32,
    search: &Search<'_>,
    order: Order,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    sweep::recall(store)?;
    let section = enter::enter(store, partition::scope_of(shape))?;
    let partition = Partition::of_shape(section.view(), shape);
    let found = search.pick(section.view(), partition, order, store::random(store));
    let learn = || learn_if(store, found.learn, partition.scope());
    if found.reference() == 0 {
        section.finish().map_err(Error::from)?;
        return Ok(learn().map(|()| None)?);
    }
    let result = take_held(store, section, partition, found.reference(), search.kinds, visitor);
    let _ = learn();
    result.map(Some)
}

/// Takes a record out of its partition and frees it.
#[inline]
pub(crate) fn remove<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    let record = record::at(section.view(), reference);
    links::unlink_found(section, partition, Hit { record, place: None });
    free_taken(store, section, partition, record, kinds)
}

/// Frees a record that was taken out of every list.
#[inline(always)]
pub(crate) fn free_taken<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    let taken = (record.reference, EventKind::Take);
    let delivery = deliver::publish_removal(store, section, partition, taken, kinds)?;
    free_journalled(store, section, partition, record)?;
    Ok(delivery)
}

/// As [`free_taken`], for a record whose removal was told.
#[inline(always)]
pub(crate) fn free_journalled<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
) -> Result<(), Error> {
    links::free_tuple(store, section, partition, record)?;
    count_take(partition);
    Ok(())
}

/// Builds an index over the fields of `learn`, if there are any.
#[inline]
pub(crate) fn learn_if(store: &Store, learn: u32, scope: u32) -> Result<(), Error> {
    if learn == 0 { Ok(()) } else { learning::learn(store, scope, learn) }
}

/// Takes a record out of its partition, lets the visitor read a copy of it, and frees it; or puts it back if the visitor
/// fails.
#[cold]
#[inline(never)]
fn take_held<'m, R, E: From<Error>>(
    store: &'m Store,
    mut section: Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    kinds: &[Kind],
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<R, E> {
    let in_flight = take_in_hand(&mut section, partition, reference)?;
    section.commit().map_err(Error::from)?;
    drop(section);
    visit(store, partition.scope(), reference, (&in_flight, false), kinds, visitor)
}

/// Gives a copy of a record that this thread holds to `visitor`, then frees the record, or puts it back if the visitor fails and
/// it is no `copy`.
pub(crate) fn visit<R, E: From<Error>>(
    store: &Store,
    scope: u32,
    reference: u32,
    (in_flight, copy): (&InFlight, bool),
    kinds: &[Kind],
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<R, E> {
    let result = {
        let view = store.memory.view();
        let (shape, _) = record::shape_of(record::header(&view, reference));
        let mut buffer = ImageBuffer::new();
        let tuple = buffer.copy(&view, reference, kinds);
        visitor(tuple.of_class(registry::class_of(store, &view, shape)))
    };
    let goes_back = result.is_err() && !copy;
    let settled = provide::retry(store, || {
        let mut section = Section::enter(&store.memory, scope)?;
        let partition = Partition::of_scope(section.view(), scope);
        in_flight.end(&mut section);
        let delivery = if goes_back {
            held::give_back(
                store,
                &mut section,
                partition,
                (reference, Happening::Unpublished),
                kinds,
            )?
        } else {
            held::free_held(store, &mut section, partition, reference, kinds, !copy)?
        };
        journal::commit(store, &mut section)?;
        Ok(delivery)
    });
    let delivery = settled.inspect_err(|_| abandoned::abandon_in_flight(store, in_flight))?;
    delivery.wake(store);
    result
}

/// Takes from the shape that has the match that `order` asks for.
///
/// The shapes are looked at one after the other. That none had a match is true of no one moment, so the last look
/// has all of them locked.
#[cold]
fn take_multi_shape<R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    order: Order,
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    if has_condition(template) {
        return filtered::take_filtered(
            store,
            template,
            order,
            &mut FilterResults::default(),
            visitor,
        );
    }
    let mut visit = visitor_once(visitor);
    let targets = targets::targets(store, template, Purpose::Take).all;
    let taken = by_age::in_turn(store, &targets, order, |target, limit| {
        let class = target.kinds.class();
        match target.search(store.seed) {
            Some(search) => {
                let with_class = |tuple: TupleView<'_>| visit(tuple.of_class(class));
                take_from(store, target.shape, &search, (order, limit), with_class)
            }
            None => take_from_union(store, target, (order, limit), &mut visit),
        }
    })?;
    if taken.is_some() {
        return Ok(taken);
    }
    bulk::take_chosen(store, template, order, visit)
}

/// Takes from a shape that several alternatives of a template can match.
fn take_from_union<R, E: From<Error>>(
    store: &Store,
    target: &Target<'_>,
    (order, limit): (Order, Limit),
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    let section = enter::enter(store, partition::scope_of(target.shape))?;
    let partition = Partition::of_shape(section.view(), target.shape);
    let random = store::random_for(store, order);
    let (reference, learn) = target.pick_noting(section.view(), order, random, store.seed);
    let taken = if reference == 0 || !limit.admits(record::header(section.view(), reference)) {
        section.finish().map_err(Error::from)?;
        None
    } else {
        let kinds = target.kinds.as_slice();
        Some(take_held(store, section, partition, reference, kinds, visitor)?)
    };
    // It is done: that an index could not be had must not undo it.
    let _ = learn_if(store, learn, partition::scope_of(target.shape));
    Ok(taken)
}

/// Takes a record out of its partition, which the section holds, into the hands of this thread.
pub(crate) fn take_in_hand<'m>(
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
) -> Result<InFlight, Error> {
    // Counted in the new place first: at no moment does the space seem to have room (`count::tuples`).
    section.add(partition.page(), HELD, 1);
    links::unlink(section, partition, reference);
    links::hold(section, reference, record::TAKEN);
    InFlight::begin(section, reference)
}
