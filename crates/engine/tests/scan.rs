//! A walk through a space in steps (rule O6).
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

mod support;

use support::{engine, job, number};
use tupelo_engine::Error;

#[test]
fn a_scan_whose_sink_fails_goes_on_behind_the_tuple_that_failed_o6() {
    let engine = engine(2 << 20);
    for value in 0..6 {
        engine.put(&job(value)).unwrap();
    }
    let mut scan = engine.scan("job, :int".parse().unwrap());
    let mut refuse = |refused: &[i64]| {
        let refused = refused.to_vec();
        scan.next_batch(64, move |tuple| {
            let number = number(tuple)?;
            if refused.contains(&number) { Err(Error::ClaimSettled) } else { Ok(number) }
        })
    };
    assert_eq!(refuse(&[2]).unwrap(), [0, 1]);
    assert_eq!(refuse(&[2]), Err(Error::ClaimSettled));
    assert_eq!(refuse(&[3]), Err(Error::ClaimSettled));
    assert_eq!(refuse(&[]).unwrap(), [4, 5]);
    assert_eq!(refuse(&[]).unwrap(), []);
}
