//! What was handed to a waiter, and is taken back.

use tupelo_shm::Section;

use crate::base::error::Error;
use crate::base::layout::head;
use crate::recovery::held::{self, Held};
use crate::store::partition::{self, Partition};
use crate::store::{self, Store, multi_shape, registry};
use crate::waiters::deliver::Delivery;
use crate::waiters::events::Happening;
use crate::waiters::{PICK_UP_MS, RECORD, SCOPE, WaitNode, node};

/// As [`crate::recovery::held::lock_held`], of what a wait node was handed.
pub(crate) fn lock_handed(
    store: &Store,
    number: u32,
    on_time: bool,
) -> Result<Option<Held<'_>>, Error> {
    let record = || node(&store.memory.view(), number).load(RECORD);
    while let Some(mut held) = held::lock_held(store, record, on_time)? {
        if is_of_multi_shape(node(held.section.view(), number)) {
            multi_shape::enter_multi_shape(&mut held.section)?;
        }
        if record() == held.reference {
            return Ok(Some(held));
        }
        // Somebody has died over taking it back, or has just done so.
    }
    Ok(None)
}

/// Gives what a wait node was handed, and has not picked up in time, to the next in the wait queue, or back to its place.
pub(crate) fn recall_handed<'m>(
    store: &Store,
    section: &mut Section<'m>,
    partition: Partition<'m>,
    number: u32,
) -> Result<Delivery, Error> {
    let shape = partition.page().load(partition::SHAPE);
    let kinds = registry::kinds_of(store, section.view(), shape)
        .ok_or_else(|| store::damaged(store, "a partition is of no shape that exists"))?;
    let node = node(section.view(), number);
    let before = section.focused();
    if node.load(SCOPE) == head::MULTI_SHAPE_SCOPE {
        multi_shape::enter_multi_shape(section)?;
        section.focus(head::MULTI_SHAPE_SCOPE);
    }
    let back = (node.load(RECORD), Happening::Unpublished);
    section.set(node, RECORD, 0);
    section.focus(before);
    let mut delivery = held::give_back(store, section, partition, back, kinds.as_slice())?;
    delivery.also_wake(number);
    Ok(delivery)
}

/// Whether what a wait node was handed is certain under the lock of the multi-shape waiters only.
pub(crate) fn is_of_multi_shape(node: WaitNode<'_>) -> bool {
    node.load(SCOPE) == head::MULTI_SHAPE_SCOPE && node.load64(PICK_UP_MS) != 0
}
