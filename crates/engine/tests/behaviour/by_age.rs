//! The oldest of several shapes first, whatever gets it (rule T2).

use std::thread;
use std::time::Duration;

use crate::support::{LONG, engine};
use tupelo_engine::{Engine, Error, LeaseTerms, Order, Outcome, Transaction, Want};
use tupelo_tuple::{Condition, Field, KindSet, PatternRef, TemplateRef, TupleView};

/// `("job", _)`, whatever its second field is.
const ANY_JOB: [PatternRef<'static>; 2] =
    [PatternRef::Actual(Field::Str("job")), PatternRef::Kinds(KindSet::ALL)];

/// The `number`-th job: of one of three shapes.
fn put(engine: &Engine, number: i64) {
    let text = number.to_string();
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let field = match number % 3 {
        0 => Field::Int(number),
        1 => Field::Str(&text),
        _ => Field::Float(number as f64),
    };
    engine.put(&[Field::Str("job"), field]).unwrap();
}

/// Puts all of these jobs.
fn put_all(engine: &Engine, numbers: &[i64]) {
    for number in numbers {
        put(engine, *number);
    }
}

#[expect(clippy::unnecessary_wraps, clippy::cast_possible_truncation, reason = "a visitor")]
fn number(tuple: TupleView<'_>) -> Result<i64, Error> {
    Ok(match tuple.field(1) {
        Some(Field::Int(number)) => number,
        Some(Field::Float(number)) => number as i64,
        Some(Field::Str(text)) => text.parse().unwrap(),
        other => panic!("no job: {other:?}"),
    })
}

/// A space in which ages compare across shapes already.
fn compared() -> std::sync::Arc<Engine> {
    let engine = engine(16 << 20);
    (0..3).for_each(|number| put(&engine, number));
    let template = [TemplateRef::new(&ANY_JOB)];
    let mut taken: Vec<i64> =
        (0..3).map(|_| engine.try_take(&template, Order::Fifo, number).unwrap().unwrap()).collect();
    taken.sort_unstable();
    assert_eq!(taken, [0, 1, 2]);
    engine
}

/// The numbers of `("job", _)` in an order that is no shape's, and no order of shapes either.
const NUMBERS: [i64; 9] = [4, 3, 6, 5, 7, 8, 11, 9, 10];

#[test]
fn the_oldest_of_all_shapes_is_taken_first_by_every_verb_t2() {
    let engine = compared();
    let template = [TemplateRef::new(&ANY_JOB)];
    let always = Condition::new("f[0] == \"job\"").unwrap();
    let with_condition = [TemplateRef { condition: Some(&always), ..template[0] }];
    let (one, other) = ([ANY_JOB[0], PatternRef::Kinds(KindSet::ALL)], ANY_JOB);
    let several = [TemplateRef::new(&one), TemplateRef::new(&other)];
    let verbs: [(&str, &dyn Fn() -> i64); 8] = [
        ("take", &|| engine.try_take(&template, Order::Fifo, number).unwrap().unwrap()),
        ("read and take", &|| {
            let read = engine.try_read(&template, Order::Fifo, number).unwrap().unwrap();
            let taken = engine.try_take(&template, Order::Fifo, number).unwrap().unwrap();
            assert_eq!(read, taken);
            taken
        }),
        ("where", &|| engine.try_take(&with_condition, Order::Fifo, number).unwrap().unwrap()),
        ("or", &|| engine.try_take(&several, Order::Fifo, number).unwrap().unwrap()),
        ("claim", &|| {
            let claimed = engine.try_claim(&template, Order::Fifo, &LONG, number).unwrap();
            let (claim, number) = claimed.unwrap();
            claim.done(&[]).unwrap();
            number
        }),
        ("swap", &|| {
            let other = [Field::Str("done")];
            engine.try_swap(&template, &other[..], number).unwrap().unwrap()
        }),
        ("wait", &|| {
            let waiter = engine.waiter(&template, Want::Take).unwrap();
            match waiter.finish_now(number).unwrap() {
                Outcome::Done(number) => number,
                Outcome::Waits(_) => panic!("there is one"),
            }
        }),
        ("some", &|| engine.take_all(&template, Some(1), number).unwrap()[0]),
    ];
    for (verb, take) in verbs {
        put_all(&engine, &NUMBERS);
        let taken: Vec<i64> = NUMBERS.iter().map(|_| take()).collect();
        assert_eq!(taken, NUMBERS, "{verb}");
        engine.check().unwrap();
    }
}

#[test]
fn the_youngest_of_all_shapes_is_the_last_that_was_put_t2() {
    let engine = compared();
    let template = [TemplateRef::new(&ANY_JOB)];
    put_all(&engine, &NUMBERS);
    let mut taken: Vec<i64> = NUMBERS
        .iter()
        .map(|_| engine.try_take(&template, Order::Lifo, number).unwrap().unwrap())
        .collect();
    taken.reverse();
    assert_eq!(taken, NUMBERS);
}

#[test]
fn a_transaction_takes_the_oldest_of_all_shapes_and_then_its_own_t2_x2() {
    let engine = compared();
    let template = [TemplateRef::new(&ANY_JOB)];
    put_all(&engine, &NUMBERS[..5]);
    let ttl = Duration::from_secs(3600);
    let mut inside = Transaction::begin([engine.clone()], ttl).unwrap();
    inside.put(0, &[Field::Str("job"), Field::Int(0)][..]).unwrap();
    let read = inside.try_read(0, &template, Order::Fifo, number).unwrap();
    assert_eq!(read, Some(NUMBERS[0]), "which it has read from now on");
    let taken: Vec<i64> = (0..6)
        .map(|_| inside.try_take(0, &template, Order::Fifo, number).unwrap().unwrap())
        .collect();
    assert_eq!(taken, [4, 3, 6, 5, 7, 0]);
    drop(inside);
    assert_eq!(engine.try_take(&template, Order::Fifo, number).unwrap(), Some(4), "back");
}

#[test]
fn no_shape_starves_while_others_are_put_into_t2() {
    let engine = compared();
    let template = [TemplateRef::new(&ANY_JOB)];
    put(&engine, 1);
    put(&engine, 3);
    for number_put in 2..40 {
        put(&engine, 3 * number_put);
        if engine.try_take(&template, Order::Fifo, number).unwrap() == Some(1) {
            return;
        }
    }
    panic!("the oldest of all was never taken");
}

#[test]
fn what_comes_back_is_as_old_as_it_was_t2_t5() {
    let engine = compared();
    let template = [TemplateRef::new(&ANY_JOB)];
    put_all(&engine, &NUMBERS);
    let (claim, first) = engine.try_claim(&template, Order::Fifo, &LONG, number).unwrap().unwrap();
    assert_eq!(engine.try_read(&template, Order::Fifo, number).unwrap(), Some(NUMBERS[1]));
    claim.abort("not now").unwrap();
    assert_eq!(first, NUMBERS[0]);
    assert_eq!(engine.try_take(&template, Order::Fifo, number).unwrap(), Some(first));
}

#[test]
fn some_of_many_are_the_oldest_of_all_shapes_t2_o6() {
    let engine = compared();
    let template = [TemplateRef::new(&ANY_JOB)];
    put_all(&engine, &NUMBERS);
    for part in NUMBERS.chunks(4) {
        let mut read = engine.read_all(&template, Some(4), number).unwrap();
        let mut taken = engine.take_all(&template, Some(4), number).unwrap();
        let mut expected = part.to_vec();
        for all in [&mut read, &mut taken, &mut expected] {
            all.sort_unstable();
        }
        assert_eq!((&read, &taken), (&expected, &expected));
    }
}

#[test]
fn tuples_from_before_ages_compared_come_first_t2() {
    let engine = engine(16 << 20);
    let template = [TemplateRef::new(&ANY_JOB)];
    let old = [3, 6, 9, 4];
    put_all(&engine, &old);
    assert!(engine.try_read(&template, Order::Fifo, number).unwrap().is_some());
    let new = [5, 7, 12];
    put_all(&engine, &new);
    let taken: Vec<i64> =
        (0..7).map(|_| engine.try_take(&template, Order::Fifo, number).unwrap().unwrap()).collect();
    let ints: Vec<i64> = taken.iter().copied().filter(|number| number % 3 == 0).collect();
    assert_eq!(ints, [3, 6, 9, 12], "the order of a shape goes on");
    assert!(taken[..4].contains(&4), "{taken:?}");
    assert_eq!(taken[4..], new);
    engine.check().unwrap();
    let puts: u64 = engine.stat().unwrap().shapes.iter().map(|shape| shape.puts).sum();
    assert_eq!(puts, 7, "as many as there were");
}

#[test]
fn a_tuple_is_as_old_as_the_moment_at_which_it_became_visible_t2_l3() {
    let engine = compared();
    let template = [TemplateRef::new(&ANY_JOB)];
    let soon = LeaseTerms { lease: None, after: Some(Duration::from_millis(1)) };
    engine.put_leased(&[Field::Str("job"), Field::Int(3)], &soon).unwrap();
    put(&engine, 1);
    thread::sleep(Duration::from_millis(3));
    // Nobody has been at the first one's shape since.
    put(&engine, 4);
    let taken: Vec<i64> =
        (0..3).map(|_| engine.try_take(&template, Order::Fifo, number).unwrap().unwrap()).collect();
    // In a space of a file it is as old as the moment at which that was noticed.
    assert_eq!(taken, if crate::JOURNALLED { [1, 4, 3] } else { [1, 3, 4] });
}

#[test]
fn by_chance_each_tuple_has_the_same_chance_whatever_its_shape_t2() {
    let engine = engine(16 << 20);
    let template = [TemplateRef::new(&ANY_JOB)];
    for number in 0..9 {
        put(&engine, 3 * number);
    }
    put(&engine, 1);
    let draws = 600;
    let rare = (0..draws)
        .filter(|_| engine.try_read(&template, Order::Random, number).unwrap() == Some(1))
        .count();
    // One in ten: 60, and 7 more or less as a rule.
    assert!((10..150).contains(&rare), "{rare} of {draws}");
}

#[test]
fn takers_beside_putters_get_each_tuple_once_t1_t2() {
    const EACH: i64 = 3_000;
    const TAKEN: usize = 3_000;
    let engine = compared();
    thread::scope(|scope| {
        for putter in 0..2 {
            let engine = &engine;
            scope.spawn(move || (0..EACH).for_each(|index| put(engine, 10_000 * putter + index)));
        }
        let takers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let template = [TemplateRef::new(&ANY_JOB)];
                    let mut taken = Vec::new();
                    while taken.len() < TAKEN {
                        let waiter = engine.waiter(&template, Want::Take).unwrap();
                        taken.push(waiter.finish(number).unwrap());
                    }
                    taken
                })
            })
            .collect();
        let mut all = Vec::new();
        for taker in takers {
            all.extend(taker.join().unwrap());
        }
        all.sort_unstable();
        let expected: Vec<i64> = (0..EACH).chain((0..EACH).map(|one| 10_000 + one)).collect();
        assert_eq!(all, expected);
    });
    engine.check().unwrap();
}
