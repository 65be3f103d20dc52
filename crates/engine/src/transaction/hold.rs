//! What a transaction has taken: in no list that a search goes through, until it commits, gives it back, or its lease
//! ends (rules X3, X5).

use tupelo_shm::Section;
use tupelo_tuple::Kind;

use crate::Engine;
use crate::claim::list::List;
use crate::claim::{Place, kinds_of};
use crate::error::Error;
use crate::events::{EventKind, Happening};
use crate::find::Hit;
use crate::links;
use crate::record::{self, ImageBuffer, Record};
use crate::registry::Kinds;
use crate::stripe::{HELD, Stripe};
use crate::targets::TupleCopy;
use crate::timers;
use crate::waiters::deliver::Delivery;

/// A tuple that was taken for a transaction.
pub(crate) struct Enlisted {
    pub(crate) place: Place,
    /// The tuple, if it is short: a large one is copied outside of the lock.
    copy: Option<TupleCopy>,
}

impl Engine {
    /// Takes what was found out of its lists, for a transaction whose lease ends at `end_ms`.
    pub(crate) fn enlist<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        (hit, kinds): (Hit<'m>, &Kinds),
        end_ms: u64,
    ) -> Result<Enlisted, Error> {
        links::unlink_found(section, stripe, hit);
        section.add(stripe.page(), HELD, 1);
        self.enlist_held(section, stripe, (hit.record, kinds), end_ms)
    }

    /// As [`Engine::enlist`], for a record that is in no list, and counted as held.
    pub(crate) fn enlist_held<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        (record, kinds): (Record<'m>, &Kinds),
        end_ms: u64,
    ) -> Result<Enlisted, Error> {
        let until = (timers::now_ms(), end_ms);
        let (fence, _) = self.hold_until(section, stripe, (record, List::Enlisted), until)?;
        let place = Place { scope: stripe.scope(), reference: record.reference, fence };
        let is_short = record::image_bytes(record.header) <= ImageBuffer::SHORT_BYTES;
        let copy = is_short.then(|| TupleCopy::new(section.view(), record.reference, *kinds));
        Ok(Enlisted { place, copy })
    }

    /// The tuple that was taken; `None` if it was lost before all of it was copied.
    pub(super) fn copy_enlisted(&self, enlisted: Enlisted) -> Result<Option<TupleCopy>, Error> {
        let Enlisted { place, copy } = enlisted;
        if copy.is_some() {
            return Ok(copy);
        }
        let view = self.memory.view();
        let kinds = kinds_of(self, &view, record::header(&view, place.reference))?;
        let copy = TupleCopy::new(&view, place.reference, kinds);
        let section = Section::enter(&self.memory, place.scope)?;
        let is_held = self.is_held(&section, place, List::Enlisted);
        section.finish()?;
        Ok(is_held.then_some(copy))
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

    /// Gives back what the transactions of a dead process held in the stripe of `scope`: what they took, and locks
    /// (rules X5, L5).
    pub(crate) fn free_enlisted_of(&self, participant: u32, scope: u32) -> Result<(), Error> {
        while self.lose_one_of(
            participant,
            (scope, List::Enlisted),
            |section, (stripe, record)| {
                let kinds = kinds_of(self, section.view(), record.header)?;
                let lost = (record, EventKind::Return.into());
                self.delist(section, stripe, lost, kinds.as_slice())
            },
        )? {}
        while self.lose_one_of(participant, (scope, List::Locks), |section, (stripe, lock)| {
            self.unlock(section, stripe, lock)
        })? {}
        Ok(())
    }
}
