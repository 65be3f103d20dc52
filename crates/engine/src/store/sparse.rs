//! Extents of which few blocks are in use, and whose blocks could lie in others of the same size and partition.

use tupelo_shm::View;

use crate::base::layout::Layout;
use crate::store::arena::{self, BUMP, LIVE, NEXT};
use crate::store::blocks;
use crate::store::partition::Partition;

/// How many extents of a list are looked at, at most: it takes 0.1 ms.
const LOOKED_MAX: usize = 1024;

/// An extent that others have room for.
pub(crate) struct Sparse {
    /// Which one.
    pub(crate) index: u32,
    /// Those that have the room: numbers + 1, the fullest first.
    pub(crate) others: Vec<u32>,
}

/// The extent for blocks of `class` with the fewest in use, except for those that were `passed`; `None` if the others
/// have no room for them.
pub(crate) fn sparsest(
    view: &View<'_>,
    layout: &Layout,
    partition: Partition<'_>,
    class: usize,
    passed: &[u32],
) -> Option<Sparse> {
    let mut looked = Vec::new();
    let mut number = partition.page().load(blocks::list_of(class));
    while number != 0 && looked.len() < LOOKED_MAX {
        let entry = arena::entry(view, layout, number - 1);
        looked.push((entry.load(LIVE), number));
        number = entry.load(NEXT);
    }
    looked.sort_unstable();
    let is_meant = |(_, number): &(u32, u32)| !passed.contains(&(number - 1));
    let (live, number) = looked.remove(looked.iter().position(is_meant)?);
    let room: u32 =
        looked.iter().map(|(live, _)| blocks::capacity(class).saturating_sub(*live)).sum();
    let others = looked.into_iter().rev().map(|(_, number)| number).collect();
    (room >= live).then_some(Sparse { index: number - 1, others })
}

/// The blocks that the extent number `index`, one for blocks of `class`, was ever cut into.
pub(crate) fn blocks_of(
    view: &View<'_>,
    layout: &Layout,
    class: usize,
    index: u32,
) -> impl Iterator<Item = u32> + use<> {
    let used = arena::entry(view, layout, index).load(BUMP).min(blocks::capacity(class));
    let first = layout.extent_granule(index);
    (0..used).map(move |number| first + number * blocks::class_granules(class))
}
