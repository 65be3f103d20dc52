//! What becomes of a tuple that was claimed, and that its claim can not look at.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tupelo_tuple::{Field, PatternRef, TemplateRef};

use crate::base::error::Error;
use crate::base::layout::head;
use crate::base::terms::LeaseTerms;
use crate::index::find::{Order, Purpose};
use crate::index::links;
use crate::operations::at_match::{self, Clock};
use crate::operations::targets::TupleBuffer;
use crate::protocols::claim::{self, Claim, ClaimTerms, Claimant};
use crate::store::Store;
use crate::store::partition::{self, HELD, Partition};
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
    let space: &Store = &engine;
    let begun = at_match::at_match(space, &template, how, |section, partition, hit, kinds| {
        section.add(partition.page(), HELD, 1);
        links::unlink_found(section, partition, hit);
        let claimant = Claimant { handle: 0, terms: &terms };
        claim::begin_claim(space, section, partition, (hit.record, kinds), claimant, &mut copy)
    });
    let begun = begun.unwrap().unwrap();
    let refused = testing::beside_one_inside(&engine, || {
        Claim::visit(&engine, begun, &mut copy, |_| Ok::<_, Error>(())).map(|_| ())
    });
    assert!(matches!(refused, Err(Error::Memory(_))), "{refused:?}");
    let claimed = engine.try_claim(&template, Order::Fifo, &terms, |_| Ok::<_, Error>(()));
    let (claim, ()) = claimed.unwrap().unwrap();
    assert_eq!(claim.attempt(), 1);
}

#[test]
fn a_renewal_waits_for_nobody_who_is_stopped_in_what_it_takes_to_do_what_is_due_k1() {
    let engine = Arc::new(testing::engine(8 << 20));
    engine.put(&[Field::Int(1)]).unwrap();
    let patterns = [PatternRef::Actual(Field::Int(1))];
    let ttl = Duration::from_secs(3600);
    let terms = ClaimTerms { ttl, attempts_max: None };
    let claimed = engine
        .try_claim(&[TemplateRef::new(&patterns)], Order::Fifo, &terms, |_| Ok::<_, Error>(()));
    let (claim, ()) = claimed.unwrap().unwrap();
    let renewal = claim.renewal();
    let brief = LeaseTerms { lease: Some(Duration::from_millis(1)), after: None };
    // What comes of a renewal while a thread is inside of `scope`.
    let beside =
        |scope| testing::beside_one_who_stays(&engine, scope, || renewal.try_prolong(ttl)).unwrap();
    for scope in [head::MULTI_SHAPE_SCOPE, head::ARENA_SCOPE] {
        assert!(beside(scope), "nothing is due");
        engine.put_leased(&[Field::Int(2)], &brief).unwrap();
        let view = engine.memory.view();
        while !partition::is_behind(Partition::of_shape(&view, 0)) {
            thread::yield_now();
        }
        assert!(!beside(scope));
        assert!(renewal.try_prolong(ttl).unwrap());
    }
}
