//! Shapes with few tuples, and subscriptions with few events, take little memory (rules B1, B2, N2).

use std::sync::Arc;

use crate::support::engine;
use tupelo_engine::{Engine, Error, EventKind, SubscribeTerms, Subscription};
use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef};

/// Kinds whose fields need no memory beyond eight bytes.
const KINDS: [Kind; 4] = [Kind::Null, Kind::Bool, Kind::Int, Kind::Float];
/// Fields of a tuple: so many kinds of each field are 65 536 shapes.
const ARITY: usize = 8;

/// The kinds of shape number `shape`.
fn kinds(shape: usize) -> [Kind; ARITY] {
    std::array::from_fn(|field| KINDS[shape >> (2 * field) & 3])
}

fn put(engine: &Engine, shape: usize) -> Result<(), Error> {
    let fields = kinds(shape).map(|kind| match kind {
        Kind::Null => Field::Null,
        Kind::Bool => Field::Bool(true),
        Kind::Int => Field::Int(7),
        _ => Field::Float(0.5),
    });
    engine.put(&fields)
}

fn take(engine: &Engine, shape: usize) -> bool {
    let patterns = kinds(shape).map(|kind| PatternRef::Kinds(KindSet::of(kind)));
    let template = [TemplateRef::new(&patterns)];
    let taken = engine.try_take(&template, tupelo_engine::Order::Fifo, |_| Ok::<_, Error>(()));
    taken.unwrap().is_some()
}

fn take_all(engine: &Engine) -> usize {
    let everything = TemplateRef::beginning(&[]);
    engine.take_all(&[everything], None, |_| Ok::<_, Error>(())).unwrap().len()
}

#[test]
fn thirty_thousand_shapes_of_one_tuple_each_fit_in_256_mib_b1() {
    const SHAPES: usize = 30_000;
    let engine = engine(256 << 20);
    for shape in 0..SHAPES {
        put(&engine, shape).unwrap();
    }
    let used_bytes = engine.stat().unwrap().bytes_used;
    assert!(used_bytes <= 4096 * SHAPES as u64 + (1 << 20), "{used_bytes}");
    for shape in 0..SHAPES {
        assert!(take(&engine, shape), "shape {shape}");
    }
    // What they had serves others.
    let large = vec![7; 64 << 20];
    engine.put(&[Field::Bytes(&large)]).unwrap();
}

/// Puts a tuple of one shape after the other, from shape number `first` on, until there is no room. Returns the next one.
fn fill(engine: &Engine, first: usize) -> usize {
    let is_put = |shape: &usize| match put(engine, *shape) {
        Ok(()) => true,
        Err(Error::SpaceFull(_)) => false,
        Err(other) => panic!("{other}"),
    };
    first + (first..1 << 16).take_while(is_put).count()
}

#[test]
fn a_shape_without_tuples_leaves_its_few_kilobytes_to_another_one_b1() {
    let engine = engine(2 << 20);
    let end = fill(&engine, 0);
    assert!(end > 400, "16 of them share an extent");
    // Not one extent becomes free.
    for shape in (0..end).step_by(16) {
        assert!(take(&engine, shape));
    }
    let next = fill(&engine, end);
    assert!(next - end >= end / 16 - 1, "{} of {}", next - end, end / 16);
    engine.check().unwrap();
    assert!(take_all(&engine) >= end);
    engine.put(&[Field::Bytes(&vec![7; 1 << 20])]).unwrap();
    engine.check().unwrap();
}

#[test]
fn a_shape_that_finds_no_extent_uses_what_is_left_of_a_shared_one_b1() {
    let engine = engine(2 << 20);
    put(&engine, 0).unwrap();
    // All other extents.
    let large = vec![7; 60_000];
    while engine.put(&[Field::Bytes(&large)]).is_ok() {}
    let more = (0..1_000).take_while(|_| put(&engine, 0).is_ok()).count();
    // Blocks of 192 bytes, in 16 slabs of 63 times 64.
    assert_eq!(1 + more, 16 * 21);
    engine.check().unwrap();
}

fn subscribe(engine: &Arc<Engine>) -> Result<Subscription, Error> {
    let patterns = [PatternRef::Kinds(KindSet::of(Kind::Int))];
    let terms = SubscribeTerms::new([EventKind::Put], 64);
    engine.subscribe(&[TemplateRef::new(&patterns)], &terms)
}

#[test]
fn ten_thousand_subscriptions_of_64_events_fit_in_256_mib_n2_b2() {
    const SUBSCRIPTIONS: usize = 10_000;
    let engine = engine(256 << 20);
    engine.put(&[Field::Int(0)]).unwrap();
    let before = engine.stat().unwrap().bytes_used;
    let all: Vec<_> = (0..SUBSCRIPTIONS).map(|_| subscribe(&engine).unwrap()).collect();
    for value in 1..=2 {
        engine.put(&[Field::Int(value)]).unwrap();
    }
    for subscription in [&all[0], &all[SUBSCRIPTIONS / 2], &all[SUBSCRIPTIONS - 1]] {
        assert_eq!(subscription.waiting(), 2);
    }
    assert_eq!(engine.stat().unwrap().subscriptions.len(), SUBSCRIPTIONS);
    drop(all);
    // The log of the puts, which told so many, stays until a sweep.
    let after = engine.stat().unwrap().bytes_used;
    assert!(after <= before + (4 << 20), "{after} bytes, and {before} before");
    engine.check().unwrap();
}

#[test]
fn a_buffer_keeps_all_of_its_64_events_n2() {
    let engine = engine(8 << 20);
    let subscription = subscribe(&engine).unwrap();
    for value in 0..64 {
        engine.put(&[Field::Int(value)]).unwrap();
    }
    let sequence = |event: tupelo_engine::Event<'_>| Ok::<_, Error>((event.sequence, event.missed));
    for number in 1..=64 {
        assert_eq!(subscription.try_next(sequence).unwrap(), Some((number, 0)));
    }
}
