//! A walk through a space in steps (rule O6).

use crate::support::{engine, job, number};
use tupelo_engine::Error;
use tupelo_tuple::Field;

#[test]
fn a_scan_whose_visitor_fails_goes_on_behind_the_tuple_that_failed_o6() {
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

#[test]
fn a_scan_without_larger_tuples_passes_over_them_wherever_they_are() {
    let engine = engine(2 << 20);
    for bytes in [3_000, 10, 3_000, 100, 3_000] {
        engine.put(&[Field::Bytes(&vec![7; bytes])]).unwrap();
    }
    let mut scan = engine.scan(":bytes".parse().unwrap()).for_comparison(None, 1_000);
    let mut next = || scan.next_batch(1, |tuple| Ok::<_, Error>(tuple.image().len())).unwrap();
    let (first, second) = (next(), next());
    assert!(first[0] < second[0] && second[0] < 1_000, "{first:?} {second:?}");
    assert!(next().is_empty());
}
