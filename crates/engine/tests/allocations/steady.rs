//! Steady traffic needs no new memory: what was freed serves what comes next (B1), and the caller's own heap is left alone.

use std::sync::Arc;

use crate::support::{engine, job, number, this_job, try_read};
use tupelo_crashtest::{Allocations, CountingAllocator, thorough};
use tupelo_engine::{Engine, Order};
use tupelo_tuple::{Field, TemplateRef};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Puts, and as many takes.
const PAIRS: i64 = 100_000;
/// The same in a long run.
const PAIRS_THOROUGH: i64 = 10_000_000;
/// Tuples that are there all the time.
const RESIDENT: i64 = 1_000;
const BYTES: u64 = 64 << 20;

/// An engine of each kind: of this process alone, and shared.
fn engines() -> [Arc<Engine>; 2] {
    [engine(BYTES), crate::shared::space(BYTES)]
}

/// The extents in use, and the bytes of memory.
fn memory(engine: &Engine) -> (u64, u64) {
    (engine.check().unwrap().extents_owned, engine.stat().unwrap().bytes_committed)
}

/// Does `pair` for the numbers from `first` on, after which `engine` has the memory that it had, and this thread has asked for none.
fn need_no_memory(engine: &Engine, first: i64, pair: impl Fn(i64)) {
    let pairs = if thorough() { PAIRS_THOROUGH } else { PAIRS };
    let before = memory(engine);
    let ((), allocations) = Allocations::of(|| (first..first + pairs).for_each(pair));
    assert_eq!(allocations.count, 0, "{allocations:?}");
    assert_eq!(memory(engine), before);
}

#[test]
fn steady_puts_and_takes_of_the_oldest_need_no_new_memory() {
    for engine in engines() {
        let pattern = crate::support::any(tupelo_tuple::Kind::Int);
        let pair = |k: i64| {
            engine.put(&[Field::Int(k)]).unwrap();
            let template = [TemplateRef::new(std::slice::from_ref(&pattern))];
            let visitor = |_: tupelo_tuple::TupleView<'_>| Ok::<_, tupelo_engine::Error>(());
            assert!(engine.try_read(&template, Order::Fifo, visitor).unwrap().is_some());
            assert!(engine.try_take(&template, Order::Fifo, visitor).unwrap().is_some());
        };
        (0..RESIDENT).for_each(|k| engine.put(&[Field::Int(k)]).unwrap());
        (0..RESIDENT).for_each(pair);
        need_no_memory(&engine, 0, pair);
    }
}

#[test]
fn steady_puts_and_takes_by_a_learned_key_need_no_new_memory() {
    for engine in engines() {
        let pair = |k: i64| {
            engine.put(&job(k)).unwrap();
            let template = this_job(k - RESIDENT);
            let template = [TemplateRef::new(&template)];
            assert_eq!(engine.try_read(&template, Order::Fifo, number), Ok(Some(k - RESIDENT)));
            assert_eq!(engine.try_take(&template, Order::Fifo, number), Ok(Some(k - RESIDENT)));
        };
        (0..RESIDENT).for_each(|k| engine.put(&job(k)).unwrap());
        (0..RESIDENT).for_each(|k| assert_eq!(try_read(&engine, &this_job(k)), Some(k)));
        // Every tuple and every entry of the table has been replaced once by then.
        (RESIDENT..2 * RESIDENT).for_each(pair);
        let shapes = engine.stat().unwrap().shapes;
        assert!(shapes.iter().any(|shape| shape.indexes.len() == 1), "it was to be learned");
        need_no_memory(&engine, 2 * RESIDENT, pair);
    }
}
