//! `try_take` and `take_or_wait`: removing the match that the order asks for (rules O3, O4, T1, T2, C3).

use std::sync::Arc;

use tupelo_shm::Section;
use tupelo_tuple::{Kind, TemplateRef, TupleView};

use crate::Engine;
use crate::base::error::Error;
use crate::base::sink::sink_once;
use crate::index::find::{Hit, Order, Purpose, Search};
use crate::index::links;
use crate::operations::judged::{Verdicts, has_condition};
use crate::operations::targets::Target;
use crate::operations::wait::Outcome;
use crate::store::flight::Flight;
use crate::store::record::{self, ImageBuffer, Record};
use crate::store::registry::Kinds;
use crate::store::stripe::{self, HELD, Stripe, TAKES};
use crate::waiters::deliver::Delivery;
use crate::waiters::events::{EventKind, Happening};
use crate::waiters::{Want, chain};

impl Engine {
    /// Removes a match and gives it to `sink`; `None` if nothing matches. Does not wait.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `sink` says. If the sink fails on a large tuple or one with a
    /// field that its language may have no like of, the tuple is put back (rule V3).
    #[inline(always)]
    pub fn try_take<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let mut kinds = Kinds::new();
        if let [one] = template
            && let Some(key) = kinds.select(one, self.seed)
        {
            let Some(shape) = self.find_shape(&kinds) else {
                return Ok(self.require_sound().map(|()| None)?);
            };
            let search = Search::by_key(one.patterns, &kinds, key, self.seed, Purpose::Take);
            return self.take_from(shape, &search, order, sink);
        }
        TemplateRef::apart(template, move |template| self.take_wide(template, order, sink))
    }

    /// Removes a match and gives it to `sink`, as [`Engine::try_take`]; if nothing matches, gets in line for it.
    ///
    /// What a dead process holds is not looked for: it comes to whoever is in line (rule L5).
    ///
    /// # Errors
    ///
    /// As [`Engine::try_take`] and [`Engine::waiter`].
    #[inline]
    pub fn take_or_wait<R, E: From<Error>>(
        self: &Arc<Self>,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        let mut kinds = Kinds::new();
        if let [one] = template
            && let Some(key) = kinds.select(one, self.seed)
        {
            let Some(shape) = self.find_shape(&kinds) else {
                let waiter = move |template: &[TemplateRef<'_>]| self.waiter(template, Want::Take);
                return Ok(Outcome::Waits(TemplateRef::apart(template, waiter)?));
            };
            let search = Search::by_key(one.patterns, &kinds, key, self.seed, Purpose::Take);
            return self.take_or_wait_at(shape, &search, order, sink);
        }
        TemplateRef::apart(template, move |template| self.take_wide_or_wait(template, order, sink))
    }

    /// As [`Engine::take_or_wait`], whatever the template.
    #[cold]
    fn take_wide_or_wait<R, E: From<Error>>(
        self: &Arc<Self>,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        if has_condition(template) {
            return self.take_judged_or_wait(template, order, sink);
        }
        match self.take_wide(template, order, sink)? {
            Some(result) => Ok(Outcome::Done(result)),
            None => Ok(Outcome::Waits(self.waiter(template, Want::Take)?)),
        }
    }

    /// Takes from one stripe, or gets in line there.
    #[inline]
    fn take_or_wait_at<R, E: From<Error>>(
        self: &Arc<Self>,
        shape: u32,
        search: &Search<'_>,
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        let (section, stripe) = self.enter_stripe(shape)?;
        let found = search.pick(section.view(), stripe, order, self.random_for(order));
        if let Some(hit) = found.hit {
            return self
                .take_hit(section, stripe, search, (hit, found.learn), sink)
                .map(Outcome::Done);
        }
        let waiter = search.apart(move |search| self.wait_in(section, stripe, search))?;
        self.learn_if(found.learn, stripe.scope(), search.key.mask)?;
        Ok(Outcome::Waits(waiter))
    }

    /// Takes from one stripe.
    #[inline(always)]
    fn take_from<R, E: From<Error>>(
        &self,
        shape: u32,
        search: &Search<'_>,
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let (section, stripe) = self.enter_stripe(shape)?;
        let found = search.pick(section.view(), stripe, order, self.random_for(order));
        let Some(hit) = found.hit else {
            let somebody_holds = stripe.hides_some();
            section.finish().map_err(Error::from)?;
            self.see_to_crowd();
            if somebody_holds {
                return search.apart(move |search| self.take_recalled(shape, search, order, sink));
            }
            return Ok(self
                .learn_if(found.learn, stripe.scope(), search.key.mask)
                .map(|()| None)?);
        };
        self.take_hit(section, stripe, search, (hit, found.learn), sink).map(Some)
    }

    /// Takes what a search has found in the stripe of `section`; `learn` says what else it has shown.
    #[inline(always)]
    fn take_hit<'m, R, E: From<Error>>(
        &'m self,
        mut section: Section<'m>,
        stripe: Stripe<'m>,
        search: &Search<'_>,
        (hit, learn): (Hit<'m>, bool),
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let scope = stripe.scope();
        // Who is told of it may need room first: then the tuple is held until there is.
        if record::must_be_held(hit.record.header, search.is_refusable)
            || chain::watching_removals(&section, stripe)
        {
            let reference = hit.record.reference;
            let result = self.take_held(section, stripe, reference, search.kinds, sink);
            // It is taken: that an index could not be had must not lose it.
            let _ = self.learn_if(learn, scope, search.key.mask);
            return result;
        }
        let mut buffer = ImageBuffer::new();
        let tuple = buffer.copy_of(section.view(), hit.record, search.kinds);
        self.unlink_and_free(&mut section, stripe, hit)?;
        count_take(stripe);
        section.finish().map_err(Error::from)?;
        self.see_to_crowd();
        // As above.
        let _ = self.learn_if(learn, scope, search.key.mask);
        sink(tuple)
    }

    /// Takes from one stripe after what the dead held has come back to it. Apart, so that the first attempt is
    /// no loop, before which the compiler would put what only the second needs.
    #[cold]
    #[inline(never)]
    fn take_recalled<R, E: From<Error>>(
        &self,
        shape: u32,
        search: &Search<'_>,
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        self.recall()?;
        let section = self.enter(stripe::scope_of(shape))?;
        let stripe = Stripe::of_shape(section.view(), shape);
        let found = search.pick(section.view(), stripe, order, self.random());
        let learn = || self.learn_if(found.learn, stripe.scope(), search.key.mask);
        if found.reference() == 0 {
            section.finish().map_err(Error::from)?;
            return Ok(learn().map(|()| None)?);
        }
        let result = self.take_held(section, stripe, found.reference(), search.kinds, sink);
        let _ = learn();
        result.map(Some)
    }

    /// Takes a record out of its stripe and frees it.
    #[inline]
    pub(crate) fn remove<'m>(
        &self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        reference: u32,
        kinds: &[Kind],
    ) -> Result<Delivery, Error> {
        let record = record::at(section.view(), reference);
        links::unlink_found(section, stripe, Hit { record, place: None });
        self.free_taken(section, stripe, record, kinds)
    }

    /// Frees a record that was taken out of every list.
    #[inline(always)]
    pub(crate) fn free_taken<'m>(
        &self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        record: Record<'m>,
        kinds: &[Kind],
    ) -> Result<Delivery, Error> {
        let taken = (record.reference, EventKind::Take);
        let told = self.told_of_removal(section, stripe, taken, kinds)?;
        self.free_told(section, stripe, record)?;
        Ok(told)
    }

    /// As [`Engine::free_taken`], for a record whose removal was told.
    #[inline(always)]
    pub(crate) fn free_told<'m>(
        &self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        record: Record<'m>,
    ) -> Result<(), Error> {
        self.free_record_at(section, stripe, record)?;
        count_take(stripe);
        Ok(())
    }

    #[inline]
    pub(crate) fn learn_if(&self, learn: bool, scope: u32, mask: u32) -> Result<(), Error> {
        if learn { self.learn(scope, mask) } else { Ok(()) }
    }

    /// Takes a record out of its stripe, lets the sink read it where it lies, and frees it; or puts it back
    /// if the sink fails.
    #[cold]
    #[inline(never)]
    fn take_held<'m, R, E: From<Error>>(
        &'m self,
        mut section: Section<'m>,
        stripe: Stripe<'m>,
        reference: u32,
        kinds: &[Kind],
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let flight = take_in_hand(&mut section, stripe, reference)?;
        section.commit().map_err(Error::from)?;
        drop(section);
        self.pour(stripe.scope(), reference, (&flight, false), kinds, sink)
    }

    /// Gives a record that this thread holds to `sink`, then frees it, or puts it back if the sink fails and
    /// it is no `copy`.
    pub(crate) fn pour<R, E: From<Error>>(
        &self,
        scope: u32,
        reference: u32,
        (flight, copy): (&Flight, bool),
        kinds: &[Kind],
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let result = {
            let view = self.memory.view();
            let (shape, _) = record::shape_of(record::header(&view, reference));
            sink(record::in_place(&view, reference, kinds).of_class(self.class_of(&view, shape)))
        };
        let goes_back = result.is_err() && !copy;
        let settled = self.retry(|| {
            let mut section = Section::enter(&self.memory, scope)?;
            let stripe = Stripe::of_scope(section.view(), scope);
            flight.end(&mut section);
            let delivery = if goes_back {
                self.give_back(&mut section, stripe, (reference, Happening::Unheard), kinds)?
            } else {
                self.free_held(&mut section, stripe, reference, kinds, !copy)?
            };
            section.commit()?;
            Ok(delivery)
        });
        let delivery = settled.inspect_err(|_| self.abandon_flight(flight))?;
        delivery.wake(self);
        result
    }

    /// Takes from the first shape that has a match, in the order in which the shapes came to be.
    ///
    /// The shapes are looked at one after the other. That none had a match is true of no one moment, so a
    /// miss is confirmed with all of them locked.
    #[cold]
    fn take_wide<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        if has_condition(template) {
            return self.take_judged(template, order, &mut Verdicts::default(), sink);
        }
        let mut pour = sink_once(sink);
        if matches!(order, Order::Max(_) | Order::Min(_)) {
            // Values compare across shapes: an int with a float.
            return self.take_extreme(template, order, pour);
        }
        let (mut recalled, mut rounds) = (false, 0);
        loop {
            for target in &self.targets(template, Purpose::Take).all {
                let class = target.kinds.class();
                let taken = match target.search(self.seed) {
                    Some(search) => self.take_from(target.shape, &search, order, |tuple| {
                        pour(tuple.of_class(class))
                    })?,
                    None => self.take_from_union(target, order, &mut pour)?,
                };
                if taken.is_some() {
                    return Ok(taken);
                }
            }
            if !recalled && self.recall_matches_of(template)? {
                recalled = true;
            } else if !self.matches_now(template, Purpose::Take, &mut rounds)? {
                return Ok(None);
            }
        }
    }

    /// Takes from a shape that several alternatives of a template can match.
    fn take_from_union<R, E: From<Error>>(
        &self,
        target: &Target<'_>,
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let mut section = self.enter(stripe::scope_of(target.shape))?;
        let stripe = Stripe::of_shape(section.view(), target.shape);
        let reference = target.pick(section.view(), order, self.random(), self.seed);
        if reference == 0 {
            section.commit().map_err(Error::from)?;
            return Ok(None);
        }
        self.take_held(section, stripe, reference, target.kinds.as_slice(), sink).map(Some)
    }
}

/// Takes a record out of its stripe, which the section holds, into the hands of this thread.
pub(crate) fn take_in_hand<'m>(
    section: &mut Section<'m>,
    stripe: Stripe<'m>,
    reference: u32,
) -> Result<Flight, Error> {
    // Counted in the new place first: at no moment does the space seem to have room (`engine::tuples`).
    section.add(stripe.page(), HELD, 1);
    links::unlink(section, stripe, reference);
    links::hold(section, reference, record::TAKEN);
    Flight::begin(section, reference)
}

/// Counts a take. Not undone by itself (`step::count_anew`).
#[inline]
pub(crate) fn count_take(stripe: Stripe<'_>) {
    stripe.page().init64(TAKES, stripe.page().load64(TAKES).wrapping_add(1));
}
