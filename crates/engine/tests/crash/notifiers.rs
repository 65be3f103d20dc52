//! One owner of many waiters, across processes (rule L5).

use std::time::Duration;

use tupelo_engine::{Outcome, Want};
use tupelo_tuple::TemplateRef;

use crate::support::notifiers::next_ready;

#[test]
fn a_notifier_is_rung_from_another_process_and_its_waiters_go_with_their_own_l5() {
    use crate::shared::{INT, int, put, space, take};
    let engine = space(8 << 20);
    let notifier = engine.notifier().unwrap();
    let template = [int(1), INT];
    let waiter = engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
    let number = notifier.add(&waiter);
    let putter = tupelo_crashtest::fork(|| put(&engine, 1, 7));
    assert_eq!(next_ready(&notifier), [number]);
    assert_eq!(putter.wait(), tupelo_crashtest::Exit::Done);
    drop((waiter, notifier));
    let dying = tupelo_crashtest::fork(|| {
        let notifier = engine.notifier().unwrap();
        let waiter = engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
        notifier.add(&waiter);
        std::process::abort();
    });
    dying.wait();
    assert_eq!(take(&engine, &[int(1), INT]), Some("1,7".into()), "it was handed to the dead");
    assert_eq!(engine.check().unwrap().waiters, 0);
}

#[test]
fn a_last_look_finds_what_the_dead_held_also_if_somebody_has_swept_just_now_l5() {
    use crate::shared::{INT, int, put, shown, space};
    use tupelo_engine::{ClaimTerms, Order};
    let engine = space(8 << 20);
    put(&engine, 1, 7);
    let notifier = engine.notifier().unwrap();
    let patterns = [int(1), INT];
    let template = [TemplateRef::new(&patterns)];
    let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
    assert!(notifier.look().unwrap().is_empty(), "it sweeps, so nobody does again for a while");
    let dying = tupelo_crashtest::fork(|| {
        let _claimed = engine.try_claim(&template, Order::Fifo, &terms, shown).unwrap();
        std::process::abort();
    });
    dying.wait();
    let waiter = engine.waiter(&template, Want::Take).unwrap();
    let number = notifier.add(&waiter);
    assert_eq!(notifier.last_look().unwrap(), [number]);
    let Outcome::Done(found) = waiter.finish_now(shown).unwrap() else { panic!("it is there") };
    assert_eq!(found, "1,7");
    drop(notifier);
    assert_eq!(engine.check().unwrap().waiters, 0);
}
