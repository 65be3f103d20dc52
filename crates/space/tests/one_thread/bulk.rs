//! Steps over many tuples, of every size on spaces of every fullness. The undo log, an extent or a bucket may end in
//! the middle of a step. All tuples are in the space afterwards, and in their order (O5, O6, O7, T2).

use std::time::Duration;

use crate::common::{Temporary, keep};
#[cfg(not(feature = "checked"))]
use tupelo::Error;
use tupelo::{ClaimTerms, Field, Kind, Order, Space, Tuple, fields, template};
use tupelo_model::Limits;

/// Tuples that are there before, up to more than an extent holds.
const BEFORE_MAX: i64 = 1_100;
/// Not a divisor of anything: every position in extents, buckets and logs comes up.
const BEFORE_STEP: usize = 13;
/// Tuples of one step: within the first log, at its end, beyond it, beyond an extent.
const STEPS: [i64; 5] = [1, 9, 23, 150, 600];

fn number(index: i64) -> [Field<'static>; 3] {
    fields!["number", index % 5, index]
}

fn numbers(range: std::ops::Range<i64>) -> Vec<Tuple> {
    range.map(|index| tupelo::tuple!["number", index % 5, index]).collect()
}

fn put_all(space: &Space, range: std::ops::Range<i64>) {
    let fields: Vec<_> = range.map(number).collect();
    let slices: Vec<&[Field<'_>]> = fields.iter().map(<[Field<'_>; 3]>::as_slice).collect();
    assert_eq!(space.put_all(&slices).unwrap(), slices.len());
}

/// Asks by several templates, so that there are indexes to keep up.
fn learn(space: &Space) {
    for key in 0..5_i64 {
        for _ in 0..3 {
            let by_key = [template!["number", key, Kind::Int]];
            space.try_read(&by_key, Order::Fifo, keep).unwrap();
            let absent = [template!["number", Kind::Int, -key - 1]];
            assert_eq!(space.try_read(&absent, Order::Fifo, keep).unwrap(), None);
        }
    }
}

fn assert_holds(space: &Space, expected: &[Tuple]) {
    let found = space.read_all(&[template!["number", Kind::Int, Kind::Int]], None, keep).unwrap();
    assert!(found == expected, "{} tuples, or others, instead of {}", found.len(), expected.len());
    for key in 0..5_i64 {
        let by_key = [template!["number", key, Kind::Int]];
        let found = space.read_all(&by_key, None, keep).unwrap();
        let of_key = expected.iter().filter(|tuple| tuple[1] == key.into());
        assert!(found.iter().eq(of_key), "key {key}: {} tuples, or others", found.len());
    }
}

#[test]
fn steps_of_every_size_on_spaces_of_every_fullness_lose_and_invent_nothing() {
    for before in (0..BEFORE_MAX).step_by(BEFORE_STEP) {
        for step in STEPS {
            let source = Temporary::new("mem", Limits::default());
            let target = Temporary::new("mem", Limits::default());
            for space in [&source.space, &target.space] {
                (0..before).for_each(|index| space.put(&number(index)).unwrap());
                learn(space);
            }
            put_all(&source.space, before..before + step);
            assert_holds(&source.space, &numbers(0..before + step));

            let late = [template!["number", Kind::Int, _]];
            let moved = source.space.move_to(&target.space, &late).unwrap();
            assert_eq!(moved, (before + step).cast_unsigned());
            assert_holds(&source.space, &[]);
            let expected = [numbers(0..before), numbers(0..before + step)].concat();
            assert_holds(&target.space, &expected);

            let taken = target.space.take_all(&late, None, keep).unwrap();
            assert!(taken == expected, "{before} before, {step} in one step");
            assert_holds(&target.space, &[]);
        }
    }
}

#[test]
fn tuples_of_one_step_are_counted_once_also_if_the_step_begins_anew() {
    // As many as need a longer log, extents and a larger index on their way.
    let (count, all) = (10_000, [template!["number", Kind::Int, Kind::Int]]);
    let [source, target] = [0, 1].map(|_| Temporary::new("mem", Limits::default()));
    learn(&source.space);
    put_all(&source.space, 0..count);
    assert_eq!(counted(&source.space), (10_000, 0));
    assert_eq!(source.space.move_to(&target.space, &all).unwrap(), 10_000);
    assert_eq!((counted(&source.space), counted(&target.space)), ((10_000, 10_000), (10_000, 0)));
    assert_eq!(target.space.take_all(&all, None, keep).unwrap().len(), 10_000);
    assert_eq!(counted(&target.space), (10_000, 10_000));

    put_all(&source.space, 0..count);
    let transaction = source.space.transaction(&[], Duration::from_secs(600)).unwrap();
    let inside = transaction.on(&source.space).unwrap();
    assert_eq!(inside.take_all(&all, None, keep).unwrap().len(), 10_000);
    (0..count).for_each(|index| inside.put(&number(index)).unwrap());
    transaction.commit().unwrap();
    assert_eq!(counted(&source.space), (30_000, 20_000));
}

#[test]
fn a_put_is_counted_once_also_if_it_begins_anew() {
    // As many as make an index grow beyond the extent that it began in.
    let count = 70_000;
    let Temporary { space, .. } = &Temporary::new("mem", Limits::default());
    put_all(space, 0..5);
    learn(space);
    (5..count).for_each(|index| space.put(&number(index)).unwrap());
    assert_eq!(counted(space), (count.unsigned_abs(), 0));
}

#[test]
fn the_puts_of_a_claim_are_counted_once_also_if_done_begins_anew() {
    let Temporary { space, .. } = &Temporary::new("mem", Limits::default());
    learn(space);
    put_all(space, 0..1);
    let late = [template!["number", Kind::Int, Kind::Int]];
    let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
    let (claim, _) = space.try_claim(&late, Order::Fifo, &terms, keep).unwrap().unwrap();
    (1..=10_000).for_each(|index| claim.put(&number(index)).unwrap());
    claim.done().unwrap();
    assert_eq!(counted(space), (10_001, 1));
}

/// Where every access is checked, so many take minutes, and show nothing more.
#[cfg(not(feature = "checked"))]
#[test]
fn a_step_of_more_changes_than_can_be_undone_is_refused_and_changes_nothing_b2() {
    let Temporary { space, .. } = &Temporary::new("mem", Limits::default());
    put_all(space, 0..5);
    learn(space);
    let fields: Vec<_> = (5..600_000).map(number).collect();
    let slices: Vec<&[Field<'_>]> = fields.iter().map(<[Field<'_>; 3]>::as_slice).collect();
    let refused = space.put_all(&slices).unwrap_err();
    assert!(matches!(refused, Error::TransactionTooBig { .. }), "{refused}");
    assert_holds(space, &numbers(0..5));
    // A smaller one is not.
    assert_eq!(space.put_all(&slices[..20_000]).unwrap(), 20_000);
    assert_holds(space, &numbers(0..20_005));
}

/// The puts and takes of a space so far.
fn counted(space: &Space) -> (u64, u64) {
    let shapes = space.stat().unwrap().shapes;
    (shapes.iter().map(|shape| shape.puts).sum(), shapes.iter().map(|shape| shape.takes).sum())
}

#[test]
fn a_move_makes_no_shape_there_of_which_nothing_comes_o7_b2() {
    for engine in crate::common::ENGINES {
        let [from, into] = [(); 2].map(|()| Temporary::new(engine, Limits::default()));
        from.space.put(&fields!["gone", 1]).unwrap();
        from.space.try_take(&[template!["gone", Kind::Int]], Order::Fifo, keep).unwrap();
        let shapes = || into.space.stat().unwrap().shapes.len();
        assert_eq!(from.space.move_to(&into.space, &[template![..]]).unwrap(), 0);
        assert_eq!(shapes(), 0);
        (0..3).for_each(|index: i64| from.space.put(&fields![index]).unwrap());
        from.space.put(&fields!["here", 0.5]).unwrap();
        assert_eq!(from.space.copy_to(&into.space, &[template![..]]).unwrap(), 4);
        assert_eq!(from.space.move_to(&into.space, &[template![Kind::Int]]).unwrap(), 3);
        assert_eq!(shapes(), 2);
        assert_eq!(into.space.count(&[template![Kind::Int]]).unwrap(), 6);
    }
}
