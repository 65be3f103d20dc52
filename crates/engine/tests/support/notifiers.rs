//! Waiters that an event loop has, and which of them keeps the time.

use std::sync::Arc;
use std::time::Duration;

use tupelo_engine::{Engine, LeaseTerms, Notifier};

use super::job;

/// Waits as an event loop does: listens, waits for the descriptor, drains.
pub(crate) fn next_ready(notifier: &Notifier) -> Vec<u32> {
    loop {
        if notifier.listen() {
            let mut fds = [rustix::event::PollFd::new(notifier, rustix::event::PollFlags::IN)];
            let slice = notifier.next_look();
            let timeout =
                rustix::event::Timespec { tv_sec: 0, tv_nsec: i64::from(slice.subsec_nanos()) };
            rustix::event::poll(&mut fds, Some(&timeout)).unwrap();
        }
        let mut ready = notifier.drain();
        ready.extend(notifier.look().unwrap());
        if !ready.is_empty() {
            ready.sort_unstable();
            ready.dedup();
            return ready;
        }
    }
}

/// What a blocked caller sleeps at most, who does not keep the time.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

pub(crate) fn notifiers<const N: usize>(engine: &Arc<Engine>) -> [Notifier; N] {
    std::array::from_fn(|_| engine.notifier().unwrap())
}

pub(crate) fn put_after(engine: &Engine, number: i64, delay: Duration) {
    engine.put_leased(&job(number), &LeaseTerms { lease: None, after: Some(delay) }).unwrap();
}

/// Puts what is due before anybody has slept for long.
pub(crate) fn put_due_soon(engine: &Engine) {
    put_after(engine, 1, Duration::from_millis(50));
}
