//! One owner of many waiters (rules T3 to T6).

use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::notifiers::next_ready;
use crate::support::{any_job, count, engine, job, number, this_job};
use tupelo_engine::{EventKind, LeaseTerms, Outcome, SubscribeTerms, Waiter, Want};
use tupelo_tuple::{PatternRef, TemplateRef};

fn waiter(engine: &std::sync::Arc<tupelo_engine::Engine>, patterns: &[PatternRef<'_>]) -> Waiter {
    engine.waiter(&[TemplateRef::new(patterns)], Want::Take).unwrap()
}

#[test]
fn a_notifier_tells_which_of_a_thousand_waiters_has_its_tuple_t4() {
    let engine = engine(16 << 20);
    let notifier = engine.notifier().unwrap();
    let mut waiters = std::collections::BTreeMap::new();
    for key in 0..1_000 {
        let waiter = waiter(&engine, &this_job(key));
        let ready = notifier.add(&waiter);
        assert!(waiters.insert(ready, (key, waiter)).is_none());
    }
    assert!(notifier.drain().is_empty() && notifier.listen(), "nothing has happened yet");
    thread::scope(|scope| {
        scope.spawn(|| (0..1_000).rev().step_by(7).for_each(|key| engine.put(&job(key)).unwrap()));
        let mut taken = 0;
        while taken < 143 {
            for ready in next_ready(&notifier) {
                let (key, waiter) = waiters.remove(&ready).unwrap();
                notifier.remove(ready);
                let Outcome::Done(found) = waiter.finish_now(number).unwrap() else {
                    panic!("{key} was told in vain")
                };
                assert_eq!(found, key);
                taken += 1;
            }
        }
    });
    assert_eq!((count(&engine), waiters.len()), (0, 857));
    drop(waiters);
    engine.check().unwrap();
}

#[test]
fn what_was_there_before_rings_at_once_t3() {
    let engine = engine(16 << 20);
    engine.put(&job(1)).unwrap();
    let notifier = engine.notifier().unwrap();
    let waiter = waiter(&engine, &any_job());
    let ready = notifier.add(&waiter);
    assert!(!notifier.listen(), "it has happened already");
    assert_eq!(notifier.drain(), [ready]);
    let Outcome::Done(found) = waiter.finish_now(number).unwrap() else { panic!("it is there") };
    assert_eq!(found, 1);
}

#[test]
fn an_owner_that_attends_is_not_woken_and_collects_what_has_happened_t4() {
    let engine = engine(16 << 20);
    let notifier = engine.notifier().unwrap();
    let first = waiter(&engine, &this_job(1));
    let second = waiter(&engine, &this_job(2));
    let told = [notifier.add(&first), notifier.add(&second)];
    let is_readable = || {
        let mut polled = [PollFd::new(&notifier, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    };
    assert!(notifier.drain().is_empty() && notifier.listen());
    notifier.attend();
    engine.put(&job(1)).unwrap();
    assert!(!is_readable(), "it was awake");
    assert!(!notifier.listen(), "there is something to collect first");
    assert_eq!(notifier.collect(), told[..1]);
    assert!(notifier.collect().is_empty() && notifier.listen());
    engine.put(&job(2)).unwrap();
    assert!(is_readable(), "it was to be woken");
    assert_eq!(notifier.drain(), told[1..]);
}

#[test]
fn a_waiter_that_gave_up_puts_its_tuple_back_and_rings_nobody_t5() {
    let engine = engine(16 << 20);
    let notifier = engine.notifier().unwrap();
    let first = waiter(&engine, &any_job());
    let second = waiter(&engine, &any_job());
    let (told_first, told_second) = (notifier.add(&first), notifier.add(&second));
    engine.put(&job(1)).unwrap();
    assert_eq!(next_ready(&notifier), [told_first]);
    notifier.remove(told_first);
    drop(first);
    assert_eq!(next_ready(&notifier), [told_second]);
    let again = second.finish_now(|_| Ok::<_, tupelo_engine::Error>(())).unwrap();
    assert!(matches!(again, Outcome::Done(())));
    assert!(notifier.drain().is_empty());
}

#[test]
fn what_a_watch_was_told_before_it_had_a_notifier_rings_once_t6() {
    let engine = engine(16 << 20);
    let notifier = engine.notifier().unwrap();
    let watch = engine.waiter(&[TemplateRef::new(&any_job())], Want::Put).unwrap();
    let terms = SubscribeTerms::new([EventKind::Put], 4);
    let events = engine.subscribe(&[TemplateRef::new(&any_job())], &terms).unwrap();
    engine.put(&job(1)).unwrap();
    let numbers = [notifier.add(&watch), notifier.add(events.waiter())];
    assert_eq!(notifier.drain(), numbers);
    // An event loop that waits again adds them again.
    assert_eq!([notifier.add(&watch), notifier.add(events.waiter())], numbers);
    assert_eq!(notifier.drain(), [numbers[1]], "the event still waits");
    assert!(events.try_next(|_| Ok::<_, tupelo_engine::Error>(())).unwrap().is_some());
    notifier.add(events.waiter());
    assert!(notifier.listen(), "nothing has happened since");
}

#[test]
fn finishing_what_has_not_happened_keeps_the_place_in_line_t3() {
    let engine = engine(16 << 20);
    let waiter = waiter(&engine, &any_job());
    let Outcome::Waits(waiter) = waiter.finish_now(number).unwrap() else {
        panic!("nothing is there")
    };
    engine.put(&job(1)).unwrap();
    assert!(matches!(waiter.finish_now(number).unwrap(), Outcome::Done(1)));
}

#[test]
fn the_owner_of_a_notifier_keeps_the_time_t6() {
    let engine = engine(16 << 20);
    let notifier = engine.notifier().unwrap();
    let waiter = waiter(&engine, &any_job());
    let ready = notifier.add(&waiter);
    let terms = LeaseTerms { lease: None, after: Some(Duration::from_millis(10)) };
    engine.put_leased(&job(1), &terms).unwrap();
    assert!(notifier.next_look() < Duration::from_millis(100), "until it is visible, not a slice");
    assert_eq!(next_ready(&notifier), [ready]);
}

#[test]
fn bytes_that_a_stranger_sends_without_end_do_not_hold_up_the_owner_t6() {
    let engine = engine(8 << 20);
    let notifier = engine.notifier().unwrap();
    let waiter = waiter(&engine, &this_job(1));
    let ready = notifier.add(&waiter);
    let address = UnixDatagram::from(notifier.as_fd().try_clone_to_owned().unwrap());
    let address = address.local_addr().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stranger = UnixDatagram::unbound().unwrap();
                stranger.set_nonblocking(true).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    let _ = stranger.send_to_addr(&[1], &address);
                }
            });
        }
        for _ in 0..100 {
            assert!(notifier.drain().is_empty(), "nothing has happened yet");
        }
        engine.put(&job(1)).unwrap();
        assert_eq!(notifier.drain(), [ready]);
        is_over.store(true, Ordering::Relaxed);
    });
}
