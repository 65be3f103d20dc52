//! Put, take, read and wait on one engine over private memory.

use std::sync::Arc;
use std::time::Duration;
use tupelo_engine::{CreateOptions, Engine, Error, Limits, Order, Want};
use tupelo_shm::Segment;
use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef};

fn engine(size_bytes: u64) -> Arc<Engine> {
    let options = CreateOptions {
        reserve_bytes: Engine::reserve_bytes(size_bytes),
        initial_commit_bytes: 4096,
        create: true,
        fresh: false,
        mode: 0o600,
    };
    let segment = Segment::private(&options, &Engine::segment_layout(), |mapping| {
        Engine::initialise(mapping, &Limits { size_bytes, ..Limits::default() })
    });
    Arc::new(Engine::new(segment.unwrap()).unwrap())
}

fn int(engine: &Engine, patterns: &[PatternRef<'_>], index: usize, take: bool) -> Option<i64> {
    let template = [TemplateRef::new(patterns)];
    let visitor = |tuple: tupelo_tuple::TupleView<'_>| match tuple.field(index) {
        Some(Field::Int(value)) => Ok::<i64, Error>(value),
        other => panic!("{other:?}"),
    };
    if take {
        engine.try_take(&template, Order::Fifo, visitor)
    } else {
        engine.try_read(&template, Order::Fifo, visitor)
    }
    .unwrap()
}

#[test]
fn what_was_put_is_read_and_taken_once() {
    let engine = engine(16 << 20);
    let job = |k: i64| [Field::Str("job"), Field::Int(k), Field::Float(3.5)];
    for k in 0..20_000 {
        engine.put(&job(k)).unwrap();
    }
    let any_int = PatternRef::Kinds(KindSet::of(Kind::Int));
    let any_float = PatternRef::Kinds(KindSet::of(Kind::Float));
    let name = PatternRef::Actual(Field::Str("job"));
    for k in (0..20_000).rev().step_by(2) {
        let t = [name, PatternRef::Actual(Field::Int(k)), any_float];
        assert_eq!(int(&engine, &t, 1, false), Some(k));
        assert_eq!(int(&engine, &t, 1, true), Some(k));
        assert_eq!(int(&engine, &t, 1, true), None);
    }
    for k in (0..20_000).step_by(2) {
        assert_eq!(int(&engine, &[name, any_int, any_float], 1, true), Some(k));
    }
    assert_eq!(int(&engine, &[name, any_int, any_float], 1, true), None);
}

#[test]
fn a_put_hands_its_tuple_to_the_first_in_line() {
    let engine = engine(16 << 20);
    let any_int = PatternRef::Kinds(KindSet::of(Kind::Int));
    let patterns = [any_int];
    let template = [TemplateRef::new(&patterns)];
    let first = engine.waiter(&template, Want::Take).unwrap();
    let second = engine.waiter(&template, Want::Take).unwrap();
    let reader = engine.waiter(&template, Want::Read).unwrap();
    engine.put(&[Field::Int(7)]).unwrap();
    assert!(first.wait(None).unwrap());
    assert!(reader.wait(None).unwrap());
    assert!(!second.wait(Some(Duration::ZERO)).unwrap());
    drop(first);
    assert!(second.wait(None).unwrap());
    let get = |waiter: tupelo_engine::Waiter| {
        waiter
            .finish(|t| match t.field(0) {
                Some(Field::Int(v)) => Ok::<_, Error>(v),
                _ => panic!(),
            })
            .unwrap()
    };
    assert_eq!(get(second), 7);
    assert_eq!(get(reader), 7);
    assert_eq!(int(&engine, &patterns, 0, true), None);
}
#[test]
fn large() {
    let engine = engine(64 << 20);
    let big = vec![7u8; 5_000_000];
    let any = PatternRef::Kinds(KindSet::of(Kind::Bytes));
    for round in 0..20 {
        engine.put(&[Field::Int(round), Field::Bytes(&big)]).unwrap();
        assert_eq!(
            int(&engine, &[PatternRef::Actual(Field::Int(round)), any], 0, true),
            Some(round)
        );
    }
    for round in 0..13 {
        engine.put(&[Field::Int(round), Field::Bytes(&big)]).unwrap();
    }
    let error = engine.put(&[Field::Int(0), Field::Bytes(&big)]);
    assert!(matches!(&error, Err(Error::SpaceFull(full)) if full.tuples == 13), "{error:?}");
}

#[test]
fn many_tuples_go_in_at_once_and_out_again_o5_o6() {
    let engine = engine(64 << 20);
    let fields: Vec<[Field<'_>; 2]> =
        (0..50_000).map(|number| [Field::Str("n"), Field::Int(number)]).collect();
    let tuples: Vec<&[Field<'_>]> = fields.iter().map(<[Field<'_>; 2]>::as_slice).collect();
    assert_eq!(engine.put_all(&tuples).unwrap(), 50_000);
    let name = PatternRef::Actual(Field::Str("n"));
    let patterns = [name, PatternRef::Kinds(KindSet::of(Kind::Int))];
    let taken = engine.take_all(&[TemplateRef::new(&patterns)], None, |tuple| {
        let Some(Field::Int(number)) = tuple.field(1) else { panic!("no number") };
        Ok::<_, Error>(number)
    });
    assert_eq!(taken.unwrap(), (0..50_000).collect::<Vec<i64>>());
}

#[test]
fn memory_that_stays_free_goes_back_to_the_system_b1() {
    let engine = engine(64 << 20);
    let bytes = vec![7_u8; 60_000];
    let any = [PatternRef::Kinds(KindSet::of(Kind::Bytes))];
    let template = [TemplateRef::new(&any)];
    let fill = || (0..800).for_each(|_| engine.put(&[Field::Bytes(&bytes)]).unwrap());
    let drain = || engine.take_all(&template, None, |_| Ok::<_, Error>(())).unwrap().len();
    let committed_bytes = || engine.stat().unwrap().bytes_committed;
    fill();
    let most = committed_bytes();
    engine.sweep().unwrap();
    assert_eq!(committed_bytes(), most, "it is in use");
    assert_eq!(drain(), 800);
    engine.sweep().unwrap();
    assert_eq!(committed_bytes(), most, "it may be wanted again at once");
    for _ in 0..most >> 24 {
        engine.sweep().unwrap();
    }
    assert!(committed_bytes() <= 4 << 20, "{} of {most} bytes are kept", committed_bytes());
    fill();
    assert_eq!(drain(), 800, "and comes back");
    engine.check().unwrap();
}

#[test]
fn each_alternative_goes_by_an_index_and_the_oldest_find_is_taken_t2() {
    let engine = engine(16 << 20);
    for k in 0..2_000 {
        engine.put(&[Field::Str("job"), Field::Int(k % 1_000)]).unwrap();
    }
    let name = PatternRef::Actual(Field::Str("job"));
    let [late, early] = [998, 997].map(|k| [name, PatternRef::Actual(Field::Int(k))]);
    let template = [TemplateRef::new(&late), TemplateRef::new(&early)];
    let number = |tuple: tupelo_tuple::TupleView<'_>| match tuple.field(1) {
        Some(Field::Int(value)) => Ok::<i64, Error>(value),
        other => panic!("{other:?}"),
    };
    for _ in 0..100 {
        assert_eq!(engine.try_read(&template, Order::Fifo, number).unwrap(), Some(997));
        assert_eq!(engine.try_read(&template, Order::Lifo, number).unwrap(), Some(998));
    }
    assert_eq!(
        engine.stat().unwrap().shapes[0].indexes,
        [[0, 1]],
        "both fields are known as a key"
    );
    let taken = [(); 5].map(|()| engine.try_take(&template, Order::Fifo, number).unwrap());
    assert_eq!(taken, [Some(997), Some(998), Some(997), Some(998), None]);
}

#[test]
fn what_all_tuples_of_a_shape_match_is_counted_as_often_as_it_is_there_o5() {
    let engine = engine(16 << 20);
    for k in 0..100 {
        engine.put(&[Field::Str("job"), Field::Int(k)]).unwrap();
    }
    let [any_str, any_int] =
        [Kind::Str, Kind::Int].map(|kind| PatternRef::Kinds(KindSet::of(kind)));
    let count = |patterns: &[PatternRef<'_>]| engine.count(&[TemplateRef::new(patterns)]).unwrap();
    assert_eq!(count(&[any_str, any_int]), 100);
    int(&engine, &[any_str, any_int], 1, true);
    assert_eq!(count(&[any_str, any_int]), 99);
    assert_eq!(count(&[any_str, PatternRef::Actual(Field::Int(7))]), 1);
    assert_eq!(count(&[any_int, any_int]), 0);
}
