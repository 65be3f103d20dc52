//! Which blocked caller keeps the time, when processes stop or die (rule L1).

use std::time::Duration;

use tupelo_engine::{LeaseTerms, Notifier};

use crate::shared;
use crate::support::notifiers::{SLICE, notifiers, put_after, put_due_soon};

/// Two processes: the first has the leader, and does not go on.
#[test]
fn whoever_looks_leads_in_place_of_a_process_that_is_stopped_l1() {
    use std::sync::atomic::Ordering;
    let engine = shared::space(8 << 20);
    let sleeps = &tupelo_crashtest::shared_words(1)[0];
    let child = tupelo_crashtest::fork(|| {
        let [leader] = notifiers(&engine);
        assert_eq!(leader.next_look(), SLICE);
        sleeps.store(1, Ordering::Release);
        loop {
            std::thread::park();
        }
    });
    while sleeps.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    let [own, other] = notifiers(&engine);
    let before = [&own, &other].map(Notifier::next_look);
    put_after(&engine, 1, Duration::from_millis(1));
    while engine.stat().unwrap().tuples == 0 {
        own.look().unwrap();
    }
    put_due_soon(&engine);
    let [own, other] = [&own, &other].map(Notifier::next_look);
    drop(child.kill());
    assert_eq!(before, [SLICE; 2], "another process keeps the time");
    assert!(own < SLICE, "it has looked");
    assert_eq!(other, SLICE, "one is enough");
}

/// As one does that is stopped there, or takes long.
#[test]
fn a_leader_that_dies_over_what_is_due_leaves_it_to_others_who_know_of_it_l1() {
    use tupelo_tuple::Field;
    let engine = shared::space(8 << 20);
    shared::put(&engine, 1, 1);
    let terms = LeaseTerms { lease: None, after: Some(Duration::from_millis(1)) };
    engine.put_leased(&[Field::Int(2), Field::Int(2)], &terms).unwrap();
    let notifier = engine.notifier().unwrap();
    while notifier.next_look() > Duration::ZERO {}
    drop(notifier);
    let register = || engine.notifier().unwrap();
    let looks = |notifier: &mut Notifier| assert_eq!(notifier.look().unwrap(), []);
    let script = tupelo_crashtest::Script::new(register, looks);
    shared::hitting(|| {
        shared::experiment(&engine).kill_at_every_instruction(&script, |_| {
            let is_done = engine.stat().unwrap().tuples == 2;
            let next_look = engine.notifier().unwrap().next_look();
            assert!(is_done || next_look < SLICE, "{next_look:?}");
        })
    });
}
