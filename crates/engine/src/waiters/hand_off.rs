//! A tuple that was handed over, and is not picked up (rules K2, X5).
//!
//! A put hands its tuple to a caller that sleeps. If the caller's process is stopped, the tuple would have no owner
//! until the process goes on. A claim or a transaction may hold a tuple for a time only, and says so in its wait node. The
//! time runs from the hand-over. A tuple that is not picked up by then goes to the next in the wait queue, as if the caller had
//! given up. No attempt has failed, since no caller has seen the tuple. When the process goes on, its call is in the
//! wait queue again, behind all others. A plain take has no time: it has taken its tuple.
//!
//! The word that names the record in such a wait node changes in sections that have the lock that the wait node is
//! filed under. Its owner looks under that lock alone. Where a process dies over it, it may be undone under another
//! lock of the same section. So that of a multi-shape waiter is certain under its lock only, and not yet under that of
//! the partition: who believes it locks both.

use std::time::Duration;

use tupelo_shm::{Section, View};

use super::{HAND_OFF_MS, OWNED, PICK_UP_MS, RECORD, SCOPE, STATE, WANT, WaitNode, node, nodes};
use crate::base::clock;
use crate::base::error::Error;
use crate::base::layout::head;
use crate::base::want::Want;
use crate::store::partition::{self, HANDED_DUE_MS, Partition};
use crate::store::{Store, multi_shape, record};
use crate::time::wheel;

/// The shortest time for a pick-up, even if the caller's own time is shorter. On a busy machine a thread that was woken
/// may wait that long for a processor. With a shorter time no caller might ever get a tuple.
const SHORTEST: Duration = Duration::from_millis(100);

/// How long what is handed over is kept for a waiter that may have it for a time only.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HandOffDeadline {
    /// From the hand-over on.
    For(Duration),
    /// Until a moment, in milliseconds of the clock.
    Until(u64),
}

/// Writes down how long the owner of a wait node that nobody else knows yet may have what it is handed.
pub(crate) fn write(node: WaitNode<'_>, deadline: HandOffDeadline) {
    match deadline {
        HandOffDeadline::For(time) => {
            let time_ms = time.max(SHORTEST).as_millis().try_into().unwrap_or(u64::MAX);
            node.init64(HAND_OFF_MS, time_ms.min(clock::TIME_MS_MAX));
        }
        HandOffDeadline::Until(end_ms) => node.init64(PICK_UP_MS, end_ms),
    }
}

/// The time of what was handed over to a wait node begins, if it has one.
pub(crate) fn begin(store: &Store, partition: Partition<'_>, node: WaitNode<'_>) {
    let hand_off_ms = node.load64(HAND_OFF_MS);
    if hand_off_ms != 0 {
        // Means nothing unless the wait node has a record (R2).
        node.init64(PICK_UP_MS, clock::now_ms().saturating_add(hand_off_ms));
    }
    let pick_up_ms = node.load64(PICK_UP_MS);
    if pick_up_ms == 0 {
        return;
    }
    let known_ms = partition.page().load64(HANDED_DUE_MS);
    if known_ms == 0 || pick_up_ms < known_ms {
        // A lower bound, as that of the wheel: too low does no harm.
        partition.page().init64(HANDED_DUE_MS, pick_up_ms);
    }
    wheel::note_due(store, partition, pick_up_ms);
}

/// The wait nodes that were handed a tuple of the partition's shape which nobody has picked up, and the records.
pub(crate) fn handed<'v>(view: &'v View<'_>, shape: u32) -> impl Iterator<Item = (u32, u32)> + 'v {
    (1..=nodes::used(view)).filter_map(move |number| {
        let node = node(view, number);
        let reference = node.load(RECORD);
        let is_taken = node.load(WANT) == Want::Take.number() && reference != 0;
        (is_taken && record::header_of_shape(view, reference, shape).is_some())
            .then_some((number, reference))
    })
}

/// The wait nodes that were handed something of the partition for a time, and when that ends. The section holds the partition.
fn on_time<'v>(
    view: &'v View<'_>,
    partition: Partition<'_>,
) -> impl Iterator<Item = (u32, u64)> + 'v {
    let shape = partition.page().load(partition::SHAPE);
    let ends_ms = |number| node(view, number).load64(PICK_UP_MS);
    handed(view, shape)
        .map(move |(number, _)| (number, ends_ms(number)))
        .filter(|(_, end_ms)| *end_ms != 0)
}

/// Makes certain what was handed over to multi-shape waiters, if some of it may be late in the section's partition: to be called
/// before anything later is locked.
pub(crate) fn make_certain(
    section: &mut Section<'_>,
    partition: Partition<'_>,
    now_ms: u64,
) -> Result<(), Error> {
    let due_ms = partition.page().load64(HANDED_DUE_MS);
    if due_ms != 0 && due_ms <= now_ms {
        multi_shape::enter_multi_shape(section)?;
    }
    Ok(())
}

/// A wait node of whose record the time is over, after [`make_certain`] of this moment.
pub(crate) fn first_late(view: &View<'_>, partition: Partition<'_>, now_ms: u64) -> Option<u32> {
    let due_ms = partition.page().load64(HANDED_DUE_MS);
    if due_ms == 0 || due_ms > now_ms {
        return None;
    }
    on_time(view, partition).find(|(_, end_ms)| *end_ms <= now_ms).map(|(number, _)| number)
}

/// Notes anew when the first of these times is over, after all that were have been dealt with. Returns it.
pub(crate) fn note_next(section: &Section<'_>, partition: Partition<'_>) -> Option<u64> {
    let known_ms = partition.page().load64(HANDED_DUE_MS);
    if !section.holds(head::MULTI_SHAPE_SCOPE) {
        // Somebody may have died over what a multi-shape waiter has: what was known does no harm.
        return (known_ms != 0).then_some(known_ms);
    }
    let next_ms = on_time(section.view(), partition).map(|(_, end_ms)| end_ms).min();
    partition.page().init64(HANDED_DUE_MS, next_ms.unwrap_or(0));
    next_ms
}

/// What is wrong with the times of what was handed over in a partition, if anything.
pub(crate) fn is_overlooked(view: &View<'_>, partition: Partition<'_>) -> Option<String> {
    let known_ms = [HANDED_DUE_MS, partition::DUE_MS].map(|word| partition.page().load64(word));
    let is_known = |end_ms: u64| known_ms.iter().all(|known| *known != 0 && *known <= end_ms);
    on_time(view, partition).find(|(_, end_ms)| !is_known(*end_ms)).map(|(number, end_ms)| {
        format!("node {number} is to pick up its record by {end_ms}, and nobody looks before {known_ms:?}")
    })
}

/// Whether the owner of a wait node had something for a time, has it no more, and is not in the wait queue. Certain under the lock that
/// the wait node names.
pub(crate) fn has_lost(node: WaitNode<'_>) -> bool {
    node.load64(PICK_UP_MS) != 0
        && node.load(STATE) == OWNED
        && node.load(RECORD) == 0
        && node.load(SCOPE) != 0
}

/// Lets a wait node keep its record until `end_ms`.
pub(crate) fn postpone(view: &View<'_>, number: u32, end_ms: u64) {
    node(view, number).init64(PICK_UP_MS, end_ms);
}
