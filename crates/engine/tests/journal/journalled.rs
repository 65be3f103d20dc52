//! What is told of each verb.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tupelo_engine::{
    ANSWERS_RESTORED_MAX, ClaimTerms, Engine, Error, Kept, LeaseTerms, Limits, Order, RequestKey,
    Want, WhenFull, keyed,
};
use tupelo_tuple::{Field, TemplateRef, TupleRef};

use crate::support::replay::{Journalled, Replay, bare};
use crate::support::transactions::begin;
use crate::support::{LONG, any_job, job, number, this_job, try_claim, try_take};

const ATTEMPTS_2: ClaimTerms = ClaimTerms { attempts_max: Some(2), ..LONG };

fn space() -> Journalled {
    Journalled::new(8 << 20)
}

fn jobs(space: &Journalled, numbers: impl IntoIterator<Item = i64>) {
    numbers.into_iter().for_each(|number| space.engine.put(&job(number)).unwrap());
}

/// Runs `act`, and says how many records it has made.
fn records_of(space: &Journalled, act: impl FnOnce(&Arc<Engine>)) -> usize {
    let before = space.verify().records.len();
    act(&space.engine);
    space.verify().records.len() - before
}

#[test]
fn a_put_and_its_take_are_told_in_order_c4() {
    let space = space();
    assert_eq!(space.engine.journal_position(), 0);
    space.engine.put(&job(1)).unwrap();
    let put = space.engine.journal_position();
    space.engine.put(&job(2)).unwrap();
    assert_eq!(try_take(&space.engine, &any_job()), Some(1));
    let taken = space.engine.journal_position();
    assert!(0 < put && put < taken);
    let replay = space.verify();
    assert_eq!(replay.records.len(), 3);
    assert_eq!(replay.records.first(), Some(&put));
    assert_eq!(replay.records.last(), Some(&taken));
    assert_eq!(replay.tuples.len(), 1);
    assert_eq!(try_take(&space.engine, &this_job(7)), None);
    assert_eq!(space.engine.journal_position(), taken, "nothing changed");
}

#[test]
fn a_step_over_many_is_one_record_c4() {
    let space = space();
    let fields: Vec<[Field<'_>; 2]> = (0..500).map(job).collect();
    let tuples: Vec<&[Field<'_>]> = fields.iter().map(<[Field<'_>; 2]>::as_slice).collect();
    let any = any_job();
    let template = [TemplateRef::new(&any)];
    assert_eq!(records_of(&space, |engine| assert_eq!(engine.put_all(&tuples), Ok(500))), 1);
    let swap = |engine: &Arc<Engine>| {
        let old = engine.try_swap(&template, &job(1000), number).unwrap();
        assert_eq!(old, Some(0));
        assert!(!engine.put_if_absent(&job(1), &template).unwrap());
    };
    assert_eq!(records_of(&space, swap), 1);
    let take = |engine: &Arc<Engine>| {
        assert_eq!(engine.take_all(&template, Some(400), number).unwrap().len(), 400);
    };
    assert_eq!(records_of(&space, take), 1);
    assert_eq!(space.verify().tuples.len(), 100);
}

#[test]
fn what_is_handed_over_is_told_by_the_put_and_by_the_take_that_picks_it_up_c4() {
    let space = space();
    let any = any_job();
    let template = [TemplateRef::new(&any)];
    let waiter = space.engine.waiter(&template, Want::Take).unwrap();
    let reader = space.engine.waiter(&template, Want::Read).unwrap();
    assert_eq!(records_of(&space, |engine| engine.put(&job(1)).unwrap()), 1);
    assert_eq!(space.verify().tuples.len(), 1, "it is in the waiter's hands");
    let pick_up = |_: &Arc<Engine>| {
        assert_eq!(reader.finish(number), Ok(1));
        assert_eq!(waiter.finish(number), Ok(1));
    };
    assert_eq!(records_of(&space, pick_up), 1);
    let given_up = space.engine.waiter(&template, Want::Take).unwrap();
    space.engine.put(&job(2)).unwrap();
    assert_eq!(records_of(&space, |_| drop(given_up)), 0, "it is back");
    let waiter = space.engine.waiter(&template, Want::Take).unwrap();
    assert_eq!(records_of(&space, |_| assert_eq!(waiter.finish(number), Ok(2))), 1);
    assert!(space.verify().tuples.is_empty());
}

#[test]
fn a_claim_is_no_removal_and_what_ends_it_is_told_k2_k5_c4() {
    let space = space();
    jobs(&space, [1, 2]);
    let claim = |terms: &ClaimTerms| try_claim(&space.engine, &any_job(), terms).unwrap().0;
    let first = claim(&LONG);
    assert_eq!(space.verify().tuples.len(), 2);
    let finish = |_: &Arc<Engine>| first.done(&[TupleRef::from(&job(3))]).unwrap();
    assert_eq!(records_of(&space, finish), 1, "with what it puts");
    assert_eq!(records_of(&space, |_| drop(claim(&ATTEMPTS_2))), 1);
    assert_eq!(records_of(&space, |_| claim(&ATTEMPTS_2).give_back().unwrap()), 0);
    assert_eq!(records_of(&space, |_| claim(&ATTEMPTS_2).abort("no disk").unwrap()), 1);
    let replay = space.verify();
    let (kept, _) = replay.tuples.values().next().unwrap();
    assert!(kept.attempts.is_dead && kept.attempts.failed == 2, "{kept:?}");
    assert_eq!(kept.attempts.reasons.last().unwrap().reason, "no disk");
    let any = any_job();
    let requeue =
        |engine: &Arc<Engine>| assert_eq!(engine.requeue(&[TemplateRef::new(&any)]), Ok(1));
    assert_eq!(records_of(&space, requeue), 1);
    assert_eq!(records_of(&space, |_| claim(&LONG).done(&[]).unwrap()), 1);
    assert_eq!(space.verify().tuples.len(), 1);
}

#[test]
fn leases_are_told_with_their_ends_l1_l2_l3_c4() {
    let space = space();
    let terms = |lease_ms: Option<u64>, after_ms: Option<u64>| LeaseTerms {
        lease: lease_ms.map(Duration::from_millis),
        after: after_ms.map(Duration::from_millis),
    };
    let engine = &space.engine;
    let long = engine.put_leased(&job(1), &terms(Some(3_600_000), None)).unwrap();
    engine.put_leased(&job(2), &terms(Some(1), None)).unwrap();
    let hidden = engine.put_leased(&job(3), &terms(Some(3_600_000), Some(7_200_000))).unwrap();
    engine.put_leased(&job(4), &terms(None, Some(1))).unwrap();
    engine.put_leased(&job(5), &terms(Some(1), Some(1))).unwrap();
    let replay = space.replay();
    let hidden_terms = replay.tuples.values().nth(2).unwrap().0.terms;
    let (from, until) = (hidden_terms.hidden_until_ns.unwrap(), hidden_terms.ends_at_ns.unwrap());
    assert!((until - from).abs_diff(3_600_000_000_000) < 10_000_000);
    engine.renew(&long, Some(Duration::from_secs(7200))).unwrap();
    engine.renew(&hidden, None).unwrap();
    let over = Instant::now() + Duration::from_secs(60);
    let any = any_job();
    let template = [TemplateRef::new(&any)];
    while engine.count(&template).unwrap() != 2 || space.replay().tuples.len() != 3 {
        assert!(Instant::now() < over, "what is due happens");
        thread::sleep(Duration::from_millis(1));
    }
    space.verify();
    engine.cancel(&hidden).unwrap();
    engine.cancel(&long).unwrap();
    assert_eq!(space.verify().tuples.len(), 1);
    assert_eq!(try_take(engine, &any_job()), Some(4));
    assert!(space.verify().tuples.is_empty());
}

#[test]
fn a_transaction_is_told_when_it_commits_as_one_record_x1_c4() {
    let space = space();
    jobs(&space, [1, 2, 3]);
    let any = any_job();
    let template = [TemplateRef::new(&any)];
    let mut transaction = begin(&space.engine);
    let work = |_: &Arc<Engine>| {
        transaction.put(0, &job(4)).unwrap();
        transaction.put(0, &[Field::Str("other")]).unwrap();
        assert_eq!(transaction.try_take(0, &template, Order::Fifo, number), Ok(Some(1)));
        assert_eq!(transaction.try_read(0, &template, Order::Fifo, number), Ok(Some(2)));
    };
    assert_eq!(records_of(&space, work), 0);
    let before = space.verify().tuples.len();
    assert_eq!(before, 3, "what it took is there until it commits");
    assert_eq!(records_of(&space, |_| transaction.commit().unwrap()), 1);
    assert_eq!(space.verify().tuples.len(), 4);
    let mut aborted = begin(&space.engine);
    aborted.try_take(0, &template, Order::Fifo, number).unwrap().unwrap();
    assert_eq!(records_of(&space, |_| aborted.abort().unwrap()), 0);
}

#[test]
fn a_move_between_two_journalled_spaces_is_told_in_both_o7_c4() {
    let (from, into) = (space(), space());
    jobs(&from, 0..10);
    let any = any_job();
    let template = [TemplateRef::new(&any)];
    assert_eq!(from.engine.copy_to(&into.engine, &template), Ok(10));
    assert_eq!(from.engine.move_to(&into.engine, &template), Ok(10));
    assert!(from.verify().tuples.is_empty());
    assert_eq!(into.verify().tuples.len(), 20);
    assert_eq!((from.verify().records.len(), into.verify().records.len()), (11, 2));
    // The copy is a step of one space, and the move of both.
    let number = |space: &Journalled| u128::from_be_bytes(space.engine.segment().identity().uuid);
    assert_eq!(from.verify().shared, [number(&into)]);
    assert_eq!(into.verify().shared, [number(&from)]);
}

#[test]
fn what_is_dropped_for_others_is_told_b1_c4() {
    let limits =
        Limits { size_bytes: 8 << 20, tuples_max: Some(3), when_full: WhenFull::DropOldest };
    let space = Journalled::with(&limits);
    jobs(&space, 0..10);
    assert_eq!(space.verify().tuples.len(), 3);
}

#[test]
fn large_tuples_are_told_and_too_large_ones_refused_with_the_limit_c4() {
    let space = space();
    let bytes = vec![7; 200_000];
    for number in 0..20 {
        space.engine.put(&[Field::Int(number), Field::Bytes(&bytes)]).unwrap();
    }
    assert_eq!(space.verify().tuples.len(), 20);
    let bytes = vec![7; 1 << 20];
    let refused = space.engine.put(&[Field::Int(0), Field::Bytes(&bytes)]);
    assert!(matches!(refused, Err(Error::LimitExceeded { limit: 786_432, .. })), "{refused:?}");
    assert_eq!(space.verify().tuples.len(), 20);
}

#[test]
fn a_full_ring_that_nobody_drains_refuses_puts_and_leaves_room_for_takes_c4() {
    let limits = Limits { size_bytes: 8 << 20, ..Limits::default() };
    let engine = bare(&limits, 1 << 20);
    let mut count = 0;
    let error = loop {
        match engine.put(&job(count)) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::JournalFull { journal_bytes: 1_048_576, .. }), "{error:?}");
    for number in 0..100 {
        assert_eq!(try_take(&engine, &any_job()), Some(number), "there is room for takes");
    }
    assert!(matches!(engine.put(&job(count)), Err(Error::JournalFull { .. })));
    let mut replay = Replay::default();
    replay.drain(&engine);
    replay.assert_is_in(&engine);
    engine.put(&job(count)).unwrap();
    replay.drain(&engine);
    replay.assert_is_in(&engine);
    engine.check().unwrap();
}

#[test]
fn what_was_visited_is_visited_again_until_it_is_released_c4() {
    let space = space();
    jobs(&space, 0..3);
    let visit = |bytes_max: u64| {
        let drain = space.engine.try_drain().unwrap().unwrap();
        let mut seen = Vec::new();
        let end = drain.each(bytes_max, |position, _| {
            seen.push(position);
            Ok::<_, Error>(())
        });
        (end.unwrap(), seen)
    };
    let (end, seen) = visit(u64::MAX);
    assert_eq!((seen.len(), seen.last()), (3, Some(&end)));
    assert_eq!(visit(u64::MAX), (end, seen.clone()));
    assert_eq!(visit(1), (seen[0], vec![seen[0]]), "one at least");
    let drain = space.engine.try_drain().unwrap().unwrap();
    assert!(thread::scope(|scope| scope
        .spawn(|| space.engine.try_drain().unwrap().is_none())
        .join()
        .unwrap()));
    let waits = |position, for_ms| {
        let until = Instant::now() + Duration::from_millis(for_ms);
        space.engine.wait_drained(position, space.engine.releases(), until)
    };
    assert!(!waits(seen[0], 0));
    drain.release(seen[0]).unwrap();
    assert!(waits(seen[0], 0) && !waits(seen[1], 1));
    assert!(drain.release(end + 8).is_err());
    thread::scope(|scope| {
        let waiter = scope.spawn(|| waits(end, 60_000));
        drain.release(end).unwrap();
        assert!(waiter.join().unwrap());
    });
    assert_eq!(space.engine.journal_stat().unwrap().drained, end);
    // A thread whose record came too late is woken when the right is free.
    let (before, space_engine) = (space.engine.releases(), &space.engine);
    thread::scope(|scope| {
        let until = Instant::now() + Duration::from_secs(60);
        let waiter = scope.spawn(move || {
            let is_covered = space_engine.wait_drained(end + 8, before, until);
            (is_covered, space_engine.try_drain().unwrap().is_some())
        });
        drop(drain);
        assert_eq!(waiter.join().unwrap(), (false, true));
    });
}

#[test]
fn a_space_is_restored_as_it_was_and_goes_on_with_its_ids_c4() {
    let space = space();
    jobs(&space, 0..5);
    let terms = LeaseTerms { lease: Some(Duration::from_secs(3600)), after: None };
    space.engine.put_leased(&job(5), &terms).unwrap();
    let later = LeaseTerms { after: Some(Duration::from_secs(7200)), ..terms };
    space.engine.put_leased(&job(6), &later).unwrap();
    let claim = || try_claim(&space.engine, &any_job(), &ATTEMPTS_2).unwrap().0;
    claim().abort("one").unwrap();
    claim().abort("two").unwrap();
    claim().abort("three").unwrap();
    let held = claim();
    let replay = space.verify();
    let again = replay.restored(8 << 20);
    again.check().unwrap();
    replay.assert_is_in(&again);
    assert_eq!(again.journal_stat().unwrap().appended, 0, "what is restored is not told again");
    let any = any_job();
    let template = [TemplateRef::new(&any)];
    assert_eq!(again.read_all(&template, None, number), Ok(vec![1, 2, 3, 4, 5]));
    let letters = again.dead(&template, |tuple, letter| Ok::<_, Error>((number(tuple)?, letter)));
    assert_eq!(letters.unwrap()[0].1.reasons[1].reason, "two");
    let (next_id, fence) = again.next_numbers();
    assert!(fence >= 1 << 40 && next_id > *replay.tuples.keys().next_back().unwrap());
    again.put(&job(9)).unwrap();
    let mut after = replay.clone();
    after.records.clear();
    after.drain(&again);
    after.assert_is_in(&again);
    let over = Kept {
        terms: tupelo_engine::KeptTerms { ends_at_ns: Some(1), ..Default::default() },
        ..Kept::default()
    };
    assert_eq!(again.restore(&over, &job(1)), Ok(false));
    drop(held);
}

fn request(number: u64) -> RequestKey {
    RequestKey { key: 9 << 64 | u128::from(number), who: 3, answer: number + 1 }
}

#[test]
fn what_a_keyed_put_is_answered_is_told_with_it_where_keys_are_kept_c3_c4() {
    let space = space();
    keyed(request(1), || space.engine.put(&job(1))).unwrap();
    assert_eq!(space.verify().answered, [], "nobody keeps keys");
    assert_eq!(space.engine.keep_keys(), Ok(true));
    let put = |engine: &Arc<Engine>| keyed(request(2), || engine.put(&job(2))).unwrap();
    assert_eq!(records_of(&space, put), 1, "in one record");
    keyed(request(3), || assert_eq!(try_take(&space.engine, &any_job()), Some(1)));
    jobs(&space, [3]);
    let (one, two) = (job(4), job(5));
    keyed(request(4), || space.engine.put_all(&[&one[..], &two])).unwrap();
    assert_eq!(space.verify().answered, [request(2), request(4)], "of a take nothing is told");
    let is_known = |number| space.engine.answer_to(request(number).key, 3).unwrap();
    assert_eq!([1, 2, 3, 4].map(is_known), [None, Some(3), None, Some(5)]);
}

#[test]
fn the_newest_answers_of_an_earlier_life_are_known_until_servers_take_their_places_c3() {
    let engine = bare(&Limits { size_bytes: 8 << 20, ..Limits::default() }, 1 << 20);
    let kept = ANSWERS_RESTORED_MAX as u64;
    let answered: Vec<_> = (0..kept + 10).map(request).collect();
    engine.restore_keys(&answered).unwrap();
    engine.restored(1, 0);
    let is_known = |number: u64| engine.answer_to(request(number).key, 3).unwrap().is_some();
    let known = |numbers: [u64; 3]| numbers.map(is_known);
    assert_eq!(known([9, 10, kept + 9]), [false, true, true]);
    assert!((10..kept + 10).all(is_known));
    assert_eq!(engine.keep_keys(), Ok(true));
    keyed(request(kept + 10), || engine.put(&job(1))).unwrap();
    assert_eq!(
        known([10, kept + 9, kept + 10]),
        [true; 3],
        "the first server has a ring of its own"
    );
    engine.check().unwrap();
}
