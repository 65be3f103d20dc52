//! Steady traffic needs no new memory: what was freed serves what comes next (B1).
#![allow(clippy::unwrap_used, reason = "a step that fails, fails the test")]

mod support;

use support::{engine, job, number, this_job, try_read};
use tupelo_engine::{Engine, Order};
use tupelo_tuple::{Field, TemplateRef};

/// Puts, and as many takes.
const PAIRS: i64 = 100_000;
/// The same in a long run.
const PAIRS_THOROUGH: i64 = 10_000_000;
/// Tuples that are there all the time.
const RESIDENT: i64 = 1_000;

fn pairs() -> i64 {
    let thorough = std::env::var_os("TUPELO_EVERY_INSTRUCTION").is_some();
    if thorough { PAIRS_THOROUGH } else { PAIRS }
}

/// The extents in use, and the bytes of memory.
fn memory(engine: &Engine) -> (u64, u64) {
    (engine.check().unwrap().extents_owned, engine.stat().unwrap().bytes_committed)
}

#[test]
fn steady_puts_and_takes_of_the_oldest_need_no_new_memory() {
    let engine = engine(64 << 20);
    let pattern = support::any(tupelo_tuple::Kind::Int);
    let pair = |k: i64| {
        engine.put(&[Field::Int(k)]).unwrap();
        let template = [TemplateRef::new(std::slice::from_ref(&pattern))];
        let sink = |_: tupelo_tuple::TupleView<'_>| Ok::<_, tupelo_engine::Error>(());
        assert!(engine.try_take(&template, Order::Fifo, sink).unwrap().is_some());
    };
    (0..RESIDENT).for_each(|k| engine.put(&[Field::Int(k)]).unwrap());
    (0..RESIDENT).for_each(pair);
    let before = memory(&engine);
    (0..pairs()).for_each(pair);
    assert_eq!(memory(&engine), before);
}

#[test]
fn steady_puts_and_takes_by_a_learned_key_need_no_new_memory() {
    let engine = engine(64 << 20);
    let pair = |k: i64| {
        engine.put(&job(k)).unwrap();
        let template = this_job(k - RESIDENT);
        let taken = engine.try_take(&[TemplateRef::new(&template)], Order::Fifo, number).unwrap();
        assert_eq!(taken, Some(k - RESIDENT));
    };
    (0..RESIDENT).for_each(|k| engine.put(&job(k)).unwrap());
    (0..RESIDENT).for_each(|k| assert_eq!(try_read(&engine, &this_job(k)), Some(k)));
    // Every tuple and every entry of the table has been replaced once by then.
    (RESIDENT..2 * RESIDENT).for_each(pair);
    assert_eq!(engine.stat().unwrap().shapes[0].indexes.len(), 1, "it was to be learned");
    let before = memory(&engine);
    (2 * RESIDENT..2 * RESIDENT + pairs()).for_each(pair);
    assert_eq!(memory(&engine), before);
}
