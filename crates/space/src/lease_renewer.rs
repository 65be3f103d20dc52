//! Renewing claims and leases while their holder works: one thread per handle of a space. The thread is independent of
//! the locks that the holder's own threads wait for (an interpreter's lock, an event loop). It goes on after the handle
//! has gone, until nothing is kept alive any more. A renewed claim keeps the parts that renewals need, and no handle.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tupelo_shm::fork_local::ForkLocal;
use tupelo_shm::process::fork_generation;

use crate::error::Error;

/// Something that has to be renewed from time to time.
pub(crate) trait Renew: Send + Sync {
    /// Renews it, without waiting for a stopped process: others have to be renewed, too.
    fn renew(&self) -> RenewalOutcome;
}

/// The outcome of a renewal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenewalOutcome {
    /// It was made, or failed: the next one is due in its time.
    Renewed,
    /// A process stays where the renewal has to be made: the next one is due soon.
    Later,
    /// There is nothing left to renew.
    Ended,
}

/// When a failed renewal is tried again. Each failure doubles the delay, up to an eighth of the time between two
/// renewals. Finding out that a process stays inside has its price.
const LATER: Duration = Duration::from_millis(5);

/// The renewals of one handle, and the thread that makes them once there is one.
#[derive(Default)]
pub(crate) struct LeaseRenewer {
    /// The child of a fork has a copy of its parent's renewals, and not the thread: it leaves them alone.
    shared: ForkLocal<Arc<Shared>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By their numbers: ending one of ten thousand does not look at all of them.
    renewals: HashMap<u64, Renewal>,
    next_number: u64,
    has_thread: bool,
    /// When the thread looks again by itself; `None` while it sleeps until it is told.
    looks_at: Option<Instant>,
    /// Whether the handle has gone: then the thread ends with the last renewal.
    is_orphan: bool,
}

struct Renewal {
    what: Arc<dyn Renew>,
    every: Duration,
    due: Instant,
    /// When it is tried again if it cannot be made now.
    later: Duration,
}

/// Renews something as long as this lives.
pub struct KeepAlive {
    shared: Arc<Shared>,
    number: u64,
    fork_generation: u32,
}

impl std::fmt::Debug for KeepAlive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeepAlive").field("number", &self.number).finish_non_exhaustive()
    }
}

impl LeaseRenewer {
    /// Renews `what` three times as often as its `ttl` asks for.
    ///
    /// # Errors
    ///
    /// [`Error::System`] if there can be no thread.
    pub(crate) fn keep(
        &self,
        what: impl Renew + 'static,
        ttl: Duration,
    ) -> Result<KeepAlive, Error> {
        let what = Arc::new(what);
        let every = (ttl / 3).max(Duration::from_millis(1));
        let fork_generation = fork_generation();
        let shared = Arc::clone(self.shared.lock(|_| None).content());
        let mut state = shared.lock();
        if !state.has_thread {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name("tupelo renewer".into());
            thread.spawn(move || shared.run()).map_err(|error| Error::System {
                problem: format!("no thread for renewing claims: {error}"),
            })?;
            state.has_thread = true;
        }
        state.next_number += 1;
        let number = state.next_number;
        let due = Instant::now() + every;
        // Waking the thread costs more than a whole claim. With one `ttl` it is told about the first of many.
        let is_early = state.looks_at.is_none_or(|looks_at| due < looks_at);
        state.renewals.insert(number, Renewal { what, every, due, later: LATER });
        drop(state);
        if is_early {
            shared.changed.notify_one();
        }
        Ok(KeepAlive { shared, number, fork_generation })
    }
}

impl Drop for LeaseRenewer {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.get_mut() {
            shared.lock().is_orphan = true;
            shared.changed.notify_one();
        }
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        if self.fork_generation != fork_generation() {
            return;
        }
        let mut state = self.shared.lock();
        let renewal = state.renewals.remove(&self.number);
        let is_orphan = state.is_orphan;
        drop(state);
        // Without the lock: it may be the last that needs the space.
        drop(renewal);
        if is_orphan {
            self.shared.changed.notify_one();
        }
    }
}

impl State {
    /// Whether there is nothing to renew, and never will be.
    fn is_over(&self) -> bool {
        self.is_orphan && self.renewals.is_empty()
    }

    /// Notes the outcome of a renewal that was due at `now`; its guard may have gone meanwhile.
    fn note(&mut self, number: u64, outcome: RenewalOutcome, now: Instant) {
        let Some(renewal) = self.renewals.get_mut(&number) else { return };
        match outcome {
            RenewalOutcome::Renewed => (renewal.due, renewal.later) = (now + renewal.every, LATER),
            RenewalOutcome::Later => {
                renewal.due = now + renewal.later.min(renewal.every);
                renewal.later = (renewal.later * 2).min(renewal.every / 8).max(LATER);
            }
            RenewalOutcome::Ended => {
                self.renewals.remove(&number);
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A renewal that panicked is no reason to let all others run out.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        // An interpreter that is busy is no reason to let a claim at a server run out.
        tupelo_shm::surroundings::alone();
        let mut state = self.lock();
        while !state.is_over() {
            let now = Instant::now();
            let due: Vec<(u64, Arc<dyn Renew>)> = state
                .renewals
                .iter()
                .filter(|(_, renewal)| renewal.due <= now)
                .map(|(number, renewal)| (*number, Arc::clone(&renewal.what)))
                .collect();
            drop(state);
            // Without the lock: a thread that lets go of a claim must not wait for the others' renewals.
            let outcome: Vec<(u64, RenewalOutcome)> =
                due.into_iter().map(|(number, what)| (number, what.renew())).collect();
            state = self.lock();
            for (number, outcome) in outcome {
                state.note(number, outcome, now);
            }
            state = self.sleep(state);
        }
    }

    /// Waits until the next renewal is due, or something has changed.
    fn sleep<'s>(&self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        if state.is_over() {
            return state;
        }
        state.looks_at = state.renewals.values().map(|renewal| renewal.due).min();
        match state.looks_at {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(due) => {
                let left = due.saturating_duration_since(Instant::now());
                let waited = self.changed.wait_timeout(state, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
    use std::time::{Duration, Instant};

    use tupelo_crashtest::{Exit, fork};

    use super::{LATER, LeaseRenewer, Renew, Renewal, RenewalOutcome, State};

    /// Far beyond what any of these waits needs.
    const FORGOTTEN: Duration = Duration::from_secs(60);

    /// Tells of each renewal.
    struct Told(Sender<()>);

    impl Renew for Told {
        fn renew(&self) -> RenewalOutcome {
            if self.0.send(()).is_ok() { RenewalOutcome::Renewed } else { RenewalOutcome::Ended }
        }
    }

    /// Tells which it is at each renewal, which comes to this.
    struct Named(&'static str, RenewalOutcome, Sender<&'static str>);

    impl Renew for Named {
        fn renew(&self) -> RenewalOutcome {
            if self.2.send(self.0).is_ok() { self.1 } else { RenewalOutcome::Ended }
        }
    }

    fn kept(renewer: &LeaseRenewer) -> (super::KeepAlive, Receiver<()>) {
        let (sender, receiver) = channel();
        (renewer.keep(Told(sender), Duration::from_millis(3)).unwrap(), receiver)
    }

    #[test]
    fn what_is_kept_alive_is_renewed_after_the_handle_has_gone_until_its_guard_goes() {
        let renewer = LeaseRenewer::default();
        let (first, told) = kept(&renewer);
        let (second, told_too) = kept(&renewer);
        drop(renewer);
        (0..3).for_each(|_| told.recv_timeout(FORGOTTEN).unwrap());
        drop(first);
        (0..3).for_each(|_| told_too.recv_timeout(FORGOTTEN).unwrap());
        drop(second);
        // Nothing holds the renewed object, neither the guards nor the thread: the other end is gone.
        for told in [told, told_too] {
            while told.recv_timeout(FORGOTTEN).is_ok() {}
            assert_eq!(told.recv_timeout(FORGOTTEN), Err(RecvTimeoutError::Disconnected));
        }
    }

    #[test]
    fn what_can_not_be_renewed_now_is_tried_again_soon_and_the_others_have_their_turn() {
        let renewer = LeaseRenewer::default();
        let (sender, told) = channel();
        let ttl = Duration::from_millis(300);
        let _late =
            renewer.keep(Named("late", RenewalOutcome::Later, sender.clone()), ttl).unwrap();
        let _renewed =
            renewer.keep(Named("renewed", RenewalOutcome::Renewed, sender), ttl).unwrap();
        // Some eight times between two renewals of the other one, unless this machine is busy.
        let (mut tries, mut tries_most) = (0, 0);
        let mut renewals = 0;
        while renewals == 0 || renewals < 20 && tries_most < 5 {
            if told.recv_timeout(FORGOTTEN).unwrap() == "late" {
                tries += 1;
            } else {
                (renewals, tries) = (renewals + 1, 0);
            }
            tries_most = tries_most.max(tries);
        }
        assert!(tries_most >= 5, "{tries_most} tries between two of {renewals} renewals");
    }

    #[test]
    fn what_can_not_be_renewed_for_long_is_tried_less_often() {
        let mut state = State::default();
        let every = Duration::from_secs(1);
        let (sender, _told) = channel();
        let what = Arc::new(Named("late", RenewalOutcome::Later, sender));
        let now = Instant::now();
        state.renewals.insert(7, Renewal { what, every, due: now, later: LATER });
        let mut note = |outcome| {
            state.note(7, outcome, now);
            state.renewals[&7].due.duration_since(now).as_millis()
        };
        let waits: Vec<_> = (0..7).map(|_| note(RenewalOutcome::Later)).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 125, 125]);
        assert_eq!((note(RenewalOutcome::Renewed), note(RenewalOutcome::Later)), (1_000, 5));
    }

    #[test]
    fn the_child_of_a_fork_waits_for_no_lock_of_its_parents_and_keeps_alive_what_is_its_own() {
        let renewer = LeaseRenewer::default();
        let (guard, told) = kept(&renewer);
        told.recv_timeout(FORGOTTEN).unwrap();
        // As another thread may have it at that moment.
        let locked = renewer.shared.lock(|_| None);
        let child = fork(|| {
            let (_own, told) = kept(&renewer);
            (0..3).for_each(|_| told.recv_timeout(FORGOTTEN).unwrap());
        });
        drop(locked);
        assert_eq!(child.wait(), Exit::Done);
        drop(guard);
    }
}
