//! When the next timer of a space is due.

use std::sync::atomic::{AtomicU64, Ordering};

use tupelo_shm::{Span, View};

use crate::base::layout::head;
use crate::store::Store;

/// When the next timer is due, in milliseconds (two words); 0: never.
pub(crate) const EARLIEST_MS: usize = 0;

pub(crate) fn earliest<'m>(view: &View<'m>) -> &'m AtomicU64 {
    line(view).double(EARLIEST_MS)
}

/// Lowers a time, of which 0 is never. Returns whether it was later.
pub(crate) fn lower(word: &AtomicU64, due_ms: u64) -> bool {
    let earlier = |known_ms: u64| (known_ms == 0 || due_ms < known_ms).then_some(due_ms);
    word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, earlier).is_ok()
}

pub(crate) fn line<'m>(view: &View<'m>) -> Span<'m, 64> {
    view.span(head::TIME)
}

/// Notes that a timer is due at `due_ms`. If that is the earliest of the space, who keeps the time is told.
pub(crate) fn note_due(store: &Store, due_ms: u64) {
    if lower(earliest(&store.memory.view()), due_ms) {
        (store.callbacks.notify_leader)(store, due_ms);
    }
}
