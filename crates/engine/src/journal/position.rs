//! Where the last change of each thread stands: what it waits for that wants it on disk.

use std::cell::RefCell;

use crate::store::Store;

/// Most spaces that a thread remembers: far more than it changes between a change and the question where it stands.
const SPACES_MAX: usize = 64;

thread_local! {
    /// The numbers of mappings, and a position in each, in the order of the first changes.
    static LAST: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
}

/// Notes that a change of this thread stands at `position`.
pub(crate) fn note(store: &Store, position: u64) {
    let number = store.memory.mapping().number();
    LAST.with_borrow_mut(|all| {
        if let Some((_, last)) = all.iter_mut().find(|(own, _)| *own == number) {
            *last = position;
            return;
        }
        if all.len() == SPACES_MAX {
            all.remove(0);
        }
        all.push((number, position));
    });
}

/// Where the last change stands that this thread has made in a space; 0 if there is none.
pub(crate) fn of_this_thread(store: &Store) -> u64 {
    let number = store.memory.mapping().number();
    LAST.with_borrow(|all| {
        all.iter().find(|(own, _)| *own == number).map_or(0, |(_, position)| *position)
    })
}
