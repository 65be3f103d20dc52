//! The few kilobytes of a shape with few tuples are taken and given back at any instruction, or not (C1, B1). So is the
//! extent that shapes share, when the first comes and when the last goes.

use std::path::Path;
use std::sync::Arc;

use crate::shared::{BYTES, Found, INT, contents, int, kill_once_and_twice, space, take};
use tupelo_crashtest::with_tiny_file_system;
use tupelo_engine::Engine;
use tupelo_tuple::Field;

/// Tuples of two fields in a slab of 4 KiB.
const PAIRS: i64 = 31;
/// Tuples of eight fields.
const EIGHTS: i64 = 21;

/// A tuple of so many numbers, the first of which is `value`.
fn put(engine: &Engine, arity: usize, value: i64) {
    let mut fields = vec![Field::Int(0); arity];
    fields[0] = Field::Int(value);
    engine.put(&fields).unwrap();
}

fn take_one(engine: &Engine, arity: usize, value: i64) {
    let mut patterns = vec![INT; arity];
    patterns[0] = int(value);
    assert!(take(engine, &patterns).is_some(), "{value}");
}

/// Tuples of a shape whose slab has one left, and which has an extent of its own: the next take gives the slab back.
fn with_one_in_a_slab(engine: &Engine, arity: usize, of_slab: i64) {
    (0..of_slab + 2).for_each(|value| put(engine, arity, value));
    // The block of the first that goes is kept for the next put. It is one of the extent's.
    take_one(engine, arity, of_slab);
    (0..of_slab - 1).for_each(|value| take_one(engine, arity, value));
}

/// Tuples of other shapes, with blocks of the same size as pairs: with the shape that is there, and pairs, so many shapes
/// share an extent.
const OTHERS: [&[Field<'static>]; 14] = [
    &[Field::Null],
    &[Field::Bool(true)],
    &[Field::Int(0)],
    &[Field::Null, Field::Null],
    &[Field::Null, Field::Bool(true)],
    &[Field::Null, Field::Int(0)],
    &[Field::Bool(true), Field::Null],
    &[Field::Bool(true), Field::Bool(true)],
    &[Field::Bool(true), Field::Int(0)],
    &[Field::Int(0), Field::Null],
    &[Field::Int(0), Field::Bool(true)],
    &[Field::Int(0), Field::Float(0.5)],
    &[Field::Null, Field::Float(0.5)],
    &[Field::Bool(true), Field::Float(0.5)],
];
/// One more.
const NEXT: &[Field<'static>] = &[Field::Float(0.5), Field::Float(0.5)];

/// Kills in `script`, after each step of which so many tuples are there, and whoever cleans up after it.
fn kill(engine: &Arc<Engine>, script: impl Fn(&Engine), counts: &[usize]) {
    let judge = |found: Found, ended: bool| {
        assert_eq!(found.report.held(), 0, "nobody is left to hold anything");
        let count = found.tuples.len();
        assert!(counts.contains(&count) && (!ended || counts.last() == Some(&count)), "{count}");
    };
    kill_once_and_twice(engine, |engine| script(engine), judge);
}

#[test]
fn the_first_tuple_of_a_size_takes_a_slab_of_a_new_extent() {
    let engine = space(8 << 20);
    let before = engine.check().unwrap().extents_owned;
    put(&engine, 8, 1);
    assert_eq!(engine.check().unwrap().extents_owned, before + 1);
    take_one(&engine, 8, 1);
    let script = |engine: &Engine| {
        engine.put(&[Field::Bytes(&[7; 500])]).unwrap();
        assert!(take(engine, &[BYTES]).is_some());
    };
    kill(&engine, script, &[0, 1, 0]);
}

#[test]
fn a_shape_that_outgrows_its_slab_takes_an_extent() {
    let engine = space(8 << 20);
    (0..PAIRS).for_each(|value| put(&engine, 2, value));
    let before = engine.check().unwrap().extents_owned;
    let there = contents(&engine).len();
    kill(&engine, |engine| put(engine, 2, PAIRS), &[there, there + 1]);
    put(&engine, 2, PAIRS);
    assert_eq!(engine.check().unwrap().extents_owned, before + 1);
}

#[test]
fn a_slab_that_is_given_back_is_the_next_shape_s() {
    let engine = space(8 << 20);
    with_one_in_a_slab(&engine, 2, PAIRS);
    let there = contents(&engine).len();
    let script = |engine: &Engine| {
        take_one(engine, 2, PAIRS - 1);
        engine.put(OTHERS[0]).unwrap();
    };
    kill(&engine, script, &[there, there - 1, there]);
}

#[test]
fn a_shared_extent_without_a_slab_gets_one_back() {
    let engine = space(8 << 20);
    with_one_in_a_slab(&engine, 2, PAIRS);
    for fields in OTHERS {
        engine.put(fields).unwrap();
    }
    let owned = engine.check().unwrap().extents_owned;
    let there = contents(&engine).len();
    let script = |engine: &Engine| {
        take_one(engine, 2, PAIRS - 1);
        engine.put(NEXT).unwrap();
    };
    kill(&engine, script, &[there, there - 1, there]);
    script(&engine);
    assert_eq!(engine.check().unwrap().extents_owned, owned, "the slab was used again");
    // All are in use again.
    engine.put(&[Field::Float(0.5), Field::Null]).unwrap();
    assert_eq!(engine.check().unwrap().extents_owned, owned + 1);
}

#[test]
fn the_last_slab_of_a_shared_extent_takes_it_along() {
    let engine = space(8 << 20);
    with_one_in_a_slab(&engine, 8, EIGHTS);
    let owned = engine.check().unwrap().extents_owned;
    let there = contents(&engine).len();
    let script = |engine: &Engine| take_one(engine, 8, EIGHTS - 1);
    kill(&engine, script, &[there, there - 1]);
    script(&engine);
    assert_eq!(engine.check().unwrap().extents_owned, owned - 1);
}

#[test]
fn a_full_space_uses_what_is_left_of_a_shared_extent() {
    let engine = space(2 << 20);
    (0..PAIRS).for_each(|value| put(&engine, 2, value));
    let large = vec![7; 60_000];
    while engine.put(&[Field::Bytes(&large)]).is_ok() {}
    let there = contents(&engine).len();
    kill_once_and_twice(
        &engine,
        |engine| put(engine, 2, PAIRS),
        |found, ended| {
            let more = found.tuples.len() - there;
            assert!(more == 1 || !ended && more == 0);
            // Room for who uses the space then.
            while take(&engine, &[BYTES]).is_some() {}
        },
    );
}

#[test]
fn where_the_system_has_no_more_memory_what_is_left_of_a_shared_extent_is_used_b1() {
    with_tiny_file_system(Path::new("/dev/shm"), 4 << 20, || {
        let engine = space(64 << 20);
        put(&engine, 8, 0);
        let large = vec![7; 60_000];
        while engine.put(&[Field::Bytes(&large)]).is_ok() {}
        let is_put = |value: &i64| {
            let fields = [*value, 0, 0, 0, 0, 0, 0, 0].map(Field::Int);
            engine.put(&fields).is_ok()
        };
        let more = (1..1_000).take_while(is_put).count();
        assert_eq!(1 + more, 16 * usize::try_from(EIGHTS).unwrap());
        // A whole extent is better, if there is one again.
        while take(&engine, &[BYTES]).is_some() {}
        let owned = engine.check().unwrap().extents_owned;
        put(&engine, 8, 1_000);
        assert_eq!(engine.check().unwrap().extents_owned, owned + 1);
    });
}
