//! Picking up what a waiter was handed, for a transaction.

use crate::base::error::Error;
use crate::operations::targets::TupleBuffer;
use crate::operations::wait::{Outcome, Waiter};
use crate::protocols::transaction::Term;
use crate::protocols::transaction::hold::{self, Enlisted};

impl Waiter {
    /// Takes the tuple that [`Waiter::wait`] announced for a transaction, without waiting. Returns also whether it was
    /// copied to `copy`, as a short one is.
    pub(crate) fn finish_enlisted(
        self,
        term: Term,
        copy: &mut TupleBuffer,
    ) -> Result<Outcome<(Enlisted, bool)>, Error> {
        if self.record() == 0 && !self.look_itself()? {
            return Ok(Outcome::Waits(self));
        }
        let engine = &*self.engine;
        let enlisted = self.hold_handed(engine, |section, partition, record, kinds| {
            let is_copied = copy.fill_short(section.view(), record, kinds);
            Ok((hold::enlist_held(engine, section, partition, record, term)?, is_copied))
        })?;
        let Some(enlisted) = enlisted else { return Ok(Outcome::Waits(self)) };
        self.release();
        Ok(Outcome::Done(enlisted))
    }
}
