//! How many tuples there are: as they stand, or for sure.

use tupelo_shm::View;

use crate::store::partition::{self, Partition};
use crate::store::registry;

/// How often the tuples of a shape are counted anew while somebody changes them: for longer than a small section.
const COUNTS_MAX: usize = 200;

/// Tuples in the space: in the lists, held, dead, or not visible yet. As they stand, with what somebody is about to change,
/// or to undo.
pub(crate) fn tuples(view: &View<'_>) -> u64 {
    (0..registry::count(view)).map(|shape| tuples_of(view, shape)).sum()
}

/// As [`tuples`], for who must not be wrong. `None` if somebody is inside of a partition for longer than a small section.
pub(crate) fn tuples_settled(view: &View<'_>) -> Option<u64> {
    (0..registry::count(view)).map(|shape| tuples_settled_of(view, shape)).sum()
}

/// The tuples of a shape. `None` if somebody is inside of its partition for longer than a small section: it may be dead, and
/// what it did undone by the next.
pub(crate) fn tuples_settled_of(view: &View<'_>, shape: u32) -> Option<u64> {
    let scope = partition::scope_of(shape);
    for _ in 0..COUNTS_MAX {
        if let Some(turn) = view.begin_read(scope) {
            let count = tuples_of(view, shape);
            if view.unchanged(scope, turn) {
                return Some(count);
            }
        }
        std::hint::spin_loop();
    }
    None
}

/// The tuples of a shape, as they stand.
pub(crate) fn tuples_of(view: &View<'_>, shape: u32) -> u64 {
    let page = Partition::of_shape(view, shape).page();
    let counts =
        [partition::LIVE, partition::HELD, partition::DEAD_COUNT, partition::DELAYED_COUNT];
    counts.into_iter().map(|count| u64::from(page.load(count))).sum()
}
