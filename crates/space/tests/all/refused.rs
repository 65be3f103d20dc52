//! A tuple that the caller's language can not represent stays where it was (V3).

use std::time::Duration;

use crate::common::{ENGINES, Temporary, keep, with_tuple};
use tupelo::{
    ClaimTerms, Error, Kind, Order, Tuple, TupleView, Value, Want, fields, template, tuple,
};
use tupelo_model::Limits;

/// One value of every kind that some language has no like of, and one too large to be copied in a section.
fn values() -> Vec<Value> {
    [
        r#"timestamp("2031-05-04T16:20:00.123456789Z")"#,
        r#"array("f8", list(1), b"01234567")"#,
        "list(1)",
        "tuple(1)",
        r#"map(1: "int", 1.0: "float")"#,
        "Job{id: 7}",
        r#"opaque("marshal", "some.Type", b"")"#,
    ]
    .into_iter()
    .map(|text| Value::parse_word(text).unwrap())
    .chain([Value::from("long ".repeat(10_000))])
    .collect()
}

fn refuse(_: TupleView<'_>) -> Result<Tuple, Error> {
    Err(Error::NotEncodable { problem: "no like of it here".to_owned() })
}

#[test]
fn a_tuple_that_a_take_can_not_represent_stays_the_oldest() {
    for engine in ENGINES {
        for value in values() {
            let temporary = Temporary::new(engine, Limits::default());
            let space = &temporary.space;
            let older = tuple![value.clone(), 1];
            let younger = tuple![value.clone(), 2];
            with_tuple(&older, |fields| space.put(fields)).unwrap();
            with_tuple(&younger, |fields| space.put(fields)).unwrap();
            let any = [template![_, _]];
            for order in [Order::Fifo, Order::Any] {
                assert!(space.try_take(&any, order, refuse).is_err());
            }
            let waiter = space.waiter(&any, Want::Take).unwrap();
            assert!(waiter.wait(None).unwrap());
            assert!(waiter.finish(refuse).is_err());
            assert_eq!(space.try_take(&any, Order::Fifo, keep).unwrap(), Some(older), "{value}");
            assert_eq!(space.try_take(&any, Order::Fifo, keep).unwrap(), Some(younger), "{value}");
        }
    }
}

/// Two tuples with a value that some language has no like of, and one that every language has between them.
fn three(space: &tupelo::Space, value: &Value) -> [Tuple; 3] {
    let tuples = [tuple![value.clone(), 1], tuple![0, 2], tuple![value.clone(), 3]];
    for tuple in &tuples {
        with_tuple(tuple, |fields| space.put(fields)).unwrap();
    }
    tuples
}

/// Takes one after the other; by the number in them, as shapes have no order among each other.
fn drained(space: &tupelo::Space) -> Vec<Tuple> {
    let number = template![_, Kind::Int];
    let take = || space.try_take(&[number], Order::Min(1), keep).unwrap();
    std::iter::from_fn(take).collect()
}

#[test]
fn a_claim_that_allows_no_attempt_is_a_mistake_of_the_program_k5() {
    let temporary = Temporary::new("mem", Limits::default());
    let space = &temporary.space;
    space.put(&fields!["job", 1]).unwrap();
    let terms = ClaimTerms { ttl: Duration::from_secs(30), attempts_max: Some(0) };
    let any = [template![_, _]];
    let claimed = space.try_claim(&any, Order::Fifo, &terms, keep).unwrap_err();
    assert_eq!(
        claimed.to_string(),
        "TUP-019: attempts_max is 0, and a claim is an attempt already\n  give Some(1) or more, or None for any number"
    );
    let waiter = space.waiter(&any, Want::Take).unwrap();
    assert!(waiter.wait(None).unwrap() && waiter.finish_claim(&terms, keep).is_err());
    assert_eq!(space.count(&any).unwrap(), 1);
}

#[test]
fn tuples_of_which_one_is_refused_stay_where_they_were_v3() {
    for engine in ENGINES {
        for value in values() {
            let temporary = Temporary::new(engine, Limits::default());
            let space = &temporary.space;
            let tuples = three(space, &value);
            let any = [template![_, _]];
            let mut seen = 0;
            let mut third_time_refused = |tuple: TupleView<'_>| {
                seen += 1;
                if seen == 3 { refuse(tuple) } else { keep(tuple) }
            };
            assert!(space.take_all(&any, None, &mut third_time_refused).is_err());
            assert!(space.try_take_many(&any, 3, 3, refuse).is_err());
            assert!(space.take_all(&any, Some(2), refuse).is_err());
            assert_eq!(space.count(&any).unwrap(), 3, "{value}");
            // The older of two alike is the first, as before.
            let same_shape = space.read_all(&any, None, keep).unwrap();
            let place = |tuple| same_shape.iter().position(|one| one == tuple).unwrap();
            assert!(place(&tuples[0]) < place(&tuples[2]), "{value}");
            assert_eq!(drained(space), tuples, "{value}");
        }
    }
}

#[test]
fn a_tuple_that_a_swap_can_not_represent_is_not_replaced_v3() {
    for engine in ENGINES {
        for value in values() {
            let temporary = Temporary::new(engine, Limits::default());
            let space = &temporary.space;
            let tuples = three(space, &value);
            let odd = [template![value.kind(), _]];
            assert!(space.try_swap(&odd, &fields![0, 9], refuse).is_err());
            assert_eq!(drained(space), tuples, "{value}");
        }
    }
}

#[test]
fn what_others_take_while_a_visitor_looks_is_not_taken_twice_t1() {
    for engine in ENGINES {
        let value = Value::parse_word("list(1)").unwrap();
        let temporary = Temporary::new(engine, Limits::default());
        let space = &temporary.space;
        let tuples = three(space, &value);
        let odd = [template![value.kind(), _]];
        let mut taken = None;
        let swapped = space.try_swap(&odd, &fields![0, 9], |tuple| {
            if taken.is_none() {
                taken = space.try_take(&odd, Order::Fifo, keep)?;
            }
            keep(tuple)
        });
        assert_eq!(taken.as_ref(), Some(&tuples[0]));
        assert_eq!(swapped.unwrap().as_ref(), Some(&tuples[2]), "the next one was replaced");

        let mut late = Some(&tuples[0]);
        let all = space.take_all(&[template![_, _]], None, |tuple| {
            // One more while the first are looked at: there is nothing refusable any more, so it comes too late.
            if let Some(tuple) = late.take() {
                with_tuple(tuple, |fields| space.put(fields))?;
            }
            keep(tuple)
        });
        assert_eq!(all.unwrap().len(), 2);
        let mut late = Some(&tuples[2]);
        let all = space.take_all(&[template![_, _]], None, |tuple| {
            // And here it is a match of the moment at which the first has been accepted.
            if let Some(tuple) = late.take() {
                with_tuple(tuple, |fields| space.put(fields))?;
            }
            keep(tuple)
        });
        assert_eq!(all.unwrap(), [tuples[0].clone(), tuples[2].clone()]);
    }
}
