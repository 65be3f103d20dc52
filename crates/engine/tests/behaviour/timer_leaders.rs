//! Who of the blocked callers keeps the time (rules L1, T6).

use std::time::Duration;

use crate::support::notifiers::{SLICE, notifiers, put_after, put_due_soon};
use crate::support::{any_job, engine, job};
use tupelo_engine::{LeaseTerms, Want};
use tupelo_tuple::TemplateRef;

#[test]
fn the_first_who_sleeps_keeps_the_time_t6() {
    let engine = engine(16 << 20);
    let [leader, second, third] = notifiers(&engine);
    for notifier in [&leader, &second, &third] {
        assert_eq!(notifier.next_look(), SLICE, "nothing is due at any time");
    }
    put_due_soon(&engine);
    assert!(leader.next_look() < SLICE);
    assert_eq!((second.next_look(), third.next_look()), (SLICE, SLICE));
    // First one of them does not wait any more, then neither.
    leader.rest();
    assert!(second.next_look() < SLICE);
    assert_eq!(third.next_look(), SLICE);
    second.rest();
    assert!(third.next_look() < SLICE);
}

#[test]
fn whoever_looks_takes_the_place_of_a_leader_that_does_not_l1() {
    let engine = engine(16 << 20);
    let [leader, looks] = notifiers(&engine);
    let template = any_job();
    let waiter = engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
    let ready = looks.add(&waiter);
    assert_eq!((leader.next_look(), looks.next_look()), (SLICE, SLICE));
    put_after(&engine, 1, Duration::from_millis(1));
    while looks.look().unwrap() != [ready] {}
    put_due_soon(&engine);
    assert!(looks.next_look() < SLICE);
    assert_eq!(leader.next_look(), SLICE, "its place is taken");
}

#[test]
fn who_keeps_the_time_is_told_of_what_is_due_before_it_looks_t6() {
    let engine = engine(16 << 20);
    let [leader, other] = notifiers(&engine);
    for notifier in [&leader, &other] {
        assert_eq!(notifier.next_look(), SLICE);
        assert!(notifier.listen());
    }
    put_after(&engine, 1, Duration::from_secs(3600));
    for notifier in [&leader, &other] {
        assert!(notifier.listen(), "it looks before that");
    }
    put_due_soon(&engine);
    assert!(!leader.listen(), "it is to look");
    assert!(other.listen(), "it is none of its business");
}

#[test]
fn who_led_the_timers_leaves_it_to_one_that_sleeps_t6() {
    let engine = engine(16 << 20);
    let [leader, awake, sleeps] = notifiers(&engine);
    assert_eq!(leader.next_look(), SLICE);
    put_due_soon(&engine);
    assert!(sleeps.drain().is_empty() && sleeps.listen());
    leader.rest();
    assert!(!sleeps.listen(), "it is told");
    assert!(sleeps.next_look() < SLICE);
    assert_eq!(awake.next_look(), SLICE, "its place is taken");
}

#[test]
fn who_led_the_timers_wakes_nobody_for_what_is_due_after_everybody_looks_t6() {
    let engine = engine(16 << 20);
    let [leader, other] = notifiers(&engine);
    assert_eq!((leader.next_look(), other.next_look()), (SLICE, SLICE));
    put_after(&engine, 1, Duration::from_secs(3600));
    assert!(other.listen());
    leader.rest();
    assert!(other.listen(), "it looks before that");
    put_due_soon(&engine);
    assert!(!other.listen(), "it is to keep the time");
}

#[test]
fn what_has_been_done_is_not_due_any_more_l1() {
    let engine = engine(16 << 20);
    let [leader, other] = notifiers(&engine);
    assert_eq!((leader.next_look(), other.next_look()), (SLICE, SLICE));
    put_after(&engine, 1, Duration::from_millis(1));
    put_after(&engine, 2, Duration::from_secs(3600));
    let template = any_job();
    let waiter = engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
    let ready = leader.add(&waiter);
    while leader.look().unwrap() != [ready] {}
    assert_eq!((leader.next_look(), other.next_look()), (SLICE, SLICE));
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
