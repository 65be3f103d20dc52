//! Picking up what a waiter was handed, as a claim.

use std::sync::Arc;

use tupelo_tuple::TupleView;

use crate::base::error::Error;
use crate::operations::targets::TupleBuffer;
use crate::operations::wait::{Outcome, Waiter};
use crate::protocols::claim::{self, Claim, ClaimTerms, Claimant, Handle};

impl Waiter {
    /// Makes a claim of the tuple that [`Waiter::wait`] announced, and shows it to `visitor`, without waiting. If no
    /// tuple is there, or not any more ([`crate::Engine::claimant`]), the waiter is in the wait queue. For a waiter
    /// that wants to take.
    ///
    /// # Errors
    ///
    /// As [`crate::Engine::try_claim`].
    pub fn finish_claim<R, E: From<Error>>(
        self,
        terms: &ClaimTerms,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<(Claim, R)>, E> {
        let engine = Arc::clone(&self.engine);
        self.finish_claim_for(&engine, terms, visitor)
    }

    /// As [`Waiter::finish_claim`]; the claim keeps `handle`, which is of the waiter's space.
    ///
    /// # Errors
    ///
    /// As [`crate::Engine::try_claim`].
    pub fn finish_claim_for<H: Handle + Clone, R, E: From<Error>>(
        self,
        handle: &H,
        terms: &ClaimTerms,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<(Claim<H>, R)>, E> {
        if self.record() == 0 && !self.look_itself()? {
            return Ok(Outcome::Waits(self));
        }
        let engine = &*self.engine;
        let mut copy = TupleBuffer::new();
        let claimant = Claimant { handle: handle.number(), terms };
        let begun = self.hold_handed(engine, |section, partition, record, kinds| {
            claim::begin_claim(engine, section, partition, (record, kinds), claimant, &mut copy)
        })?;
        let Some(begun) = begun else { return Ok(Outcome::Waits(self)) };
        self.release();
        Claim::visit(handle, begun, &mut copy, visitor).map(Outcome::Done)
    }
}
