//! Who waits for room is told of what comes back without a tuple (rule B1).

use std::any::Any;
use std::time::Duration;

use crate::support::{any, engine};
use tupelo_engine::{EventKind, SubscribeTerms, Want};
use tupelo_tuple::{Field, Kind, PatternRef, TemplateRef};

#[test]
fn the_first_in_line_for_room_is_told_when_a_subscription_or_a_long_template_goes_b1() {
    let long = vec![7; 10_000];
    for is_subscription in [true, false] {
        let engine = engine(2 << 20);
        let patterns = [any(Kind::Str)];
        let has_room: Box<dyn Any> = if is_subscription {
            let terms = SubscribeTerms::new([EventKind::Put], 10);
            Box::new(engine.subscribe(&[TemplateRef::new(&patterns)], &terms).unwrap())
        } else {
            let patterns = [PatternRef::Actual(Field::Bytes(&long))];
            Box::new(engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap())
        };
        for bytes in [60_000, 6_000, 600, 60, 6] {
            let bytes = vec![1; bytes];
            while engine.put(&[Field::Bytes(&bytes)]).is_ok() {}
        }
        let (first, second) = (engine.room().unwrap(), engine.room().unwrap());
        assert!(!first.wait(Some(Duration::ZERO)).unwrap());
        drop(has_room);
        assert!(first.is_ready() && !second.is_ready());
        second.give_up().unwrap();
        first.give_up().unwrap();
    }
}
