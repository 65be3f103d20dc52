//! Templates with a condition over the whole tuple (rule M9): what a single thread of the cases can not show.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::support::{LONG, any_job, count, engine, job, number, this_job, try_claim};
use tupelo_engine::{Engine, Error, EventKind, Order, Outcome, SubscribeTerms, Want};
use tupelo_tuple::{Condition, KindSet, PatternRef, TemplateRef};

/// Far beyond what any of these waits needs.
const FORGOTTEN: Option<Duration> = Some(Duration::from_secs(60));

fn condition(text: &str) -> Condition {
    Condition::new(text).unwrap()
}

/// Takes a job of which `condition` holds.
fn take(engine: &Engine, condition: &Condition, order: Order) -> Option<i64> {
    let patterns = any_job();
    let template = TemplateRef { condition: Some(condition), ..TemplateRef::new(&patterns) };
    engine.try_take(&[template], order, number).unwrap()
}

fn count_of(engine: &Engine, condition: &Condition) -> u64 {
    let patterns = any_job();
    let template = TemplateRef { condition: Some(condition), ..TemplateRef::new(&patterns) };
    engine.count(&[template]).unwrap()
}

#[test]
fn the_oldest_match_is_found_behind_any_number_of_others_t2() {
    let engine = engine(16 << 20);
    for number in 0..3_000 {
        engine.put(&job(number)).unwrap();
    }
    let late = condition("f[1] >= 2500");
    assert_eq!(take(&engine, &late, Order::Fifo), Some(2_500));
    assert_eq!(take(&engine, &late, Order::Lifo), Some(2_999));
    assert_eq!(take(&engine, &late, Order::Min(1)), Some(2_501));
    assert_eq!(take(&engine, &late, Order::Max(1)), Some(2_998));
    assert_eq!(count_of(&engine, &late), 496);
    assert_eq!(take(&engine, &condition("f[1] < 0"), Order::Fifo), None);
    assert_eq!(engine.stat().unwrap().where_errors, 0);
    assert_eq!(take(&engine, &condition("1 / (f[1] - 7) == 1"), Order::Fifo), Some(8));
    assert_eq!(engine.stat().unwrap().where_errors, 1);
    engine.check().unwrap();
}

#[test]
fn who_waits_for_a_condition_is_asked_whether_it_goes_on_l5() {
    let engine = engine(16 << 20);
    let patterns = any_job();
    let even = condition("f[1] % 2 == 0");
    let template = [TemplateRef { condition: Some(&even), ..TemplateRef::new(&patterns) }];
    let waiter = engine.waiter(&template, Want::Take).unwrap();
    let is_asked = AtomicBool::new(false);
    let goes_on = || {
        is_asked.store(true, Relaxed);
        false
    };
    assert!(!waiter.wait_while(FORGOTTEN, goes_on).unwrap());
    assert!(is_asked.load(Relaxed), "it has waited for all of its time");
}

#[test]
fn a_tuple_that_comes_back_to_its_place_is_the_oldest_again_t2_t5() {
    let engine = engine(16 << 20);
    for number in 0..1_000 {
        engine.put(&job(number)).unwrap();
    }
    let patterns = any_job();
    let late = condition("f[1] == 0 || f[1] == 5000");
    let template = [TemplateRef { condition: Some(&late), ..TemplateRef::new(&patterns) }];
    let (held, _) = try_claim(&engine, &this_job(0), &LONG).unwrap();
    let waiter = engine.waiter(&template, Want::Take).unwrap();
    // It has looked at all by now, and keeps its filter results.
    assert!(!waiter.wait(Some(Duration::ZERO)).unwrap());
    held.abort("not now").unwrap();
    assert!(waiter.wait(None).unwrap());
    assert_eq!(waiter.finish(number).unwrap(), 0);
    assert_eq!(count(&engine), 999);
    engine.check().unwrap();
}

#[test]
fn a_blocked_call_looks_again_at_each_put_that_fits_and_only_then_o3_t4() {
    let engine = engine(8 << 20);
    let patterns = any_job();
    let tenth = condition("f[1] == 10");
    let template = [TemplateRef { condition: Some(&tenth), ..TemplateRef::new(&patterns) }];
    thread::scope(|scope| {
        let taker = scope.spawn(|| engine.waiter(&template, Want::Take).unwrap().finish(number));
        let reader = scope.spawn(|| engine.waiter(&template, Want::Read).unwrap().finish(number));
        for number in 0..10 {
            engine.put(&job(number)).unwrap();
        }
        // The reader may come too late for a tuple that the taker has: each gets one of its own.
        while !(taker.is_finished() && reader.is_finished()) {
            engine.put(&job(10)).unwrap();
            thread::yield_now();
        }
        assert_eq!(taker.join().unwrap().unwrap(), 10);
        assert_eq!(reader.join().unwrap().unwrap(), 10);
    });
    assert_eq!(engine.stat().unwrap().waiters, 0);
    engine.check().unwrap();
}

#[test]
fn a_waiter_that_gives_up_puts_its_tuple_back_and_leaves_the_line_t5() {
    let engine = engine(8 << 20);
    let any = PatternRef::Kinds(KindSet::ALL);
    for patterns in [any_job(), [any, any]] {
        for want in [Want::Take, Want::Read] {
            let odd = condition("f[1] % 2 == 1");
            let template = [TemplateRef { condition: Some(&odd), ..TemplateRef::new(&patterns) }];
            engine.put(&job(2)).unwrap();
            let early = engine.waiter(&template, want).unwrap();
            engine.put(&job(1)).unwrap();
            assert!(early.wait(None).unwrap());
            assert_eq!(count(&engine), if want == Want::Take { 1 } else { 2 });
            assert!(engine.present(&template).unwrap(), "it may come back (O9)");
            engine.check().unwrap();
            drop(early);
            let Outcome::Waits(late) =
                engine.waiter(&template, want).unwrap().finish_now(number).unwrap()
            else {
                assert_eq!(take(&engine, &odd, Order::Fifo), (want == Want::Read).then_some(1));
                assert_eq!(take(&engine, &condition("true"), Order::Fifo), Some(2));
                continue;
            };
            panic!("{late:?} did not find what was put back");
        }
    }
    assert_eq!((count(&engine), engine.stat().unwrap().waiters), (0, 0));
    engine.check().unwrap();
}

#[test]
fn a_template_for_several_shapes_is_judged_in_all_of_them_m8() {
    let engine = engine(8 << 20);
    let any = PatternRef::Kinds(KindSet::ALL);
    let patterns = [any, any];
    engine.put(&["a".into(), 1.5.into()]).unwrap();
    engine.put(&["b".into(), "x".into()]).unwrap();
    let (big, same) = (condition("f[1] > 2"), condition("f[0] == f[1]"));
    let template =
        |condition| TemplateRef { condition: Some(condition), ..TemplateRef::new(&patterns) };
    let both = [template(&big), template(&same)];
    assert_eq!(engine.count(&both).unwrap(), 0);
    let waiter = engine.waiter(&both, Want::Take).unwrap();
    engine.put(&["c".into(), "c".into()]).unwrap();
    assert_eq!(
        waiter.finish(|tuple| Ok::<_, tupelo_engine::Error>(tuple.to_string())).unwrap(),
        r#"("c", "c")"#
    );
    engine.put(&["d".into(), 2.5.into()]).unwrap();
    assert_eq!(engine.count(&both).unwrap(), 1);
    engine.check().unwrap();
}

#[test]
fn each_tuple_is_taken_once_while_others_come_and_go_back_t1_o4() {
    const EACH: i64 = 2_000;
    let engine = engine(16 << 20);
    let (taken, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let takers: Vec<_> = (0..3)
            .map(|rest| {
                let (engine, taken, over) = (&engine, &taken, &over);
                scope.spawn(move || {
                    let mine = condition(&format!("f[1] % 3 == {rest}"));
                    let mut got = Vec::new();
                    while !over.load(Relaxed) || count_of(engine, &mine) > 0 {
                        if let Some(number) = take(engine, &mine, Order::Any) {
                            got.push(number);
                            taken.fetch_add(1, Relaxed);
                        }
                    }
                    got
                })
            })
            .collect();
        let claimer = scope.spawn(|| {
            while !over.load(Relaxed) {
                if let Some((claim, _)) = try_claim(&engine, &any_job(), &LONG) {
                    claim.abort("only looking").unwrap();
                }
            }
        });
        for number in 0..EACH {
            engine.put(&job(number)).unwrap();
        }
        over.store(true, Relaxed);
        claimer.join().unwrap();
        let mut all: Vec<i64> = Vec::new();
        for (rest, taker) in (0..).zip(takers) {
            let got = taker.join().unwrap();
            assert!(got.iter().all(|number| number % 3 == rest));
            all.extend(got);
        }
        all.sort_unstable();
        assert_eq!(all, (0..EACH).collect::<Vec<_>>());
    });
    assert_eq!(count(&engine), 0);
    engine.check().unwrap();
}

#[test]
fn a_visitor_of_events_may_ask_for_the_next_one_itself_m9_n1() {
    let engine = engine(16 << 20);
    let (patterns, even) = (any_job(), condition("f[1] % 2 == 0"));
    let template = [TemplateRef { condition: Some(&even), ..TemplateRef::new(&patterns) }];
    let terms = SubscribeTerms::new(EventKind::ALL, 10);
    let subscription = engine.subscribe(&template, &terms).unwrap();
    for number in 1..6 {
        engine.put(&job(number)).unwrap();
    }
    let next =
        || subscription.try_next(|event| Ok::<_, Error>((number(event.tuple)?, event.sequence)));
    let both = subscription.try_next(|event| {
        let (later, sequence) = next()?.unwrap();
        Ok::<_, Error>([(number(event.tuple)?, event.sequence), (later, sequence)])
    });
    assert_eq!(both.unwrap(), Some([(2, 1), (4, 2)]));
    assert_eq!(next().unwrap(), None);
}

#[test]
fn every_tuple_is_judged_however_many_there_are_o6_m9() {
    let engine = engine(32 << 20);
    for number in 0..15_000 {
        engine.put(&job(number)).unwrap();
    }
    let all = condition("f[1] >= 0");
    assert_eq!(count_of(&engine, &all), 15_000);
    assert_eq!(take(&engine, &condition("f[1] == 14999"), Order::Fifo), Some(14_999));
    let patterns = any_job();
    let template = TemplateRef { condition: Some(&all), ..TemplateRef::new(&patterns) };
    assert!(!engine.put_if_absent(&job(-1), &[template]).unwrap());
}

#[test]
fn who_waits_sees_a_match_after_any_number_of_others_o3_m9() {
    let engine = engine(16 << 20);
    let late = condition("f[1] >= 1000");
    let patterns = any_job();
    let template = [TemplateRef { condition: Some(&late), ..TemplateRef::new(&patterns) }];
    let waiter = engine.waiter(&template, Want::Take).unwrap();
    for value in 0..200 {
        engine.put(&job(value)).unwrap();
        assert!(!waiter.wait(Some(Duration::ZERO)).unwrap());
    }
    engine.put(&job(1_000)).unwrap();
    assert!(waiter.wait(Some(Duration::ZERO)).unwrap());
    assert_eq!(crate::support::done(waiter.finish_now(number)), 1_000);
}

#[test]
fn who_waits_sees_a_match_that_a_transaction_had_read_x4_m9() {
    let engine = engine(16 << 20);
    for value in 0..13 {
        engine.put(&job(value)).unwrap();
    }
    let mut transaction =
        tupelo_engine::Transaction::begin(vec![engine.clone()], Duration::from_secs(3600)).unwrap();
    let first = this_job(0);
    let read = transaction.try_read(0, &[TemplateRef::new(&first)], Order::Fifo, number);
    assert_eq!(read.unwrap(), Some(0));
    let zero = condition("f[1] == 0");
    let patterns = any_job();
    let template = [TemplateRef { condition: Some(&zero), ..TemplateRef::new(&patterns) }];
    let waits = engine.take_or_wait(&template, Order::Max(1), number).unwrap();
    let Outcome::Waits(waiter) = waits else { panic!("a transaction has read it") };
    transaction.abort().unwrap();
    assert!(waiter.wait(Some(Duration::ZERO)).unwrap());
    assert_eq!(crate::support::done(waiter.finish_now(number)), 0);
}
