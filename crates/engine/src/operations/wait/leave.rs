//! Leaving the wait queue: what was handed over by then is picked up, or goes back to its place (rules O3, T5).

use std::sync::atomic::Ordering;
use std::time::Duration;

use tupelo_shm::process::fork_generation;

use crate::base::error::Error;
use crate::operations::wait::Waiter;
use crate::recovery::abandoned;
use crate::recovery::withdraw::leave_chain;

impl Waiter {
    /// As [`Waiter::wait_while`], and ends the wait after it ([`Waiter::end_wait`]): for a call that ends then.
    ///
    /// # Errors
    ///
    /// As [`Waiter::wait`].
    pub fn last_wait(
        &self,
        timeout: Option<Duration>,
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, Error> {
        Ok(self.wait_while(timeout, goes_on)? || self.end_wait()?)
    }

    /// Is handed nothing from now on. What it was handed before has come in time, and is to be picked up. So a call that ends
    /// without a tuple has kept none from others meanwhile. Returns whether there is one; to wait again would be in vain.
    ///
    /// # Errors
    ///
    /// As [`Waiter::wait`].
    pub fn end_wait(&self) -> Result<bool, Error> {
        // Relaxed: it guards nothing, and whoever ends a wait is who waits.
        self.has_ended.store(true, Ordering::Relaxed);
        // A watch is handed nothing.
        Ok(!self.is_watch() && leave_chain(&self.engine, self.number)?.has_record)
    }

    /// Leaves the wait queue, as dropping does, and says whether that went well. Whoever calls it acts for the process
    /// that joined the wait queue.
    ///
    /// # Errors
    ///
    /// What the memory says. Then the place is left as soon as that goes.
    pub fn give_up(mut self) -> Result<(), Error> {
        self.cancel()
    }

    /// Leaves the wait queue; later, if that fails.
    fn cancel(&mut self) -> Result<(), Error> {
        *self.done.get_mut() = true;
        abandoned::leave_queue(&self.engine, self.number, self.want)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if !*self.done.get_mut() && self.fork_generation == fork_generation() {
            // A failure here means that the space is damaged or stalled; the next call on it says so.
            let _ = self.cancel();
        }
    }
}
