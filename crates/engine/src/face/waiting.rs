//! Places in the wait queue, and notifiers for many of them.

use std::sync::Arc;
use std::time::Duration;

use tupelo_tuple::TemplateRef;

use crate::Engine;
use crate::base::error::Error;
use crate::base::want::Want;
use crate::operations::wait::notifier::{self, Notifier};
use crate::operations::wait::{self, Waiter, room};
use crate::waiters::nodes;

impl Engine {
    /// Joins the wait queue for a match. If there is one already, it is handed over at once.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] at the maximum of waiters or shapes; what the memory says.
    pub fn waiter(
        self: &Arc<Self>,
        template: &[TemplateRef<'_>],
        want: Want,
    ) -> Result<Waiter, Error> {
        wait::waiter(self, template, want)
    }

    /// Joins the wait queue to claim a match. A tuple that is handed over is kept for as long as the claim may be silent,
    /// `ttl`, and at least a tenth of a second. If it is not picked up by then, it goes to the next in the wait queue, and the
    /// waiter is behind all others (rule K2).
    ///
    /// # Errors
    ///
    /// As [`Engine::waiter`].
    pub fn claimant(
        self: &Arc<Self>,
        template: &[TemplateRef<'_>],
        ttl: Duration,
    ) -> Result<Waiter, Error> {
        wait::claimant(self, template, ttl)
    }

    /// Joins the wait queue for room. [`Waiter::wait`] returns true when it is worth trying, and now and then in vain.
    ///
    /// # Errors
    ///
    /// As [`Engine::waiter`].
    pub fn room(self: &Arc<Self>) -> Result<Waiter, Error> {
        room::room(self)
    }

    /// Lets every blocked caller of this process, and every notifier, look around now: one whose handle was closed goes.
    ///
    /// # Errors
    ///
    /// What the memory says: they look around after a slice of their sleep, too.
    pub fn rouse(&self) -> Result<(), Error> {
        nodes::rouse_own(self)
    }

    /// Gets a notifier.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] at the maximum of waiters; [`Error::System`] if there can be no socket.
    pub fn notifier(self: &Arc<Self>) -> Result<Notifier, Error> {
        notifier::notifier(self)
    }
}
