//! Slabs of which few blocks are in use, and whose blocks could lie in others of the same size and partition.

use tupelo_shm::View;

use crate::base::layout::Layout;
use crate::store::arena::{LIVE, NEXT};
use crate::store::partition::Partition;
use crate::store::{blocks, slab};

/// How many slabs of a list are looked at, at most: it takes 0.1 ms.
const LOOKED_MAX: usize = 1024;

/// A slab that others have room for.
pub(crate) struct Sparse {
    /// Which one.
    pub(crate) number: u32,
    /// Those that have the room, the fullest first.
    pub(crate) others: Vec<u32>,
}

/// The slab for blocks of `class` with the fewest in use, except for those that were `passed`; `None` if the others
/// have no room for them. A small slab is no choice while others use its extent, which would stay in use.
pub(crate) fn sparsest(
    view: &View<'_>,
    layout: &Layout,
    partition: Partition<'_>,
    class: usize,
    passed: &[u32],
) -> Option<Sparse> {
    let mut looked = Vec::new();
    let mut next = blocks::list_of(partition, class).load();
    while let Some(number) = next.checked_sub(1)
        && looked.len() < LOOKED_MAX
    {
        let entry = slab::entry(view, layout, number);
        looked.push((entry.load(LIVE), number));
        next = entry.load(NEXT);
    }
    looked.sort_unstable();
    let is_meant = |(_, number): &(u32, u32)| {
        slab::frees_extent(view, layout, *number) && !passed.contains(number)
    };
    let (live, number) = looked.remove(looked.iter().position(is_meant)?);
    let room_of =
        |(live, number): &(u32, u32)| slab::capacity(*number, class).saturating_sub(*live);
    let room: u32 = looked.iter().map(room_of).sum();
    let others = looked.into_iter().rev().map(|(_, number)| number).collect();
    (room >= live).then_some(Sparse { number, others })
}
