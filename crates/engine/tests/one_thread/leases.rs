//! Leases on one engine (rules L1 to L4).

use std::thread;
use std::time::Duration;

use crate::support::{
    LONG, any, any_job, count, engine, job, number, this_job, try_claim, try_read, try_take,
};
use tupelo_engine::{Engine, Error, LeaseTerms, Order, Want};
use tupelo_tuple::{Field, Kind, TemplateRef, TupleView};

fn lease(ms: u64) -> LeaseTerms {
    LeaseTerms { lease: Some(Duration::from_millis(ms)), after: None }
}

fn after(ms: u64) -> LeaseTerms {
    LeaseTerms { lease: None, after: Some(Duration::from_millis(ms)) }
}

const HOUR_MS: u64 = 3_600_000;

/// Lets every lease of up to five milliseconds end.
fn let_it_end() {
    thread::sleep(Duration::from_millis(10));
}

fn leased(engine: &Engine) -> u64 {
    engine.stat().unwrap().shapes.iter().map(|shape| shape.leased).sum()
}

fn sound(engine: &Engine) {
    engine.check().unwrap();
}

#[test]
fn a_leased_tuple_is_there_until_its_lease_ends_l1() {
    let engine = engine(16 << 20);
    engine.put_leased(&job(1), &lease(HOUR_MS)).unwrap();
    engine.put_leased(&job(2), &lease(3)).unwrap();
    engine.put(&job(3)).unwrap();
    sound(&engine);
    let_it_end();
    let patterns = any_job();
    let template = [TemplateRef::new(&patterns)];
    assert_eq!(try_read(&engine, &this_job(2)), None);
    assert_eq!(engine.read_all(&template, None, number).unwrap(), [1, 3]);
    assert_eq!(count(&engine), 2);
    sound(&engine);
    assert_eq!(try_take(&engine, &any_job()), Some(1));
    assert_eq!(try_take(&engine, &any_job()), Some(3));
    assert_eq!(try_take(&engine, &any_job()), None);
    sound(&engine);
}

#[test]
fn a_leased_tuple_of_any_size_is_claimed_renewed_and_taken_and_leaves_nothing_behind_l1_l2() {
    let engine = engine(16 << 20);
    let patterns = [any(Kind::Int), any(Kind::Bytes)];
    let template = [TemplateRef::new(&patterns)];
    let size = |tuple: TupleView<'_>| match tuple.field(1) {
        Some(Field::Bytes(bytes)) => Ok::<_, Error>(bytes.len()),
        other => panic!("{other:?}"),
    };
    for bytes in [0, 1, 40, 200, 480, 500, 600, 40_000, 300_000] {
        let data = vec![7; bytes];
        let tuple = [Field::Int(1), Field::Bytes(&data)];
        let lease = engine.put_leased(&tuple, &lease(HOUR_MS)).unwrap();
        sound(&engine);
        let claimed = engine.try_claim(&template, Order::Fifo, &LONG, size).unwrap();
        let (claim, claimed) = claimed.unwrap();
        assert_eq!(claimed, bytes);
        sound(&engine);
        claim.abort("a reason, which is kept with the tuple").unwrap();
        engine.renew(&lease, Some(Duration::from_secs(60))).unwrap();
        sound(&engine);
        assert_eq!(engine.try_take(&template, Order::Fifo, size).unwrap(), Some(bytes));
        assert_eq!(engine.renew(&lease, None), Err(Error::LeaseExpired));
        sound(&engine);
    }
}

#[test]
fn every_verb_passes_over_what_has_ended_l1() {
    let engine = engine(16 << 20);
    let patterns = any_job();
    let template = [TemplateRef::new(&patterns)];
    let ended = || {
        engine.put_leased(&job(1), &lease(1)).unwrap();
        let_it_end();
    };
    ended();
    assert_eq!(try_take(&engine, &any_job()), None);
    ended();
    assert!(try_claim(&engine, &any_job(), &LONG).is_none());
    ended();
    assert!(engine.take_all(&template, None, number).unwrap().is_empty());
    ended();
    assert!(!engine.present(&template).unwrap());
    ended();
    assert!(engine.put_if_absent(&job(2), &template).unwrap());
    assert_eq!(try_take(&engine, &any_job()), Some(2));
    ended();
    let jobs = template[0].to_template().unwrap();
    let owned = engine.scan(jobs).next_batch(10, number);
    assert!(owned.unwrap().is_empty());
    ended();
    let waiter = engine.waiter(&template, Want::Take).unwrap();
    assert!(!waiter.wait(Some(Duration::ZERO)).unwrap());
    drop(waiter);
    sound(&engine);
}

#[test]
fn a_lease_is_renewed_and_not_once_it_has_ended_l2() {
    let engine = engine(16 << 20);
    let kept = engine.put_leased(&job(1), &lease(HOUR_MS)).unwrap();
    engine.renew(&kept, Some(Duration::from_millis(2))).unwrap();
    let_it_end();
    assert_eq!(count(&engine), 0);
    assert_eq!(engine.renew(&kept, None), Err(Error::LeaseExpired));
    let free = engine.put_leased(&job(2), &lease(HOUR_MS)).unwrap();
    assert!(engine.expires_in(&free).unwrap() > Some(Duration::from_secs(3_500)));
    assert_eq!(leased(&engine), 1);
    engine.renew(&free, None).unwrap();
    assert_eq!(engine.expires_in(&free).unwrap(), None);
    assert_eq!(leased(&engine), 0);
    sound(&engine);
    assert_eq!(try_take(&engine, &any_job()), Some(2));
    assert_eq!(engine.expires_in(&free), Err(Error::LeaseExpired), "it was taken");
}

#[test]
fn cancelling_a_lease_removes_the_tuple_but_for_one_in_somebodys_hands_l2() {
    let engine = engine(16 << 20);
    let there = engine.put_leased(&job(1), &lease(HOUR_MS)).unwrap();
    let coming = engine.put_leased(&job(2), &after(HOUR_MS)).unwrap();
    let held = engine.put_leased(&job(3), &lease(HOUR_MS)).unwrap();
    let (claim, _) = try_claim(&engine, &this_job(3), &LONG).unwrap();
    let cancel = |lease| {
        engine.cancel(lease).unwrap();
        assert_eq!(engine.cancel(lease), Err(Error::LeaseExpired));
    };
    cancel(&there);
    cancel(&coming);
    let refused = Err(Error::LeaseHeld { pid: Some(std::process::id()) });
    assert_eq!(engine.cancel(&held), refused, "it may be consumed yet");
    sound(&engine);
    claim.abort("not this time").unwrap();
    assert_eq!(count(&engine), 1);
    cancel(&held);
    assert_eq!(count(&engine), 0);
    assert_eq!(engine.stat().unwrap().tuples, 0);
    sound(&engine);
}

#[test]
fn a_tuple_is_visible_after_its_time_and_its_lease_counts_from_then_l3() {
    let engine = engine(16 << 20);
    engine.put_leased(&job(1), &after(HOUR_MS)).unwrap();
    let soon = Duration::from_millis(100);
    let terms = LeaseTerms { lease: Some(Duration::from_secs(3600)), after: Some(soon) };
    let two = engine.put_leased(&job(2), &terms).unwrap();
    engine.put(&job(3)).unwrap();
    assert_eq!(engine.expires_in(&two).unwrap(), Some(Duration::from_secs(3600)));
    sound(&engine);
    thread::sleep(soon + Duration::from_millis(10));
    assert_eq!(engine.read_all(&[TemplateRef::new(&any_job())], None, number).unwrap(), [3, 2]);
    assert!(engine.expires_in(&two).unwrap() > Some(Duration::from_secs(3_500)));
    sound(&engine);
}

#[test]
fn a_blocked_take_gets_a_tuple_when_it_becomes_visible_t6() {
    let engine = engine(16 << 20);
    engine.put_leased(&job(1), &after(20)).unwrap();
    let patterns = any_job();
    let waiter = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
    assert!(waiter.wait(None).unwrap());
    assert_eq!(waiter.finish(number).unwrap(), 1);
    let waiter = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| engine.put_leased(&job(2), &after(20)).unwrap());
        assert!(waiter.wait(None).unwrap());
    });
    assert_eq!(waiter.finish(number).unwrap(), 2);
}

#[test]
fn who_waits_for_the_removal_of_a_tuple_hears_of_its_end_o9() {
    let engine = engine(16 << 20);
    engine.put_leased(&job(1), &lease(20)).unwrap();
    let patterns = any_job();
    let template = [TemplateRef::new(&patterns)];
    let watch = engine.waiter(&template, Want::Removal).unwrap();
    while engine.present(&template).unwrap() {
        assert!(watch.wait(None).unwrap());
    }
    sound(&engine);
}

#[test]
fn leases_of_every_length_end_in_their_order_l1() {
    let engine = engine(64 << 20);
    for number in 0..5_000 {
        let ms = 1 + (number * 7_919) % 61;
        engine.put_leased(&job(number), &lease(u64::try_from(ms).unwrap())).unwrap();
        engine.put_leased(&job(-number), &lease(HOUR_MS << (number % 20))).unwrap();
    }
    sound(&engine);
    let mut left = count(&engine);
    while left > 5_000 {
        let next = count(&engine);
        assert!(next <= left);
        left = next;
    }
    sound(&engine);
    assert!(
        engine
            .read_all(&[TemplateRef::new(&any_job())], None, number)
            .unwrap()
            .into_iter()
            .all(|number| number <= 0)
    );
}

#[test]
fn a_full_space_has_room_again_when_leases_have_ended_b1() {
    let engine = engine(2 << 20);
    let put = |number| engine.put_leased(&job(number), &lease(3_600_000));
    let leases: Vec<_> = (0..).map_while(|number| put(number).ok()).collect();
    let full = put(0).unwrap_err();
    assert!(matches!(full, Error::SpaceFull(_)), "{full:?}");
    for lease in &leases {
        engine.renew(lease, Some(Duration::from_millis(2))).unwrap();
    }
    let_it_end();
    engine.put(&job(1)).unwrap();
    assert_eq!(count(&engine), 1);
    sound(&engine);
}

#[test]
fn a_put_unless_something_matches_may_have_a_lease_l1_o8() {
    let engine = engine(16 << 20);
    let (any, large) = (any_job(), vec![7; 100_000]);
    let unless = [TemplateRef::new(&any)];
    let put =
        |tuple: &[Field<'_>]| engine.put_if_absent_leased(tuple, &unless, &lease(HOUR_MS)).unwrap();
    let first = put(&job(1)).unwrap();
    assert_eq!(put(&job(2)), None);
    assert_eq!((count(&engine), leased(&engine)), (1, 1));
    sound(&engine);
    engine.renew(&first, Some(Duration::from_secs(1))).unwrap();
    engine.cancel(&first).unwrap();
    let bytes = put(&[Field::Int(1), Field::Bytes(&large)]).unwrap();
    sound(&engine);
    engine.cancel(&bytes).unwrap();
    assert!(engine.put_if_absent_leased(&job(3), &unless, &lease(3)).unwrap().is_some());
    let_it_end();
    assert!(engine.put_if_absent_leased(&job(4), &unless, &lease(HOUR_MS)).unwrap().is_some());
    assert_eq!(try_take(&engine, &any_job()), Some(4));
    sound(&engine);
}
