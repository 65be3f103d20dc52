//! What was handed over and not picked up in time goes on, and its waiter joins the wait queue again. That holds
//! whoever dies over it, at whichever instruction (rules C1, K2, T3).

use std::cell::RefCell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::shared::{
    INT, contents, experiment, hitting, int, kill_everywhere, kill_once_and_twice, kill_twice,
    learn, put, shown, space, take, use_it,
};
use tupelo_crashtest::{Script, thorough};
use tupelo_engine::{Engine, Outcome, Waiter, Want};
use tupelo_tuple::{Condition, KindSet, PatternRef, TemplateRef};

const ANY: PatternRef<'static> = PatternRef::Kinds(KindSet::ALL);
/// As short as a hand-over may last.
const BRIEF: Duration = Duration::from_millis(100);

fn let_it_run_out() {
    thread::sleep(BRIEF + Duration::from_millis(10));
}

/// A waiter of this process that may have what it is handed for a short time.
fn brief(engine: &Arc<Engine>, patterns: &[PatternRef<'_>]) -> Waiter {
    engine.claimant(&[TemplateRef::new(patterns)], BRIEF).unwrap()
}

/// Kills who gives back what was not picked up, at many of its instructions. Each time `go_on` is what comes first, before
/// anybody has swept.
fn kill_before_its_owner_goes_on(engine: &Arc<Engine>, go_on: impl Fn()) {
    let register = || {
        engine.check().unwrap();
        Arc::clone(engine)
    };
    let give_back = Script::new(register, |engine: &mut Arc<Engine>| {
        assert_eq!(engine.count(&[TemplateRef::new(&[INT, INT])]).unwrap(), 2);
    });
    let check = |_| {
        go_on();
        engine.sweep().unwrap();
        assert_eq!(engine.check().unwrap().held(), 0);
        use_it(engine);
    };
    let kills = if thorough() { 10_000 } else { 60 };
    let experiment = experiment(engine).with_kills(kills);
    hitting(|| experiment.kill_at_every_instruction(&give_back, check));
}

/// Four tuples under an index.
fn indexed() -> Arc<Engine> {
    let engine = space(8 << 20);
    (0..4).for_each(|value| put(&engine, value % 2, value));
    learn(&engine, &[int(1), INT]);
    engine
}

#[test]
fn what_is_not_picked_up_is_back_at_its_place_k2() {
    let engine = indexed();
    let mut after = contents(&engine);
    let slow = [brief(&engine, &[int(8), INT]), brief(&engine, &[ANY, int(80)])];
    put(&engine, 8, 1);
    put(&engine, 7, 80);
    let_it_run_out();
    after.extend(["8,1", "7,80"].map(String::from));
    let script = |engine: &Arc<Engine>| {
        assert_eq!(engine.count(&[TemplateRef::new(&[INT, INT])]).unwrap(), 6);
    };
    kill_once_and_twice(&engine, script, |found, _| {
        assert_eq!(found.tuples, after);
        assert_eq!(engine.check().unwrap().held(), 0);
    });
    // Those who lost it go on while nobody knows yet whether they have. First the one that locks less.
    let go_on = |_: &Arc<Engine>| {
        for waiter in slow.iter().rev() {
            waiter.wait(Some(Duration::ZERO)).unwrap();
        }
    };
    kill_twice(&engine, script, go_on, |found, _| {
        let held = engine.check().unwrap().held();
        assert_eq!(found.tuples.len() as u64 + held, 6, "{:?}", found.tuples);
    });
    drop(slow);
    engine.check().unwrap();
}

#[test]
fn what_is_not_picked_up_goes_to_the_next_in_line_or_will_t3_k2() {
    let engine = space(8 << 20);
    put(&engine, 6, 6);
    assert!(take(&engine, &[INT, INT]).is_some());
    let slow = brief(&engine, &[int(8), INT]);
    let next = engine.waiter(&[TemplateRef::new(&[ANY, int(1)])], Want::Take).unwrap();
    let next = RefCell::new(Some(next));
    put(&engine, 8, 1);
    let_it_run_out();
    let script = |engine: &Arc<Engine>| assert_eq!(take(engine, &[INT, INT]), None);
    kill_everywhere(&engine, script, |found, _| {
        assert!(found.tuples.is_empty(), "it is the next one's");
        let waiter = next.take().unwrap();
        assert!(waiter.wait(Some(Duration::ZERO)).unwrap());
        assert_eq!(waiter.finish(shown).unwrap(), "8,1");
        assert_eq!(engine.check().unwrap().held(), 0);
    });
    drop((slow, next));
    engine.check().unwrap();
}

#[test]
fn who_lost_its_tuple_is_in_line_again_or_not_and_can_leave_it_t5_k2() {
    for patterns in [[int(8), INT], [ANY, int(1)]] {
        let engine = space(8 << 20);
        let slow = RefCell::new(Some(brief(&engine, &patterns)));
        put(&engine, 8, 1);
        let_it_run_out();
        assert_eq!(take(&engine, &[INT, INT]).as_deref(), Some("8,1"));
        let go_on = |engine: &Arc<Engine>| {
            let waiter = slow.borrow();
            let waiter = waiter.as_ref().unwrap();
            assert!(!waiter.wait(Some(Duration::ZERO)).unwrap());
            put(engine, 8, 1);
            assert!(waiter.is_ready());
        };
        kill_everywhere(&engine, go_on, |found, ended| {
            let waiter = slow.take().unwrap();
            assert!(!ended || found.report.held() == 1);
            // If nobody put anything, there is nothing.
            let got = if waiter.wait(Some(Duration::ZERO)).unwrap() {
                waiter.finish_now(shown).unwrap()
            } else {
                Outcome::Waits(waiter)
            };
            match got {
                Outcome::Done(got) => assert_eq!(got, "8,1"),
                Outcome::Waits(waiter) => {
                    assert!(!ended && found.tuples.is_empty());
                    waiter.give_up().unwrap();
                }
            }
            assert_eq!(engine.check().unwrap().held(), 0);
        });
        drop(slow);
    }
}

#[test]
fn who_gives_up_while_somebody_died_over_taking_back_leaves_nothing_to_its_next_wait_c1_t5() {
    let engine = space(8 << 20);
    put(&engine, 6, 6);
    let slow = RefCell::new(Some(brief(&engine, &[ANY, int(80)])));
    put(&engine, 7, 80);
    let_it_run_out();
    kill_before_its_owner_goes_on(&engine, || {
        slow.take().unwrap().give_up().unwrap();
        // In the same wait node, for something else.
        let next = engine.waiter(&[TemplateRef::new(&[ANY, int(81)])], Want::Take).unwrap();
        assert!(!next.wait(Some(Duration::ZERO)).unwrap(), "it was handed what does not match");
        next.give_up().unwrap();
        assert_eq!(contents(&engine), ["6,6", "7,80"]);
    });
    drop(slow);
    engine.check().unwrap();
}

#[test]
fn who_looks_itself_gets_what_somebody_died_over_taking_back_c1_k2() {
    let engine = space(8 << 20);
    (80..82).for_each(|value| put(&engine, 7, value));
    let condition = Condition::new("f[1] >= 80").unwrap();
    let patterns = [ANY, INT];
    let template = TemplateRef { condition: Some(&condition), ..TemplateRef::new(&patterns) };
    let slow = RefCell::new(Some(engine.claimant(&[template], BRIEF).unwrap()));
    let_it_run_out();
    kill_before_its_owner_goes_on(&engine, || {
        let waiter = slow.take().unwrap();
        assert!(waiter.wait(Some(Duration::ZERO)).unwrap());
        assert_eq!(waiter.finish(shown).unwrap(), "7,80");
        assert_eq!(contents(&engine), ["7,81"]);
    });
    drop(slow);
    engine.check().unwrap();
}
