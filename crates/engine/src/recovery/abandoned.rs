//! What a call of this process left behind, since a lock was not to be had for ten seconds: its holder was stopped. A
//! place in the wait queue whose owner is gone would be handed tuples that nobody picks up. A large tuple that a call
//! had in hands would be nobody's for as long as its thread lives. Both are settled as soon as that goes.

use tupelo_shm::Section;
use tupelo_shm::process::fork_generation;

use crate::base::error::Error;
use crate::base::layout::head;
use crate::base::want::Want;
use crate::recovery::{held, node_memory, sweep, withdraw};
use crate::store::in_flight::{self, InFlight};
use crate::store::left::{Hand, Left, Place, What};
use crate::store::{Store, partition};
use crate::time::bounded_lock;
use crate::waiters::{RECORD, SCOPE, node, nodes};

/// Takes a wait node of this process out of the wait queue, puts back what it was handed, and gives it back; later, if that fails.
///
/// # Errors
///
/// What the memory says.
pub(crate) fn leave_queue(store: &Store, number: u32, want: Want) -> Result<(), Error> {
    let place = Place { number, want };
    leave(store, place).inspect_err(|_| store.abandoned.add(Left::new(What::Place(place))))
}

/// Gives a wait node of this process back that is linked nowhere and holds no record. If that fails, it happens later:
/// the node has nothing to do with the tuple that its owner was given.
pub(crate) fn give_node_back(store: &Store, number: u32, want: Want) {
    let place = Place { number, want };
    if free_place(store, place).is_err() {
        store.abandoned.add(Left::new(What::Place(place)));
    }
}

/// Notes that this thread could not let go of what one of its in-flight slots names: it is put back, or freed, later.
#[cold]
pub(crate) fn abandon_in_flight(store: &Store, in_flight: &InFlight) {
    // The thread has a slot, since it has begun an in-flight slot there.
    let Ok(thread) = store.memory.thread() else { return };
    let Some(owner) = store.memory.owner_of(thread.slot()) else { return };
    let slot = store.memory.view().offset_of(thread.slot());
    let hand = Hand { slot, owner, word: in_flight.word() };
    store.abandoned.add(Left::new(What::Hand(hand)));
}

/// Settles what could not be settled before, as far as that goes by now.
pub(crate) fn leave_abandoned(store: &Store) {
    for left in store.abandoned.take() {
        let is_own = left.fork_generation == fork_generation();
        if is_own && !is_left(store, left.what) {
            store.abandoned.add(left);
        }
    }
}

fn is_left(store: &Store, what: What) -> bool {
    match what {
        What::Place(place) => may_leave(store, place) && leave(store, place).is_ok(),
        What::Hand(hand) => may_let_go(store, hand) && matches!(let_go(store, hand), Ok(true)),
    }
}

/// Whether nobody stays inside of the locks that leaving takes, by a look: who comes by must not wait for somebody who is
/// stopped, too.
fn may_leave(store: &Store, Place { number, .. }: Place) -> bool {
    let view = store.memory.view();
    let own = node(&view, number).load(SCOPE);
    let Ok(shape) = held::shape_of_held(store, || node(&view, number).load(RECORD)) else {
        return false;
    };
    let shape = shape.map_or(0, partition::scope_of);
    are_free(store, &[own, shape, head::NODES_SCOPE, head::NODE_MEMORY_SCOPE])
}

/// As [`may_leave`].
fn may_let_go(store: &Store, hand: Hand) -> bool {
    let shape = held::shape_of_held(store, || hand.record(store));
    shape.is_ok_and(|shape| are_free(store, &[shape.map_or(0, partition::scope_of)]))
}

/// Whether nobody stays inside of these locks (0 is none), nor of those that the returned things may take. Those are
/// the locks of the multi-shape waiters, which may wait for them, and of the arena. One after the other, and none held
/// over the next.
fn are_free(store: &Store, scopes: &[u32]) -> bool {
    let is_free = |scope| matches!(bounded_lock::enter_if_free(store, scope), Ok(Some(_)));
    let all = scopes.iter().copied().chain([head::MULTI_SHAPE_SCOPE, head::ARENA_SCOPE]);
    all.filter(|scope| *scope != 0).all(is_free)
}

/// Can be done again from the beginning, wherever it ended.
fn leave(store: &Store, place: Place) -> Result<(), Error> {
    withdraw::withdraw(store, place.number, place.want)?;
    free_place(store, place)
}

fn free_place(store: &Store, Place { number, want }: Place) -> Result<(), Error> {
    if want == Want::Events {
        node_memory::drop_ring(store, number)?;
    }
    node_memory::drop_template(store, node(&store.memory.view(), number))?;
    nodes::release_node(store, number)
}

/// Puts back, or frees, what was left in a thread's hands. Returns whether it did: not beside somebody who cleans up, since
/// the thread may have ended, and its slot be given to another before this is certain.
fn let_go(store: &Store, hand: Hand) -> Result<bool, Error> {
    let Some(_right) = Section::try_enter(&store.memory, head::SWEEP_SCOPE)? else {
        return Ok(false);
    };
    let slot = hand.slot(store);
    sweep::settle_in_flight(store, (slot, hand.word), || hand.record(store))?;
    in_flight::free(slot, hand.word);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tupelo_tuple::{Field, PatternRef, TemplateRef};

    use super::*;
    use crate::testing;

    #[test]
    fn who_stays_inside_of_any_lock_that_leaving_takes_is_seen_t5() {
        let engine = Arc::new(testing::engine(8 << 20));
        engine.put(&[Field::Int(1)]).unwrap();
        let patterns = [PatternRef::Actual(Field::Int(2))];
        let waiter = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
        let place = Place { number: waiter.number, want: waiter.want };
        let own = node(&engine.memory.view(), place.number).load(SCOPE);
        assert_eq!(own, partition::scope_of(0), "in the line of its shape");
        assert!(may_leave(&engine, place));
        let all = [head::NODES_SCOPE, head::NODE_MEMORY_SCOPE, head::MULTI_SHAPE_SCOPE];
        for scope in all.into_iter().chain([own, head::ARENA_SCOPE]) {
            let inside = Section::enter(&engine.memory, scope).unwrap();
            let looks =
                || std::thread::scope(|scope| scope.spawn(|| may_leave(&engine, place)).join());
            assert!(!looks().unwrap(), "in {scope}");
            drop(inside);
            assert!(looks().unwrap(), "in {scope}");
        }
    }
}
