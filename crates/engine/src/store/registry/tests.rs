//! The directory of shapes, as it grows.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use std::sync::Barrier;
use std::thread;

use super::*;
use crate::testing;

/// The kinds of sixteen fields, of one of two kinds each.
fn kinds(number: u32) -> Kinds {
    let mut kinds = Kinds::new();
    for bit in 0..16 {
        kinds.push(if number >> bit & 1 == 0 { Kind::Int } else { Kind::Null });
    }
    kinds
}

#[test]
fn a_shape_is_found_however_long_the_directory_has_grown() {
    let engine = testing::engine(8 << 20);
    let view = engine.memory.view();
    for number in 0..3_000 {
        assert_eq!(shape(&engine, &kinds(number), None).unwrap(), number);
    }
    assert_eq!((count(&view), listed(&view), directory_bits(&view)), (3_000, 3_000, 13));
    for number in 0..3_000 {
        assert_eq!(find_shape(&engine, &kinds(number)), Some(number));
    }
    engine.check().unwrap();
}

#[test]
fn a_table_that_was_filled_in_part_by_who_died_is_filled_again() {
    let engine = testing::engine(8 << 20);
    let view = engine.memory.view();
    let full = 1 << (DIRECTORY_BITS_MIN - 1);
    for number in 0..full {
        shape(&engine, &kinds(number), None).unwrap();
    }
    // As who dies in the middle of `lengthen_directory` leaves it.
    let longer = DIRECTORY_BITS_MIN + 1;
    commit_pages(&engine, layout::directory_table(longer), layout::directory_bytes(longer))
        .unwrap();
    for number in 0..full / 2 {
        let place = probe_table(&engine, &view, &kinds(number), longer).unwrap_err().unwrap();
        enter(&view, place, number);
    }
    engine.check().unwrap();
    assert_eq!(shape(&engine, &kinds(full), None).unwrap(), full);
    assert_eq!((directory_bits(&view), listed(&view)), (longer, full + 1));
    engine.check().unwrap();
}

#[test]
fn threads_that_add_shapes_at_once_agree_on_them() {
    let engine = testing::engine(8 << 20);
    let begin = Barrier::new(2);
    let add = || {
        begin.wait();
        (0..2_000).map(|number| shape(&engine, &kinds(number), None).unwrap()).collect::<Vec<_>>()
    };
    let [one, other] = thread::scope(|scope| {
        [scope.spawn(add), scope.spawn(add)].map(|thread| thread.join().unwrap())
    });
    assert_eq!(one, other);
    assert_eq!(count(&engine.memory.view()), 2_000);
    engine.check().unwrap();
}

#[test]
fn packed_kinds_are_distinct_for_all_shapes_of_few_fields() {
    let mut all: Vec<u64> = vec![Kinds::new().all.packed().unwrap()];
    let mut last = vec![Kinds::new()];
    for _ in 0..3 {
        last = last
            .iter()
            .flat_map(|kinds| {
                Kind::ALL.map(|kind| {
                    let mut kinds = *kinds;
                    kinds.push(kind);
                    kinds
                })
            })
            .collect();
        all.extend(last.iter().map(|kinds| kinds.all.packed().unwrap()));
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    let mut longest = Kinds::new();
    (0..12).for_each(|_| longest.push(Kind::Opaque));
    assert!(longest.all.packed().unwrap() < u64::MAX >> ShapeCache::NUMBER_BITS);
    longest.push(Kind::Null);
    assert_eq!(longest.all.packed(), None);
}
