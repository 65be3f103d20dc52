//! What was begun through a handle, and ends when that is closed (rule L5). Claims and transactions of an engine here are found
//! there, by the number of the handle. Here is the rest: what is elsewhere, and subscriptions.

use std::sync::{Arc, Weak};

use tupelo_protocol::{Kept, Operation, Settlement};
use tupelo_shm::fork_local::ForkLocal;

use crate::subscribe::Told;

/// What a handle has open. Each process has its own: what its parent began is its parent's to end.
#[derive(Default)]
pub(crate) struct Opened {
    subscriptions: ForkLocal<Vec<Weak<Told>>>,
    /// Claims and transactions.
    elsewhere: ForkLocal<Vec<Weak<dyn Kept>>>,
}

/// Adds one, and forgets those that have gone, each time that there are twice as many.
fn add<T: ?Sized>(all: &mut Vec<Weak<T>>, one: Weak<T>) {
    if all.len() == all.capacity() {
        all.retain(|one| one.strong_count() > 0);
    }
    all.push(one);
}

impl Opened {
    pub(crate) fn add_subscription(&self, told: &Arc<Told>) {
        add(self.subscriptions.lock(|_| None).content(), Arc::downgrade(told));
    }

    pub(crate) fn add_elsewhere(&self, kept: &Arc<dyn Kept>) {
        add(self.elsewhere.lock(|_| None).content(), Arc::downgrade(kept));
    }

    /// Ends all of it. Waits for no answer from elsewhere: what comes later over the same connection finds it done.
    pub(crate) fn end(&self) {
        let told = std::mem::take(self.subscriptions.lock(|_| None).content());
        told.iter().filter_map(Weak::upgrade).for_each(|told| told.end());
        let kept = std::mem::take(self.elsewhere.lock(|_| None).content());
        let abort =
            Operation::Settle(Settlement::Abort { reason: "the space was closed by the holder" });
        kept.iter().filter_map(Weak::upgrade).for_each(|kept| kept.post(&abort));
    }
}
