//! Grants for room in a full space (rule B1): which waiter gets the room that a removal has made.
//!
//! A grant is over when its owner has left the wait queue. A grant also runs out, so that an owner that is stopped, or whose
//! tuple is larger than the room, holds up others only for a short time. A waiter looks around as every blocked caller
//! does, and then tries without being told. A try does not end the grant: the next removal may make enough of the room,
//! if no other put takes it until then. But a tuple for which there is never enough room would shut out all others for
//! as long as anything is removed. So one grant after the other lasts a second at most, and after that the owner is
//! passed over for another second.
//! Whose grant it is, and since when, are hints: written without the log, and good for the order alone. Whether there is
//! room, a put finds out for itself.

use std::cell::Cell as LocalCell;
use std::sync::atomic::Ordering;

use tupelo_shm::{Section, View, clock};

use crate::base::error::Error;
use crate::base::layout::head;
use crate::store::{Store, fullness, multi_shape};
use crate::waiters::deliver::Delivery;
use crate::waiters::{chain, wake};

/// How long a grant lasts that nobody uses: as long as a blocked caller sleeps without looking around.
const GRANT_MS_MAX: u32 = 100;

/// How long the first in the wait queue gets new grants, and for how long none after that.
const ROW_MS_MAX: u32 = 1_000;

thread_local! {
    /// The wait node of the place in the wait queue that this thread's puts are made for; 0 if for none.
    pub(crate) static OWN_PLACE: LocalCell<u32> = const { LocalCell::new(0) };
}

/// Refuses a put that would take the room that somebody in the wait queue was told of. Asked inside the section of the put,
/// and only if anybody waits for anything.
#[cold]
pub(crate) fn require_grant(store: &Store, view: &View<'_>) -> Result<(), Error> {
    let queued = chain::waiting_for_room(view);
    if queued == 0 {
        return Ok(());
    }
    let line = multi_shape::multi_shape_line(view);
    let grant = line.load(multi_shape::ROOM_GRANT);
    let is_anothers = grant != 0 && grant != OWN_PLACE.get();
    if is_anothers && now_ms().wrapping_sub(line.load(multi_shape::ROOM_GRANT_MS)) < GRANT_MS_MAX {
        return Err(fullness::full_for_others(store, queued));
    }
    Ok(())
}

/// Gives the grant to the first in the wait queue, if there is one. Returns its wait node, whose owner is to be told after the section,
/// which holds the lock of the multi-shape waiters.
///
/// A waiter that was told before and has not tried since has the time that is left. Else a stopped one would hold up
/// everybody for as long as tuples are removed. So has, after a row of grants, one that has tried.
pub(crate) fn grant(view: &View<'_>) -> Option<u32> {
    let first = chain::first_for_room(view);
    let number = first.unwrap_or(0);
    let line = multi_shape::multi_shape_line(view);
    let has_tried = line.word(multi_shape::ROOM_TRIES).swap(0, Ordering::Relaxed) == number;
    let grant = line.word(multi_shape::ROOM_GRANT);
    let (given, row) = (line.word(multi_shape::ROOM_GRANT_MS), line.word(multi_shape::ROOM_ROW_MS));
    let now = now_ms();
    let is_anothers = grant.load(Ordering::Relaxed) != number;
    let in_row = now.wrapping_sub(row.load(Ordering::Relaxed));
    if is_anothers || has_tried && in_row >= 2 * ROW_MS_MAX {
        row.store(now, Ordering::Relaxed);
        given.store(now, Ordering::Relaxed);
        grant.store(number, Ordering::Relaxed);
    } else if has_tried && in_row < ROW_MS_MAX {
        given.store(now, Ordering::Relaxed);
    }
    first
}

/// Tells the first in the wait queue of room that no tuple has left, after it was given back.
///
/// # Errors
///
/// What the memory says; the room is there all the same.
pub(crate) fn grant_to_first(store: &Store) -> Result<(), Error> {
    if chain::waiting_for_room(&store.memory.view()) == 0 {
        return Ok(());
    }
    let section = Section::enter(&store.memory, head::MULTI_SHAPE_SCOPE)?;
    let next = grant(section.view());
    section.finish()?;
    if let Some(next) = next {
        wake::notify(store, next);
    }
    Ok(())
}

/// Tells the first in the wait queue of room that no removal tells of: that of a tuple which nobody could see. Called before the
/// room is made, since the lock of the multi-shape waiters comes before that of the arena.
pub(crate) fn grant_room(section: &mut Section<'_>) -> Result<Delivery, Error> {
    let mut delivery = Delivery::default();
    if chain::waiting_for_room(section.view()) > 0 {
        multi_shape::enter_multi_shape(section)?;
        if let Some(next) = grant(section.view()) {
            delivery.also_wake(next);
        }
    }
    Ok(delivery)
}

/// The cheap clock, modulo 2^32.
#[expect(clippy::cast_possible_truncation, reason = "only differences count")]
fn now_ms() -> u32 {
    (clock::monotonic_coarse_ns() / 1_000_000) as u32
}
