//! Atomic check-and-change: `swap` and `put_if_absent` (rule O8).

use tupelo_shm::Section;
use tupelo_tuple::{TemplateRef, TupleRef, TupleView};

use crate::base::error::Error;
use crate::index::find::{Order, Purpose};
use crate::index::links;
use crate::journal;
use crate::operations::bulk::Found;
use crate::operations::filtered::{self, Among, FilterResults, Filtered};
use crate::operations::moment::{self, Look};
use crate::operations::take_many::Identity;
use crate::operations::targets::{self, Targets, TupleCopy};
use crate::operations::{at_match, bulk, put, take};
use crate::recovery::full::{self, Wanted};
use crate::recovery::provide;
use crate::recovery::quota::{self, Places};
use crate::store::incoming::Incoming;
use crate::store::partition::{self, Partition};
use crate::store::{Store, record, registry, step};
use crate::waiters::deliver::{self, Delivery};
use crate::waiters::events::EventKind;
use crate::waiters::timer_leader;

/// What came of looking for a tuple to replace.
enum Swap {
    /// There is none.
    Nothing,
    /// Nothing was replaced: the visitor has to see this one first.
    Unseen(Identity, TupleCopy),
    /// It was this one.
    Done(TupleCopy, Delivery),
}

/// As [`crate::Engine::put_if_absent`] says.
pub(crate) fn put_if_absent<'f>(
    store: &Store,
    tuple: impl Into<TupleRef<'f>>,
    unless: &[TemplateRef<'_>],
) -> Result<bool, Error> {
    let incoming = put::incoming(store, tuple.into())?;
    let shape = registry::shape(store, &incoming.kinds, incoming.fields.first())?;
    Ok(store_if_absent(store, &incoming, shape, unless)?.is_some())
}

/// Stores a tuple that was looked at, unless something matches `unless`. Returns where it is.
pub(crate) fn store_if_absent(
    store: &Store,
    incoming: &Incoming<'_>,
    shape: u32,
    unless: &[TemplateRef<'_>],
) -> Result<Option<u32>, Error> {
    let wanted = Wanted { shapes: &[shape], leaving: 0, largest_bytes: incoming.size.bytes };
    let stored = full::making_room(store, wanted, || {
        with_targets(store, unless, Purpose::Read, shape, |section, targets, places| {
            if targets.all.iter().any(|target| bulk::has_match(store, section, target)) {
                return Ok(None);
            }
            quota::require_places(store, places, 1)?;
            store_here(store, section, incoming, shape).map(Some)
        })
    })?;
    let Some((delivery, reference)) = stored else { return Ok(None) };
    delivery.wake(store);
    Ok(Some(reference))
}

/// As [`crate::Engine::try_swap`] says.
pub(crate) fn try_swap<'f, R, E: From<Error>>(
    store: &Store,
    template: &[TemplateRef<'_>],
    to: impl Into<TupleRef<'f>>,
    mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
) -> Result<Option<R>, E> {
    let mut incoming = put::incoming(store, to.into())?;
    incoming.takes_room = false;
    let shape = registry::shape(store, &incoming.kinds, incoming.fields.first())?;
    let mut accepted: Option<(Identity, R)> = None;
    loop {
        let seen = accepted.as_ref().map(|(identity, _)| *identity);
        let swapped = swap_seen(store, template, &incoming, shape, seen)?;
        match (swapped, accepted.take()) {
            (Swap::Nothing, _) => return Ok(None),
            (Swap::Unseen(identity, copy), _) => {
                accepted = Some((identity, visitor(copy.view())?));
            }
            (Swap::Done(_, wakes), Some((_, result))) => {
                wakes.wake(store);
                return Ok(Some(result));
            }
            (Swap::Done(copy, wakes), None) => {
                wakes.wake(store);
                return visitor(copy.view()).map(Some);
            }
        }
    }
}

/// Replaces the oldest match, unless it has a field that a visitor may refuse, and is not the one that was `seen`.
fn swap_seen(
    store: &Store,
    template: &[TemplateRef<'_>],
    incoming: &Incoming<'_>,
    shape: u32,
    seen: Option<Identity>,
) -> Result<Swap, Error> {
    with_targets(store, template, Purpose::Take, shape, |section, targets, _| {
        let first = at_match::chosen(store, section, &targets.all, Order::Fifo);
        let Some(Found { target, reference }) = first else { return Ok(Swap::Nothing) };
        let copy = TupleCopy::new(section.view(), reference, target.kinds);
        let identity = Identity::of(section.view(), target, reference);
        let header = record::header(section.view(), reference);
        let is_refusable = record::must_be_held(header, target.kinds.are_refusable());
        if seen != Some(identity) && (seen.is_some() || is_refusable) {
            return Ok(Swap::Unseen(identity, copy));
        }
        let partition = Partition::of_shape(section.view(), target.shape);
        section.focus(partition.scope());
        links::unlink(section, partition, reference);
        let taken = (reference, EventKind::Take);
        let mut wakes =
            deliver::publish_removal(store, section, partition, taken, target.kinds.as_slice())?;
        // Frees last: a block that this section frees must not be filled in it again.
        wakes.join(store_here(store, section, incoming, shape)?.0);
        step::begin(section)?;
        section.focus(partition.scope());
        let record = record::at(section.view(), reference);
        take::free_journalled(store, section, partition, record)?;
        Ok(Swap::Done(copy, wakes))
    })
}

fn store_here<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    incoming: &Incoming<'_>,
    shape: u32,
) -> Result<(Delivery, u32), Error> {
    step::begin(section)?;
    section.focus(partition::scope_of(shape));
    put::store_tuple(store, section, incoming, shape)
}

/// Runs `operation`, which puts a tuple, while the partitions that `template` concerns, and that of `shape`, are locked.
fn with_targets<'e, R>(
    store: &'e Store,
    template: &[TemplateRef<'_>],
    purpose: Purpose,
    shape: u32,
    mut operation: impl FnMut(&mut Section<'e>, &Targets<'_>, Places) -> Result<R, Error>,
) -> Result<R, Error> {
    timer_leader::catch_up_for_multi_shape(store)?;
    filtered::filtering(store, template, &mut FilterResults::default(), |filter_results| {
        provide::retry(store, || {
            let targets = || targets::targets_filtered(store, template, purpose, filter_results);
            let lock = |targets: &Targets<'_>| {
                let shapes = targets.all.iter().map(|target| target.shape);
                targets::lock_to_put(store, shapes.chain([shape]), 2).map(Some)
            };
            let how = Look { targets, lock, recalls: true };
            let done = moment::at_moment(store, &how, |(mut section, places), targets| {
                let missing = filter_results.missing(store, &section, &targets.all, Among::Held);
                if let Some(unknown) = missing {
                    return Ok(Some(Filtered::Unknown(unknown)));
                }
                let result = operation(&mut section, targets, places)?;
                journal::commit(store, &mut section)?;
                Ok(Some(Filtered::Done(result)))
            })?;
            done.map_or_else(|| unreachable!("the partition of the put is locked at least"), Ok)
        })
    })
}
