//! What becomes of a tuple that was claimed, and that its claim can not look at.

use std::sync::Arc;
use std::time::Duration;

use tupelo_tuple::{Field, PatternRef, TemplateRef};

use super::{Claim, ClaimTerms};
use crate::Engine;
use crate::at_match::Clock;
use crate::error::Error;
use crate::find::{Order, Purpose};
use crate::links;
use crate::stripe::HELD;
use crate::targets::TupleBuffer;
use crate::testing;

#[test]
fn a_claim_that_fails_before_its_tuple_is_seen_is_no_attempt_k2() {
    let engine = Arc::new(testing::engine(8 << 20));
    let bytes = vec![7; 60_000];
    engine.put(&[Field::Bytes(&bytes)]).unwrap();
    let patterns = [PatternRef::Actual(Field::Bytes(&bytes))];
    let template = [TemplateRef::new(&patterns)];
    let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: Some(1) };
    let mut copy = TupleBuffer::new();
    let how = (Order::Fifo, Purpose::Take, Clock::InAct);
    let space: &Engine = &engine;
    let begun = space.at_match(&template, how, |section, stripe, hit, kinds| {
        section.add(stripe.page(), HELD, 1);
        links::unlink_found(section, stripe, hit);
        space.begin_claim(section, stripe, (hit.record, kinds), (&terms, &mut copy))
    });
    let begun = begun.unwrap().unwrap();
    let refused = testing::beside_one_inside(&engine, || {
        Claim::pour(&engine, begun, &mut copy, |_| Ok::<_, Error>(())).map(|_| ())
    });
    assert!(matches!(refused, Err(Error::Memory(_))), "{refused:?}");
    let claimed = engine.try_claim(&template, Order::Fifo, &terms, |_| Ok::<_, Error>(()));
    let (claim, ()) = claimed.unwrap().unwrap();
    assert_eq!(claim.attempt(), 1);
}
