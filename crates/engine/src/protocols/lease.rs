//! Leases (rules L1 to L3): tuples that disappear, or appear, by themselves.

use std::time::Duration;

use tupelo_shm::{Section, View};
use tupelo_tuple::{Field, Kind, TupleRef};

use crate::Engine;
use crate::base::error::Error;
use crate::engine::{NEXT_FENCE, space_line};
use crate::operations::put::Incoming;
use crate::protocols::claim;
use crate::store::blocks;
use crate::store::extension::{self, Extension, LEASE_END_MS, LEASE_NUMBER};
use crate::store::record::{self, Record, STATE};
use crate::store::registry::Kinds;
use crate::store::stripe::{self, DELAYED_COUNT, LEASED_COUNT, Stripe};
use crate::time::{self, wheel};
use crate::waiters::deliver::Delivery;
use crate::waiters::events::EventKind;
use std::sync::atomic::Ordering;

/// When a tuple is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseTerms {
    /// How long it stays once it is visible (rule L1); `None`: for ever.
    pub lease: Option<Duration>,
    /// How long until it is visible (rule L3); `None`: it is at once.
    pub after: Option<Duration>,
}

/// A tuple that was put on terms: where it is, and a number that no other tuple of the space has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    scope: u32,
    reference: u32,
    number: u64,
}

/// The terms of a tuple on its way in, and the number of its lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    lease: Option<Duration>,
    after: Option<Duration>,
    number: u64,
}

impl Terms {
    /// The time, and when the first thing happens by itself, if anything does: the tuple is visible, or is gone.
    ///
    /// Who becomes visible first is the older one (rule L3). So that moment is by the clock that is the same for all processes,
    /// where the end of a lease is by the one that costs least.
    #[inline]
    pub(crate) fn now_and_first(&self) -> (u64, u64) {
        match self.after {
            Some(after) => time::now_and_exactly_in(after),
            None => time::now_and_in(self.lease.unwrap_or_default()),
        }
    }
}

impl Engine {
    /// Stores a tuple that is there from one moment to another. When this returns, it will be, whatever becomes of
    /// the caller.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`].
    #[inline]
    pub fn put_leased<'f>(
        &self,
        tuple: impl Into<TupleRef<'f>>,
        terms: &LeaseTerms,
    ) -> Result<Lease, Error> {
        // Part of the caller, who mostly knows the kinds of the fields.
        let mut incoming = self.incoming(tuple.into())?;
        self.put_on_terms(&mut incoming, terms)
    }

    /// As [`Engine::put_leased`], for a tuple that was looked at. Not generic, so that it is compiled once, here: among a caller's
    /// own functions it would be a second user of what the compiler then makes no part of a plain put any more.
    #[inline(never)]
    fn put_on_terms(
        &self,
        incoming: &mut Incoming<'_>,
        terms: &LeaseTerms,
    ) -> Result<Lease, Error> {
        let terms = self.terms(terms);
        incoming.terms = Some(terms);
        let shape = self.shape(&incoming.kinds)?;
        let reference = self.put_at(incoming, shape)?;
        Ok(Lease { scope: stripe::scope_of(shape), reference, number: terms.number })
    }

    pub(crate) fn terms(&self, terms: &LeaseTerms) -> Terms {
        let view = self.memory.view();
        // Out of the same numbers as fences: no two are the same.
        let number = space_line(&view).double(NEXT_FENCE).fetch_add(1, Ordering::Relaxed) + 1;
        Terms { lease: terms.lease, after: terms.after, number }
    }

    /// As [`Engine::publish`], for a tuple that is put on terms, the first of which ends at `due_ms`.
    #[inline(always)]
    pub(crate) fn publish_on_terms<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        record: Record<'m>,
        (incoming, terms, due_ms): (&Incoming<'_>, &Terms, u64),
    ) -> Result<Delivery, Error> {
        crate::operations::put::number(stripe, record);
        let extension = extension::ensure(section, &self.layout, stripe, record.header)?;
        // Nobody can reach the record yet (R2).
        extension.init64(LEASE_NUMBER, terms.number);
        if terms.after.is_some() {
            return self.publish_later(section, stripe, record, (extension, terms, due_ms));
        }
        let ends = terms.lease.is_some();
        extension.init64(LEASE_END_MS, if ends { due_ms } else { 0 });
        let delivery = self.deliver_new(section, stripe, record.reference, incoming)?;
        let leased = stripe.page().place(LEASED_COUNT);
        let leased = (leased, leased.load().wrapping_add(u32::from(ends)));
        if delivery.taken() {
            section.set_words([leased]);
            return Ok(delivery);
        }
        self.link_youngest_with(section, stripe, (record, incoming.fields), [leased])?;
        if ends {
            let own = (record.reference, extension);
            wheel::arm_fresh(self, section, stripe, own, due_ms)?;
        }
        Ok(delivery)
    }

    /// As [`Engine::publish_on_terms`], for a tuple that is visible at `due_ms`.
    #[cold]
    #[inline(never)]
    fn publish_later<'m>(
        &self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        record: Record<'m>,
        (extension, terms, due_ms): (Extension<'m>, &Terms, u64),
    ) -> Result<Delivery, Error> {
        self.require_turn(section.view())?;
        if let Some(lease) = terms.lease {
            extension.init64(LEASE_END_MS, milliseconds(lease));
            section.add(stripe.page(), LEASED_COUNT, 1);
        }
        section.set(record.header, STATE, record::DELAYED);
        section.add(stripe.page(), DELAYED_COUNT, 1);
        wheel::arm(self, section, stripe, record.reference, due_ms)?;
        Ok(Delivery::default())
    }

    /// Sets the timer of a record that has become visible, if its lease ends.
    pub(crate) fn arm_lease<'m>(
        &self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        record: Record<'m>,
    ) -> Result<(), Error> {
        let end_ms = lease_end_ms(section.view(), record);
        if end_ms == 0 {
            return Ok(());
        }
        wheel::arm(self, section, stripe, record.reference, end_ms)
    }

    /// Makes a tuple visible whose time has come, at `visible_ms`: the youngest of its shape (rule L3). It is gone if
    /// nobody came by until its lease had ended, and nobody waited for it.
    pub(crate) fn reveal<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        (reference, visible_ms): (u32, u64),
        kinds: &[Kind],
    ) -> Result<Delivery, Error> {
        let record = record::at(section.view(), reference);
        if let Some(extension) = extension::of(section.view(), record.header) {
            let length_ms = extension.load64(LEASE_END_MS);
            if length_ms != 0 {
                wheel::set64(
                    section,
                    extension,
                    LEASE_END_MS,
                    visible_ms.saturating_add(length_ms),
                );
            }
        }
        section.add(stripe.page(), DELAYED_COUNT, -1);
        let mut copy = record::ImageBuffer::new();
        let fields: Vec<Field<'_>> = copy.copy(section.view(), reference, kinds).fields().collect();
        crate::operations::put::number(stripe, record);
        let put = (reference, EventKind::Put.into());
        let delivery = self.deliver(section, stripe, put, &fields, kinds)?;
        if delivery.taken() {
            return Ok(delivery);
        }
        if time::is_past(lease_end_ms(section.view(), record)) {
            let gone = (reference, EventKind::Expire);
            let mut delivery = delivery;
            delivery.join(self.told_of_removal(section, stripe, gone, kinds)?);
            self.free_record_at(section, stripe, record)?;
            return Ok(delivery);
        }
        self.link_youngest(section, stripe, record, &fields)?;
        self.arm_lease(section, stripe, record)?;
        Ok(delivery)
    }

    /// Removes a tuple whose lease has ended.
    pub(crate) fn expire<'m>(
        &self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        reference: u32,
        kinds: &[Kind],
    ) -> Result<Delivery, Error> {
        crate::index::links::unlink(section, stripe, reference);
        let gone = (reference, EventKind::Expire);
        let told = self.told_of_removal(section, stripe, gone, kinds)?;
        self.free_record(section, stripe, reference)?;
        Ok(told)
    }

    /// Lets the tuple stay for `length` from now, or from when it is visible; `None`: for ever (rule L2).
    ///
    /// # Errors
    ///
    /// [`Error::LeaseExpired`] if it is not there any more.
    pub fn renew(&self, lease: &Lease, length: Option<Duration>) -> Result<(), Error> {
        self.move_lease_end(lease, length, |_, end_ms| end_ms)
    }

    /// As [`Engine::renew`], except that a tuple that stays longer as it is does so.
    ///
    /// # Errors
    ///
    /// As [`Engine::renew`].
    pub fn prolong(&self, lease: &Lease, length: Duration) -> Result<(), Error> {
        self.move_lease_end(lease, Some(length), |before_ms, end_ms| {
            if before_ms == 0 { 0 } else { before_ms.max(end_ms) }
        })
    }

    /// As [`Engine::prolong`], unless somebody stays where the tuple is. Returns whether it did.
    ///
    /// # Errors
    ///
    /// As [`Engine::renew`].
    pub fn try_prolong(&self, lease: &Lease, length: Duration) -> Result<bool, Error> {
        if !self.is_passable(lease.scope)? {
            return Ok(false);
        }
        self.prolong(lease, length).map(|()| true)
    }

    /// Moves the end of a lease to where `choose` wants it, of where it is and where `length` would have it; 0: never. Before
    /// the tuple is visible, both are lengths.
    fn move_lease_end(
        &self,
        lease: &Lease,
        length: Option<Duration>,
        choose: impl Fn(u64, u64) -> u64,
    ) -> Result<(), Error> {
        self.with_leased(lease, |section, stripe, record, _| {
            let Some(extension) = extension::of(section.view(), record.header) else {
                return Err(Error::LeaseExpired);
            };
            let state = record.header.load(STATE);
            let end_ms = match length {
                None => 0,
                Some(length) if state == record::DELAYED => milliseconds(length),
                Some(length) => time::moment_in(length),
            };
            let end_ms = choose(extension.load64(LEASE_END_MS), end_ms);
            recount(section, stripe, extension, end_ms != 0);
            wheel::set64(section, extension, LEASE_END_MS, end_ms);
            if matches!(state, record::LIVE | record::DEAD) {
                wheel::disarm(section, stripe, record.reference);
                self.arm_lease(section, stripe, record)?;
            }
            Ok(Delivery::default())
        })
    }

    /// Removes the tuple (rule L2).
    ///
    /// # Errors
    ///
    /// [`Error::LeaseExpired`] if it is not there any more; [`Error::LeaseHeld`] if somebody has it in hands, and nothing
    /// has changed: it may be consumed, or come back, and its lease goes on.
    pub fn cancel(&self, lease: &Lease) -> Result<(), Error> {
        match self.cancel_held_by_nobody(lease) {
            // What the dead hold is nobody's (rule L5).
            Err(Error::LeaseHeld { .. }) if self.memory.somebody_died() => {
                self.recall()?;
                self.cancel_held_by_nobody(lease)
            }
            done => done,
        }
    }

    fn cancel_held_by_nobody(&self, lease: &Lease) -> Result<(), Error> {
        self.with_leased(lease, |section, stripe, record, kinds| {
            Ok(match record.header.load(STATE) {
                record::LIVE => self.expire(section, stripe, record.reference, kinds.as_slice())?,
                record::DEAD => {
                    let told = Self::tell_of_room(section)?;
                    self.bury(section, stripe, record.reference)?;
                    self.free_record(section, stripe, record.reference)?;
                    told
                }
                record::DELAYED => {
                    let told = Self::tell_of_room(section)?;
                    wheel::disarm(section, stripe, record.reference);
                    section.add(stripe.page(), DELAYED_COUNT, -1);
                    self.free_record(section, stripe, record.reference)?;
                    told
                }
                // Whoever has it may consume it yet: it can not be had twice.
                record::CLAIMED | record::ENLISTED => {
                    let pid = claim::holder_pid(self, record.header);
                    return Err(Error::LeaseHeld { pid: (pid != 0).then_some(pid) });
                }
                _ => return Err(Error::LeaseHeld { pid: None }),
            })
        })
    }

    /// How long the tuple will stay, if its lease ends.
    ///
    /// # Errors
    ///
    /// [`Error::LeaseExpired`] if it is not there any more.
    pub fn expires_in(&self, lease: &Lease) -> Result<Option<Duration>, Error> {
        let section = self.enter(lease.scope)?;
        let (_, record) = self.leased(section.view(), lease).ok_or(Error::LeaseExpired)?;
        let end_ms = lease_end_ms(section.view(), record);
        let is_delayed = record.header.load(STATE) == record::DELAYED;
        section.finish()?;
        let left = || {
            if is_delayed { Duration::from_millis(end_ms) } else { time::time_until(end_ms) }
        };
        Ok((end_ms != 0).then(left))
    }

    fn with_leased<'e>(
        &'e self,
        lease: &Lease,
        mut change: impl FnMut(
            &mut Section<'e>,
            Stripe<'e>,
            Record<'e>,
            &Kinds,
        ) -> Result<Delivery, Error>,
    ) -> Result<(), Error> {
        let delivery = self.retry(|| {
            let mut section = self.enter(lease.scope)?;
            let (stripe, record) = self.leased(section.view(), lease).ok_or(Error::LeaseExpired)?;
            let (shape, _) = record::shape_of(record.header);
            let kinds = self
                .kinds_of(section.view(), shape)
                .ok_or_else(|| self.damaged("a leased record names a shape that does not exist"))?;
            let delivery = change(&mut section, stripe, record, &kinds)?;
            section.commit()?;
            Ok(delivery)
        })?;
        delivery.wake(self);
        Ok(())
    }

    /// The record of a lease, under the lock of its stripe, if it still is.
    fn leased<'m>(&self, view: &View<'m>, lease: &Lease) -> Option<(Stripe<'m>, Record<'m>)> {
        let stripe = Stripe::of_scope(view, lease.scope);
        // Its block may be something else by now, and its words anything: they are looked at one after the other.
        let is_there = blocks::begins_at(view, &self.layout, stripe, lease.reference)
            && record::is_tuple(blocks::start(view, lease.reference).load(STATE));
        let record = is_there.then(|| record::at(view, lease.reference))?;
        let state = record.header.load(STATE);
        let extension = extension::of_any(view, &self.layout, record.header)?;
        // One that has ended while the tuple was in somebody's hands ends the tuple when that comes back.
        let ended = state != record::DELAYED && time::is_past(extension.load64(LEASE_END_MS));
        (extension.load64(LEASE_NUMBER) == lease.number && !ended).then_some((stripe, record))
    }
}

/// Keeps count of the tuples whose lease ends, before that of this one `ends` or not any more. One that is freed has none.
#[inline]
pub(crate) fn recount<'m>(
    section: &mut Section<'m>,
    stripe: Stripe<'m>,
    extension: Extension<'m>,
    ends: bool,
) {
    let ended = extension.load64(LEASE_END_MS) != 0;
    if ends != ended {
        section.add(stripe.page(), LEASED_COUNT, if ends { 1 } else { -1 });
    }
}

/// When the lease of a record ends; 0 for never.
pub(crate) fn lease_end_ms(view: &View<'_>, record: Record<'_>) -> u64 {
    extension::of(view, record.header).map_or(0, |extension| extension.load64(LEASE_END_MS))
}

/// A length in milliseconds, at least one, and no longer than the clock.
fn milliseconds(length: Duration) -> u64 {
    let ms = u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    ms.clamp(1, wheel::TIME_MS_MAX)
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

    use crate::protocols::lease::LeaseTerms;
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
