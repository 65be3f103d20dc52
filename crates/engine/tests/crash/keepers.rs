//! Which blocked caller keeps the time, when processes stop or die (rule L1).

use std::time::Duration;

use tupelo_engine::{Bell, LeaseTerms};

use crate::shared;
use crate::support::bells::{SLICE, bells, put_due_soon};

/// Two processes: the first has the keeper and somebody else who sleeps, and is stopped.
#[test]
fn a_deputy_does_not_stop_together_with_the_keeper_l1() {
    use std::sync::atomic::Ordering;
    let engine = shared::space(8 << 20);
    let sleeps = &tupelo_crashtest::shared_words(1)[0];
    let child = tupelo_crashtest::fork(|| {
        let bells: [Bell; 2] = bells(&engine);
        assert_eq!(bells.each_ref().map(Bell::next_look), [SLICE; 2]);
        sleeps.store(1, Ordering::Release);
        loop {
            std::thread::park();
        }
    });
    while sleeps.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    let [own, other] = bells(&engine);
    let before = [&own, &other].map(Bell::next_look);
    put_due_soon(&engine);
    let [own, other] = [&own, &other].map(Bell::next_look);
    drop(child.kill());
    assert_eq!(before, [SLICE; 2]);
    assert!(own < SLICE, "it is another process");
    assert_eq!(other, SLICE, "one is enough");
}

/// As one does that is stopped there, or takes long.
#[test]
fn a_keeper_that_dies_over_what_is_due_leaves_it_to_others_who_know_of_it_l1() {
    use tupelo_tuple::Field;
    let engine = shared::space(8 << 20);
    shared::put(&engine, 1, 1);
    let terms = LeaseTerms { lease: None, after: Some(Duration::from_millis(1)) };
    engine.put_leased(&[Field::Int(2), Field::Int(2)], &terms).unwrap();
    let bell = engine.bell().unwrap();
    while bell.next_look() > Duration::ZERO {}
    drop(bell);
    let register = || engine.bell().unwrap();
    let looks = |bell: &mut Bell| assert_eq!(bell.look().unwrap(), []);
    let script = tupelo_crashtest::Script::new(register, looks);
    shared::hitting(|| {
        shared::experiment(&engine).kill_at_every_instruction(&script, |_| {
            let is_done = engine.stat().unwrap().tuples == 2;
            let next_look = engine.bell().unwrap().next_look();
            assert!(is_done || next_look < SLICE, "{next_look:?}");
        })
    });
}
