//! Giving memory back to the system: free extents at the end of the arena, in steps, when they have been free
//! for a while.
//!
//! Extents are given out lowest first, so the highest ones empty. A sweep notes how many are free at the
//! end; what the next one still finds free goes back, but for a reserve. In between every reader that had
//! followed a reference into them has long seen that it lost its race.

use tupelo_shm::Section;

use crate::base::error::Error;
use crate::base::layout::{CHUNK_EXTENTS, EXTENT_BYTES, head};
use crate::recovery::sweep;
use crate::store::Store;
use crate::store::arena::{self, COMMITTED, FREE};

/// Free extents at the end of the arena, when a sweep last looked. A hint: not logged.
const IDLE: usize = 12;
/// Extents that one step gives back, 16 MiB: the kernel takes 3 ms for them, and others may wait for an extent.
const STEP_EXTENTS: u32 = 256;
/// The part of what is in use that is kept for what comes next: about what one growth gets.
const KEPT: u32 = 8;

/// Gives what has been free at the end of the arena since the last call back to the system; at most
/// `STEP_EXTENTS`. Leaves it to the next sweep if somebody is inside the arena.
///
/// Killed between the two steps, the pages stay with the space until it grows again.
pub(crate) fn shrink(store: &Store) -> Result<(), Error> {
    if arena::line(&store.memory.view()).load(FREE) <= CHUNK_EXTENTS {
        return Ok(());
    }
    // What this thread once needed for a long step may lie at the very end.
    sweep::free_log_run(store, store.memory.thread()?.slot())?;
    let Some(mut section) = Section::try_enter(&store.memory, head::ARENA_SCOPE)? else {
        return Ok(());
    };
    let line = arena::line(section.view());
    let committed = line.load(COMMITTED).min(store.layout.extents_all);
    let tail = arena::free_tail(section.view(), &store.layout, committed);
    let idle = tail.min(line.load(IDLE));
    line.init(IDLE, tail);
    let reserve = CHUNK_EXTENTS.max((committed - tail) / KEPT);
    // Of what tuples may not use, only what they have to leave is kept.
    let kept = store.layout.extents_max.saturating_add(CHUNK_EXTENTS);
    let over = committed.saturating_sub(kept).min(idle);
    let goes = idle.saturating_sub(reserve).max(over).min(STEP_EXTENTS);
    let goes = goes / CHUNK_EXTENTS * CHUNK_EXTENTS;
    if goes == 0 {
        return Ok(());
    }
    let first = committed - goes;
    arena::mark(&mut section, &store.layout, first, goes, false)?;
    section.set(line, COMMITTED, first);
    section.commit()?;
    // Still locked: whoever grows the arena again must find the old pages gone, not lose new ones.
    let start = store.layout.arena + first as usize * EXTENT_BYTES;
    let end = start + goes as usize * EXTENT_BYTES;
    store.memory.mapping().release(start..end)?;
    Ok(())
}
