//! Entering a partition, after everything has happened that was due there.

use tupelo_shm::Section;

use crate::base::error::{Error, Need};
use crate::store::Store;
use crate::store::partition::{Partition, scope_of};
use crate::time;

/// Locks a partition, at a moment at which everything that was due there has happened.
#[inline(always)]
pub(crate) fn enter(store: &Store, scope: u32) -> Result<Section<'_>, Error> {
    match time::enter::enter(store, scope) {
        Err(Error::Need(Need::PartitionTime { .. })) => enter_late(store, scope),
        entered => entered,
    }
}

/// As [`enter`], for the partition of shape `shape`. Returns it, too: found once for both.
#[inline(always)]
pub(crate) fn enter_partition(
    store: &Store,
    shape: u32,
) -> Result<(Section<'_>, Partition<'_>), Error> {
    match time::enter::enter_partition(store, shape) {
        Err(Error::Need(Need::PartitionTime { .. })) => {
            let section = enter_late(store, scope_of(shape))?;
            let partition = Partition::of_shape(section.view(), shape);
            Ok((section, partition))
        }
        entered => entered,
    }
}

/// Lets happen what is due before it enters, as often as something is.
#[cold]
#[inline(never)]
fn enter_late(store: &Store, scope: u32) -> Result<Section<'_>, Error> {
    loop {
        (store.callbacks.catch_up)(store, scope)?;
        match time::enter::enter(store, scope) {
            Err(Error::Need(Need::PartitionTime { .. })) => {}
            entered => return entered,
        }
    }
}
