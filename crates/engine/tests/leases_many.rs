//! The end of one lease is no more work among many than among few (rule L1): instructions are counted.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a step that fails, fails the test")]

mod crash;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crash::{INT, int, region, space, take};
use tupelo_crashtest::{Experiment, Script, thorough};
use tupelo_engine::{Engine, LeaseTerms};
use tupelo_tuple::Field;

const FEW: i64 = 10;
const MANY: i64 = 100_000;
/// The same in a long run.
const MANY_THOROUGH: i64 = 1_000_000;

fn put_leased(engine: &Engine, value: i64, lease: Duration) {
    let terms = LeaseTerms { lease: Some(lease), after: None };
    engine.put_leased(&[Field::Int(1), Field::Int(value)], &terms).unwrap();
}

/// The instructions of a take that comes by when one lease of so many has ended.
fn instructions(leases: i64) -> usize {
    let engine = space(1 << 30);
    put_leased(&engine, 0, Duration::from_secs(3_600));
    put_leased(&engine, -1, Duration::from_millis(1));
    // Each at a time of its own, over hours.
    (1..leases).for_each(|k| {
        put_leased(&engine, k, Duration::from_millis(3_600_000 + 37 * k.cast_unsigned()));
    });
    thread::sleep(Duration::from_millis(3));
    let prepare = || {
        engine.check().unwrap();
        Arc::clone(&engine)
    };
    // The first of the shape: found at once.
    let script =
        Script::new(prepare, |engine| assert_eq!(take(engine, &[INT, INT]), Some("1,0".into())));
    let experiment = Experiment::new(region(&engine)).with_kills(1);
    let summary = experiment.kill_at_every_instruction(&script, |death| {
        engine.sweep().unwrap();
        assert_eq!(take(&engine, &[int(1), int(-1)]), None, "its lease has ended");
        let taken = i64::from(death.instructions == death.of);
        assert_eq!(engine.check().unwrap().tuples().cast_signed(), leases - taken);
    });
    summary.instructions
}

#[test]
fn the_end_of_one_lease_takes_as_many_instructions_among_many_l1() {
    let few = instructions(FEW);
    let many = instructions(if thorough() { MANY_THOROUGH } else { MANY });
    eprintln!("{few} and {many} instructions");
    assert!(many < few * 2, "{many} among many, {few} among few");
}
