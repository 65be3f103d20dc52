//! The engine says which blocks it uses, so that the feature `checked` can object to accesses to others. What it objects to is
//! tested where it is made: `crates/shm/tests/checked`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tupelo_engine::Engine;
use tupelo_shm::{GRANULE, Memory};
use tupelo_tuple::{Field, Kind};

use crate::support::{any, engine};

/// Granules that the tuple's block has at least.
const GRANULES: usize = 8;

/// How many of the granules of the engine's part can be looked at.
fn in_use(engine: &Engine) -> usize {
    let memory = Memory::new(Arc::clone(engine.segment().mapping()));
    let granules =
        Memory::engine_base() / GRANULE..engine.segment().mapping().reserved_bytes() / GRANULE;
    let can_be_looked_at = |granule: &usize| {
        let granule = u32::try_from(*granule).unwrap();
        catch_unwind(AssertUnwindSafe(|| memory.view().at::<GRANULE>(granule).load(0))).is_ok()
    };
    granules.filter(can_be_looked_at).count()
}

#[test]
fn a_tuples_block_is_in_use_until_the_tuple_is_taken() {
    std::panic::set_hook(Box::new(|_| ())); // thousands of objections are looked for here
    let engine = engine(1 << 20);
    let put = || engine.put(&[Field::Bytes(&[7; GRANULE * GRANULES])]).unwrap();
    let take = || {
        let template = [any(Kind::Bytes)];
        let template = [tupelo_tuple::TemplateRef::new(&template)];
        let length =
            |tuple: tupelo_tuple::TupleView<'_>| Ok::<_, tupelo_engine::Error>(tuple.len());
        engine.try_take(&template, tupelo_engine::Order::Fifo, length).unwrap().unwrap();
    };
    put();
    take();
    let before = in_use(&engine);
    put();
    let with_it = in_use(&engine);
    take();
    let after = in_use(&engine);
    drop(std::panic::take_hook());
    // The first granule of a free block, which has the link, can be looked at.
    assert!(with_it >= before + GRANULES - 1, "{before}, {with_it} with the tuple");
    assert_eq!(after, before);
}
