//! One owner of many waiters (rules T3 to T6).
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod crash;
mod support;

use std::thread;
use std::time::Duration;

use support::{any_job, count, engine, job, number, this_job};
use tupelo_engine::{Bell, EventKind, LeaseTerms, Outcome, SubscribeTerms, Waiter, Want};
use tupelo_tuple::{PatternRef, TemplateRef};

/// Waits as an event loop does: listens, waits for the descriptor, drains.
fn next_ready(bell: &Bell) -> Vec<u32> {
    loop {
        if bell.listen() {
            let mut fds = [rustix::event::PollFd::new(bell, rustix::event::PollFlags::IN)];
            let slice = bell.next_look();
            let timeout =
                rustix::event::Timespec { tv_sec: 0, tv_nsec: i64::from(slice.subsec_nanos()) };
            rustix::event::poll(&mut fds, Some(&timeout)).unwrap();
        }
        let mut ready = bell.drain();
        ready.extend(bell.look().unwrap());
        if !ready.is_empty() {
            ready.sort_unstable();
            ready.dedup();
            return ready;
        }
    }
}

fn waiter(engine: &std::sync::Arc<tupelo_engine::Engine>, patterns: &[PatternRef<'_>]) -> Waiter {
    engine.waiter(&[TemplateRef::new(patterns)], Want::Take).unwrap()
}

#[test]
fn a_bell_tells_which_of_a_thousand_waiters_has_its_tuple_t4() {
    let engine = engine(16 << 20);
    let bell = engine.bell().unwrap();
    let mut waiters = std::collections::BTreeMap::new();
    for key in 0..1_000 {
        let waiter = waiter(&engine, &this_job(key));
        let told = bell.add(&waiter);
        assert!(waiters.insert(told, (key, waiter)).is_none());
    }
    assert!(bell.drain().is_empty() && bell.listen(), "nothing has happened yet");
    thread::scope(|scope| {
        scope.spawn(|| (0..1_000).rev().step_by(7).for_each(|key| engine.put(&job(key)).unwrap()));
        let mut taken = 0;
        while taken < 143 {
            for told in next_ready(&bell) {
                let (key, waiter) = waiters.remove(&told).unwrap();
                bell.remove(told);
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
    let bell = engine.bell().unwrap();
    let waiter = waiter(&engine, &any_job());
    let told = bell.add(&waiter);
    assert!(!bell.listen(), "it has happened already");
    assert_eq!(bell.drain(), [told]);
    let Outcome::Done(found) = waiter.finish_now(number).unwrap() else { panic!("it is there") };
    assert_eq!(found, 1);
}

#[test]
fn a_waiter_that_gave_up_puts_its_tuple_back_and_rings_nobody_t5() {
    let engine = engine(16 << 20);
    let bell = engine.bell().unwrap();
    let first = waiter(&engine, &any_job());
    let second = waiter(&engine, &any_job());
    let (told_first, told_second) = (bell.add(&first), bell.add(&second));
    engine.put(&job(1)).unwrap();
    assert_eq!(next_ready(&bell), [told_first]);
    bell.remove(told_first);
    drop(first);
    assert_eq!(next_ready(&bell), [told_second]);
    let again = second.finish_now(|_| Ok::<_, tupelo_engine::Error>(())).unwrap();
    assert!(matches!(again, Outcome::Done(())));
    assert!(bell.drain().is_empty());
}

#[test]
fn what_a_watch_was_told_before_it_had_a_bell_rings_once_t6() {
    let engine = engine(16 << 20);
    let bell = engine.bell().unwrap();
    let watch = engine.waiter(&[TemplateRef::new(&any_job())], Want::Put).unwrap();
    let terms = SubscribeTerms::new([EventKind::Put], 4);
    let events = engine.subscribe(&[TemplateRef::new(&any_job())], &terms).unwrap();
    engine.put(&job(1)).unwrap();
    let told = [bell.add(&watch), bell.add(events.waiter())];
    assert_eq!(bell.drain(), told);
    // An event loop that waits again adds them again.
    assert_eq!([bell.add(&watch), bell.add(events.waiter())], told);
    assert_eq!(bell.drain(), [told[1]], "the event still waits");
    assert!(events.try_next(|_| Ok::<_, tupelo_engine::Error>(())).unwrap().is_some());
    bell.add(events.waiter());
    assert!(bell.listen(), "nothing has happened since");
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
fn the_owner_of_a_bell_keeps_the_time_t6() {
    let engine = engine(16 << 20);
    let bell = engine.bell().unwrap();
    let waiter = waiter(&engine, &any_job());
    let told = bell.add(&waiter);
    let terms = LeaseTerms { lease: None, after: Some(Duration::from_millis(10)) };
    engine.put_leased(&job(1), &terms).unwrap();
    assert!(bell.next_look() < Duration::from_millis(100), "until it is visible, not a slice");
    assert_eq!(next_ready(&bell), [told]);
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_bell_is_rung_from_another_process_and_its_waiters_go_with_their_own_l5() {
    use crash::{INT, int, put, space, take};
    let engine = space(8 << 20);
    let bell = engine.bell().unwrap();
    let template = [int(1), INT];
    let waiter = engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
    let told = bell.add(&waiter);
    let putter = tupelo_crashtest::fork(|| put(&engine, 1, 7));
    assert_eq!(next_ready(&bell), [told]);
    assert_eq!(putter.wait(), tupelo_crashtest::Exit::Done);
    drop((waiter, bell));
    let dying = tupelo_crashtest::fork(|| {
        let bell = engine.bell().unwrap();
        let waiter = engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
        bell.add(&waiter);
        std::process::abort();
    });
    dying.wait();
    assert_eq!(take(&engine, &[int(1), INT]), Some("1,7".into()), "it was handed to the dead");
    assert_eq!(engine.check().unwrap().waiters, 0);
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_last_look_finds_what_the_dead_held_also_if_somebody_has_swept_just_now_l5() {
    use crash::{INT, int, put, shown, space};
    use tupelo_engine::{ClaimTerms, Order};
    let engine = space(8 << 20);
    put(&engine, 1, 7);
    let bell = engine.bell().unwrap();
    let patterns = [int(1), INT];
    let template = [TemplateRef::new(&patterns)];
    let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
    assert!(bell.look().unwrap().is_empty(), "it sweeps, so nobody does again for a while");
    let dying = tupelo_crashtest::fork(|| {
        let _claimed = engine.try_claim(&template, Order::Fifo, &terms, shown).unwrap();
        std::process::abort();
    });
    dying.wait();
    let waiter = engine.waiter(&template, Want::Take).unwrap();
    let told = bell.add(&waiter);
    assert_eq!(bell.last_look().unwrap(), [told]);
    let Outcome::Done(found) = waiter.finish_now(shown).unwrap() else { panic!("it is there") };
    assert_eq!(found, "1,7");
    drop(bell);
    assert_eq!(engine.check().unwrap().waiters, 0);
}
