//! What becomes of what a transaction holds when its time is over (rules T2, X5).

use std::sync::Arc;
use std::time::Duration;

use crate::support::transactions::{jobs, read, take};
use crate::support::{any_job, number, this_job};
use tupelo_engine::{Transaction, Waiter, Want};
use tupelo_tuple::TemplateRef;

/// Long enough for some takes and reads.
const TTL: Duration = Duration::from_secs(1);

#[test]
fn who_is_blocked_gets_the_oldest_of_what_is_given_back_when_the_lease_ends_t2_x5() {
    let engine = jobs(1..=6);
    let mut transaction = Transaction::begin(vec![Arc::clone(&engine)], TTL).unwrap();
    for number in [5, 2, 6, 1, 4, 3] {
        let call = if number % 2 == 0 { read } else { take };
        assert_eq!(call(&mut transaction, &this_job(number)), Some(number));
    }
    let template = any_job();
    let waiter = |_| engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
    let waiters: Vec<Waiter> = (0..6).map(waiter).collect();
    let served: Vec<i64> =
        waiters.into_iter().map(|waiter| waiter.finish(number).unwrap()).collect();
    assert_eq!(served, [1, 2, 3, 4, 5, 6]);
    assert_eq!(engine.check().unwrap().held(), 0);
}
