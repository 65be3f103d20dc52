//! Who of the blocked callers keeps the time (rules L1, T6).

use std::time::Duration;

use crate::support::notifiers::{SLICE, notifiers, put_after, put_due_soon};
use crate::support::{any_job, engine, job};
use tupelo_engine::{LeaseTerms, Want};
use tupelo_tuple::TemplateRef;

#[test]
fn the_first_who_sleeps_keeps_the_time_and_the_second_is_its_deputy_t6() {
    let engine = engine(16 << 20);
    let [leader, deputy, other] = notifiers(&engine);
    for notifier in [&leader, &deputy, &other] {
        assert_eq!(notifier.next_look(), SLICE, "nothing is due at any time");
    }
    put_due_soon(&engine);
    assert!(leader.next_look() < SLICE && deputy.next_look() < SLICE);
    assert_eq!(other.next_look(), SLICE);
    // First one of them does not wait any more, then neither.
    for gone in [&deputy, &leader] {
        gone.rest();
        assert!(other.next_look() < SLICE);
    }
}

#[test]
fn a_deputy_takes_the_place_of_a_leader_that_does_not_look_l1() {
    let engine = engine(16 << 20);
    let [leader, deputy, other] = notifiers(&engine);
    let template = any_job();
    let waiter = engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
    let ready = deputy.add(&waiter);
    for notifier in [&leader, &deputy, &other] {
        assert_eq!(notifier.next_look(), SLICE);
    }
    put_after(&engine, 1, Duration::from_millis(1));
    while deputy.look().unwrap() != [ready] {}
    // It has nobody who looks later, until somebody sleeps.
    put_due_soon(&engine);
    assert!(deputy.next_look() < SLICE);
    assert!(other.next_look() < SLICE);
    assert_eq!(leader.next_look(), SLICE, "its place is taken");
}

#[test]
fn those_who_keep_the_time_are_told_of_what_is_due_before_they_look_t6() {
    let engine = engine(16 << 20);
    let [leader, deputy, other] = notifiers(&engine);
    for notifier in [&leader, &deputy, &other] {
        assert_eq!(notifier.next_look(), SLICE);
        assert!(notifier.listen());
    }
    put_after(&engine, 1, Duration::from_secs(3600));
    for notifier in [&leader, &deputy, &other] {
        assert!(notifier.listen(), "it looks before that");
    }
    put_due_soon(&engine);
    assert!(!leader.listen() && !deputy.listen(), "they are to look");
    assert!(other.listen(), "it is none of its business");
}

#[test]
fn who_led_the_timers_leaves_it_to_its_deputy_t6() {
    let engine = engine(16 << 20);
    // It came first of all, and is away, too.
    let other = engine.notifier().unwrap();
    assert!(other.listen());
    let [leader, deputy] = notifiers(&engine);
    assert_eq!((leader.next_look(), deputy.next_look()), (SLICE, SLICE));
    put_due_soon(&engine);
    assert!(deputy.drain().is_empty() && deputy.listen());
    leader.rest();
    assert!(!deputy.listen() && other.listen(), "the deputy is told");
    assert!(deputy.next_look() < SLICE);
    assert!(other.next_look() < SLICE, "it is the next deputy");
}

#[test]
fn who_led_the_timers_wakes_nobody_for_what_is_due_after_everybody_looks_t6() {
    let engine = engine(16 << 20);
    let [leader, deputy] = notifiers(&engine);
    assert_eq!((leader.next_look(), deputy.next_look()), (SLICE, SLICE));
    put_after(&engine, 1, Duration::from_secs(3600));
    assert!(deputy.listen());
    leader.rest();
    assert!(deputy.listen(), "it looks before that");
    put_due_soon(&engine);
    assert!(!deputy.listen(), "it is to keep the time");
}

#[test]
fn what_has_been_done_is_not_due_any_more_l1() {
    let engine = engine(16 << 20);
    let [leader, deputy] = notifiers(&engine);
    assert_eq!((leader.next_look(), deputy.next_look()), (SLICE, SLICE));
    put_after(&engine, 1, Duration::from_millis(1));
    put_after(&engine, 2, Duration::from_secs(3600));
    let template = any_job();
    let waiter = engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
    let ready = leader.add(&waiter);
    while leader.look().unwrap() != [ready] {}
    assert_eq!((leader.next_look(), deputy.next_look()), (SLICE, SLICE));
}

#[test]
fn a_last_look_leaves_the_time_to_who_waits_t6() {
    let engine = engine(16 << 20);
    let [looks, waits] = notifiers(&engine);
    let lease = LeaseTerms { lease: Some(Duration::from_millis(1)), after: None };
    engine.put_leased(&job(1), &lease).unwrap();
    while engine.stat().unwrap().tuples > 0 {
        looks.last_look().unwrap();
    }
    put_after(&engine, 2, Duration::from_millis(10));
    assert!(waits.next_look() < SLICE, "until it is visible, not a slice");
}
