//! Atomic check-and-change: `swap` and `put_if_absent` (rule O8).

use tupelo_shm::Section;
use tupelo_tuple::{TemplateRef, TupleRef, TupleView};

use crate::Engine;
use crate::base::error::Error;
use crate::index::find::Purpose;
use crate::index::links;
use crate::operations::judged::{Among, Judged, Verdicts};
use crate::operations::put::Incoming;
use crate::operations::take_many::Identity;
use crate::operations::targets::{Targets, TupleCopy};
use crate::recovery::full::Wanted;
use crate::recovery::quota::Places;
use crate::recovery::sweep::FirstLook;
use crate::store::stripe::{self, Stripe};
use crate::store::{record, step};
use crate::waiters::deliver::Delivery;
use crate::waiters::events::EventKind;

/// What came of looking for a tuple to replace.
enum Swap {
    /// There is none.
    Nothing,
    /// Nothing was replaced: the sink has to see this one first.
    Unseen(Identity, TupleCopy),
    /// It was this one.
    Done(TupleCopy, Delivery),
}

impl Engine {
    /// Stores a tuple unless something matches `unless`; held tuples count as present (rule O9). Returns
    /// whether it was stored: of any number of racing callers, one is told so.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`].
    pub fn put_if_absent<'f>(
        &self,
        tuple: impl Into<TupleRef<'f>>,
        unless: &[TemplateRef<'_>],
    ) -> Result<bool, Error> {
        let incoming = self.incoming(tuple.into())?;
        let shape = self.shape(&incoming.kinds)?;
        let wanted = Wanted { shapes: &[shape], leaving: 0, largest_bytes: incoming.size.bytes };
        let stored = self.making_room(wanted, || {
            self.with_targets((unless, Purpose::Read), shape, |section, (targets, places)| {
                if targets.all.iter().any(|target| self.has_match(section, target)) {
                    return Ok(None);
                }
                self.require_places(places, 1)?;
                self.store_here(section, &incoming, shape).map(Some)
            })
        })?;
        let Some(delivery) = stored else { return Ok(false) };
        delivery.wake(self);
        Ok(true)
    }

    /// Replaces the oldest match of the first shape that has one, and gives the old tuple to `sink`; `None`
    /// if nothing matches. Nobody sees a moment with both or neither.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`]: nothing changed. What `sink` says: nothing changed, if the old tuple is large or has a field
    /// that its language may have no like of: the sink gets a copy then, perhaps of several tuples in turn that others
    /// take, and the one that it has accepted is replaced. Else the swap has happened.
    pub fn try_swap<'f, R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        to: impl Into<TupleRef<'f>>,
        mut sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let mut incoming = self.incoming(to.into())?;
        incoming.takes_room = false;
        let shape = self.shape(&incoming.kinds)?;
        let mut accepted: Option<(Identity, R)> = None;
        loop {
            let seen = accepted.as_ref().map(|(identity, _)| *identity);
            let swapped = self.swap_seen(template, (&incoming, shape), seen)?;
            match (swapped, accepted.take()) {
                (Swap::Nothing, _) => return Ok(None),
                (Swap::Unseen(identity, copy), _) => {
                    accepted = Some((identity, sink(copy.view())?));
                }
                (Swap::Done(_, wakes), Some((_, result))) => {
                    wakes.wake(self);
                    return Ok(Some(result));
                }
                (Swap::Done(copy, wakes), None) => {
                    wakes.wake(self);
                    return sink(copy.view()).map(Some);
                }
            }
        }
    }

    /// Replaces the oldest match, unless it has a field that a sink may refuse, and is not the one that was `seen`.
    fn swap_seen(
        &self,
        template: &[TemplateRef<'_>],
        (incoming, shape): (&Incoming<'_>, u32),
        seen: Option<Identity>,
    ) -> Result<Swap, Error> {
        self.with_targets((template, Purpose::Take), shape, |section, (targets, _)| {
            let first = targets.all.iter().find_map(|target| {
                target
                    .first_matches(section.view(), self.seed, 1)
                    .first()
                    .map(|reference| (target, *reference))
            });
            let Some((target, reference)) = first else { return Ok(Swap::Nothing) };
            let copy = TupleCopy::new(section.view(), reference, target.kinds);
            let identity = Identity::of(section.view(), target, reference);
            let header = record::header(section.view(), reference);
            let is_refusable = record::must_be_held(header, target.kinds.are_refusable());
            if seen != Some(identity) && (seen.is_some() || is_refusable) {
                return Ok(Swap::Unseen(identity, copy));
            }
            let stripe = Stripe::of_shape(section.view(), target.shape);
            section.focus(stripe.scope());
            links::unlink(section, stripe, reference);
            let taken = (reference, EventKind::Take);
            let mut wakes =
                self.told_of_removal(section, stripe, taken, target.kinds.as_slice())?;
            // Frees last: a block that this section frees must not be filled in it again.
            wakes.join(self.store_here(section, incoming, shape)?);
            step::begin(section)?;
            section.focus(stripe.scope());
            let record = record::at(section.view(), reference);
            self.free_told(section, stripe, record)?;
            Ok(Swap::Done(copy, wakes))
        })
    }

    fn store_here<'m>(
        &'m self,
        section: &mut Section<'m>,
        incoming: &Incoming<'_>,
        shape: u32,
    ) -> Result<Delivery, Error> {
        step::begin(section)?;
        section.focus(stripe::scope_of(shape));
        Ok(self.store(section, incoming, shape)?.0)
    }

    /// Runs `operation`, which puts a tuple, while the stripes that `template` concerns, and that of `shape`, are locked.
    fn with_targets<'e, R>(
        &'e self,
        (template, purpose): (&[TemplateRef<'_>], Purpose),
        shape: u32,
        mut operation: impl FnMut(&mut Section<'e>, (&Targets<'_>, Places)) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.keep_time_for_wide()?;
        self.judging(template, &mut Verdicts::default(), |verdicts| {
            self.retry(|| {
                let mut first_look = FirstLook::default();
                loop {
                    let targets = self.targets_judged(template, purpose, verdicts);
                    let shapes = targets.all.iter().map(|target| target.shape);
                    let (mut section, places) = self.lock_to_put(shapes.chain([shape]), 2)?;
                    if self.outdated(&targets) {
                        continue;
                    }
                    if first_look.needs_recall(section.view(), &targets) {
                        drop(section);
                        self.recall()?;
                        continue;
                    }
                    let missing = verdicts.missing(self, &section, &targets.all, Among::Held);
                    if let Some(unknown) = missing {
                        return Ok(Judged::Unknown(unknown));
                    }
                    let result = operation(&mut section, (&targets, places))?;
                    section.commit()?;
                    return Ok(Judged::Done(result));
                }
            })
        })
    }
}
