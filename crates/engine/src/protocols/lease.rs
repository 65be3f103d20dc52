//! Leases (rules L1 to L3): tuples that disappear, or appear, by themselves.

use std::time::Duration;

use tupelo_shm::{Section, View};
use tupelo_tuple::{Field, Kind, TemplateRef, TupleRef};

use crate::base::clock;
use crate::base::error::Error;
use crate::base::terms::LeaseTerms;
use crate::index::{links, queue};
use crate::journal;
use crate::operations::exchange;
use crate::operations::put::{self, milliseconds};
use crate::protocols::claim::{self, dead};
use crate::recovery::{enter, provide, sweep};
use crate::store::extension::{self, LEASE_END_MS, LEASE_NUMBER, lease_end_ms, recount};
use crate::store::incoming::{Incoming, numbered};
use crate::store::partition::{self, DELAYED_COUNT, Partition};
use crate::store::record::{self, Record, SEQUENCE, STATE};
use crate::store::registry::{self, Kinds};
use crate::store::{self, Store, blocks, changes};
use crate::time::bounded_lock;
use crate::time::wheel::{self, arm_lease};
use crate::waiters::deliver::{self, Delivery};
use crate::waiters::events::EventKind;
use crate::waiters::grants;

/// A tuple that was put on terms: where it is, and a number that no other tuple of the space has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    scope: u32,
    reference: u32,
    number: u64,
}

/// As [`crate::Engine::put_leased`] says.
#[inline]
pub(crate) fn put_leased<'f>(
    store: &Store,
    tuple: impl Into<TupleRef<'f>>,
    terms: &LeaseTerms,
) -> Result<Lease, Error> {
    // Part of the caller, who mostly knows the kinds of the fields.
    let mut incoming = put::incoming(store, tuple.into())?;
    put_on_terms(store, &mut incoming, terms)
}

/// As [`crate::Engine::put_leased`], for a tuple that was looked at. Not generic, so that it is compiled once, here.
/// Among a caller's own functions it would be a second user of functions that the compiler then no longer inlines into
/// a plain put.
#[inline(never)]
fn put_on_terms(
    store: &Store,
    incoming: &mut Incoming<'_>,
    terms: &LeaseTerms,
) -> Result<Lease, Error> {
    let numbered = numbered(store, terms);
    incoming.terms = Some(numbered);
    let shape = registry::shape(store, &incoming.kinds, incoming.fields.first())?;
    let reference = put::put_at(store, incoming, shape)?;
    Ok(Lease { scope: partition::scope_of(shape), reference, number: numbered.number })
}

/// As [`crate::Engine::put_if_absent_leased`] says.
pub(crate) fn put_if_absent_leased<'f>(
    store: &Store,
    tuple: impl Into<TupleRef<'f>>,
    unless: &[TemplateRef<'_>],
    terms: &LeaseTerms,
) -> Result<Option<Lease>, Error> {
    let mut incoming = put::incoming(store, tuple.into())?;
    let numbered = numbered(store, terms);
    incoming.terms = Some(numbered);
    let shape = registry::shape(store, &incoming.kinds, incoming.fields.first())?;
    let stored = exchange::store_if_absent(store, &incoming, shape, unless)?;
    let scope = partition::scope_of(shape);
    Ok(stored.map(|reference| Lease { scope, reference, number: numbered.number }))
}

/// Makes a tuple visible whose time has come, at `visible_ms`: the youngest of its shape (rule L3). It is gone if
/// nobody came by until its lease had ended, and nobody waited for it.
pub(crate) fn reveal<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    visible_ms: u64,
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    let record = record::at(section.view(), reference);
    if let Some(extension) = extension::of(section.view(), record.header) {
        let length_ms = extension.load64(LEASE_END_MS);
        if length_ms != 0 {
            wheel::set64(section, extension, LEASE_END_MS, visible_ms.saturating_add(length_ms));
        }
    }
    section.add(partition.page(), DELAYED_COUNT, -1);
    let mut copy = record::ImageBuffer::new();
    let fields: Vec<Field<'_>> = copy.copy(section.view(), reference, kinds).fields().collect();
    let before = record.header.load64(SEQUENCE);
    let due_ns = visible_ms.saturating_mul(1_000_000);
    queue::number_any(store, section.view(), partition, record, Some(due_ns));
    changes::visible(store, section, record, before);
    let put = (reference, EventKind::Put.into());
    let delivery = deliver::deliver(store, section, partition, put, &fields, kinds)?;
    if delivery.taken() {
        return Ok(delivery);
    }
    if clock::is_past(lease_end_ms(section.view(), record)) {
        let gone = (reference, EventKind::Expire);
        let mut delivery = delivery;
        delivery.join(deliver::publish_removal(store, section, partition, gone, kinds)?);
        links::free_tuple(store, section, partition, record)?;
        return Ok(delivery);
    }
    links::link_youngest(store, section, partition, record, &fields)?;
    arm_lease(store, section, partition, record)?;
    Ok(delivery)
}

/// Removes a tuple whose lease has ended.
pub(crate) fn expire<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    reference: u32,
    kinds: &[Kind],
) -> Result<Delivery, Error> {
    links::unlink(section, partition, reference);
    let gone = (reference, EventKind::Expire);
    let delivery = deliver::publish_removal(store, section, partition, gone, kinds)?;
    links::free_tuple(store, section, partition, record::at(section.view(), reference))?;
    Ok(delivery)
}

/// As [`crate::Engine::renew`] says.
pub(crate) fn renew(store: &Store, lease: &Lease, length: Option<Duration>) -> Result<(), Error> {
    move_lease_end(store, lease, length, |_, end_ms| end_ms)
}

/// As [`crate::Engine::prolong`] says.
pub(crate) fn prolong(store: &Store, lease: &Lease, length: Duration) -> Result<(), Error> {
    move_lease_end(store, lease, Some(length), |before_ms, end_ms| {
        if before_ms == 0 { 0 } else { before_ms.max(end_ms) }
    })
}

/// As [`crate::Engine::try_prolong`] says.
pub(crate) fn try_prolong(store: &Store, lease: &Lease, length: Duration) -> Result<bool, Error> {
    if !bounded_lock::is_passable(store, lease.scope)? {
        return Ok(false);
    }
    prolong(store, lease, length).map(|()| true)
}

/// Moves the end of a lease to where `choose` wants it, of where it is and where `length` would have it; 0: never. Before
/// the tuple is visible, both are lengths.
fn move_lease_end(
    store: &Store,
    lease: &Lease,
    length: Option<Duration>,
    choose: impl Fn(u64, u64) -> u64,
) -> Result<(), Error> {
    with_leased(store, lease, |section, partition, record, _| {
        let Some(extension) = extension::of(section.view(), record.header) else {
            return Err(Error::LeaseExpired);
        };
        let state = record.header.load(STATE);
        let end_ms = match length {
            None => 0,
            Some(length) if state == record::DELAYED => milliseconds(length),
            Some(length) => clock::moment_in(length),
        };
        let end_ms = choose(extension.load64(LEASE_END_MS), end_ms);
        recount(section, partition, extension, end_ms != 0);
        wheel::set64(section, extension, LEASE_END_MS, end_ms);
        changes::lease(store, section, record);
        if matches!(state, record::LIVE | record::DEAD) {
            wheel::disarm(section, partition, record.reference);
            arm_lease(store, section, partition, record)?;
        }
        Ok(Delivery::default())
    })
}

/// As [`crate::Engine::cancel`] says.
pub(crate) fn cancel(store: &Store, lease: &Lease) -> Result<(), Error> {
    match cancel_held_by_nobody(store, lease) {
        // What the dead hold is nobody's (rule L5).
        Err(Error::LeaseHeld { .. }) if store.memory.somebody_died() => {
            sweep::recall(store)?;
            cancel_held_by_nobody(store, lease)
        }
        done => done,
    }
}

fn cancel_held_by_nobody(store: &Store, lease: &Lease) -> Result<(), Error> {
    with_leased(store, lease, |section, partition, record, kinds| {
        Ok(match record.header.load(STATE) {
            record::LIVE => expire(store, section, partition, record.reference, kinds.as_slice())?,
            record::DEAD => {
                let delivery = grants::grant_room(section)?;
                dead::bury(store, section, partition, record.reference)?;
                links::free_tuple(store, section, partition, record)?;
                delivery
            }
            record::DELAYED => {
                let delivery = grants::grant_room(section)?;
                wheel::disarm(section, partition, record.reference);
                section.add(partition.page(), DELAYED_COUNT, -1);
                links::free_tuple(store, section, partition, record)?;
                delivery
            }
            // Whoever has it may consume it yet: it can not be had twice.
            record::CLAIMED | record::ENLISTED => {
                let pid = claim::holder_pid(store, record.header);
                return Err(Error::LeaseHeld { pid: (pid != 0).then_some(pid) });
            }
            _ => return Err(Error::LeaseHeld { pid: None }),
        })
    })
}

/// As [`crate::Engine::expires_in`] says.
pub(crate) fn expires_in(store: &Store, lease: &Lease) -> Result<Option<Duration>, Error> {
    let section = enter::enter(store, lease.scope)?;
    let (_, record) = leased(store, section.view(), lease).ok_or(Error::LeaseExpired)?;
    let end_ms = lease_end_ms(section.view(), record);
    let is_delayed = record.header.load(STATE) == record::DELAYED;
    section.finish()?;
    let left = || {
        if is_delayed { Duration::from_millis(end_ms) } else { clock::time_until(end_ms) }
    };
    Ok((end_ms != 0).then(left))
}

fn with_leased<'e>(
    store: &'e Store,
    lease: &Lease,
    mut change: impl FnMut(
        &mut Section<'e>,
        Partition<'e>,
        Record<'e>,
        &Kinds,
    ) -> Result<Delivery, Error>,
) -> Result<(), Error> {
    let delivery = provide::retry(store, || {
        let mut section = enter::enter(store, lease.scope)?;
        let (partition, record) =
            leased(store, section.view(), lease).ok_or(Error::LeaseExpired)?;
        let (shape, _) = record::shape_of(record.header);
        let kinds = registry::kinds_of(store, section.view(), shape).ok_or_else(|| {
            store::damaged(store, "a leased record names a shape that does not exist")
        })?;
        let delivery = change(&mut section, partition, record, &kinds)?;
        journal::commit(store, &mut section)?;
        Ok(delivery)
    })?;
    delivery.wake(store);
    Ok(())
}

/// The record of a lease, under the lock of its partition, if it still is.
fn leased<'m>(
    store: &Store,
    view: &View<'m>,
    lease: &Lease,
) -> Option<(Partition<'m>, Record<'m>)> {
    let partition = Partition::of_scope(view, lease.scope);
    // Its block may be something else by now, and its words anything: they are looked at one after the other.
    let is_there = blocks::begins_at(view, &store.layout, partition, lease.reference)
        && record::is_tuple(blocks::start(view, lease.reference).load(STATE));
    let record = is_there.then(|| record::at(view, lease.reference))?;
    let state = record.header.load(STATE);
    let extension = extension::of_any(view, &store.layout, record.header)?;
    // One that has ended while the tuple was in somebody's hands ends the tuple when that comes back.
    let ended = state != record::DELAYED && clock::is_past(extension.load64(LEASE_END_MS));
    (extension.load64(LEASE_NUMBER) == lease.number && !ended).then_some((partition, record))
}

#[cfg(test)]
impl Lease {
    /// Where its tuple is stored.
    pub(crate) fn block(&self) -> u32 {
        self.reference
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

    use std::time::Duration;

    use tupelo_shm::clock;
    use tupelo_tuple::Field;

    use crate::base::terms::LeaseTerms;
    use crate::testing;
    use crate::time::wheel;

    /// Else of two puts of different processes the later one could become visible first.
    #[test]
    fn what_is_there_later_is_so_by_the_clock_that_all_share_l3() {
        let engine = testing::engine(8 << 20);
        let terms = LeaseTerms { lease: None, after: Some(Duration::from_secs(3600)) };
        let by = |now_ns: u64| (now_ns + 3_600_000_000_000).div_ceil(1_000_000);
        // A clock that is up to a tenth of a millisecond ahead is in the next one that often.
        for _ in 0..2_000 {
            let begin_ns = clock::monotonic_ns();
            let lease = engine.put_leased(&[Field::Int(1)], &terms).unwrap();
            let end_ns = clock::monotonic_ns();
            let due_ms = wheel::due_ms(&engine.memory.view(), lease.reference);
            assert!((by(begin_ns)..=by(end_ns)).contains(&due_ms));
            assert!(engine.cancel(&lease).is_ok());
        }
    }
}
