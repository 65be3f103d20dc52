//! The limit of tuples, in a space that has one (rule B1).
//!
//! Each partition counts its tuples under its own lock. Who puts where they are limited locks the *quota*, before any partition,
//! counts the tuples of all shapes, and then locks what it needs.
//!
//! The limit is never exceeded. While the quota is locked, no shape has more tuples than were counted. Only a put makes
//! them more. An undo leads back to the count, since a partition is counted while no section is open in it. So a section
//! counts once, however many it puts.
//!
//! Nobody counts for ever. Who counts may wait for whoever is inside of a partition, with the quota locked. That one
//! waits for nothing but locks that come after the partition's, and the quota's comes before. What was counted stays
//! good, so each partition is waited for once. (Rejected: always to give the quota up for the wait, and to begin anew.
//! A put of many never ends then, if others pause for less time than it takes.)
//!
//! But who was stopped inside of a partition is not waited for with the quota locked, which all who put would have to wait for one
//! after the other: who sees that somebody stays gives the quota up, waits as at every lock, and begins anew a few times.

use tupelo_shm::{Section, View};

use crate::base::error::{Error, Need};
use crate::base::layout::head;
use crate::store::partition::{self, Partition};
use crate::store::{Store, count, fullness, registry};
use crate::time::{bounded_lock, enter};
use crate::waiters::timer_leader;

/// How often who counts begins, at most: the last time it waits with the quota locked.
const BEGINNINGS_MAX: u32 = 4;
/// The tuples, or where somebody stays.
type Counted = Result<u64, StaysInside>;

/// Somebody stays inside of this lock.
struct StaysInside {
    scope: u32,
}

/// How many more tuples there may be, as long as the quota is locked; `None`: as many as fit.
pub(crate) type Places = Option<u64>;

/// Begins the section of a put: locks `scope`, and before that, where tuples are limited, the quota. `scope` is the lowest
/// of the other locks that the section needs.
#[inline(always)]
pub(crate) fn begin_put(store: &Store, scope: u32) -> Result<(Section<'_>, Places), Error> {
    if store.tuples_max == 0 {
        return Ok((Section::enter(&store.memory, scope)?, None));
    }
    begin_limited_put(store, scope)
}

/// As [`begin_put`], at a moment at which everything that was due in the partition of `scope` has happened.
#[inline(always)]
pub(crate) fn enter_to_put(store: &Store, scope: u32) -> Result<(Section<'_>, Places), Error> {
    if store.tuples_max == 0 {
        return Ok((enter::enter(store, scope)?, None));
    }
    let (section, places) = begin_limited_put(store, scope)?;
    if partition::is_behind(Partition::of_scope(section.view(), scope)) {
        return Err(Need::Time.into());
    }
    Ok((section, places))
}

#[cold]
#[inline(never)]
fn begin_limited_put(store: &Store, scope: u32) -> Result<(Section<'_>, Places), Error> {
    let mut beginnings = 0;
    loop {
        let mut section = Section::enter(&store.memory, head::QUOTA_SCOPE)?;
        beginnings += 1;
        match count_tuples(store, section.view(), beginnings < BEGINNINGS_MAX)? {
            Ok(tuples) => {
                section.enter_also(scope)?;
                return Ok((section, Some(store.tuples_max.saturating_sub(tuples))));
            }
            Err(StaysInside { scope }) => {
                drop(section);
                drop(Section::enter(&store.memory, scope)?);
            }
        }
    }
}

/// Counts the tuples of the space for a section that has the quota alone, and has changed nothing. `gives_up`: where
/// somebody stays inside of a partition.
fn count_tuples(store: &Store, view: &View<'_>, gives_up: bool) -> Result<Counted, Error> {
    let mut tuples = 0;
    for shape in 0..registry::count(view) {
        let counted = match count::tuples_settled_of(view, shape) {
            Some(settled) => Ok(settled),
            None => count_inside(store, shape, gives_up)?,
        };
        match counted {
            Ok(more) => tuples += more,
            stays => return Ok(stays),
        }
    }
    Ok(Ok(tuples))
}

/// Counts the tuples of a shape under the lock of its partition: what a dead process has left there is undone first.
#[cold]
fn count_inside(store: &Store, shape: u32, gives_up: bool) -> Result<Counted, Error> {
    let scope = partition::scope_of(shape);
    let entered = if gives_up {
        bounded_lock::enter_in_time(store, scope)?
    } else {
        Some(Section::enter(&store.memory, scope)?)
    };
    let tuples = entered.map(|section| count::tuples_of(section.view(), shape));
    Ok(tuples.ok_or(StaysInside { scope }))
}

/// Refuses `more` tuples than go in the same section, if there are fewer `places`. Asked before any of them is stored.
#[inline]
pub(crate) fn require_places(store: &Store, places: Places, more: usize) -> Result<(), Error> {
    match places {
        Some(places) if places < more as u64 => Err(refuse_for_number(store, places)),
        _ => Ok(()),
    }
}

#[cold]
fn refuse_for_number(store: &Store, places: u64) -> Error {
    if timer_leader::anything_is_due(store) {
        return Need::Time.into();
    }
    fullness::full_of(store, store.tuples_max.saturating_sub(places))
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use tupelo_tuple::Field;

    use super::*;
    use crate::testing;

    #[test]
    fn who_waits_for_one_that_stays_among_other_tuples_lets_the_others_count_b1() {
        let engine = testing::engine_for(8 << 20, Some(10));
        engine.put(&[Field::Int(1)]).unwrap();
        engine.put(&[Field::Str("a")]).unwrap();
        let (mut looks, mut free) = (0, 0);
        let refused = testing::beside_one_who_stays(&engine, partition::scope_of(0), || {
            thread::scope(|scope| {
                let put = scope.spawn(|| engine.put(&[Field::Str("b")]));
                while !put.is_finished() {
                    thread::sleep(Duration::from_millis(1));
                    looks += 1;
                    free += usize::from(
                        bounded_lock::enter_if_free(&engine, head::QUOTA_SCOPE).unwrap().is_some(),
                    );
                }
                put.join().unwrap()
            })
        });
        assert!(refused.unwrap_err().is_stall());
        assert!(free * 2 > looks, "the quota was free at {free} of {looks} looks");
        engine.put(&[Field::Str("b")]).unwrap();
    }
}
