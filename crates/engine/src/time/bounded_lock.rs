//! Bounded locks: entering where somebody may stay inside, without the wait for a thread that was stopped.

use std::thread;
use std::time::Duration;

use tupelo_shm::Section;

use crate::base::error::Error;
use crate::base::layout::head;
use crate::store::Store;
use crate::store::partition::{self, Partition};

/// How often a lock is looked at before somebody counts as staying inside: between two looks, who comes and goes has left.
const LOOKS: usize = 10;
/// How long, and how often, one who stays inside is waited for who may only be interrupted: twenty milliseconds in all, some
/// turns of the scheduler.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSES_MAX: u32 = 20;

/// Whether no living thread stays inside of `scope`, a partition's, nor inside of another scope that is needed to do what
/// is due there. For callers that must not wait until a stopped thread goes on. In a full space, due work may look for
/// memory in all partitions, and skips partitions in which a thread stays.
pub(crate) fn is_passable(store: &Store, scope: u32) -> Result<bool, Error> {
    let Some(section) = enter_if_free(store, scope)? else { return Ok(false) };
    let is_behind = partition::is_behind(Partition::of_scope(section.view(), scope));
    drop(section);
    // One after the other, and none held over the next.
    let further: &[u32] =
        if is_behind { &[head::MULTI_SHAPE_SCOPE, head::ARENA_SCOPE] } else { &[] };
    for scope in further {
        if enter_if_free(store, *scope)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A section of `scope`, unless somebody who lives stays inside of it.
pub(crate) fn enter_if_free(store: &Store, scope: u32) -> Result<Option<Section<'_>>, Error> {
    for _ in 0..LOOKS {
        if let Some(section) = Section::try_enter(&store.memory, scope)? {
            return Ok(Some(section));
        }
    }
    Ok(None)
}

/// Enters `scope`, unless somebody stays inside for longer than one who is interrupted. Sleeps meanwhile.
#[cold]
pub(crate) fn enter_in_time(store: &Store, scope: u32) -> Result<Option<Section<'_>>, Error> {
    for _ in 0..PAUSES_MAX {
        if let Some(section) = enter_if_free(store, scope)? {
            return Ok(Some(section));
        }
        thread::sleep(PAUSE);
    }
    Ok(None)
}

/// Enters many scopes, one after the other, and waits once in all as [`enter_in_time`] does: one who was stopped may be inside
/// of several. Whoever stays inside of a later one is passed over at once.
#[derive(Default)]
pub(crate) struct OneWait {
    has_waited: bool,
}

impl OneWait {
    /// A section of `scope`, unless somebody stays inside.
    pub(crate) fn enter<'s>(
        &mut self,
        store: &'s Store,
        scope: u32,
    ) -> Result<Option<Section<'s>>, Error> {
        if self.has_waited {
            return enter_if_free(store, scope);
        }
        let entered = enter_in_time(store, scope)?;
        self.has_waited = entered.is_none();
        Ok(entered)
    }
}
