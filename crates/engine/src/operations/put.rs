//! `put`: storing a tuple (rules O2, B1, C2).

use std::time::Duration;

use tupelo_shm::Section;
use tupelo_tuple::TupleRef;
use tupelo_tuple::image::{self, ARITY_MAX, Sizer};

use crate::base::clock;
use crate::base::error::{Error, Need};
use crate::base::layout::EXTENT_BYTES;
use crate::base::terms::Terms;
use crate::index::links;
use crate::index::queue::{number, number_any};
use crate::journal;
use crate::recovery::full::{self, Wanted};
use crate::recovery::{abandoned, provide, quota, sweep};
use crate::store::blocks::{self, Small};
use crate::store::extension::{self, Extension, LEASE_END_MS, LEASE_NUMBER};
use crate::store::in_flight::InFlight;
use crate::store::incoming::Incoming;
use crate::store::partition::{self, DELAYED_COUNT, LEASED_COUNT, Partition, SUBSCRIBED, WAITING};
use crate::store::record::{self, Record, STATE};
use crate::store::registry::{self, Kinds};
use crate::store::{Store, changes, fullness, multi_shape};
use crate::time::{enter, wheel};
use crate::waiters::deliver::{self, Delivery};
use crate::waiters::events::publish;
use crate::waiters::{chain, grants, timer_leader};

/// Largest image: its offsets are 32 bits.
const IMAGE_BYTES_MAX: usize = u32::MAX as usize;

/// As [`crate::Engine::put`] says.
#[inline]
pub(crate) fn put<'f>(store: &Store, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
    let tuple: TupleRef<'f> = tuple.into();
    let mut sizer = Sizer::new();
    let shape = registry::shape_known(store, tuple, |field| sizer.add(field));
    let size = record::size(sizer, tuple.fields);
    // Where tuples are limited, there is more to be locked than a partition; and where there is a journal, it is told.
    let small = Small::of(size.bytes).filter(|_| store.is_plain);
    let (Some(shape), Some(small)) = (shape, small) else {
        return tuple.apart(move |tuple| put_any(store, tuple));
    };
    match put_small(store, tuple, (size, small), shape) {
        // Not `done => done`: that would copy all of it.
        Ok(()) => {
            sweep::see_to_crowd(store);
            Ok(())
        }
        Err(error) => tuple.apart(move |tuple| put_small_again(store, tuple, error)),
    }
}

/// Puts a small tuple of a shape that is known, once. Always part of its caller, who mostly knows the kinds of the fields:
/// that is a quarter of the time of a put. What is seldom needed is not, and gets no more than the tuple.
#[inline(always)]
fn put_small(
    store: &Store,
    tuple: TupleRef<'_>,
    (size, small): (image::Size, Small),
    shape: u32,
) -> Result<(), Error> {
    let (mut section, partition) = enter::enter_partition(store, shape)?;
    // Nearly always there is nobody. Subscriptions leave the tuple where it is: they hear of it when it is there.
    let (waiting, subscribed) = (partition.page().load(WAITING), partition.page().load(SUBSCRIBED));
    let is_awaited = waiting != subscribed
        && tuple
            .apart(|tuple| deliver::may_be_awaited(store, section.view(), partition, tuple.fields));
    let is_published_multi_shape =
        !is_awaited && multi_shape::concerns_multi_shape(&section, partition);
    if is_published_multi_shape {
        section = timer_leader::enter_multi_shape_on_time(store, section)?;
    }
    if is_awaited || is_published_multi_shape && !chain::only_subscribed(section.view()) {
        return tuple.apart(move |tuple| put_inside(store, section, tuple, shape));
    }
    let (reference, taken) = blocks::allocate_small(&mut section, &store.layout, partition, small)?;
    let record = record::at(section.view(), reference);
    record::fill(record.header, shape, size);
    record::write_image(section.view(), record, tuple.fields, size);
    number(section.view(), partition, record, None);
    links::link_youngest_with(store, &mut section, partition, (record, tuple.fields), [taken])?;
    // If others wait here, too, none of those who are filed has its tag.
    let is_published = waiting != 0 && waiting == subscribed;
    if is_published || is_published_multi_shape {
        let put = (partition, reference);
        return tuple.apart(move |tuple| publish::finish_published(store, section, put, tuple));
    }
    Ok(section.finish()?)
}

/// Puts a small tuple in a section that has its partition, whoever waits for it.
#[inline(never)]
fn put_inside<'m>(
    store: &'m Store,
    mut section: Section<'m>,
    tuple: TupleRef<'_>,
    shape: u32,
) -> Result<(), Error> {
    timer_leader::require_time_for_multi_shape(
        store,
        &section,
        Partition::of_shape(section.view(), shape),
    )?;
    let incoming = incoming(store, tuple)?;
    let (delivery, _) = store_tuple(store, &mut section, &incoming, shape)?;
    journal::finish(store, section)?;
    delivery.wake(store);
    Ok(())
}

/// Puts a tuple whose first attempt ended with `error`, if it was for something that can be had. Apart, so that
/// that one is no loop, before which the compiler would put what only errors need.
#[cold]
#[inline(never)]
fn put_small_again(store: &Store, tuple: TupleRef<'_>, error: Error) -> Result<(), Error> {
    if ends_with(store, &error) { Err(error) } else { put_any(store, tuple) }
}

/// Whether a put whose first attempt ended with `error` is over: it was for nothing that can be had.
fn ends_with(store: &Store, error: &Error) -> bool {
    match error {
        Error::Need(_) => false,
        Error::SpaceFull(_) => !fullness::drops_oldest(store),
        _ => true,
    }
}

/// Puts any tuple, until it has all that it needs.
#[inline(never)]
fn put_any(store: &Store, tuple: TupleRef<'_>) -> Result<(), Error> {
    let incoming = incoming(store, tuple)?;
    let shape = registry::shape(store, &incoming.kinds, incoming.fields.first())?;
    put_incoming(store, &incoming, shape).map(drop)
}

/// Stores a tuple that was looked at. Returns where it is.
#[inline(always)]
pub(crate) fn put_at(store: &Store, incoming: &Incoming<'_>, shape: u32) -> Result<u32, Error> {
    if incoming.is_long() {
        return put_incoming(store, incoming, shape);
    }
    match put_once(store, incoming, shape) {
        // Not `done => done`: that would copy all of it.
        Ok(reference) => Ok(reference),
        Err(error) => put_again(store, incoming, shape, error),
    }
}

/// As [`put_at`], until it has all that it needs.
pub(crate) fn put_incoming(
    store: &Store,
    incoming: &Incoming<'_>,
    shape: u32,
) -> Result<u32, Error> {
    let wanted = Wanted { shapes: &[shape], leaving: 0, largest_bytes: incoming.size.bytes };
    full::making_room(store, wanted, || {
        if incoming.is_long() {
            return put_long(store, incoming, shape);
        }
        provide::retry(store, || put_once(store, incoming, shape))
    })
}

#[cold]
#[inline(never)]
fn put_again(
    store: &Store,
    incoming: &Incoming<'_>,
    shape: u32,
    error: Error,
) -> Result<u32, Error> {
    if ends_with(store, &error) { Err(error) } else { put_incoming(store, incoming, shape) }
}

/// Checks a tuple against the limits of the space.
#[inline(always)]
pub(crate) fn incoming<'f>(store: &Store, tuple: TupleRef<'f>) -> Result<Incoming<'f>, Error> {
    let TupleRef { fields, class } = tuple;
    if fields.len() > ARITY_MAX {
        return Err(too_many_fields());
    }
    let (mut kinds, mut sizer) = (Kinds::new(), Sizer::new());
    kinds.read(fields, |field| sizer.add(field));
    kinds.set_class(class);
    let size = record::size(sizer, fields);
    // Every arena has room for what fits into an extent.
    if size.bytes > EXTENT_BYTES {
        require_room_for(store, size.bytes)?;
    }
    Ok(Incoming { fields, kinds, size, terms: None, takes_room: true })
}

#[cold]
fn require_room_for(store: &Store, bytes: usize) -> Result<(), Error> {
    let max_bytes = (store.layout.extents_max as usize * EXTENT_BYTES).min(IMAGE_BYTES_MAX);
    if bytes <= max_bytes {
        return Ok(());
    }
    Err(Error::TooLarge { bytes: bytes as u64, max_bytes: max_bytes as u64 })
}

#[inline(always)]
fn put_once(store: &Store, incoming: &Incoming<'_>, shape: u32) -> Result<u32, Error> {
    let (delivery, reference) = match &incoming.terms {
        None => {
            let (mut section, places) = quota::enter_to_put(store, partition::scope_of(shape))?;
            timer_leader::require_time_for_multi_shape(
                store,
                &section,
                Partition::of_shape(section.view(), shape),
            )?;
            quota::require_places(store, places, 1)?;
            let stored = store_tuple(store, &mut section, incoming, shape)?;
            journal::finish(store, section)?;
            stored
        }
        Some(terms) => put_once_on_terms(store, (incoming, terms), shape)?,
    };
    delivery.wake(store);
    Ok(reference)
}

/// As [`put_once`], with one look at the clock, which says when the terms end.
#[inline(always)]
fn put_once_on_terms<'m>(
    store: &'m Store,
    (incoming, terms): (&Incoming<'_>, &Terms),
    shape: u32,
) -> Result<(Delivery, u32), Error> {
    let (mut section, places): (Section<'m>, _) =
        quota::begin_put(store, partition::scope_of(shape))?;
    let partition = Partition::of_shape(section.view(), shape);
    let (now_ms, due_ms) = terms.now_and_first();
    if partition::is_behind_at(partition, now_ms) {
        return Err(Need::Time.into());
    }
    timer_leader::require_time_for_multi_shape(store, &section, partition)?;
    quota::require_places(store, places, 1)?;
    let stored = store_on_terms(store, &mut section, partition, (incoming, terms, due_ms), shape)?;
    journal::finish(store, section)?;
    Ok(stored)
}

/// Stores a tuple in a section that holds its partition, and has a place for it. Returns where, too.
#[inline(always)]
pub(crate) fn store_tuple<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    incoming: &Incoming<'_>,
    shape: u32,
) -> Result<(Delivery, u32), Error> {
    let partition = Partition::of_shape(section.view(), shape);
    if let Some(terms) = &incoming.terms {
        let (_, due_ms) = terms.now_and_first();
        return store_on_terms(store, section, partition, (incoming, terms, due_ms), shape);
    }
    let record = fill(store, section, partition, incoming.size, shape)?;
    record::write_image(section.view(), record, incoming.fields, incoming.size);
    Ok((publish_at_once(store, section, partition, record, incoming)?, record.reference))
}

/// As [`store_tuple`], for a tuple that is put on terms, the first of which ends at `due_ms`.
#[inline(never)]
fn store_on_terms<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    (incoming, terms, due_ms): (&Incoming<'_>, &Terms, u64),
    shape: u32,
) -> Result<(Delivery, u32), Error> {
    let record = if incoming.is_long() {
        fill(store, section, partition, incoming.size, shape)?
    } else {
        fill_extended(store, section, partition, incoming, shape)?
    };
    record::write_image(section.view(), record, incoming.fields, incoming.size);
    let on_terms = (incoming, terms, due_ms);
    Ok((publish_on_terms(store, section, partition, record, on_terms)?, record.reference))
}

/// Allocates a record and fills all but its image.
#[inline(always)]
fn fill<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    size: image::Size,
    shape: u32,
) -> Result<Record<'m>, Error> {
    let reference = blocks::allocate(section, &store.layout, partition, size.bytes)?;
    let record = record::at(section.view(), reference);
    record::fill(record.header, shape, size);
    Ok(record)
}

/// As [`fill`], with the extension in the same block.
#[inline]
fn fill_extended<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    incoming: &Incoming<'_>,
    shape: u32,
) -> Result<Record<'m>, Error> {
    let bytes = incoming.size.bytes;
    let both_bytes = extension::bytes_with(bytes);
    let reference = blocks::allocate(section, &store.layout, partition, both_bytes)?;
    let record = record::at(section.view(), reference);
    record::fill(record.header, shape, incoming.size);
    extension::begin_inside(section.view(), record, bytes);
    Ok(record)
}

/// Gives a filled record its place in the order, and hands it to a waiter or makes it findable.
fn publish<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    incoming: &Incoming<'_>,
) -> Result<Delivery, Error> {
    match &incoming.terms {
        None => publish_at_once(store, section, partition, record, incoming),
        Some(terms) => {
            let (_, due_ms) = terms.now_and_first();
            publish_on_terms(store, section, partition, record, (incoming, terms, due_ms))
        }
    }
}

/// As [`publish()`], for a tuple that is put on no terms.
#[inline(always)]
fn publish_at_once<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    incoming: &Incoming<'_>,
) -> Result<Delivery, Error> {
    number_any(store, section.view(), partition, record, None);
    let delivery = deliver::deliver_new(store, section, partition, record.reference, incoming)?;
    if !delivery.taken() {
        links::link_youngest(store, section, partition, record, incoming.fields)?;
    }
    changes::put(store, section, record);
    Ok(delivery)
}

/// Stores a large tuple: its bytes are copied between two sections, so that nobody waits for them.
#[cold]
#[inline(never)]
fn put_long(store: &Store, incoming: &Incoming<'_>, shape: u32) -> Result<u32, Error> {
    let scope = partition::scope_of(shape);
    let (reference, in_flight) = provide::retry(store, || {
        let (mut section, places) = quota::begin_put(store, scope)?;
        let partition = Partition::of_shape(section.view(), shape);
        quota::require_places(store, places, 1)?;
        let Record { reference, header } =
            fill(store, &mut section, partition, incoming.size, shape)?;
        section.set(header, record::STATE, record::RESERVED);
        let in_flight = InFlight::begin(&mut section, reference)?;
        section.commit()?;
        Ok((reference, in_flight))
    })?;
    // Reserved for this thread: if it dies here, the sweeper frees the block.
    record::write_long_image(&store.memory.view(), reference, incoming.fields, incoming.size);
    let published = provide::retry(store, || {
        let (mut section, places) = quota::enter_to_put(store, scope)?;
        let partition = Partition::of_shape(section.view(), shape);
        timer_leader::require_time_for_multi_shape(store, &section, partition)?;
        // Others may have put while the bytes were copied: what is reserved is no tuple yet.
        quota::require_places(store, places, 1)?;
        let record = record::at(section.view(), reference);
        let delivery = publish(store, &mut section, partition, record, incoming)?;
        in_flight.end(&mut section);
        journal::commit(store, &mut section)?;
        Ok(delivery)
    });
    match published {
        Ok(delivery) => {
            delivery.wake(store);
            Ok(reference)
        }
        Err(error) => {
            let freed = provide::retry(store, || {
                let mut section = Section::enter(&store.memory, scope)?;
                let partition = Partition::of_shape(section.view(), shape);
                links::free_record(store, &mut section, partition, reference)?;
                in_flight.end(&mut section);
                section.commit()?;
                Ok(())
            });
            freed.inspect_err(|_| abandoned::abandon_in_flight(store, &in_flight))?;
            Err(error)
        }
    }
}

#[cold]
fn too_many_fields() -> Error {
    Error::LimitExceeded { what: "fields in a tuple", limit: ARITY_MAX }
}

/// As `publish`, for a tuple that is put on terms, the first of which ends at `due_ms`.
#[inline(always)]
pub(crate) fn publish_on_terms<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    (incoming, terms, due_ms): (&Incoming<'_>, &Terms, u64),
) -> Result<Delivery, Error> {
    number_any(store, section.view(), partition, record, None);
    let extension = extension::ensure(section, &store.layout, partition, record.header)?;
    // Nobody can reach the record yet (R2).
    extension.init64(LEASE_NUMBER, terms.number);
    if terms.after.is_some() {
        return publish_later(store, section, partition, record, (extension, terms, due_ms));
    }
    let ends = terms.lease.is_some();
    extension.init64(LEASE_END_MS, if ends { due_ms } else { 0 });
    let delivery = deliver::deliver_new(store, section, partition, record.reference, incoming)?;
    let leased = partition.page().place(LEASED_COUNT);
    let leased = (leased, leased.load().wrapping_add(u32::from(ends)));
    if delivery.taken() {
        section.set_words([leased]);
        changes::put(store, section, record);
        return Ok(delivery);
    }
    links::link_youngest_with(store, section, partition, (record, incoming.fields), [leased])?;
    changes::put(store, section, record);
    if ends {
        let own = (record.reference, extension);
        wheel::arm_fresh(store, section, partition, own, due_ms)?;
    }
    Ok(delivery)
}

/// As [`publish_on_terms`], for a tuple that is visible at `due_ms`.
#[cold]
#[inline(never)]
pub(crate) fn publish_later<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    record: Record<'m>,
    (extension, terms, due_ms): (Extension<'m>, &Terms, u64),
) -> Result<Delivery, Error> {
    grants::require_grant(store, section.view())?;
    if let Some(lease) = terms.lease {
        extension.init64(LEASE_END_MS, milliseconds(lease));
        section.add(partition.page(), LEASED_COUNT, 1);
    }
    section.set(record.header, STATE, record::DELAYED);
    section.add(partition.page(), DELAYED_COUNT, 1);
    wheel::arm(store, section, partition, record.reference, due_ms)?;
    changes::put(store, section, record);
    Ok(Delivery::default())
}

/// A length in milliseconds, at least one, and no longer than the clock.
pub(crate) fn milliseconds(length: Duration) -> u64 {
    let ms = u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    ms.clamp(1, clock::TIME_MS_MAX)
}
