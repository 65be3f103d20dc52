//! The end of one lease, its renewal and its cancellation are no more work among many than among few (rules L1, L2):
//! instructions are counted.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::shared::{INT, int, region, space, take};
use tupelo_crashtest::{Experiment, Script, thorough};
use tupelo_engine::{Engine, Lease, LeaseTerms};
use tupelo_tuple::Field;

const FEW: i64 = 10;
const MANY: i64 = 100_000;
/// The same in a long run.
const MANY_THOROUGH: i64 = 1_000_000;

const HOUR: Duration = Duration::from_secs(3_600);
/// How often instructions are counted: a run may find that it is time to look for the dead, or to read the clock anew.
const RUNS: usize = 3;

fn put_leased(engine: &Engine, value: i64, lease: Duration) -> Lease {
    let terms = LeaseTerms { lease: Some(lease), after: None };
    engine.put_leased(&[Field::Int(1), Field::Int(value)], &terms).unwrap()
}

/// A space with so many leases, each with a time of its own, over hours, and the one among them that ends after `length`.
fn among(leases: i64, length: Duration) -> (Arc<Engine>, Lease) {
    let engine = space(1 << 30);
    put_leased(&engine, 0, HOUR);
    let lease = put_leased(&engine, -1, length);
    for k in 1..leases {
        put_leased(&engine, k, HOUR + Duration::from_millis(37 * k.cast_unsigned()));
    }
    (engine, lease)
}

/// The instructions of `script`, the fewest of some runs. `left` says how many leases there are then, given whether the script
/// had ended.
fn instructions(
    engine: &Arc<Engine>,
    script: impl Fn(&Engine),
    left: impl Fn(bool) -> i64,
) -> usize {
    let prepare = || {
        engine.check().unwrap();
        Arc::clone(engine)
    };
    let script = Script::new(prepare, |engine: &mut Arc<Engine>| script(engine));
    // At its first step and at its end, whatever the phase: between them either is legal.
    let experiment = Experiment::new(region(engine)).with_kills(1).with_phase(0);
    let run = |_| {
        let summary = experiment.kill_at_every_instruction(&script, |death| {
            engine.sweep().unwrap();
            let left = left(death.steps == death.of);
            assert_eq!(engine.check().unwrap().tuples().cast_signed(), left);
        });
        summary.steps
    };
    (0..RUNS).map(run).min().unwrap()
}

/// Of what is counted `among` few and among many, the latter is not much more.
fn is_no_more_among_many(count: impl Fn(i64) -> usize) {
    /// One space of many at a time: what a container has of shared memory may be 64 MiB.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let few = count(FEW);
    let many = count(if thorough() { MANY_THOROUGH } else { MANY });
    eprintln!("{few} and {many} instructions");
    assert!(many < few * 2, "{many} among many, {few} among few");
}

#[test]
fn the_end_of_one_lease_takes_as_many_instructions_among_many_l1() {
    is_no_more_among_many(|leases| {
        let (engine, _) = among(leases, Duration::from_millis(1));
        thread::sleep(Duration::from_millis(3));
        // The first of the shape: found at once.
        let script = |engine: &Engine| assert_eq!(take(engine, &[INT, INT]), Some("1,0".into()));
        instructions(&engine, script, |ended| {
            assert_eq!(take(&engine, &[int(1), int(-1)]), None, "its lease has ended");
            leases - i64::from(ended)
        })
    });
}

#[test]
fn a_renewal_takes_as_many_instructions_among_many_l2() {
    is_no_more_among_many(|leases| {
        let (engine, lease) = among(leases, HOUR);
        let script = |engine: &Engine| engine.renew(&lease, Some(HOUR * 2)).unwrap();
        instructions(&engine, script, |ended| {
            let left = engine.expires_in(&lease).unwrap().unwrap();
            assert_eq!(left > HOUR, ended);
            leases + 1
        })
    });
}

#[test]
fn a_cancellation_takes_as_many_instructions_among_many_l2() {
    is_no_more_among_many(|leases| {
        let (engine, lease) = among(leases, HOUR);
        let script = |engine: &Engine| engine.cancel(&lease).unwrap();
        instructions(&engine, script, |ended| leases + i64::from(!ended))
    });
}
