//! What an operation finds missing, and how it is got: memory, a longer log, time.

use tupelo_shm::Section;

use crate::Engine;
use crate::base::error::{Error, Need};
use crate::base::layout::head;
use crate::store::stripe::{self, Stripe};
use crate::store::{arena, blocks, registry};

/// What becomes of stripes in the middle of which somebody was stopped, where memory is looked for in all of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gathering {
    /// They are waited for, as every lock is: without what they keep the caller would be refused.
    Waits,
    /// They are left out: the caller can do without, or come back later.
    PassesOver,
}

impl Engine {
    /// Runs an operation until it has all that it needs. Whatever it finds missing is got while it locks no
    /// stripe, since the kernel may take a millisecond to find pages.
    #[inline]
    pub(crate) fn retry<R>(&self, operation: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        self.retry_by(Gathering::Waits, operation)
    }

    /// As [`Engine::retry`], where what is missing is looked for in that way.
    #[inline]
    pub(crate) fn retry_by<R>(
        &self,
        gathering: Gathering,
        mut operation: impl FnMut() -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut was_long = false;
        loop {
            match operation() {
                Err(Error::Need(need)) => {
                    was_long |= need == Need::Log;
                    self.provide(need, gathering)?;
                }
                done => {
                    if was_long {
                        self.return_log_reserve();
                    }
                    self.see_to_crowd();
                    return done;
                }
            }
        }
    }

    #[cold]
    pub(crate) fn provide(&self, need: Need, gathering: Gathering) -> Result<(), Error> {
        match self.provide_late(need, gathering) {
            Err(Error::SpaceFull(_)) if gathering == Gathering::Waits && self.anything_is_due() => {
                self.catch_up_all()?;
                self.provide_late(need, gathering)
            }
            done => done,
        }
    }

    /// As [`Engine::provide`], without a look at what is due: for what happens because it is.
    pub(crate) fn provide_late(&self, need: Need, gathering: Gathering) -> Result<(), Error> {
        match need {
            Need::Time => self.catch_up_all(),
            // Growth by very much needs a longer log itself.
            Need::Extents { count, end, committed } => {
                match self.retry_by(gathering, || self.grow(count, end, committed)) {
                    Err(Error::SpaceFull(_)) if self.gather(count, end, gathering)? => Ok(()),
                    done => done,
                }
            }
            Need::Reserve { count, committed } => {
                match self.retry_by(gathering, || self.grow_reserve(count, committed)) {
                    Err(Error::SpaceFull(_)) if self.gather_all(gathering)? => Ok(()),
                    done => done,
                }
            }
            Need::Table { scope, mask, keys, .. } => {
                let memory = need.of_memory(self.layout.extents_max);
                match self.provide_late(memory, Gathering::PassesOver) {
                    Err(Error::SpaceFull(_)) => self.postpone_growth(scope, mask, keys),
                    // Among the dead, which the put has nothing to do with: its own stripe it has had.
                    Err(error) if error.is_stall() => self.postpone_growth(scope, mask, keys),
                    done => done,
                }
            }
            Need::Log => self.lengthen_log(gathering),
            Need::EventRoom { cell, bytes } => self.make_event_room(cell, bytes),
        }
    }

    /// Gathers extents that nobody needs: what the dead had, and what stripes keep for the next tuple of
    /// some size. Returns whether more are free now, and `count` neighbouring ones among the first `end` are free.
    #[cold]
    fn gather(&self, count: u32, end: u32, gathering: Gathering) -> Result<bool, Error> {
        Ok(self.gather_all(gathering)? && arena::has(&self.memory.view(), &self.layout, count, end))
    }

    /// Gathers extents that nobody needs. Returns whether more are free now.
    #[cold]
    fn gather_all(&self, gathering: Gathering) -> Result<bool, Error> {
        let view = self.memory.view();
        let free_before = arena::line(&view).load(arena::FREE);
        if gathering == Gathering::Waits || self.nobody_stays()? {
            self.settle_all()?;
        }
        // Who is stopped may be in many of them: it is waited for once.
        let mut has_waited = false;
        for shape in 0..registry::count(&view) {
            self.retry_by(gathering, || {
                let scope = stripe::scope_of(shape);
                let entered = match gathering {
                    Gathering::Waits => Some(Section::enter(&self.memory, scope)?),
                    Gathering::PassesOver if has_waited => self.enter_if_free(scope)?,
                    Gathering::PassesOver => self.enter_in_time(scope)?,
                };
                let Some(mut section) = entered else {
                    has_waited = true;
                    return Ok(());
                };
                let stripe = Stripe::of_shape(section.view(), shape);
                blocks::free_empty(&mut section, &self.layout, stripe)?;
                section.commit()?;
                Ok(())
            })?;
        }
        Ok(arena::line(&view).load(arena::FREE) > free_before)
    }

    /// Whether nobody who lives stays inside of any lock that cleaning up after the dead may wait for, by a look.
    fn nobody_stays(&self) -> Result<bool, Error> {
        // Who is at the cleaning up is left to it, and is to be no other one's reason not to begin.
        for scope in self.scopes().filter(|scope| *scope != head::SWEEP_SCOPE) {
            if self.enter_if_free(scope)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
