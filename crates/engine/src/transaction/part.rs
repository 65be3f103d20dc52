//! What a transaction has done in one space.

use std::sync::Arc;

use tupelo_shm::{Section, View};
use tupelo_tuple::{TemplateRef, TupleRef};

use super::hold::{Enlisted, Hold};
use super::lock::{Lock, Locks};
use super::own::{Number, Own, is_beaten};
use super::{Few, Term};
use crate::Engine;
use crate::at_match::Clock;
use crate::bulk::{Found, Together};
use crate::claim::Place;
use crate::claim::list::List;
use crate::error::Error;
use crate::events::{EventKind, Happening};
use crate::find::{Hit, Order, Purpose};
use crate::record::{self, Record};
use crate::registry::Kinds;
use crate::step;
use crate::stripe::{self, Stripe};
use crate::targets::{Target, TupleBuffer, TupleCopy};

/// The part of a transaction that is in one space.
pub(super) struct Part {
    pub(super) engine: Arc<Engine>,
    /// What it has taken there.
    pub(super) holds: Few<Hold>,
    /// Its locks on what it has read.
    pub(super) locks: Locks,
    /// What it is going to put.
    pub(super) own: Own,
}

impl Part {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        let own = Own::new(engine.seed);
        Self { engine, holds: Few::new(), locks: Locks::default(), own }
    }

    pub(super) fn takes(&self) -> usize {
        self.holds.len()
    }

    pub(super) fn puts(&self) -> usize {
        self.own.len()
    }

    /// Where what it has taken is.
    pub(super) fn held(&self) -> impl Iterator<Item = &Place> {
        self.holds.iter().map(|hold| &hold.place)
    }

    /// Adds to `all` what it is going to put, `refs`, checked and with the shapes.
    pub(super) fn incoming<'f>(
        &self,
        refs: &[TupleRef<'f>],
        all: &mut Together<'f>,
    ) -> Result<(), Error> {
        self.engine.all_incoming(refs, all)?;
        for (one, _) in all.iter_mut().take(self.holds.len()) {
            // It comes for one that goes.
            one.takes_room = false;
        }
        Ok(())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.holds.is_empty() && self.locks.is_empty() && self.own.len() == 0
    }

    /// Gives back what was taken and unlocks what was read; all of it, whatever goes wrong with some. The oldest of each
    /// shape comes first, so that it goes to whoever waits (rule T2).
    pub(super) fn release(&mut self) -> Result<(), Error> {
        self.own = Own::new(self.engine.seed);
        let holds = std::mem::take(&mut self.holds);
        let locks = std::mem::take(&mut self.locks);
        let held = holds.iter().map(|hold| (hold.age(), (List::Enlisted, hold.place)));
        let locked = locks.all().map(|lock| (lock.age(), (List::Locks, lock.place)));
        let mut all: Vec<_> = held.chain(locked).collect();
        all.sort_by_key(|(age, _)| *age);
        let release = |(_, (list, place))| match list {
            List::Locks => self.engine.release_lock(place),
            _ => self.engine.release_hold(place, EventKind::Return.into()),
        };
        let released: Vec<_> = all.into_iter().map(release).collect();
        released.into_iter().collect()
    }

    /// Notes locks that it has got; or ends them again, if what was read was not wanted.
    pub(super) fn keep(&mut self, locks: Vec<Lock>, wanted: bool) -> Result<(), Error> {
        for lock in locks {
            if wanted {
                self.locks.add(lock);
            } else {
                self.engine.release_lock(lock.place)?;
            }
        }
        Ok(())
    }

    /// Gives back one that was taken, as it was: with the lock, if there was one.
    pub(super) fn put_back(&mut self, taken: Enlisted, term: Term) -> Result<(), Error> {
        let Enlisted { hold, was_locked } = taken;
        if !was_locked {
            return self.engine.release_hold(hold.place, Happening::Unheard);
        }
        if let Some(lock) = self.engine.release_to_lock(hold.place, term)? {
            self.locks.add(lock);
        }
        Ok(())
    }

    /// Takes the match that `order` asks for out of the space, past what others have read. It is not yet noted as
    /// held by the transaction, and may still be beaten by `rival`, what the transaction itself has put. Returns also
    /// whether it was copied to `copy`, as a short one is.
    pub(super) fn take(
        &mut self,
        template: &[TemplateRef<'_>],
        (order, rival): (Order, Option<Number>),
        (term, copy): (Term, &mut TupleBuffer),
    ) -> Result<Option<(Enlisted, bool)>, Error> {
        let Self { engine, locks, own, .. } = self;
        let engine: &Engine = engine;
        if !locks.is_empty() {
            let rival = rival.map(|number| own.get(number).view());
            // What is locked by this transaction alone is good to be taken, which a search does not know. Not if it is
            // beaten: it would lose its lock, though it is not taken.
            let choose = |section: &Section<'_>, targets: &[Target<'_>]| {
                let chosen = engine.chosen(section, targets, order);
                let chosen = chosen.filter(|found| {
                    !rival.is_some_and(|own| is_beaten(&found.copy(section).view(), &own, order))
                });
                chosen.map(|found| found.place(targets)).into_iter().collect()
            };
            let copying = |view: &View<'_>, record: Record<'_>, kinds: &Kinds| {
                copy.fill_short(view, record, kinds)
            };
            return Ok(take_at_once(engine, locks, (template, term), (choose, copying))?.pop());
        }
        let how = (order, Purpose::Take, Clock::BeforeSearch);
        engine.at_match(template, how, |section, stripe, hit, kinds| {
            let is_copied = copy.fill_short(section.view(), hit.record, kinds);
            Ok((engine.enlist(section, stripe, hit, term)?, is_copied))
        })
    }

    /// Takes up to `at_most` matches, or none if there are fewer than `at_least`. Returns copies of the short ones.
    pub(super) fn take_many(
        &mut self,
        template: &[TemplateRef<'_>],
        (at_least, at_most): (usize, usize),
        term: Term,
    ) -> Result<Vec<(Enlisted, Option<TupleCopy>)>, Error> {
        let Self { engine, locks, .. } = self;
        let engine: &Engine = engine;
        let choose = |section: &Section<'_>, targets: &[Target<'_>]| {
            let found: Vec<_> =
                crate::bulk::found(section, targets, engine.seed, at_most).collect();
            if found.len() < at_least {
                return Vec::new();
            }
            found.iter().map(|found| found.place(targets)).collect()
        };
        take_at_once(engine, locks, (template, term), (choose, TupleCopy::of_short))
    }

    /// Copies the match that `order` asks for, and locks it, if the transaction has not.
    pub(super) fn read(
        &mut self,
        template: &[TemplateRef<'_>],
        order: Order,
        term: Term,
    ) -> Result<Option<(TupleCopy, Option<Lock>)>, Error> {
        let (engine, locks) = (&self.engine, &self.locks);
        let how = (order, Purpose::Read, Clock::BeforeSearch);
        engine.at_match(template, how, |section, stripe, hit, kinds| {
            let copy = TupleCopy::new(section.view(), hit.record.reference, *kinds);
            let lock = match locks.on(stripe.scope(), hit.record) {
                Some(_) => None,
                None => Some(engine.lock(section, stripe, hit.record, term)?),
            };
            Ok((copy, lock))
        })
    }

    /// Copies and locks up to `limit` matches of one moment. Returns also the locks that it had not before, which are
    /// not yet noted.
    pub(super) fn read_all(
        &mut self,
        template: &[TemplateRef<'_>],
        limit: usize,
        term: Term,
    ) -> Result<(Vec<TupleCopy>, Vec<Lock>), Error> {
        let (engine, locks) = (&self.engine, &self.locks);
        let done = engine.at_one_moment(template, Purpose::Read, |section, targets| {
            let (mut copies, mut got) = (Vec::new(), Vec::new());
            let found: Vec<Found<'_>> =
                crate::bulk::found(section, targets, engine.seed, limit).collect();
            for found in found {
                copies.push(found.copy(section));
                step::begin(section)?;
                let stripe = Stripe::of_shape(section.view(), found.target.shape);
                section.focus(stripe.scope());
                let record = record::at(section.view(), found.reference);
                if locks.on(stripe.scope(), record).is_none() {
                    got.push(engine.lock(section, stripe, record, term)?);
                }
            }
            Ok((copies, got))
        })?;
        Ok(done.unwrap_or_default())
    }
}

/// Takes what `choose` chooses at one moment: the number of the target, and the record. Returns also what `copying` makes of
/// each.
fn take_at_once<C>(
    engine: &Engine,
    locks: &mut Locks,
    (template, term): (&[TemplateRef<'_>], Term),
    (choose, mut copying): (
        impl Fn(&Section<'_>, &[Target<'_>]) -> Vec<(usize, u32)>,
        impl FnMut(&View<'_>, Record<'_>, &Kinds) -> C,
    ),
) -> Result<Vec<(Enlisted, C)>, Error> {
    let done = engine.at_one_moment(template, Purpose::Take, |section, targets| {
        let is_here = |lock: &&Lock| {
            targets.iter().any(|one| stripe::scope_of(one.shape) == lock.place.scope)
        };
        let mut shown = engine.show_own(section, locks.all().filter(is_here))?;
        let (mut taken, mut turned) = (Vec::new(), Vec::new());
        for (number, reference) in choose(section, targets) {
            let target = &targets[number];
            step::begin(section)?;
            let stripe = Stripe::of_shape(section.view(), target.shape);
            section.focus(stripe.scope());
            let record = record::at(section.view(), reference);
            // The lock may be gone with the transaction's time, and its block another's.
            let lock = locks.on(stripe.scope(), record);
            let lock = lock.filter(|lock| engine.is_held(section, lock.place, List::Locks));
            if let Some(lock) = lock {
                engine.turn_into_take(section, stripe, (lock, record))?;
                shown.retain(|other| other.key() != lock.key());
                turned.push(*lock);
                step::begin(section)?;
            }
            let hit = Hit { record, place: None };
            let copied = copying(section.view(), record, &target.kinds);
            let mut enlisted = engine.enlist(section, stripe, hit, term)?;
            enlisted.was_locked = lock.is_some();
            taken.push((enlisted, copied));
        }
        engine.hide_again(section, &shown)?;
        // Frees last: a block that this section frees must not be filled in it again.
        for lock in &turned {
            engine.free_lock(section, lock.place)?;
        }
        Ok((taken, turned))
    })?;
    let Some((taken, turned)) = done else { return Ok(Vec::new()) };
    for lock in &turned {
        locks.remove(lock);
    }
    Ok(taken)
}
