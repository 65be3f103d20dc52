//! What the unit tests share.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use tupelo_shm::{CreateOptions, Section, Segment};
use tupelo_tuple::{Field, KindSet, PatternRef, TemplateRef};

use crate::store::partition::{self, Partition};
use crate::{Engine, LeaseTerms, Limits, Want};

/// An engine of its own over private memory.
pub(crate) fn engine(size_bytes: u64) -> Engine {
    engine_for(size_bytes, None)
}

/// As [`engine`], for at most so many tuples.
pub(crate) fn engine_for(size_bytes: u64, tuples_max: Option<u64>) -> Engine {
    let options = CreateOptions {
        reserve_bytes: Engine::reserve_bytes(size_bytes),
        initial_commit_bytes: 4096,
        create: true,
        fresh: false,
        mode: 0o600,
    };
    let segment = Segment::private(&options, &Engine::segment_layout(), |mapping| {
        Engine::initialise(mapping, &Limits { size_bytes, tuples_max, ..Limits::default() })
    });
    Engine::new(segment.unwrap()).unwrap()
}

/// Fills the space with tuples of one bytes each, until the smallest finds no room.
pub(crate) fn fill(engine: &Engine) {
    for bytes in [60_000, 6_000, 600, 60, 6] {
        let bytes = vec![7; bytes];
        while engine.put(&[Field::Bytes(&bytes)]).is_ok() {}
    }
}

/// Runs `act` while another thread is inside of the lock of `scope`, and does not leave.
pub(crate) fn beside_one_who_stays<R>(engine: &Engine, scope: u32, act: impl FnOnce() -> R) -> R {
    let (is_inside, is_over) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|threads| {
        threads.spawn(|| {
            let inside = Section::enter(&engine.memory, scope).unwrap();
            is_inside.wait();
            is_over.wait();
            drop(inside);
        });
        is_inside.wait();
        let result = act();
        is_over.wait();
        result
    })
}

/// Runs `act` in a space of one shape, while another thread is inside of the lock of that shape. It leaves when `act` lets
/// happen what is due elsewhere, as who gives something back does, or is over: a call that waits for the lock before ends with
/// an error.
pub(crate) fn beside_one_inside<R>(engine: &Arc<Engine>, act: impl FnOnce() -> R) -> R {
    // For who waits for tuples of several shapes, time is kept in all of them.
    let patterns = [PatternRef::Kinds(KindSet::ALL); 3];
    let wide = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
    let terms = LeaseTerms { lease: Some(Duration::from_millis(1)), after: None };
    engine.put_leased(&[Field::Int(1)], &terms).unwrap();
    let (enters, entered) = mpsc::channel();
    let is_over = &AtomicBool::new(false);
    let result = thread::scope(|scope| {
        scope.spawn(move || {
            let inside = Section::enter(&engine.memory, partition::scope_of(0)).unwrap();
            enters.send(()).unwrap();
            let view = engine.memory.view();
            let leased = Partition::of_shape(&view, 1);
            for is_due in [true, false] {
                while partition::is_behind(leased) != is_due && !is_over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            drop(inside);
        });
        entered.recv().unwrap();
        let result = act();
        is_over.store(true, Ordering::Relaxed);
        result
    });
    wide.give_up().unwrap();
    result
}
