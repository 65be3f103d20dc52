//! Whether a large tuple would find room once all is dropped that may be (rule B1): asked before anything is.
//!
//! A tuple of several extents needs neighbours. What is held, dead or delayed, and what is no tuple (indexes, logs, the
//! buffers of subscriptions) stays where it is. It may lie so that there are never enough neighbours. The search is
//! without a lock, so the answer is of that moment, as a refusal is. In doubt it is yes, and tuples are dropped to find
//! out.
//!
//! Not here: tuples that one extent is enough for, and whether several that are put together find places beside each other.

use tupelo_shm::{GRANULE, View};

use crate::base::error::Error;
use crate::base::layout::{EXTENT_BYTES, Layout, head};
use crate::recovery::sweep;
use crate::store::arena::{self, BLOCKS, COMMITTED, Entry, KIND, LIVE, OWNER, RUN};
use crate::store::blocks::EXTENSION_CLASS;
use crate::store::record::{self, READ_MARK, SHAPE, STATE};
use crate::store::sizes::SIZES_COUNT;
use crate::store::{Store, fullness, slab};

/// Whether a tuple of so many bytes would find room once all is dropped that may be, where the system has so many left,
/// if it said so. Yes in a space that drops nothing, and for a tuple that one extent is enough for.
///
/// # Errors
///
/// What the memory says.
pub(crate) fn would_fit(
    store: &Store,
    bytes: usize,
    system_free_bytes: Option<u64>,
) -> Result<bool, Error> {
    let count = u32::try_from(bytes.div_ceil(EXTENT_BYTES)).unwrap_or(u32::MAX);
    if count < 2 || !fullness::drops_oldest(store) || has_place(store, count, system_free_bytes) {
        return Ok(true);
    }
    // What the dead hold may be dropped (rule L5).
    sweep::recall(store)?;
    Ok(has_place(store, count, system_free_bytes))
}

/// Whether `count` neighbouring extents are free, can be had of the system, or have only tuples that may be dropped.
/// Looks no further than to the first of them, so it takes less time than to fill them.
#[cold]
fn has_place(store: &Store, count: u32, system_free_bytes: Option<u64>) -> bool {
    let (view, layout) = (store.memory.view(), &store.layout);
    let committed = arena::line(&view).load(COMMITTED).min(layout.extents_max);
    let (mut index, mut vacant) = (0_u32, 0_u32);
    while index < committed && vacant < count {
        let (extents, stays) = look_at(&view, layout, index);
        vacant = if stays { 0 } else { vacant.saturating_add(extents) };
        index = index.saturating_add(extents);
    }
    let system_has = system_free_bytes.map_or(u64::MAX, |bytes| bytes / EXTENT_BYTES as u64);
    let more = u64::from(layout.extents_max - committed).min(system_has);
    u64::from(vacant) + more >= u64::from(count)
}

/// How many extents that has which begins at extent `index`, and whether it stays when all is dropped that may be.
fn look_at(view: &View<'_>, layout: &Layout, index: u32) -> (u32, bool) {
    if arena::is_free(view, layout, index) {
        return (1, false);
    }
    let entry = arena::entry(view, layout, index);
    let first = layout.extent_granule(index);
    match entry.load(KIND) & 0xff {
        RUN => {
            // Logs, and the buffers of subscriptions.
            let is_other =
                [head::ARENA_SCOPE, head::NODE_MEMORY_SCOPE].contains(&entry.load(OWNER));
            (entry.load(LIVE).max(1), is_other || block_stays(view, first))
        }
        BLOCKS => {
            let class = (entry.load(KIND) >> 8) as usize;
            let mut slabs = slab::all_in(layout, index, entry);
            (1, slabs.any(|number| any_block_stays(view, layout, number, class)))
        }
        // Somebody is at it.
        _ => (1, false),
    }
}

/// Whether one of the blocks of `class` stays that the slab is cut into.
fn any_block_stays(view: &View<'_>, layout: &Layout, number: u32, class: usize) -> bool {
    if class >= SIZES_COUNT {
        // Of what serves those who take, an extension may go with its tuple. All else stays, as do long templates, whose blocks
        // are of the same size.
        let stays = |entry: Entry<'_>| {
            let is_extension =
                class == EXTENSION_CLASS && entry.load(OWNER) != head::NODE_MEMORY_SCOPE;
            entry.load(LIVE) > 0 && !is_extension
        };
        return slab::entry_seen(view, layout, number).is_some_and(stays);
    }
    slab::blocks(view, layout, number, class).any(|block| block_stays(view, block))
}

/// Whether the block at `granule` stays: a tuple that may not be dropped, or part of an index. What goes with a tuple, or was
/// given out just now, begins as a free block does.
fn block_stays(view: &View<'_>, granule: u32) -> bool {
    let Some(start) = view.window_at::<GRANULE>(granule) else { return false };
    match start.load(STATE) {
        record::FREE => false,
        record::LIVE => start.load(SHAPE) & READ_MARK != 0,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use tupelo_tuple::Field;

    use super::has_place;
    use crate::testing;

    #[test]
    fn what_the_system_does_not_have_is_no_place_for_a_large_tuple_b1() {
        let engine = testing::engine(8 << 20);
        let part = vec![7; 60_000];
        for _ in 0..10 {
            engine.put(&[Field::Bytes(&part)]).unwrap();
        }
        // 32 extents so far, of 128.
        assert!(has_place(&engine, 32, Some(0)), "they may all be dropped");
        assert!(!has_place(&engine, 33, Some(0)));
        assert!(has_place(&engine, 33, Some(64 << 10)));
        assert!(has_place(&engine, 128, None));
        assert!(!has_place(&engine, 129, None));
    }
}
