//! Learning an index, until it has the memory that it needs.

use crate::base::error::Error;
use crate::index::learn::{RECORDS_PER_EXTENT_MAX, STEP_RECORDS, forget, learn_step};
use crate::recovery::provide::{self, Gathering};
use crate::store::Store;
use crate::store::partition::Partition;

/// Gives the partition with lock `scope` an index over `mask`, if it has room for one. Returns when the
/// index is ready, or when another process has taken the slot meanwhile.
///
/// # Errors
///
/// What the memory says; a space without room for an index keeps working without it, and so does one in which room can not
/// be looked for.
#[cold]
pub(crate) fn learn(store: &Store, scope: u32, mask: u32) -> Result<(), Error> {
    // Four times as many as it takes to walk through as many records as there is room for.
    let records_max = u64::from(store.layout.extents_max) * RECORDS_PER_EXTENT_MAX;
    learn_within(store, scope, mask, records_max * 4 / u64::from(STEP_RECORDS) + 1_000)
}

/// As [`learn`], in at most so many steps. If others put and take faster than that, the next lookup that an index
/// would serve goes on.
pub(crate) fn learn_within(
    store: &Store,
    scope: u32,
    mask: u32,
    steps_max: u64,
) -> Result<(), Error> {
    let done = provide::retry_by(store, Gathering::PassesOver, || {
        for _ in 0..steps_max {
            if learn_step(store, scope, mask)? {
                break;
            }
        }
        Ok(())
    });
    match done {
        Err(error) if matches!(error, Error::SpaceFull(_)) || error.is_stall() => {
            // It has to earn its room anew: looking for that in the whole space costs far more than a lookup. Nor has the
            // lookup to do with who was stopped in the middle of something.
            forget(Partition::of_scope(&store.memory.view(), scope), mask);
            Ok(())
        }
        done => done,
    }
}
