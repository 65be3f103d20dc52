//! What a dead process had beyond its calls comes back (rules K2, X5, L5).

use crate::base::error::Error;
use crate::protocols::claim::settle;
use crate::protocols::transaction::hold;
use crate::store::partition::{self, Partition};
use crate::store::{Store, registry};
use crate::time::list::List;

/// Gives back what a dead process had claimed, or in a transaction.
pub(crate) fn free_holds_of(store: &Store, participant: u32, pid: u32) -> Result<(), Error> {
    let view = store.memory.view();
    for shape in 0..registry::count(&view) {
        let (partition, scope) = (Partition::of_shape(&view, shape), partition::scope_of(shape));
        if !List::Claimed.is_empty(partition) {
            settle::fail_claims_of(store, participant, pid, scope)?;
        }
        if !List::Enlisted.is_empty(partition) || !List::Locks.is_empty(partition) {
            hold::free_enlisted_of(store, participant, scope)?;
        }
    }
    Ok(())
}
