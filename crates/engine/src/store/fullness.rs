//! The error of a space that can not grow, with its figures (rule B1).

use tupelo_tuple::Shape;

use crate::base::error::{Error, Fullness, InPieces};
use crate::base::layout::{EXTENT_BYTES, head};
use crate::store::partition::{LIVE, Partition};
use crate::store::{Store, arena, count, registry, slab};

/// Extents that are looked at for an error: some 10 us.
const EXTENTS_LOOKED_AT_MAX: u32 = 1 << 14;

/// The error of a space that can not grow, with its figures.
#[cold]
pub(crate) fn full(store: &Store, system: Option<tupelo_shm::Error>) -> Error {
    Error::SpaceFull(Box::new(fullness(store, system)))
}

/// The error of a space that has no `count` neighbouring extents, and can not grow.
#[cold]
pub(crate) fn full_for(store: &Store, count: u32) -> Error {
    let fullness = fullness(store, None);
    let wanted_bytes = u64::from(count) * EXTENT_BYTES as u64;
    if fullness.max_bytes - fullness.used_bytes.min(fullness.max_bytes) < wanted_bytes {
        return Error::SpaceFull(Box::new(fullness));
    }
    let longest = arena::longest_run(&store.memory.view(), &store.layout);
    let largest_bytes = u64::from(longest) * EXTENT_BYTES as u64;
    let in_pieces = Some(InPieces { wanted_bytes, largest_bytes });
    Error::SpaceFull(Box::new(Fullness { in_pieces, ..fullness }))
}

/// The error of a space whose room is for those who waited for it: so many.
#[cold]
pub(crate) fn full_for_others(store: &Store, waiting: u32) -> Error {
    Error::SpaceFull(Box::new(Fullness { waiting, ..fullness(store, None) }))
}

/// The error of a space with so many tuples, which leave too few places for more.
#[cold]
pub(crate) fn full_of(store: &Store, tuples: u64) -> Error {
    Error::SpaceFull(Box::new(Fullness { tuples, too_many: true, ..fullness(store, None) }))
}

pub(crate) fn fullness(store: &Store, system: Option<tupelo_shm::Error>) -> Fullness {
    let view = store.memory.view();
    let line = arena::line(&view);
    let used = line.load(arena::COMMITTED).saturating_sub(line.load(arena::FREE));
    let system_free_bytes = match system {
        Some(tupelo_shm::Error::Full { available_bytes, .. }) => Some(available_bytes),
        _ => None,
    };
    // As they stand: it is for a person, and whoever is refused may be inside of a lock, or of several.
    let tuples = count::tuples(&view);
    Fullness {
        space: store.name.clone(),
        tuples,
        fullest: fullest(store),
        shapes: shapes(store),
        buffers_bytes: buffers_bytes(store),
        hidden: visible(store).map_or(0, |visible| tuples.saturating_sub(visible)),
        tuples_max: (store.tuples_max != 0).then_some(store.tuples_max),
        used_bytes: u64::from(used) * EXTENT_BYTES as u64,
        max_bytes: u64::from(store.layout.extents_max) * EXTENT_BYTES as u64,
        system: system.map(|error| error.to_string()),
        system_free_bytes,
        too_many: false,
        waiting: 0,
        in_pieces: None,
    }
}

/// Bytes of the buffers of subscriptions. Nobody looks in a space that drops its oldest tuples, or in a very large one.
fn buffers_bytes(store: &Store) -> u64 {
    let view = store.memory.view();
    let committed = arena::line(&view).load(arena::COMMITTED).min(store.layout.extents_all);
    if drops_oldest(store) || committed > EXTENTS_LOOKED_AT_MAX {
        return 0;
    }
    let (mut extent, mut buffers_bytes) = (0_u32, 0);
    while extent < committed {
        let extents = slab::owners(&view, &store.layout, extent, |owner, bytes| {
            buffers_bytes += if owner == head::NODE_MEMORY_SCOPE { bytes } else { 0 };
        });
        extent = extent.saturating_add(extents);
    }
    buffers_bytes
}

/// How many tuples can be taken. In a space that drops its oldest tuples nobody looks: there each put comes upon the limit.
pub(crate) fn visible(store: &Store) -> Option<u64> {
    let view = store.memory.view();
    let live = |shape| u64::from(Partition::of_shape(&view, shape).page().load(LIVE));
    (!drops_oldest(store)).then(|| (0..registry::count(&view)).map(live).sum())
}

/// How many shapes have tuples in the lists. In a space that drops its oldest tuples nobody looks, either.
fn shapes(store: &Store) -> u32 {
    if drops_oldest(store) {
        return 0;
    }
    let view = store.memory.view();
    let has_some = |shape: &u32| Partition::of_shape(&view, *shape).page().load(LIVE) > 0;
    u32::try_from((0..registry::count(&view)).filter(has_some).count()).unwrap_or(u32::MAX)
}

/// The shape that has most tuples, and how many. In a space that drops its oldest tuples nobody looks, either.
pub(crate) fn fullest(store: &Store) -> Option<(Shape, u64)> {
    if drops_oldest(store) {
        return None;
    }
    let view = store.memory.view();
    let live = |shape: u32| Partition::of_shape(&view, shape).page().load(LIVE);
    let fullest = (0..registry::count(&view)).max_by_key(|shape| live(*shape))?;
    let tuples = u64::from(live(fullest));
    let kinds = registry::kinds_of(store, &view, fullest).filter(|_| tuples > 0)?;
    Some((kinds.to_shape(), tuples))
}

pub(crate) fn drops_oldest(store: &Store) -> bool {
    store.when_full == tupelo_tuple::WhenFull::DropOldest
}
