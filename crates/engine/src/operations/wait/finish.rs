//! Picking up what a waiter was handed: as a take or a read would.

use tupelo_shm::Section;
use tupelo_tuple::TupleView;

use crate::base::error::Error;
use crate::base::visitor::visitor_once;
use crate::base::want::Want;
use crate::journal;
use crate::operations::take;
use crate::operations::wait::{Outcome, Waiter};
use crate::recovery::held::{self, Held};
use crate::recovery::{handed, provide};
use crate::store::Store;
use crate::store::in_flight::InFlight;
use crate::store::partition::Partition;
use crate::store::record::{self, ImageBuffer, Record};
use crate::store::registry::Kinds;
use crate::waiters::deliver::Delivery;
use crate::waiters::{RECORD, chain, node};

impl Waiter {
    /// Picks up what [`Waiter::wait`] announced.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `visitor` says; for a take whose visitor fails as in
    /// [`crate::Engine::try_take`], the tuple goes back.
    pub fn finish<R, E: From<Error>>(
        self,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut waiter = self;
        let mut once = visitor_once(visitor);
        loop {
            while waiter.record() == 0 {
                waiter.wait(None)?;
            }
            match waiter.finish_now(&mut once)? {
                Outcome::Done(result) => return Ok(result),
                Outcome::Waits(again) => waiter = again,
            }
        }
    }

    /// As [`Waiter::finish`], without waiting: if no tuple is there, the waiter stays in the wait queue.
    ///
    /// # Errors
    ///
    /// As [`Waiter::finish`].
    pub fn finish_now<R, E: From<Error>>(
        self,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        if self.record() == 0 && !self.look_itself()? {
            return Ok(Outcome::Waits(self));
        }
        // On time: what was due before the take is told before it.
        let Some(held) = handed::lock_handed(&self.engine, self.number, true)? else {
            // The put that handed it over died and was undone.
            return Ok(Outcome::Waits(self));
        };
        let Held { mut section, partition, reference, kinds: shape_kinds } = held;
        let kinds = shape_kinds.as_slice();
        let node = node(section.view(), self.number);
        section.set(node, RECORD, 0);
        let header = record::header(section.view(), reference);
        // Who is told of a take may need room first: then the tuple is held until there is.
        if record::must_be_held(header, shape_kinds.are_refusable())
            || self.want == Want::Take && chain::watching_removals(&section, partition)
            || !journal::has_room_for_take(&self.engine, section.view())
        {
            let in_flight = InFlight::begin(&mut section, reference)?;
            let header = record::header(section.view(), reference);
            // A copy is freed if this thread dies, a tuple goes back.
            let copied = self.want == Want::Read;
            let state = if copied { record::COPIED } else { record::TAKEN };
            section.set(header, record::STATE, state);
            section.commit().map_err(Error::from)?;
            drop(section);
            self.release();
            return take::visit(
                &self.engine,
                partition.scope(),
                reference,
                (&in_flight, copied),
                kinds,
                visitor,
            )
            .map(Outcome::Done);
        }
        let mut buffer = ImageBuffer::new();
        let tuple = buffer.copy(section.view(), reference, kinds);
        let delivery = self.settle(&mut section, partition, reference, tuple.kinds())?;
        journal::commit_take(&self.engine, &mut section)?;
        drop(section);
        delivery.wake(&self.engine);
        self.release();
        visitor(tuple.of_class(shape_kinds.class())).map(Outcome::Done)
    }

    /// Gives the record that was handed over to `hold`; `None` if the put that did so died and was undone.
    pub(crate) fn hold_handed<'e, R>(
        &self,
        store: &'e Store,
        mut hold: impl FnMut(&mut Section<'e>, Partition<'e>, Record<'e>, &Kinds) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        provide::retry(store, || self.hold_handed_once(store, &mut hold))
    }

    fn hold_handed_once<'e, R>(
        &self,
        store: &'e Store,
        hold: &mut impl FnMut(&mut Section<'e>, Partition<'e>, Record<'e>, &Kinds) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        let Some(picked_up) = handed::lock_handed(store, self.number, true)? else {
            return Ok(None);
        };
        let Held { mut section, partition, reference, kinds } = picked_up;
        let node = node(section.view(), self.number);
        section.set(node, RECORD, 0);
        let record = record::at(section.view(), reference);
        let result = hold(&mut section, partition, record, &kinds)?;
        journal::commit(store, &mut section)?;
        Ok(Some(result))
    }

    /// Frees the record that was picked up.
    fn settle<'m>(
        &'m self,
        section: &mut Section<'m>,
        partition: Partition<'m>,
        reference: u32,
        kinds: &[tupelo_tuple::Kind],
    ) -> Result<Delivery, Error> {
        let taken = self.want == Want::Take;
        held::free_held(&self.engine, section, partition, reference, kinds, taken)
    }
}
