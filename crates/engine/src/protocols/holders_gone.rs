//! What a holder that is gone had beyond its calls comes back (rules K2, X5, L5): a dead process, or a handle that was closed.

use crate::base::error::Error;
use crate::protocols::claim::{Failure, settle};
use crate::protocols::transaction::hold;
use crate::store::extension::{Extension, HANDLE};
use crate::store::partition::{self, Partition};
use crate::store::record::{HOLDER, Header};
use crate::store::{Store, registry};
use crate::time::list::List;

/// Who is gone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gone {
    /// A process, which has died.
    Process { participant: u32, pid: u32 },
    /// A handle of this process, by its number.
    Handle(u32),
}

impl Gone {
    /// Whether it has a record in hands. This process is participant `own`.
    pub(crate) fn has(self, own: u32, header: Header<'_>, extension: Extension<'_>) -> bool {
        let is_of = |participant: u32| header.load(HOLDER) == participant + 1;
        match self {
            Self::Process { participant, .. } => is_of(participant),
            Self::Handle(handle) => is_of(own) && extension.load(HANDLE) == handle,
        }
    }

    /// What became of its attempts.
    pub(crate) fn failure(self) -> Failure<'static> {
        match self {
            Self::Process { pid, .. } => Failure::Death { pid },
            Self::Handle(_) => Failure::Abort { reason: "the space was closed by the holder" },
        }
    }
}

/// Gives back what a dead process had claimed, or in a transaction.
pub(crate) fn free_holds_of(store: &Store, participant: u32, pid: u32) -> Result<(), Error> {
    free_holds(store, Gone::Process { participant, pid })
}

/// Gives back what was claimed through a handle, or was in a transaction.
pub(crate) fn give_up(store: &Store, handle: u32) -> Result<(), Error> {
    free_holds(store, Gone::Handle(handle))
}

fn free_holds(store: &Store, gone: Gone) -> Result<(), Error> {
    let view = store.memory.view();
    for shape in 0..registry::count(&view) {
        let (partition, scope) = (Partition::of_shape(&view, shape), partition::scope_of(shape));
        if !List::Claimed.is_empty(partition) {
            settle::fail_claims_of(store, gone, scope)?;
        }
        if !List::Enlisted.is_empty(partition) || !List::Locks.is_empty(partition) {
            hold::free_enlisted_of(store, gone, scope)?;
        }
    }
    Ok(())
}
