//! The stated maximum of blocked callers (rule B2): beyond it there is an error, and who leaves makes room.

use std::time::Duration;

use crate::support::{engine, job, this_job};
use tupelo_engine::{Error, WAITERS_MAX, Want};
use tupelo_tuple::TemplateRef;

#[test]
fn one_waiter_more_than_the_maximum_is_refused_until_one_leaves_b2() {
    let engine = engine(256 << 20);
    let waiter = |key: usize| {
        let template = this_job(i64::try_from(key).unwrap());
        engine.waiter(&[TemplateRef::new(&template)], Want::Take)
    };
    let mut waiters: Vec<_> = (0..WAITERS_MAX).map(|key| waiter(key).unwrap()).collect();
    let refused = waiter(WAITERS_MAX).unwrap_err();
    assert!(matches!(refused, Error::LimitExceeded { limit: WAITERS_MAX, .. }), "{refused}");
    drop(waiters.pop());
    let last = waiter(WAITERS_MAX).unwrap();
    assert_eq!(engine.stat().unwrap().waiters, WAITERS_MAX as u64);
    engine.put(&job(i64::try_from(WAITERS_MAX).unwrap())).unwrap();
    assert!(last.wait(Some(Duration::ZERO)).unwrap());
}
