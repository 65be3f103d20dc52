//! What a transaction has taken: in no list that a search goes through, until it commits, gives it back, or its lease
//! ends (rules X3, X5).

use tupelo_shm::Section;
use tupelo_tuple::Kind;

use crate::base::error::Error;
use crate::index::find::Hit;
use crate::index::links;
use crate::operations::targets::TupleBuffer;
use crate::protocols::claim::{Place, kinds_of};
use crate::protocols::lease::lease_end_ms;
use crate::protocols::transaction::Term;
use crate::protocols::transaction::lock::Lock;
use crate::store::extension::TRANSACTION;
use crate::store::record::{self, Record, SEQUENCE};
use crate::store::step;
use crate::store::stripe::{HELD, Stripe};
use crate::time::list::List;
use crate::waiters::deliver::Delivery;
use crate::waiters::events::{EventKind, Happening};
use crate::{Engine, time};

/// A tuple that a transaction has taken, as the transaction knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) place: Place,
    sequence: u64,
}

impl Hold {
    /// What the tuples of a shape are sorted by: the oldest first.
    pub(super) fn age(&self) -> (u32, u64) {
        (self.place.scope, self.sequence)
    }
}

/// A tuple that was taken for a transaction, and is not yet noted as held by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enlisted {
    pub(super) hold: Hold,
    /// Whether the transaction had a lock on it before: who gives it back gives that back, too.
    pub(super) was_locked: bool,
}

impl Engine {
    /// Takes what was found out of its lists, for a transaction.
    pub(crate) fn enlist<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        hit: Hit<'m>,
        term: Term,
    ) -> Result<Enlisted, Error> {
        section.add(stripe.page(), HELD, 1);
        links::unlink_found(section, stripe, hit);
        self.enlist_held(section, stripe, hit.record, term)
    }

    /// As [`Engine::enlist`], for a record that is in no list, and counted as held.
    pub(crate) fn enlist_held<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        record: Record<'m>,
        term: Term,
    ) -> Result<Enlisted, Error> {
        let (fence, extension) =
            self.hold_until(section, stripe, (record, List::Enlisted), term.end_ms)?;
        // Means nothing to anybody until the section is over (R2).
        extension.init(TRANSACTION, term.number);
        let place = Place { scope: stripe.scope(), reference: record.reference, fence };
        let hold = Hold { place, sequence: record.header.load64(SEQUENCE) };
        Ok(Enlisted { hold, was_locked: false })
    }

    /// Copies a large tuple that was taken, without the lock. Returns whether it still is then; else it was lost before all
    /// of it was copied.
    #[cold]
    pub(super) fn copy_enlisted(
        &self,
        Hold { place, .. }: Hold,
        copy: &mut TupleBuffer,
    ) -> Result<bool, Error> {
        let view = self.memory.view();
        let record = record::at(&view, place.reference);
        let is_copied = self.fill_held(&view, record, copy);
        let section = Section::enter(&self.memory, place.scope)?;
        let is_held = self.is_held(&section, place, List::Enlisted);
        if is_held && !is_copied {
            // It says so if there is none.
            kinds_of(self, section.view(), record.header)?;
        }
        section.finish()?;
        Ok(is_held)
    }

    /// Whether `place` is still its holder's.
    pub(super) fn is_held(&self, section: &Section<'_>, place: Place, list: List) -> bool {
        let held = self.held_at(section.view(), place, list);
        held.is_some_and(|(_, fence)| fence == place.fence)
    }

    /// Gives back what a transaction has taken, as if it had never been (rule X5). What is heard of it is said by the
    /// caller.
    pub(crate) fn delist<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        (record, happening): (Record<'m>, Happening),
        kinds: &[Kind],
    ) -> Result<Delivery, Error> {
        self.end_hold(section, stripe, (record, List::Enlisted))?;
        self.give_back(section, stripe, (record.reference, happening), kinds)
    }

    /// Gives back what is at `place`, if it is still its holder's.
    pub(super) fn release_hold(&self, place: Place, happening: Happening) -> Result<(), Error> {
        self.keep_time_for_wide()?;
        let delivery = self.retry(|| {
            let mut section = self.enter(place.scope)?;
            let stripe = Stripe::of_scope(section.view(), place.scope);
            let delivery = match self.held_at(section.view(), place, List::Enlisted) {
                Some((record, fence)) if fence == place.fence => {
                    let kinds = kinds_of(self, section.view(), record.header)?;
                    self.delist(&mut section, stripe, (record, happening), kinds.as_slice())?
                }
                _ => Delivery::default(),
            };
            section.finish()?;
            Ok(delivery)
        })?;
        delivery.wake(self);
        Ok(())
    }

    /// Gives back what is at `place`, if it is still its holder's, who has read it before: nobody takes it until the
    /// holder's lease ends (rule X3). Returns the lock; `None` if there is nothing to lock any more.
    pub(super) fn release_to_lock(&self, place: Place, term: Term) -> Result<Option<Lock>, Error> {
        self.keep_time_for_wide()?;
        let (delivery, lock) = self.retry(|| {
            let mut section = self.enter(place.scope)?;
            let stripe = Stripe::of_scope(section.view(), place.scope);
            let released = match self.held_at(section.view(), place, List::Enlisted) {
                Some((record, fence)) if fence == place.fence => {
                    self.delist_locked(&mut section, stripe, record, term)?
                }
                _ => (Delivery::default(), None),
            };
            section.finish()?;
            Ok(released)
        })?;
        delivery.wake(self);
        Ok(lock)
    }

    /// As [`Engine::delist`], with a lock on it from the first moment.
    fn delist_locked<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        record: Record<'m>,
        term: Term,
    ) -> Result<(Delivery, Option<Lock>), Error> {
        let kinds = kinds_of(self, section.view(), record.header)?;
        if time::is_past(lease_end_ms(section.view(), record)) {
            let back = (record, Happening::Unheard);
            let delivery = self.delist(section, stripe, back, kinds.as_slice())?;
            return Ok((delivery, None));
        }
        self.end_hold(section, stripe, (record, List::Enlisted))?;
        section.add(stripe.page(), HELD, -1);
        let shown = self.show(section, stripe, record.reference, kinds.as_slice())?;
        self.link_back(section, stripe, record.reference, kinds.as_slice())?;
        self.arm_lease(section, stripe, record)?;
        step::begin(section)?;
        let lock = self.lock(section, stripe, record, term)?;
        Ok((shown, Some(lock)))
    }

    /// Gives back what the transactions of a dead process held in the stripe of `scope`: what they took, and locks
    /// (rules X5, L5).
    pub(crate) fn free_enlisted_of(&self, participant: u32, scope: u32) -> Result<(), Error> {
        let lists = [List::Enlisted, List::Locks];
        for lost in self.lost_by(participant, (scope, &lists))? {
            self.lose_one(lost, |section, stripe, record| {
                self.let_go_of(section, stripe, (record, lost.list))
            })?;
        }
        Ok(())
    }

    /// Gives back what a transaction held that has ended without a word of its owner: what it took, or a lock.
    pub(crate) fn let_go_of<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        (record, list): (Record<'m>, List),
    ) -> Result<Delivery, Error> {
        if list == List::Locks {
            return self.unlock(section, stripe, record);
        }
        let kinds = kinds_of(self, section.view(), record.header)?;
        let given_up = (record, EventKind::Return.into());
        self.delist(section, stripe, given_up, kinds.as_slice())
    }
}
