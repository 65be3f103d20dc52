//! What happens by itself when its time has come (rules L1, L3, L4, K2): a lease ends, a tuple becomes visible, a
//! claim runs out.
//!
//! There is no daemon. Whoever enters a stripe first lets everything happen there that is due ([`enter`]),
//! so an operation never sees a tuple whose lease has ended, whether or not somebody has cleared it away. Blocked
//! callers see to it that it also happens while nobody comes by ([`crate::waiters::keep`]). What most probably ends before its time
//! has its timer armed late ([`holds`]).
//!
//! Time is the machine's monotonic clock in milliseconds. An end is rounded up to the next one; that of a lease or a claim may be
//! the one after.

pub(crate) mod holds;
pub(crate) mod list;
pub(crate) mod wheel;

use std::time::Duration;

use tupelo_shm::{Section, clock};

use crate::base::error::Error;
use crate::base::layout::head;
use crate::index::links;
use crate::operations::wait::room;
use crate::protocols::claim::{self, Failure, dead, settle};
use crate::protocols::lease;
use crate::recovery::provide::{self, Gathering};
use crate::store::record::{self, STATE};
use crate::store::stripe::{DUE_MS, Stripe};
use crate::store::{self, Store, registry, step};
use crate::waiters::deliver::Delivery;
use crate::waiters::{chain, patience};

/// How much later something is tried again that found no room, in milliseconds.
const POSTPONED_MS: u64 = 100;

/// How far the cheap clock may be behind, in nanoseconds.
const COARSE_NS: u64 = 12_000_000;

/// What there is room for when something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// For everything.
    Enough,
    /// Not for the reasons of failed attempts.
    ForTuples,
    /// Not even for making a tuple findable.
    None,
}

/// The time, in milliseconds of the monotonic clock (rule L4).
pub(crate) fn now_ms() -> u64 {
    clock::monotonic_ns() / 1_000_000
}

/// The moment `after` from now. Rounded up, so that it is not reached too early.
pub(crate) fn moment_in(after: Duration) -> u64 {
    now_and_in(after).1
}

/// The time, and the moment `after` from it, by a clock that is up to [`clock::AHEAD_NS`] ahead: nothing ends too early.
pub(crate) fn now_and_in(after: Duration) -> (u64, u64) {
    moments(clock::monotonic_ahead_ns(), after)
}

/// The time, and the moment `after` from it, by the clock that is the same for all processes.
pub(crate) fn now_and_exactly_in(after: Duration) -> (u64, u64) {
    moments(clock::monotonic_ns(), after)
}

fn moments(now_ns: u64, after: Duration) -> (u64, u64) {
    let seconds_ns = after.as_secs().saturating_mul(1_000_000_000);
    let after_ns = seconds_ns.saturating_add(u64::from(after.subsec_nanos()));
    let end_ms = now_ns.saturating_add(after_ns).div_ceil(1_000_000);
    let begin_ms = now_ns / 1_000_000;
    (begin_ms, end_ms.min(begin_ms + wheel::TIME_MS_MAX))
}

/// The moment `after` from now, by the cheap clock: up to [`COARSE_NS`] too early.
pub(crate) fn coarse_moment_in(after: Duration) -> u64 {
    let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    (clock::monotonic_coarse_ns() / 1_000_000).saturating_add(after_ms)
}

/// How long it is until `due_ms`, rounded down: what was said to be so long is never shown as longer.
pub(crate) fn time_until(due_ms: u64) -> Duration {
    // What it was said by was as far ahead at most.
    let now_ms = (clock::monotonic_ns() + clock::AHEAD_NS) / 1_000_000;
    Duration::from_millis(due_ms.saturating_sub(now_ms + 1))
}

/// How long it is until [`is_past`] is true of `due_ms`, and not a nanosecond less.
pub(crate) fn exact_time_until(due_ms: u64) -> Duration {
    let moment_ns = due_ms.saturating_mul(1_000_000);
    Duration::from_nanos(moment_ns.saturating_sub(clock::monotonic_ns()))
}

/// Whether what is due at `due_ms` has happened by now.
#[inline(always)]
pub(crate) fn is_past(due_ms: u64) -> bool {
    due_ms != 0 && has_come(due_ms)
}

/// Apart, so that where nothing is due at any time the question costs no more than a look.
#[cold]
#[inline(never)]
fn has_come(due_ms: u64) -> bool {
    // What is far away is told by the cheap clock.
    due_ms.saturating_mul(1_000_000) <= clock::monotonic_coarse_ns() + COARSE_NS
        && due_ms <= now_ms()
}

/// Whether something is due in `stripe`, by who has looked at the clock: the exact one, or the one that is ahead.
#[inline]
pub(crate) fn is_behind_at(stripe: Stripe<'_>, now_ms: u64) -> bool {
    let due_ms = stripe.page().load64(DUE_MS);
    // What the cheap clock does not know of yet, nobody would let happen.
    due_ms != 0 && due_ms <= now_ms && is_behind(stripe)
}

/// Whether something is due in `stripe`. For readers without the lock, who look before they believe what they found.
#[inline(always)]
pub(crate) fn is_behind(stripe: Stripe<'_>) -> bool {
    is_past(stripe.page().load64(DUE_MS))
}

/// Locks a stripe, at a moment at which everything that was due there has happened.
#[inline(always)]
pub(crate) fn enter(store: &Store, scope: u32) -> Result<Section<'_>, Error> {
    let section = Section::enter(&store.memory, scope)?;
    if !is_behind(Stripe::of_scope(section.view(), scope)) {
        return Ok(section);
    }
    enter_on_time(store, section, scope)
}

#[cold]
#[inline(never)]
fn enter_on_time<'m>(
    store: &'m Store,
    mut section: Section<'m>,
    scope: u32,
) -> Result<Section<'m>, Error> {
    while is_behind(Stripe::of_scope(section.view(), scope)) {
        section.finish()?;
        catch_up(store, scope)?;
        section = Section::enter(&store.memory, scope)?;
    }
    Ok(section)
}

/// Lets everything happen that is due in the stripe of `scope`.
///
/// # Errors
///
/// What the memory says; what has happened stays.
#[cold]
pub(crate) fn catch_up(store: &Store, scope: u32) -> Result<(), Error> {
    let mut room = Room::Enough;
    loop {
        let mut wakes = Delivery::default();
        let done = catch_up_once(store, scope, room, &mut wakes);
        wakes.wake(store);
        match done {
            Err(Error::Need(need)) => {
                match (provide::provide_late(store, need, Gathering::PassesOver), room) {
                    (Err(Error::SpaceFull(_)), Room::Enough) => room = Room::ForTuples,
                    // What needs room comes later; what gives room must not wait for it.
                    (Err(Error::SpaceFull(_)), Room::ForTuples) => room = Room::None,
                    (provided, _) => provided?,
                }
            }
            done => return done,
        }
    }
}

fn catch_up_once(store: &Store, scope: u32, room: Room, wakes: &mut Delivery) -> Result<(), Error> {
    let now_ms = now_ms();
    let mut section = Section::enter(&store.memory, scope)?;
    let stripe = Stripe::of_scope(section.view(), scope);
    patience::make_certain(&mut section, stripe, now_ms)?;
    holds::arm_holds(store, &mut section, stripe)?;
    // What a transaction still has whose lease has ended.
    let mut lost = Vec::new().into_iter();
    loop {
        let happened = if let Some(one) = lost.next() {
            holds::lose(store, &mut section, stripe, one)?
        } else if let Some(reference) =
            wheel::pop(&mut section, stripe, now_ms, step::commit_if_full)?
        {
            if room != Room::None && holds::is_of_transaction(section.view(), reference) {
                lost = holds::lost_with(store, &mut section, stripe, reference)?.into_iter();
                continue;
            }
            fire(store, &mut section, stripe, reference, (now_ms, room))?
        } else if let Some(number) = patience::first_late(section.view(), stripe, now_ms) {
            recall_late(store, &mut section, stripe, number, (now_ms, room))?
        } else {
            break;
        };
        section.commit()?;
        wakes.join(happened);
        if chain::is_heard(&section, stripe) || section.holds(head::ARENA_SCOPE) {
            // A section that appends events commits once. And what comes next may need the lock of the wide waiters, which
            // comes before that of the arena.
            section.finish()?;
            section = Section::enter(&store.memory, scope)?;
            patience::make_certain(&mut section, stripe, now_ms)?;
            // Somebody may have begun a claim meanwhile, whose timer is not armed yet.
            holds::arm_holds(store, &mut section, stripe)?;
        }
    }
    section.commit()?;
    let handed_ms = patience::note_next(&section, stripe);
    wheel::note_next(section.view(), stripe, handed_ms);
    Ok(section.finish()?)
}

/// Gives back what a cell was handed and has not picked up in time.
fn recall_late<'m>(
    store: &Store,
    section: &mut Section<'m>,
    stripe: Stripe<'m>,
    number: u32,
    (now_ms, room): (u64, Room),
) -> Result<Delivery, Error> {
    if room == Room::None {
        patience::postpone(section.view(), number, now_ms + POSTPONED_MS);
        return Ok(Delivery::default());
    }
    patience::recall_handed(store, section, stripe, number)
}

/// Does what the timer of a record was set for.
fn fire<'m>(
    store: &'m Store,
    section: &mut Section<'m>,
    stripe: Stripe<'m>,
    reference: u32,
    (now_ms, room): (u64, Room),
) -> Result<Delivery, Error> {
    let header = record::header(section.view(), reference);
    let (shape, _) = record::shape_of(header);
    let state = header.load(STATE);
    let kinds = registry::kinds_of(store, section.view(), shape).ok_or_else(|| {
        store::damaged(store, "a timer's record names a shape that does not exist")
    })?;
    if state == record::LIVE {
        return lease::expire(store, section, stripe, reference, kinds.as_slice());
    }
    if state == record::DEAD {
        let told = room::tell_of_room(section)?;
        dead::bury(store, section, stripe, reference)?;
        links::free_record(store, section, stripe, reference)?;
        return Ok(told);
    }
    if room == Room::None {
        wheel::arm(store, section, stripe, reference, now_ms + POSTPONED_MS)?;
        return Ok(Delivery::default());
    }
    match state {
        record::DELAYED => {
            let visible_ms = wheel::due_ms(section.view(), reference);
            lease::reveal(store, section, stripe, (reference, visible_ms), kinds.as_slice())
        }
        record::CLAIMED => {
            let failure = Failure::Silence { pid: claim::holder_pid(store, header) };
            let failure = (room == Room::Enough).then_some(&failure);
            let record = record::at(section.view(), reference);
            settle::fail_claim(store, section, stripe, record, kinds.as_slice(), failure)
        }
        _ => Err(store::damaged(store, "a timer's record is in no state that ends")),
    }
}
