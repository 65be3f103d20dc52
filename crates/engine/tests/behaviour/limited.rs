//! A limit of tuples is kept, and keeps no put from coming to its end (rules B1, O5).

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::{LONG, any, any_job, count, engine, engine_for, job, try_claim};
use tupelo_engine::{Engine, Error, Order};
use tupelo_tuple::{Field, Kind, TemplateRef, TupleView};

/// Tuples of one put.
const MANY: i64 = 10_000;

/// Puts many jobs at once while another thread does something else without a pause, but no more than so many times.
/// Returns whether the put came to its end before the other did.
fn ends_beside(engine: &Engine, times: usize, other: impl Fn() + Sync) -> bool {
    let (begun, is_done) = (Barrier::new(2), AtomicBool::new(false));
    thread::scope(|scope| {
        let busy = scope.spawn(|| {
            begun.wait();
            (0..times).any(|_| {
                other();
                is_done.load(Ordering::Relaxed)
            })
        });
        begun.wait();
        let tuples: Vec<_> = (0..MANY).map(job).collect();
        engine.put_all(&tuples.iter().collect::<Vec<_>>()).unwrap();
        is_done.store(true, Ordering::Relaxed);
        busy.join().unwrap()
    })
}

#[test]
fn a_put_of_many_ends_though_somebody_puts_another_shape_all_the_time_o5_b1() {
    let engine = engine_for(64 << 20, Some(1_000_000));
    let pattern = any(Kind::Int);
    let template = [TemplateRef::new(std::slice::from_ref(&pattern))];
    let visitor = |_: TupleView<'_>| Ok::<_, Error>(());
    let ended = ends_beside(&engine, 1_000_000, || {
        engine.put(&[Field::Int(7)]).unwrap();
        engine.try_take(&template, Order::Fifo, visitor).unwrap().unwrap();
    });
    assert!(ended, "it waited for the other to end");
    assert_eq!(count(&engine), MANY.cast_unsigned());
}

#[test]
fn a_put_of_many_ends_though_somebody_looks_through_another_shape_all_the_time_o5_b1() {
    const OTHERS: u64 = 2_000;
    let engine = engine_for(64 << 20, Some(1_000_000));
    (0..OTHERS).for_each(|number| engine.put(&[Field::Int(number.cast_signed())]).unwrap());
    let pattern = any(Kind::Int);
    let template = [TemplateRef::new(std::slice::from_ref(&pattern))];
    let ended = ends_beside(&engine, 100_000, || {
        assert_eq!(engine.count(&template).unwrap(), OTHERS);
    });
    assert!(ended, "it waited for the other to end");
    assert_eq!(count(&engine), MANY.cast_unsigned());
}

#[test]
fn puts_of_several_shapes_at_once_do_not_exceed_the_limit_b1() {
    let engine = engine_for(8 << 20, Some(100));
    thread::scope(|scope| {
        for arity in 1..=4 {
            let engine = &engine;
            scope.spawn(move || {
                let fields = vec![Field::Int(0); arity];
                while engine.put_all(&[&fields[..]; 3]).is_ok() {}
            });
        }
    });
    assert_eq!(engine.stat().unwrap().tuples, 99);
}

#[test]
fn a_space_of_few_tuples_takes_little_memory_b1() {
    let engine = engine(1 << 20);
    engine.put(&job(1)).unwrap();
    let extents = |engine: &Engine| {
        let report = engine.check().unwrap();
        report.extents_owned + report.extents_free
    };
    assert_eq!(extents(&engine), 2, "one for the tuple, and one for who takes it");
    let (_claim, _) = try_claim(&engine, &any_job(), &LONG).unwrap();
    assert!(extents(&engine) <= 4);
    let bytes = vec![7; 20_000];
    while extents(&engine) < 16 {
        engine.put(&[Field::Bytes(&bytes)]).unwrap();
    }
    assert_eq!(extents(&engine), 16, "it becomes twice as large each time");
}
