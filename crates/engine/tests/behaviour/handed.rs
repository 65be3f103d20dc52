//! What is handed to a blocked claim, or to the take of a transaction, and not picked up, goes to the next in line
//! (rules K2, T3, X5).

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::support::{
    LONG, any_job, count, done, engine, job, number, this_job, try_claim, try_take,
};
use tupelo_engine::{Engine, LeaseTerms, Outcome, Transaction, Waiter, Want};
use tupelo_tuple::{Condition, Field, KindSet, PatternRef, TemplateRef};

/// As short as a hand-over may last.
const BRIEF: Duration = Duration::from_millis(100);

fn let_it_run_out() {
    thread::sleep(BRIEF + Duration::from_millis(10));
}

fn claimant(engine: &Arc<Engine>, patterns: &[PatternRef<'_>], ttl: Duration) -> Waiter {
    engine.claimant(&[TemplateRef::new(patterns)], ttl).unwrap()
}

/// A field of whatever kind.
const WHATEVER: PatternRef<'static> = PatternRef::Kinds(KindSet::ALL);

/// Templates of a waiter in the wait queue at one shape, of a multi-shape one, and of one that looks itself.
fn kinds_of_line(test: impl Fn(&[TemplateRef<'_>])) {
    test(&[TemplateRef::new(&any_job())]);
    test(&[TemplateRef::new(&[WHATEVER, WHATEVER])]);
    let condition = Condition::new("f[1] > 0").unwrap();
    let judged = any_job();
    test(&[TemplateRef { condition: Some(&condition), ..TemplateRef::new(&judged) }]);
}

#[test]
fn what_is_not_picked_up_goes_to_the_next_in_line_k2_t3() {
    kinds_of_line(|template| {
        let engine = engine(16 << 20);
        let slow = engine.claimant(template, Duration::from_millis(1)).unwrap();
        let next = engine.waiter(&[TemplateRef::new(&any_job())], Want::Take).unwrap();
        engine.put(&job(1)).unwrap();
        if template[0].condition.is_some() {
            // Who looks itself holds nothing back from others until it has looked.
            assert!(next.wait(None).unwrap());
            assert_eq!(next.finish(number).unwrap(), 1);
            return;
        }
        assert!(slow.is_ready() && !next.is_ready());
        engine.check().unwrap();
        // Nobody comes by: who waits sees to it.
        assert!(next.wait(None).unwrap());
        assert_eq!(next.finish(number).unwrap(), 1);
        engine.check().unwrap();
        assert_eq!(engine.check().unwrap().held(), 0);
        // The slow one is in the wait queue again, when it goes on.
        assert!(!slow.wait(Some(Duration::ZERO)).unwrap());
        engine.check().unwrap();
        engine.put(&job(2)).unwrap();
        assert!(slow.wait(None).unwrap());
        let (claim, claimed) = done(slow.finish_claim(&LONG, number));
        assert_eq!((claimed, claim.attempt()), (2, 1));
        claim.done(&[]).unwrap();
        engine.check().unwrap();
    });
}

#[test]
fn what_nobody_else_waits_for_is_back_at_its_place_and_no_attempt_has_failed_k2() {
    kinds_of_line(|template| {
        let engine = engine(16 << 20);
        let slow = engine.claimant(template, Duration::from_millis(1)).unwrap();
        engine.put(&job(1)).unwrap();
        engine.put(&job(2)).unwrap();
        if template[0].condition.is_some() {
            // It looks, has the first, and does not come for it.
            assert!(slow.wait(Some(Duration::ZERO)).unwrap());
        }
        assert_eq!((count(&engine), slow.is_ready()), (1, true));
        let_it_run_out();
        assert_eq!(count(&engine), 2);
        engine.check().unwrap();
        let (claim, claimed) = try_claim(&engine, &any_job(), &LONG).unwrap();
        assert_eq!((claimed, claim.attempt()), (1, 1), "the older one, for the first time");
        // The slow one finds what is there.
        let (late, claimed) = match slow.finish_claim(&LONG, number).unwrap() {
            Outcome::Done(claimed) => claimed,
            Outcome::Waits(slow) => {
                assert!(slow.wait(None).unwrap());
                done(slow.finish_claim(&LONG, number))
            }
        };
        assert_eq!((claimed, late.attempt()), (2, 1));
        engine.check().unwrap();
    });
}

#[test]
fn what_is_there_when_a_claim_gets_in_line_is_its_own_for_a_time_only_k2() {
    let engine = engine(16 << 20);
    engine.put(&job(1)).unwrap();
    let slow = claimant(&engine, &any_job(), Duration::ZERO);
    assert_eq!((slow.is_ready(), count(&engine)), (true, 0));
    engine.check().unwrap();
    let_it_run_out();
    assert_eq!(try_take(&engine, &any_job()), Some(1));
    engine.check().unwrap();
    drop(slow);
    engine.check().unwrap();
}

#[test]
fn a_longer_time_is_kept_k2() {
    let engine = engine(16 << 20);
    let (patient, brief) = (
        claimant(&engine, &this_job(1), Duration::from_secs(3600)),
        claimant(&engine, &this_job(2), BRIEF),
    );
    engine.put(&job(1)).unwrap();
    engine.put(&job(2)).unwrap();
    let_it_run_out();
    assert_eq!((try_take(&engine, &this_job(1)), try_take(&engine, &this_job(2))), (None, Some(2)));
    engine.check().unwrap();
    assert_eq!(done(patient.finish_claim(&LONG, number)).1, 1);
    drop(brief);
    engine.check().unwrap();
}

#[test]
fn who_gives_up_after_it_has_lost_its_tuple_leaves_nothing_behind_t5() {
    let engine = engine(16 << 20);
    let slow = claimant(&engine, &any_job(), BRIEF);
    engine.put(&job(1)).unwrap();
    let_it_run_out();
    assert_eq!(count(&engine), 1);
    slow.give_up().unwrap();
    engine.check().unwrap();
    assert_eq!((count(&engine), engine.check().unwrap().held()), (1, 0));
}

#[test]
fn a_lease_that_ends_in_the_meantime_ends_the_tuple_l1_k2() {
    let engine = engine(16 << 20);
    let slow = claimant(&engine, &any_job(), BRIEF);
    let terms = LeaseTerms { lease: Some(Duration::from_millis(1)), after: None };
    engine.put_leased(&job(1), &terms).unwrap();
    assert!(slow.is_ready());
    let_it_run_out();
    assert_eq!(count(&engine), 0);
    assert_eq!(engine.check().unwrap().held(), 0);
    engine.check().unwrap();
    engine.put(&job(2)).unwrap();
    assert_eq!(try_take(&engine, &any_job()), Some(2), "the slow one has not gone on yet");
    assert!(!slow.wait(Some(Duration::ZERO)).unwrap());
    engine.check().unwrap();
}

#[test]
fn two_threads_that_wait_in_one_place_get_in_line_once_k2() {
    let engine = engine(16 << 20);
    for round in 0..20 {
        let slow = claimant(&engine, &any_job(), BRIEF);
        engine.put(&job(round)).unwrap();
        let_it_run_out();
        assert_eq!(try_take(&engine, &any_job()), Some(round));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| assert!(!slow.wait(Some(Duration::ZERO)).unwrap()));
            }
        });
        engine.check().unwrap();
    }
}

#[test]
fn a_notifier_tells_who_has_lost_its_tuple_t6_k2() {
    let engine = engine(16 << 20);
    let notifier = engine.notifier().unwrap();
    let slow = claimant(&engine, &any_job(), BRIEF);
    let place = notifier.add(&slow);
    engine.put(&job(1)).unwrap();
    assert_eq!(notifier.drain(), [place]);
    let_it_run_out();
    assert_eq!(try_take(&engine, &any_job()), Some(1));
    assert_eq!(notifier.drain(), [place]);
    assert_eq!(notifier.look().unwrap(), [place]);
    let Outcome::Waits(again) = slow.finish_claim(&LONG, number).unwrap() else {
        panic!("somebody else has it")
    };
    engine.check().unwrap();
    assert!(notifier.look().unwrap().is_empty());
    engine.put(&job(2)).unwrap();
    assert_eq!(notifier.drain(), [place]);
    assert_eq!(done(again.finish_claim(&LONG, number)).1, 2);
}

#[test]
fn what_a_transaction_was_handed_is_back_when_its_time_is_over_x5() {
    let engine = engine(16 << 20);
    let mut transaction = Transaction::begin(vec![Arc::clone(&engine)], BRIEF).unwrap();
    let waiter = transaction.waiter(0, &[TemplateRef::new(&any_job())], true).unwrap();
    engine.put(&job(1)).unwrap();
    assert_eq!((waiter.is_ready(), count(&engine)), (true, 0));
    engine.check().unwrap();
    let_it_run_out();
    assert_eq!(count(&engine), 1);
    assert!(transaction.finish_take(0, waiter, number).is_err(), "it is over");
    engine.check().unwrap();
    assert_eq!(try_take(&engine, &any_job()), Some(1));
}

#[test]
fn what_was_handed_over_under_many_shapes_is_found_again_k2() {
    let engine = engine(16 << 20);
    let slow: Vec<Waiter> = (0..50)
        .map(|key| claimant(&engine, &[PatternRef::Actual(Field::Int(key)), WHATEVER], BRIEF))
        .collect();
    for key in 0..50 {
        match key % 3 {
            0 => engine.put(&[Field::Int(key), Field::Null]).unwrap(),
            1 => engine.put(&[Field::Int(key), Field::Str("text")]).unwrap(),
            _ => engine.put(&[Field::Int(key), Field::Int(key)]).unwrap(),
        }
    }
    let all = || engine.count(&[TemplateRef::new(&[WHATEVER, WHATEVER])]).unwrap();
    assert_eq!(all(), 0);
    engine.check().unwrap();
    let_it_run_out();
    assert_eq!(all(), 50);
    engine.check().unwrap();
    for waiter in &slow {
        assert!(waiter.wait(Some(Duration::ZERO)).unwrap(), "its own is there");
    }
    assert_eq!(all(), 0);
    drop(slow);
    assert_eq!((all(), engine.check().unwrap().held()), (50, 0));
    engine.check().unwrap();
}
