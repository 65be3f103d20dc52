//! What goes back into a full space has its place there (rules B1, T5).

use crate::support::{LONG, any, engine, engine_with, number, this_job, try_claim, try_take};
use tupelo_engine::{Engine, Error, Limits, WhenFull};
use tupelo_tuple::{Field, Kind, PatternRef, TemplateRef};

/// Fills the space with tuples of other shapes, until the smallest finds no room.
fn fill(engine: &Engine) {
    for bytes in [60_000, 6_000, 600, 60, 6] {
        let bytes = vec![7; bytes];
        while engine.put(&[Field::Bytes(&bytes)]).is_ok() {}
    }
}

/// Looks for a job by its number until that is answered by an index.
fn learn(engine: &Engine) {
    for _ in 0..500 {
        assert_eq!(crate::support::try_read(engine, &this_job(-1)), None);
    }
}

/// Four keys per bucket: a table of 1024 buckets takes so many, and a new segment of 64 KiB for the next.
const KEYS: i64 = 4 * 1024;

#[test]
fn a_tuple_whose_key_has_no_place_in_the_table_any_more_goes_back_all_the_same() {
    let engine = engine(8 << 20);
    for value in 0..KEYS {
        engine.put(&crate::support::job(value)).unwrap();
    }
    learn(&engine);
    let indexed = engine.check().unwrap().shapes.iter().any(|shape| !shape.indexes.is_empty());
    assert!(indexed, "an index over the numbers");
    let (claim, value) = try_claim(&engine, &this_job(7), &LONG).unwrap();
    assert_eq!(value, 7);
    engine.put(&crate::support::job(KEYS)).unwrap();
    fill(&engine);
    claim.abort("there is no room for the table").unwrap();
    engine.check().unwrap();
    assert_eq!(try_take(&engine, &this_job(7)), Some(7));
    // The table grows later, when there is room.
    let patterns = [PatternRef::Kinds(tupelo_tuple::KindSet::of(tupelo_tuple::Kind::Bytes))];
    engine.take_all(&[TemplateRef::new(&patterns)], None, |_| Ok::<_, Error>(())).unwrap();
    for value in KEYS + 1..KEYS + 100 {
        engine.put(&crate::support::job(value)).unwrap();
    }
    engine.check().unwrap();
}

#[test]
fn a_put_is_not_refused_for_the_sake_of_a_larger_table_b1() {
    let engine = engine(8 << 20);
    for value in 0..KEYS {
        engine.put(&crate::support::job(value)).unwrap();
    }
    learn(&engine);
    // Of a key that is there, until an extent has room for some 500 more.
    for _ in 0..32 {
        engine.put(&crate::support::job(0)).unwrap();
    }
    fill(&engine);
    for value in KEYS..KEYS + 500 {
        engine.put(&crate::support::job(value)).unwrap();
    }
    engine.check().unwrap();
    assert_eq!(try_take(&engine, &this_job(KEYS + 499)), Some(KEYS + 499));
    // The table grows later, when there is room.
    let patterns = [PatternRef::Kinds(tupelo_tuple::KindSet::of(tupelo_tuple::Kind::Bytes))];
    engine.take_all(&[TemplateRef::new(&patterns)], None, |_| Ok::<_, Error>(())).unwrap();
    for value in KEYS + 500..KEYS + 600 {
        engine.put(&crate::support::job(value)).unwrap();
    }
    engine.check().unwrap();
    assert_eq!(try_take(&engine, &this_job(KEYS + 599)), Some(KEYS + 599));
}

#[test]
fn a_copy_within_a_space_that_drops_its_oldest_is_refused_without_room_b1() {
    let limits =
        Limits { size_bytes: 2 << 20, tuples_max: Some(10), when_full: WhenFull::DropOldest };
    let engine = engine_with(&limits);
    for value in 0..6 {
        engine.put(&crate::support::job(value)).unwrap();
    }
    let patterns = crate::support::any_job();
    let template = [TemplateRef::new(&patterns)];
    assert!(matches!(engine.copy_to(&engine, &template), Err(Error::SpaceFull(_))));
    let left = engine.read_all(&template, None, number).unwrap();
    assert_eq!(left, [0, 1, 2, 3, 4, 5], "nothing has changed");
    let first = this_job(0);
    assert_eq!(engine.copy_to(&engine, &[TemplateRef::new(&first)]).unwrap(), 1);
    assert_eq!(engine.read_all(&template, None, number).unwrap(), [0, 1, 2, 3, 4, 5, 0]);
}

#[test]
fn a_large_tuple_that_what_is_held_leaves_no_place_for_is_refused_and_drops_nothing_b1() {
    let limits =
        Limits { size_bytes: 8 << 20, when_full: WhenFull::DropOldest, ..Limits::default() };
    let engine = engine_with(&limits);
    // An extent each, side by side, of 128.
    let part = vec![7; 60_000];
    for value in 0..100 {
        engine.put(&[Field::Bytes(&part), Field::Int(value)]).unwrap();
    }
    let middle = [any(Kind::Bytes), PatternRef::Actual(Field::Int(64))];
    let (claim, _) = try_claim(&engine, &middle, &LONG).unwrap();
    // 81 extents.
    let large = vec![7; 5 << 20];
    let refused = engine.put(&[Field::Bytes(&large)]);
    assert!(matches!(refused, Err(Error::SpaceFull(_))), "{refused:?}");
    let refused = engine.put_all(&[[Field::Int(1)].as_slice(), &[Field::Bytes(&large)]]);
    assert!(matches!(refused, Err(Error::SpaceFull(_))), "{refused:?}");
    let parts = [any(Kind::Bytes), any(Kind::Int)];
    assert_eq!(engine.count(&[TemplateRef::new(&parts)]).unwrap(), 99, "with the claimed one, all");
    assert_eq!(engine.stat().unwrap().dropped, 0);
    claim.abort("there is no room for the large one").unwrap();
    engine.put(&[Field::Bytes(&large)]).unwrap();
    assert!(engine.stat().unwrap().dropped > 0);
    engine.check().unwrap();
}

#[test]
fn a_space_full_of_tuples_takes_two_mib_beyond_its_limit_at_most_b1() {
    for size_bytes in [2 << 20, 3 << 20, 8 << 20] {
        let engine = engine(size_bytes);
        fill(&engine);
        let stat = engine.stat().unwrap();
        assert!(stat.bytes_committed <= stat.bytes_max + (2 << 20), "{stat:?}");
    }
}
