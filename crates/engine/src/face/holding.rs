//! What stays in somebody's hands beyond a call: leases, claims, dead letters; and subscriptions.

use std::sync::Arc;
use std::time::Duration;

use tupelo_tuple::{TemplateRef, TupleRef, TupleView};

use crate::Engine;
use crate::base::error::Error;
use crate::base::terms::LeaseTerms;
use crate::index::find::Order;
use crate::protocols::claim::dead::{self, DeadLetterRecord};
use crate::protocols::claim::{self, Claim, ClaimTerms};
use crate::protocols::holders_gone;
use crate::protocols::lease::{self, Lease};
use crate::protocols::subscription::{self, Subscription};
use crate::waiters::events::SubscribeTerms;

impl Engine {
    /// Shows the dead tuples that match to `visitor`, the oldest of each shape first, with what became of them.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `visitor` says.
    pub fn dead<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        visitor: impl FnMut(TupleView<'_>, DeadLetterRecord) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        dead::dead(self, template, visitor)
    }

    /// How many dead tuples match. Copies none of them, nor what became of them.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn count_dead(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        dead::count_dead(self, template)
    }

    /// Puts the dead tuples that match back at their places, as if nobody had tried yet. Returns how many.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceFull`]: none was put back.
    pub fn requeue(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        dead::requeue(self, template)
    }

    /// Claims a match and gives it to `visitor`, which reads it where it lies; `None` if nothing matches. Does not
    /// wait.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `visitor` says: then the tuple is back, and no attempt was counted.
    pub fn try_claim<R, E: From<Error>>(
        self: &Arc<Self>,
        template: &[TemplateRef<'_>],
        order: Order,
        terms: &ClaimTerms,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<(Claim, R)>, E> {
        claim::try_claim(self, template, order, terms, visitor)
    }

    /// Gives back what was claimed through the handle with this [number](crate::Handle::number) in this process, and what is taken
    /// or locked by its transactions. Each such claim has failed, each transaction finds out at its next call.
    ///
    /// # Errors
    ///
    /// What the memory says: the rest comes back when its time is over.
    pub fn give_up(&self, handle: u32) -> Result<(), Error> {
        holders_gone::give_up(self, handle)
    }

    /// Closes the descriptors that are kept for later calls, when a handle is closed that others may refer to for long. A call
    /// that needs them opens them anew.
    pub fn close_descriptors(&self) {
        self.memory.close_descriptors();
    }

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
        lease::put_leased(self, tuple, terms)
    }

    /// As [`Engine::put_leased`], unless something matches `unless`, as for [`Engine::put_if_absent`]. Returns `None` then, and
    /// nothing was stored.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`].
    pub fn put_if_absent_leased<'f>(
        &self,
        tuple: impl Into<TupleRef<'f>>,
        unless: &[TemplateRef<'_>],
        terms: &LeaseTerms,
    ) -> Result<Option<Lease>, Error> {
        lease::put_if_absent_leased(self, tuple, unless, terms)
    }

    /// Lets the tuple stay for `length` from now, or from when it is visible; `None`: for ever (rule L2).
    ///
    /// # Errors
    ///
    /// [`Error::LeaseExpired`] if it is not there any more.
    pub fn renew(&self, lease: &Lease, length: Option<Duration>) -> Result<(), Error> {
        lease::renew(self, lease, length)
    }

    /// As [`Engine::renew`], except that a tuple that stays longer as it is does so.
    ///
    /// # Errors
    ///
    /// As [`Engine::renew`].
    pub fn prolong(&self, lease: &Lease, length: Duration) -> Result<(), Error> {
        lease::prolong(self, lease, length)
    }

    /// As [`Engine::prolong`], unless somebody stays where the tuple is. Returns whether it did.
    ///
    /// # Errors
    ///
    /// As [`Engine::renew`].
    pub fn try_prolong(&self, lease: &Lease, length: Duration) -> Result<bool, Error> {
        lease::try_prolong(self, lease, length)
    }

    /// Removes the tuple (rule L2).
    ///
    /// # Errors
    ///
    /// [`Error::LeaseExpired`] if it is not there any more; [`Error::LeaseHeld`] if somebody has it in hands, and nothing
    /// has changed: it may be consumed, or come back, and its lease goes on.
    pub fn cancel(&self, lease: &Lease) -> Result<(), Error> {
        lease::cancel(self, lease)
    }

    /// How long the tuple will stay, if its lease ends.
    ///
    /// # Errors
    ///
    /// [`Error::LeaseExpired`] if it is not there any more.
    pub fn expires_in(&self, lease: &Lease) -> Result<Option<Duration>, Error> {
        lease::expires_in(self, lease)
    }

    /// Begins to write down what happens to tuples that match: everything after a moment of this call, nothing before
    /// it (rule N3).
    ///
    /// # Errors
    ///
    /// [`Error::SpaceFull`] if there is no room for the events; [`Error::LimitExceeded`] beyond [`crate::EVENTS_MAX`],
    /// [`crate::EVENT_BYTES_MAX`] or the maximum of waiters.
    pub fn subscribe(
        self: &Arc<Self>,
        template: &[TemplateRef<'_>],
        terms: &SubscribeTerms,
    ) -> Result<Subscription, Error> {
        subscription::subscribe(self, template, terms)
    }
}
