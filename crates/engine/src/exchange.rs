//! Atomic check-and-change: `swap` and `put_if_absent` (rule O8).

use tupelo_shm::Section;
use tupelo_tuple::{TemplateRef, TupleRef, TupleView};

use crate::Engine;
use crate::error::Error;
use crate::links;
use crate::put::Incoming;
use crate::record;
use crate::step;
use crate::stripe::{self, Stripe};
use crate::targets::{Targets, TupleCopy};
use crate::waiters::deliver::Delivery;

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
        let stored = self.with_targets(unless, shape, |section, targets| {
            if targets.all.iter().any(|target| self.has_match(section, target)) {
                return Ok(None);
            }
            self.store_here(section, &incoming, shape).map(Some)
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
    /// As [`Engine::put`]: nothing changed. What `sink` says: the swap has happened.
    pub fn try_swap<'f, R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        to: impl Into<TupleRef<'f>>,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let incoming = self.incoming(to.into())?;
        let shape = self.shape(&incoming.kinds)?;
        let swapped = self.with_targets(template, shape, |section, targets| {
            let first = targets.all.iter().find_map(|target| {
                target
                    .first_matches(section.view(), self.seed, 1)
                    .first()
                    .map(|reference| (target, *reference))
            });
            let Some((target, reference)) = first else { return Ok(None) };
            let copy = TupleCopy::new(section.view(), reference, target.kinds);
            let stripe = Stripe::of_shape(section.view(), target.shape);
            section.focus(stripe.scope());
            links::unlink(section, stripe, reference);
            // Frees last: a block that this section frees must not be filled in it again.
            let mut wakes = self.store_here(section, &incoming, shape)?;
            step::begin(section)?;
            section.focus(stripe.scope());
            let record = record::at(section.view(), reference);
            wakes.join(self.free_taken(section, stripe, record, target.kinds.as_slice())?);
            Ok(Some((copy, wakes)))
        })?;
        let Some((copy, wakes)) = swapped else { return Ok(None) };
        wakes.wake(self);
        sink(copy.view()).map(Some)
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

    /// Runs `operation` while the stripes that `template` concerns, and that of `shape`, are locked.
    fn with_targets<'e, R>(
        &'e self,
        template: &[TemplateRef<'_>],
        shape: u32,
        mut operation: impl FnMut(&mut Section<'e>, &Targets<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.retry(|| {
            loop {
                let targets = self.targets(template);
                let shapes = targets.all.iter().map(|target| target.shape);
                let mut section = self.lock_shapes(shapes.chain([shape]))?;
                if self.outdated(&targets) {
                    continue;
                }
                let result = operation(&mut section, &targets)?;
                section.commit()?;
                return Ok(result);
            }
        })
    }
}
