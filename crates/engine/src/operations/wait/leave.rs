//! Leaving the line: what was handed over by then is picked up, or goes back to its place (rules O3, T5).

use std::sync::atomic::Ordering;
use std::time::Duration;

use tupelo_shm::{Section, process::fork_generation};

use crate::base::error::Error;
use crate::operations::wait::{Waiter, room};
use crate::recovery::held::{self, Held};
use crate::recovery::{abandoned, provide};
use crate::store::Store;
use crate::waiters::deliver::Delivery;
use crate::waiters::events::Happening;
use crate::waiters::{LINKED, RECORD, SCOPE, STATE, WANT, Want, bell, cell, chain, patience};

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

    /// Leaves the line, as dropping does, and says whether that went well. Whoever calls it acts for the process
    /// that got in line.
    ///
    /// # Errors
    ///
    /// What the memory says. Then the place is left as soon as that goes.
    pub fn give_up(mut self) -> Result<(), Error> {
        self.cancel()
    }

    /// Leaves the line; later, if that fails.
    fn cancel(&mut self) -> Result<(), Error> {
        *self.done.get_mut() = true;
        abandoned::leave_line(&self.engine, self.number, self.want)
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

/// What became of a cell that has left its chain.
struct Left {
    /// The lock of what it waited for; 0 if there was none.
    scope: u32,
    /// Whether it was handed something before.
    has_record: bool,
    /// Whose turn it is to put now, if it waited for room.
    next: Option<u32>,
}

/// Takes a cell out of line, with what it was handed before.
fn leave_chain(store: &Store, number: u32) -> Result<Left, Error> {
    let scope = cell(&store.memory.view(), number).load(SCOPE);
    if scope == 0 {
        return Ok(Left { scope, has_record: false, next: None });
    }
    // Locked whatever the state says: a put may be handing over at this very moment, or may have
    // died over it.
    let mut section = Section::enter(&store.memory, scope)?;
    let own = cell(section.view(), number);
    let is_for_room = own.load(WANT) == Want::Room.number();
    if own.load(STATE) == LINKED {
        chain::unfile(&mut section, number);
    }
    section.commit()?;
    let has_record = own.load(RECORD) != 0;
    let next = if is_for_room { room::give_turn(section.view()) } else { None };
    Ok(Left { scope, has_record, next })
}

/// Takes a cell out of line, and puts back what it was handed.
pub(crate) fn withdraw(store: &Store, number: u32, want: Want) -> Result<(), Error> {
    let Left { scope, mut has_record, next } = leave_chain(store, number)?;
    if let Some(next) = next {
        bell::tell(store, next);
    }
    while has_record {
        provide::retry(store, || give_up_handed(store, number, want))?.wake(store);
        // Somebody may have been taking it back at the same time, and die over it.
        let section = Section::enter(&store.memory, scope)?;
        has_record = cell(section.view(), number).load(RECORD) != 0;
    }
    Ok(())
}

/// Puts back, or frees, what a cell was handed.
fn give_up_handed(store: &Store, number: u32, want: Want) -> Result<Delivery, Error> {
    let Some(held) = patience::lock_handed(store, number, false)? else {
        return Ok(Delivery::default());
    };
    let Held { mut section, stripe, reference, kinds } = held;
    let cell = cell(section.view(), number);
    section.set(cell, RECORD, 0);
    let delivery = if want == Want::Read {
        held::free_held(store, &mut section, stripe, reference, kinds.as_slice(), false)?
    } else {
        let back = (reference, Happening::Unheard);
        held::give_back(store, &mut section, stripe, back, kinds.as_slice())?
    };
    section.commit()?;
    Ok(delivery)
}
