//! A tuple that was handed over, and is not picked up (rules K2, X5).
//!
//! A put hands its tuple to a caller that sleeps. If the caller's process is stopped, the tuple would have no owner
//! until the process goes on. A claim or a transaction may hold a tuple for a time only, and says so in its cell. The
//! time runs from the hand-over. A tuple that is not picked up by then goes to the next in line, as if the caller had
//! given up. No attempt has failed, since no caller has seen the tuple. When the process goes on, its call is in line
//! again, behind all others. A plain take has no time: it has taken its tuple.
//!
//! The word that names the record in such a cell changes in sections that have the lock that the cell is filed under: its owner
//! looks under that lock alone. Where a process dies over it, it may be undone under another lock of the same section. So that of
//! a wide waiter is certain under its lock only, and not yet under that of the stripe: who believes it locks both.

use std::time::Duration;

use tupelo_shm::{Section, View};

use super::{Cell, OWNED, PATIENCE_MS, PICK_UP_MS, RECORD, SCOPE, STATE, WANT, cell, cells};
use crate::base::clock;
use crate::base::error::Error;
use crate::base::layout::head;
use crate::base::want::Want;
use crate::store::stripe::{self, HANDED_DUE_MS, Stripe};
use crate::store::{Store, record, wide};
use crate::time::wheel;

/// The shortest time for a pick-up, even if the caller's own time is shorter. On a busy machine a thread that was woken
/// may wait that long for a processor. With a shorter time no caller might ever get a tuple.
const SHORTEST: Duration = Duration::from_millis(100);

/// How long what is handed over is kept for a waiter that may have it for a time only.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// From the hand-over on.
    For(Duration),
    /// Until a moment, in milliseconds of the clock.
    Until(u64),
}

/// Writes down how long the owner of a cell that nobody else knows yet may have what it is handed.
pub(crate) fn write(cell: Cell<'_>, patience: Patience) {
    match patience {
        Patience::For(time) => {
            let time_ms = time.max(SHORTEST).as_millis().try_into().unwrap_or(u64::MAX);
            cell.init64(PATIENCE_MS, time_ms.min(clock::TIME_MS_MAX));
        }
        Patience::Until(end_ms) => cell.init64(PICK_UP_MS, end_ms),
    }
}

/// The time of what was handed over to a cell begins, if it has one.
pub(crate) fn begin(store: &Store, stripe: Stripe<'_>, cell: Cell<'_>) {
    let patience_ms = cell.load64(PATIENCE_MS);
    if patience_ms != 0 {
        // Means nothing unless the cell has a record (R2).
        cell.init64(PICK_UP_MS, clock::now_ms().saturating_add(patience_ms));
    }
    let pick_up_ms = cell.load64(PICK_UP_MS);
    if pick_up_ms == 0 {
        return;
    }
    let known_ms = stripe.page().load64(HANDED_DUE_MS);
    if known_ms == 0 || pick_up_ms < known_ms {
        // A lower bound, as that of the wheel: too low does no harm.
        stripe.page().init64(HANDED_DUE_MS, pick_up_ms);
    }
    wheel::note_due(store, stripe, pick_up_ms);
}

/// The cells that were handed a tuple of the stripe's shape which nobody has picked up, and the records.
pub(crate) fn handed<'v>(view: &'v View<'_>, shape: u32) -> impl Iterator<Item = (u32, u32)> + 'v {
    (1..=cells::used(view)).filter_map(move |number| {
        let cell = cell(view, number);
        let reference = cell.load(RECORD);
        let is_taken = cell.load(WANT) == Want::Take.number() && reference != 0;
        (is_taken && record::header_of_shape(view, reference, shape).is_some())
            .then_some((number, reference))
    })
}

/// The cells that were handed something of the stripe for a time, and when that ends. The section holds the stripe.
fn on_time<'v>(view: &'v View<'_>, stripe: Stripe<'_>) -> impl Iterator<Item = (u32, u64)> + 'v {
    let shape = stripe.page().load(stripe::SHAPE);
    let ends_ms = |number| cell(view, number).load64(PICK_UP_MS);
    handed(view, shape)
        .map(move |(number, _)| (number, ends_ms(number)))
        .filter(|(_, end_ms)| *end_ms != 0)
}

/// Makes certain what was handed over to wide waiters, if some of it may be late in the section's stripe: to be called
/// before anything later is locked.
pub(crate) fn make_certain(
    section: &mut Section<'_>,
    stripe: Stripe<'_>,
    now_ms: u64,
) -> Result<(), Error> {
    let due_ms = stripe.page().load64(HANDED_DUE_MS);
    if due_ms != 0 && due_ms <= now_ms {
        wide::enter_wide(section)?;
    }
    Ok(())
}

/// A cell of whose record the time is over, after [`make_certain`] of this moment.
pub(crate) fn first_late(view: &View<'_>, stripe: Stripe<'_>, now_ms: u64) -> Option<u32> {
    let due_ms = stripe.page().load64(HANDED_DUE_MS);
    if due_ms == 0 || due_ms > now_ms {
        return None;
    }
    on_time(view, stripe).find(|(_, end_ms)| *end_ms <= now_ms).map(|(number, _)| number)
}

/// Notes anew when the first of these times is over, after all that were have been dealt with. Returns it.
pub(crate) fn note_next(section: &Section<'_>, stripe: Stripe<'_>) -> Option<u64> {
    let known_ms = stripe.page().load64(HANDED_DUE_MS);
    if !section.holds(head::WIDE_SCOPE) {
        // Somebody may have died over what a wide waiter has: what was known does no harm.
        return (known_ms != 0).then_some(known_ms);
    }
    let next_ms = on_time(section.view(), stripe).map(|(_, end_ms)| end_ms).min();
    stripe.page().init64(HANDED_DUE_MS, next_ms.unwrap_or(0));
    next_ms
}

/// What is wrong with the times of what was handed over in a stripe, if anything.
pub(crate) fn is_overlooked(view: &View<'_>, stripe: Stripe<'_>) -> Option<String> {
    let known_ms = [HANDED_DUE_MS, stripe::DUE_MS].map(|word| stripe.page().load64(word));
    let is_known = |end_ms: u64| known_ms.iter().all(|known| *known != 0 && *known <= end_ms);
    on_time(view, stripe).find(|(_, end_ms)| !is_known(*end_ms)).map(|(number, end_ms)| {
        format!("cell {number} is to pick up its record by {end_ms}, and nobody looks before {known_ms:?}")
    })
}

/// Whether the owner of a cell had something for a time, has it no more, and is not in line. Certain under the lock that
/// the cell names.
pub(crate) fn has_lost(cell: Cell<'_>) -> bool {
    cell.load64(PICK_UP_MS) != 0
        && cell.load(STATE) == OWNED
        && cell.load(RECORD) == 0
        && cell.load(SCOPE) != 0
}

/// Lets a cell keep its record until `end_ms`.
pub(crate) fn postpone(view: &View<'_>, number: u32, end_ms: u64) {
    cell(view, number).init64(PICK_UP_MS, end_ms);
}
