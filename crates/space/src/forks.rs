//! Forks, beside what all spaces of a process share: the tables of classes and conditions.

use std::cell::RefCell;
use std::sync::Once;

use tupelo_shm::{AtFork, at_fork};

thread_local! {
    /// Ends the locks of the tables, while this thread forks.
    static UNLOCK: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

struct Tables;

impl AtFork for Tables {
    fn before(&self) {
        let locked = tupelo_tuple::before_fork();
        let unlock = Box::new(move || drop(locked));
        // Fails only in a thread that is already being torn down: then the child takes its chance.
        let _ = UNLOCK.try_with(|held| held.replace(Some(unlock)));
    }

    fn after(&self, _is_child: bool) {
        if let Ok(Some(unlock)) = UNLOCK.try_with(RefCell::take) {
            unlock();
        }
    }
}

/// Sees to it that a fork finds no table locked by another thread. Called before anything else watches forks: who uses
/// a file has a lock of its own then, and may wait for a table.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| at_fork(&Tables));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use tupelo_crashtest::{Exit, fork};
    use tupelo_tuple::Class;

    #[test]
    fn the_child_of_a_fork_waits_for_no_table_that_another_thread_was_at() {
        // In a process of its own, since the table is full after it.
        let all = fork(|| {
            super::watch();
            let class = |name: &str| Class::new(name, [""; 0], ["id"]);
            class("Known").unwrap();
            let is_over = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    for number in 0_u64.. {
                        // Refused, in the end: that locks the table as well.
                        let _ = class(&format!("Job{number}"));
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
                for _ in 0..100 {
                    let child = fork(|| assert_eq!(class("Known").unwrap().name(), "Known"));
                    assert_eq!(child.wait(), Exit::Done);
                }
                is_over.store(true, Ordering::Relaxed);
            });
        });
        assert_eq!(all.wait(), Exit::Done);
    }
}
