//! Entering a partition at a moment at which everything that was due there has happened.
//!
//! Who finds something due is refused with [`Need::PartitionTime`]: to let it happen is not this layer's, and takes locks of its own.
//! [`crate::recovery::enter`] sees to it and enters then.

use tupelo_shm::Section;

use crate::base::error::{Error, Need};
use crate::store::Store;
use crate::store::partition::{Partition, is_behind, scope_of};

/// Locks the partition of shape `shape`, as [`enter`]. Returns it, too: found once for both.
#[inline(always)]
pub(crate) fn enter_partition(
    store: &Store,
    shape: u32,
) -> Result<(Section<'_>, Partition<'_>), Error> {
    let scope = scope_of(shape);
    let (section, page) = Section::enter_with(&store.memory, scope)?;
    let partition = Partition::new(page, scope);
    if is_behind(partition) {
        return Err(behind(section, scope));
    }
    Ok((section, partition))
}

/// Locks a partition.
///
/// # Errors
///
/// [`Need::PartitionTime`] if something is due there; what the memory says.
#[inline(always)]
pub(crate) fn enter(store: &Store, scope: u32) -> Result<Section<'_>, Error> {
    let section = Section::enter(&store.memory, scope)?;
    if is_behind(Partition::of_scope(section.view(), scope)) {
        return Err(behind(section, scope));
    }
    Ok(section)
}

#[cold]
#[inline(never)]
fn behind(section: Section<'_>, scope: u32) -> Error {
    drop(section);
    Need::PartitionTime { scope }.into()
}
