//! What keeps SQLite out of forks.
//!
//! A connection must not cross a fork: SQLite keeps a list of the locks that its process has, and the child would believe to have
//! those of its parent. So before a fork all connections of the process are closed, and nobody uses SQLite until it has happened.
//! Parent and child open theirs again when they need them.

use std::cell::RefCell;
use std::sync::{
    Arc, Mutex, MutexGuard, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};

use tupelo_shm::{AtFork, at_fork};

use crate::slot::Slot;

/// Who uses SQLite reads; who forks writes.
static GATE: RwLock<()> = RwLock::new(());
/// Where this process has connections. Locked by who is inside, and for a moment only.
static SLOTS: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());

thread_local! {
    /// Keeps all others from SQLite while this thread forks.
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// The right of this thread to use SQLite: no fork comes between. Not to be asked for by who has it.
#[derive(Debug)]
pub(crate) struct Inside {
    _gate: RwLockReadGuard<'static, ()>,
}

/// Waits for a fork that is under way, and keeps the next one waiting.
pub(crate) fn enter() -> Inside {
    static WATCHED: Once = Once::new();
    // Before the first connection there is nothing that a fork could harm.
    WATCHED.call_once(|| at_fork(&Forks));
    Inside { _gate: GATE.read().unwrap_or_else(PoisonError::into_inner) }
}

/// Notes where this process may have a connection.
pub(crate) fn add(_inside: &Inside, slot: &Arc<Slot>) {
    let mut slots = slots();
    slots.retain(|one| one.strong_count() > 0);
    slots.push(Arc::downgrade(slot));
}

fn slots() -> MutexGuard<'static, Vec<Weak<Slot>>> {
    SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Forks;

impl AtFork for Forks {
    fn before(&self) {
        let gate = GATE.write().unwrap_or_else(PoisonError::into_inner);
        slots().iter().filter_map(Weak::upgrade).for_each(|slot| slot.disconnect());
        // Fails only in a thread that is already being torn down: then the child takes its chance.
        let _ = FORKING.try_with(|forking| forking.replace(Some(gate)));
    }

    fn after(&self, is_child: bool) {
        if is_child {
            slots().iter().filter_map(Weak::upgrade).for_each(|slot| slot.forget_flusher());
        }
        let _ = FORKING.try_with(RefCell::take);
    }
}
