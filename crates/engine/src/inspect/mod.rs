//! Looking at a space: figures, who holds what, and whether everything in it agrees.

pub(crate) mod blocked;
#[cfg(any(test, feature = "full-check"))]
pub(crate) mod check;
#[cfg(test)]
mod contradictions;
pub(crate) mod holdings;
pub(crate) mod kept;
pub(crate) mod names;
pub(crate) mod stat;

use tupelo_shm::Section;

use crate::base::error::Error;
use crate::base::layout::head;
use crate::store::Store;
use crate::store::partition;
use crate::store::registry;

/// Locks registry, wait nodes and all else in the order in which others do.
fn lock_everything(store: &Store) -> Result<Section<'_>, Error> {
    let mut section = Section::enter(&store.memory, head::REGISTRY_SCOPE)?;
    section.enter_also(head::NODES_SCOPE)?;
    section.enter_also(head::QUOTA_SCOPE)?;
    for shape in 0..registry::count(section.view()) {
        section.enter_also(partition::scope_of(shape))?;
    }
    for scope in [head::NODE_MEMORY_SCOPE, head::MULTI_SHAPE_SCOPE, head::ARENA_SCOPE] {
        section.enter_also(scope)?;
    }
    Ok(section)
}
