//! Ages that compare across shapes (rule T2): a tuple's place in the order of its shape is the moment of its put.
//!
//! Sequence numbers count the puts of a shape, which is cheapest. Once somebody has asked for the oldest or the youngest
//! tuple of several shapes, they are moments of the machine's clock instead, in all shapes: *stamps*. A stamp is greater
//! than any count, so tuples from before are older, and a shape's order goes on. In a space with a journal sequence
//! numbers count the puts of all shapes, so they compare as they are.

use std::sync::atomic::Ordering;

use tupelo_shm::{View, clock};

use crate::store::Store;
use crate::store::multi_shape::{STAMPS, multi_shape_line};
use crate::store::partition::{LAST_STAMP, Partition};

/// Marks a sequence number that is a moment, in nanoseconds.
pub(crate) const STAMPED: u64 = 1 << 63;

/// From now on, puts are stamped. For good: a hint without the log, which only ever changes once.
pub(crate) fn begin(store: &Store) {
    let view = store.memory.view();
    if !have_begun(&view) && !store.journal.is_on() {
        // Relaxed: who puts at the same time is not ordered with this call, and the lock of a partition orders the others.
        multi_shape_line(&view).word(STAMPS).store(1, Ordering::Relaxed);
    }
}

/// Whether puts are stamped.
#[inline(always)]
pub(crate) fn have_begun(view: &View<'_>) -> bool {
    // In the line of the multi-shape waiters, since a put looks at that in any case.
    multi_shape_line(view).load(STAMPS) != 0
}

/// The next stamp of a partition that is locked: now, or the moment at which the tuple was due.
#[cold] // As a rule: most spaces have none.
#[inline(never)]
pub(crate) fn next(partition: Partition<'_>, due_ns: Option<u64>) -> u64 {
    let moment = STAMPED | due_ns.unwrap_or_else(clock::monotonic_ns);
    // A clock may stand still, and be set back where a machine is moved. A number that was skipped does no harm: no log.
    let stamp = moment.max(partition.page().load64(LAST_STAMP).wrapping_add(1));
    partition.page().init64(LAST_STAMP, stamp);
    stamp
}
