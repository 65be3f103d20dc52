//! What an operation finds missing, and how it is got: memory, a longer log, time.

use tupelo_shm::Section;

use crate::base::error::{Error, Need};
use crate::base::layout::head;
use crate::index::learn;
use crate::journal::drain;
use crate::recovery::{compact, sweep};
use crate::store::partition::{self, Partition};
use crate::store::{Store, arena, blocks, registry, slab};
use crate::time::bounded_lock::{self, OneWait};
use crate::waiters::events::publish;
use crate::waiters::timer_leader;

/// What becomes of partitions in the middle of which somebody was stopped, where memory is looked for in all of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gathering {
    /// They are waited for, as every lock is: without what they keep the caller would be refused.
    Waits,
    /// They are left out: the caller can do without, or come back later.
    PassesOver,
}

/// Runs an operation until it has all that it needs. Whatever it finds missing is got while it locks no
/// partition, since the kernel may take a millisecond to find pages.
#[inline]
pub(crate) fn retry<R>(
    store: &Store,
    operation: impl FnMut() -> Result<R, Error>,
) -> Result<R, Error> {
    retry_by(store, Gathering::Waits, operation)
}

/// As [`retry`], where what is missing is looked for in that way.
#[inline]
pub(crate) fn retry_by<R>(
    store: &Store,
    gathering: Gathering,
    mut operation: impl FnMut() -> Result<R, Error>,
) -> Result<R, Error> {
    let mut was_long = false;
    loop {
        match operation() {
            Err(Error::Need(need)) => {
                was_long |= need == Need::Log;
                provide(store, need, gathering)?;
            }
            done => {
                if was_long {
                    sweep::return_log_reserve(store);
                }
                sweep::see_to_crowd(store);
                return done;
            }
        }
    }
}

#[cold]
pub(crate) fn provide(store: &Store, need: Need, gathering: Gathering) -> Result<(), Error> {
    match provide_late(store, need, gathering) {
        Err(Error::SpaceFull(_))
            if gathering == Gathering::Waits && timer_leader::anything_is_due(store) =>
        {
            timer_leader::catch_up_all(store)?;
            provide_late(store, need, gathering)
        }
        done => done,
    }
}

/// As [`provide`], without a look at what is due: for what happens because it is.
pub(crate) fn provide_late(store: &Store, need: Need, gathering: Gathering) -> Result<(), Error> {
    match need {
        Need::Time => timer_leader::catch_up_all(store),
        Need::PartitionTime { scope } => (store.callbacks.catch_up)(store, scope),
        // Growth by very much needs a longer log itself.
        Need::Extents { count, end, committed } => {
            match retry_by(store, gathering, || arena::grow(store, count, end, committed)) {
                Err(Error::SpaceFull(_)) if gather(store, count, end, gathering)? => Ok(()),
                done => done,
            }
        }
        Need::Reserve { count, committed } => {
            match retry_by(store, gathering, || arena::grow_reserve(store, count, committed)) {
                Err(Error::SpaceFull(_)) if gather_reserve(store, count, gathering)? => Ok(()),
                done => done,
            }
        }
        Need::SmallSlab { class, .. } => small_slab(store, need, class as usize, gathering),
        Need::Table { scope, mask, keys, .. } => {
            let memory = need.of_memory(store.layout.extents_max);
            match provide_late(store, memory, Gathering::PassesOver) {
                Err(Error::SpaceFull(_)) => learn::postpone_growth(store, scope, mask, keys),
                // Among the dead, which the put has nothing to do with: its own partition it has had.
                Err(error) if error.is_stall() => learn::postpone_growth(store, scope, mask, keys),
                done => done,
            }
        }
        Need::Log => sweep::lengthen_log(store, gathering),
        Need::JournalRoom { bytes } => drain::make_room(store, u64::from(bytes)),
        Need::EventRoom { node, bytes } => publish::make_event_room(store, node, bytes),
    }
}

/// Gets memory for a small slab. What was gathered may be of no extent, and enough. Or it is known only now that there is no other memory
/// than what is left of a shared extent. If there is nothing new, the section has used up what is left, and would again.
fn small_slab(store: &Store, need: Need, class: usize, gathering: Gathering) -> Result<(), Error> {
    let (view, end) = (store.memory.view(), slab::end(&store.layout, class));
    let is_left = || slab::has_small(&view, class);
    let can_not_grow = || arena::can_not_grow(&view, end);
    let (was_left, could_grow) = (is_left(), !can_not_grow());
    match provide_late(store, need.of_memory(end), gathering) {
        Err(Error::SpaceFull(_)) if is_left() && (!was_left || could_grow && can_not_grow()) => {
            Ok(())
        }
        done => done,
    }
}

/// Free extents that are gathered beside those that are wanted: so that not each put of a small tuple has some moved.
const MORE_EXTENTS: u32 = 16;

/// Gathers extents that nobody needs: what the dead had, and what partitions keep for the next tuple of
/// some size. If that is not enough, moves tuples for them. Returns whether more are free now, and `count` neighbouring
/// ones among the first `end` are free.
#[cold]
fn gather(store: &Store, count: u32, end: u32, gathering: Gathering) -> Result<bool, Error> {
    let view = store.memory.view();
    let has = || arena::has(&view, &store.layout, count, end);
    if gather_all(store, gathering)? && has() {
        return Ok(true);
    }
    let free = || arena::line(&view).load(arena::FREE);
    let free_before = free();
    compact::compact(store, gathering, || has() && free() >= count.saturating_add(MORE_EXTENTS))?;
    Ok(free() > free_before && has())
}

/// As [`gather`], of `count` extents more than are free now, wherever they are.
#[cold]
fn gather_reserve(store: &Store, count: u32, gathering: Gathering) -> Result<bool, Error> {
    let view = store.memory.view();
    let free = || arena::line(&view).load(arena::FREE);
    let wanted = free().saturating_add(count);
    Ok(gather_all(store, gathering)? || compact::compact(store, gathering, || free() >= wanted)?)
}

/// Gathers extents that nobody needs. Returns whether more are free now.
#[cold]
fn gather_all(store: &Store, gathering: Gathering) -> Result<bool, Error> {
    let view = store.memory.view();
    let free_before = arena::line(&view).load(arena::FREE);
    if gathering == Gathering::Waits || nobody_stays(store)? {
        sweep::settle_all(store)?;
    }
    let mut one_wait = OneWait::default();
    let shapes = (0..registry::count(&view)).map(partition::scope_of);
    for scope in shapes.chain([head::NODE_MEMORY_SCOPE]) {
        retry_by(store, gathering, || {
            let entered = match gathering {
                Gathering::Waits => Some(Section::enter(&store.memory, scope)?),
                Gathering::PassesOver => one_wait.enter(store, scope)?,
            };
            let Some(mut section) = entered else { return Ok(()) };
            let partition = Partition::of_scope(section.view(), scope);
            blocks::free_empty(&mut section, &store.layout, partition)?;
            section.commit()?;
            Ok(())
        })?;
    }
    Ok(arena::line(&view).load(arena::FREE) > free_before)
}

/// What is held for as long as somebody is at something, and that nothing else is waited under.
const RIGHTS: [u32; 2] = [head::SWEEP_SCOPE, head::DRAIN_SCOPE];

/// Whether nobody who lives stays inside of any lock that cleaning up after the dead may wait for, by a look.
fn nobody_stays(store: &Store) -> Result<bool, Error> {
    // Who is at the cleaning up is left to it, and is to be no other one's reason not to begin.
    for scope in sweep::scopes(store).filter(|scope| !RIGHTS.contains(scope)) {
        if bounded_lock::enter_if_free(store, scope)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}
