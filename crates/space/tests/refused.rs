//! A tuple that the caller's language can not represent stays where it was (V3).
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use common::{ENGINES, Temporary, keep, with_tuple};
use tupelo::{Error, Order, Tuple, TupleView, Value, Want, template, tuple};
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
