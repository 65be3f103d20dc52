//! Subscriptions on one engine (rules N1 to N3).

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::support::{LONG, any_job, count, engine, job, number, this_job, try_claim, try_take};
use EventKind::{Expire, Put, Return, Take};
use tupelo_engine::{
    ClaimTerms, EVENTS_MAX, Engine, Error, EventKind, LeaseTerms, Order, SubscribeTerms,
    Subscription, Transaction, Want,
};
use tupelo_tuple::{Condition, Field, Kind, KindSet, PatternRef, TemplateRef};

const ANY: PatternRef<'static> = PatternRef::Kinds(KindSet::ALL);

fn subscribe(engine: &Arc<Engine>, patterns: &[PatternRef<'_>], buffer: usize) -> Subscription {
    let terms = SubscribeTerms::new(EventKind::ALL, buffer);
    engine.subscribe(&[TemplateRef::new(patterns)], &terms).unwrap()
}

/// What waits: kind, number of the job, sequence number, missed.
type Heard = (EventKind, i64, u64, u64);

fn next(subscription: &Subscription) -> Option<Heard> {
    let keep = |event: tupelo_engine::Event<'_>| {
        Ok::<_, Error>((event.kind, number(event.tuple)?, event.sequence, event.missed))
    };
    subscription.try_next(keep).unwrap()
}

/// All that waits, without the numbers, which must have no gaps.
fn heard(subscription: &Subscription) -> Vec<(EventKind, i64)> {
    let mut before = None;
    let events = std::iter::from_fn(|| next(subscription)).map(|(kind, job, sequence, missed)| {
        assert_eq!(missed, 0);
        assert!(before.replace(sequence).is_none_or(|before| before + 1 == sequence));
        (kind, job)
    });
    events.collect()
}

fn put_all(engine: &Engine, numbers: impl Iterator<Item = i64>) {
    let jobs: Vec<_> = numbers.map(job).collect();
    engine.put_all(&jobs.iter().collect::<Vec<_>>()).unwrap();
}

/// A subscription to jobs that selects one shape, and one that does not.
fn both(engine: &Arc<Engine>) -> [Subscription; 2] {
    [&any_job(), &[PatternRef::Actual(Field::Str("job")), ANY]]
        .map(|patterns| subscribe(engine, patterns, 100))
}

fn both_heard(subscriptions: &[Subscription; 2], events: &[(EventKind, i64)]) {
    for subscription in subscriptions {
        assert_eq!(heard(subscription), events);
    }
}

fn lease(ms: u64) -> LeaseTerms {
    LeaseTerms { lease: Some(Duration::from_millis(ms)), after: None }
}

#[test]
fn puts_past_a_waiter_for_another_tuple_are_heard_by_whom_they_concern_n1() {
    let engine = engine(16 << 20);
    let [narrow, wide] = both(&engine);
    let of_one = subscribe(&engine, &this_job(1), 100);
    let waiter = engine.waiter(&[TemplateRef::new(&this_job(7))], Want::Take).unwrap();
    engine.put(&job(1)).unwrap();
    engine.put(&job(2)).unwrap();
    both_heard(&[narrow, wide], &[(Put, 1), (Put, 2)]);
    assert_eq!(heard(&of_one), [(Put, 1)]);
    assert_eq!(
        (try_take(&engine, &this_job(1)), try_take(&engine, &this_job(2))),
        (Some(1), Some(2))
    );
    waiter.give_up().unwrap();
}

#[test]
fn puts_and_takes_are_heard_in_their_order_n1_n3() {
    let engine = engine(16 << 20);
    engine.put(&job(0)).unwrap();
    let subscriptions = both(&engine);
    engine.put(&job(1)).unwrap();
    engine.put(&[Field::Str("other"), Field::Int(9)]).unwrap();
    put_all(&engine, 2..=3);
    assert_eq!(try_take(&engine, &this_job(2)), Some(2));
    assert_eq!(try_take(&engine, &any_job()), Some(0));
    engine.check().unwrap();
    let events = [(Put, 1), (Put, 2), (Put, 3), (Take, 2), (Take, 0)];
    both_heard(&subscriptions, &events);
    both_heard(&subscriptions, &[]);
    drop(subscriptions);
    engine.put(&job(4)).unwrap();
    assert_eq!(engine.check().unwrap().subscriptions, 0);
    assert_eq!(engine.stat().unwrap().subscriptions, []);
}

#[test]
fn only_what_was_asked_for_is_heard_n1() {
    let engine = engine(16 << 20);
    for (kinds, expected) in [
        (vec![Put], vec![(Put, 1), (Put, 2)]),
        (vec![Take], vec![(Take, 1)]),
        (vec![Expire], vec![]),
        (vec![Take, Put], vec![(Put, 1), (Put, 2), (Take, 1)]),
    ] {
        let terms = SubscribeTerms::new(kinds, 8);
        let subscription = engine.subscribe(&[TemplateRef::new(&any_job())], &terms).unwrap();
        put_all(&engine, 1..=2);
        assert_eq!(try_take(&engine, &any_job()), Some(1));
        assert_eq!(heard(&subscription), expected);
        engine.check().unwrap();
        drop(subscription);
        assert_eq!(try_take(&engine, &any_job()), Some(2));
    }
}

#[test]
fn the_oldest_are_dropped_and_counted_n2() {
    for buffer in [1, 2, 3, 4] {
        let engine = engine(16 << 20);
        let subscription = subscribe(&engine, &any_job(), buffer);
        for number in 1..=10 {
            engine.put(&job(number)).unwrap();
            engine.check().unwrap();
        }
        put_all(&engine, 11..=20);
        engine.check().unwrap();
        let first = 21 - buffer as u64;
        let mut missed = first - 1;
        for sequence in first..=20 {
            let number = i64::try_from(sequence).unwrap();
            assert_eq!(next(&subscription), Some((Put, number, sequence, missed)));
            missed = 0;
        }
        assert_eq!(next(&subscription), None);
        engine.put(&job(21)).unwrap();
        assert_eq!(next(&subscription), Some((Put, 21, 21, 0)));
        let stat = engine.stat().unwrap().subscriptions;
        assert_eq!((stat[0].events, stat[0].dropped, stat[0].waiting), (21, first - 1, 0));
    }
}

#[test]
fn a_ring_that_is_short_of_bytes_keeps_the_newest_n2() {
    let engine = engine(16 << 20);
    let subscription = subscribe(&engine, &[ANY, ANY], 10_000);
    // One event, as large as the largest tuple here.
    let terms = SubscribeTerms::new(EventKind::ALL, 1).with_bytes(Some(64 << 10));
    let blobs = [PatternRef::Actual(Field::Str("blob")), ANY];
    let many = engine.subscribe(&[TemplateRef::new(&blobs)], &terms).unwrap();
    let mut rounds = 0;
    let mut before = 0;
    for size in (0..1_200).step_by(7).cycle().take(3_000) {
        let bytes = vec![7; size * 50];
        engine.put(&[Field::Str("blob"), Field::Bytes(&bytes)]).unwrap();
        let patterns = [PatternRef::Actual(Field::Str("blob")), ANY];
        let taken = engine.try_take(&[TemplateRef::new(&patterns)], Order::Fifo, |tuple| {
            Ok::<_, Error>(tuple.image().len())
        });
        assert!(taken.unwrap().is_some());
        rounds += 1;
        if rounds % 97 == 0 {
            engine.check().unwrap();
            let event = subscription.try_next(|event| {
                assert_eq!(event.sequence, before + 1 + event.missed);
                Ok::<_, Error>(event.sequence)
            });
            before = event.unwrap().unwrap();
        }
    }
    let mut last = before;
    while let Some(sequence) =
        subscription.try_next(|event| Ok::<_, Error>((event.sequence, event.missed))).unwrap()
    {
        assert_eq!(sequence.0, last + 1 + sequence.1);
        last = sequence.0;
    }
    assert_eq!(last, 6_000, "the newest is there");
    let waiting = many.try_next(|event| Ok::<_, Error>((event.kind, event.sequence))).unwrap();
    assert_eq!(waiting, Some((Take, 6_000)));
    engine.check().unwrap();
}

#[test]
fn more_in_one_step_than_a_ring_has_bytes_for_keeps_the_newest_n2() {
    let engine = engine(64 << 20);
    let subscription = subscribe(&engine, &any_job(), 2_000);
    engine.put(&job(0)).unwrap();
    put_all(&engine, 1..=40_000);
    engine.check().unwrap();
    let first = next(&subscription).unwrap();
    assert_eq!(first, (Put, 38_001, 38_002, 38_001));
    let last = std::iter::from_fn(|| next(&subscription)).last();
    assert_eq!(last, Some((Put, 40_000, 40_001, 0)));
}

#[test]
fn a_tuple_that_is_larger_than_the_buffer_is_said_to_be_missed_n2() {
    let engine = engine(64 << 20);
    let patterns = [PatternRef::Actual(Field::Str("blob")), crate::support::any(Kind::Bytes)];
    let subscription = subscribe(&engine, &patterns, 4);
    let large = vec![1; 100_000];
    engine.put(&[Field::Str("blob"), Field::Bytes(&large)]).unwrap();
    assert!(subscription.wait(Some(Duration::ZERO)).unwrap());
    let refused = subscription.try_next(|_| Ok::<_, Error>(())).unwrap_err();
    let Error::EventTooLarge { bytes: 100_024.., max_bytes: 16_384, enough_bytes } = refused else {
        panic!("{refused:?}")
    };
    engine.put(&[Field::Str("blob"), Field::Bytes(&[])]).unwrap();
    let seen = subscription.try_next(|event| Ok::<_, Error>((event.sequence, event.missed)));
    assert_eq!(seen.unwrap(), Some((2, 1)));
    let terms = SubscribeTerms::new([Put], 4).with_bytes(Some(1 << 20));
    let enough = terms.with_bytes(Some(usize::try_from(enough_bytes).unwrap()));
    let roomy = [terms, enough]
        .map(|terms| engine.subscribe(&[TemplateRef::new(&patterns)], &terms).unwrap());
    engine.put(&[Field::Str("blob"), Field::Bytes(&large)]).unwrap();
    for roomy in &roomy {
        assert!(roomy.try_next(|event| Ok::<_, Error>(event.sequence)).unwrap().is_some());
    }
    engine.check().unwrap();
}

#[test]
fn a_put_that_is_handed_over_is_heard_and_the_take_when_it_is_final_n1_t5() {
    let engine = engine(16 << 20);
    let subscriptions = both(&engine);
    let patterns = any_job();
    let waiter = || engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
    let first = waiter();
    engine.put(&job(1)).unwrap();
    both_heard(&subscriptions, &[(Put, 1)]);
    assert_eq!(first.finish(number).unwrap(), 1);
    both_heard(&subscriptions, &[(Take, 1)]);
    let second = waiter();
    engine.put(&job(2)).unwrap();
    // A call that gives up had no effect.
    drop(second);
    both_heard(&subscriptions, &[(Put, 2)]);
    let refused = engine.try_take(&[TemplateRef::new(&patterns)], Order::Fifo, |_| {
        Err::<(), _>(Error::LeaseExpired)
    });
    assert_eq!(refused.unwrap_err(), Error::LeaseExpired);
    both_heard(&subscriptions, &[]);
    engine.check().unwrap();
}

#[test]
fn a_claim_is_heard_when_it_ends_n1_k2_k5() {
    let engine = engine(16 << 20);
    let subscriptions = both(&engine);
    engine.put(&job(1)).unwrap();
    let claim = || try_claim(&engine, &any_job(), &LONG).unwrap().0;
    claim().abort("no").unwrap();
    both_heard(&subscriptions, &[(Put, 1), (Return, 1)]);
    let done = claim();
    done.done(&[(&job(2)).into()]).unwrap();
    both_heard(&subscriptions, &[(Take, 1), (Put, 2)]);
    let once = ClaimTerms { attempts_max: Some(1), ..LONG };
    let (last, _) = try_claim(&engine, &any_job(), &once).unwrap();
    last.abort("no disk").unwrap();
    both_heard(&subscriptions, &[(Expire, 2)]);
    assert_eq!(engine.requeue(&[TemplateRef::new(&any_job())]).unwrap(), 1);
    both_heard(&subscriptions, &[(Put, 2)]);
    let brief = ClaimTerms { ttl: Duration::from_millis(1), attempts_max: None };
    let silent = try_claim(&engine, &any_job(), &brief).unwrap();
    thread::sleep(Duration::from_millis(3));
    assert_eq!(count(&engine), 1);
    both_heard(&subscriptions, &[(Return, 2)]);
    drop(silent);
    engine.check().unwrap();
}

#[test]
fn leases_are_heard_when_they_end_and_delays_when_they_are_over_n1_l1_l3() {
    let engine = engine(16 << 20);
    let subscriptions = both(&engine);
    engine.put_leased(&job(1), &lease(1)).unwrap();
    let cancelled = engine.put_leased(&job(2), &lease(3_600_000)).unwrap();
    engine.cancel(&cancelled).unwrap();
    thread::sleep(Duration::from_millis(3));
    // Nobody comes by: who listens sees to it.
    let events = heard(&subscriptions[0]);
    assert_eq!(events[..2], [(Put, 1), (Put, 2)]);
    let mut ends = events[2..].to_vec();
    ends.sort_unstable();
    assert_eq!(ends, [(Expire, 1), (Expire, 2)]);
    assert_eq!(heard(&subscriptions[1]), events);
    let after = |ms, lease| LeaseTerms { after: Some(Duration::from_millis(ms)), lease };
    engine.put_leased(&job(3), &after(1, Some(Duration::from_millis(1)))).unwrap();
    let never = engine.put_leased(&job(4), &after(3_600_000, None)).unwrap();
    both_heard(&subscriptions, &[]);
    engine.cancel(&never).unwrap();
    thread::sleep(Duration::from_millis(5));
    both_heard(&subscriptions, &[(Put, 3), (Expire, 3)]);
    engine.check().unwrap();
}

#[test]
fn what_was_due_before_a_take_ended_is_heard_before_it_n3_l3() {
    let engine = engine(16 << 20);
    let subscriptions = both(&engine);
    let patterns = any_job();
    let waiter = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
    engine.put(&job(1)).unwrap();
    let soon = LeaseTerms { after: Some(Duration::from_millis(1)), lease: None };
    engine.put_leased(&job(2), &soon).unwrap();
    thread::sleep(Duration::from_millis(3));
    assert_eq!(waiter.finish(number).unwrap(), 1);
    both_heard(&subscriptions, &[(Put, 1), (Put, 2), (Take, 1)]);
    engine.check().unwrap();
}

#[test]
fn swaps_and_transfers_are_takes_and_puts_n1_o7_o8() {
    let (engine, other) = (engine(16 << 20), crate::support::engine(16 << 20));
    let (subscriptions, there) = (both(&engine), both(&other));
    let patterns = any_job();
    let template = [TemplateRef::new(&patterns)];
    engine.put(&job(1)).unwrap();
    assert_eq!(engine.try_swap(&template, &job(2), number).unwrap(), Some(1));
    both_heard(&subscriptions, &[(Put, 1), (Take, 1), (Put, 2)]);
    engine.move_to(&other, &template).unwrap();
    both_heard(&subscriptions, &[(Take, 2)]);
    other.copy_to(&engine, &template).unwrap();
    both_heard(&subscriptions, &[(Put, 2)]);
    both_heard(&there, &[(Put, 2)]);
    assert_eq!(engine.take_all(&template, None, number).unwrap(), [2]);
    both_heard(&subscriptions, &[(Take, 2)]);
    engine.check().unwrap();
    other.check().unwrap();
}

#[test]
fn a_transaction_is_heard_when_it_commits_x7() {
    let engine = engine(16 << 20);
    let subscriptions = both(&engine);
    engine.put(&job(1)).unwrap();
    both_heard(&subscriptions, &[(Put, 1)]);
    let begin = || Transaction::begin(vec![Arc::clone(&engine)], LONG.ttl).unwrap();
    let patterns = any_job();
    let take = |transaction: &mut Transaction| {
        let template = [TemplateRef::new(&patterns)];
        transaction.try_take(0, &template, Order::Fifo, number).unwrap()
    };
    let mut transaction = begin();
    assert_eq!(take(&mut transaction), Some(1));
    transaction.put(0, &job(2)).unwrap();
    transaction.put(0, &job(3)).unwrap();
    assert_eq!(take(&mut transaction), Some(2), "which nobody else ever hears of");
    both_heard(&subscriptions, &[]);
    transaction.commit().unwrap();
    both_heard(&subscriptions, &[(Take, 1), (Put, 3)]);
    let mut aborted = begin();
    assert_eq!(take(&mut aborted), Some(3));
    aborted.put(0, &job(4)).unwrap();
    aborted.abort().unwrap();
    both_heard(&subscriptions, &[(Return, 3)]);
    let mut reads = begin();
    let template = [TemplateRef::new(&patterns)];
    assert_eq!(reads.try_read(0, &template, Order::Fifo, number).unwrap(), Some(3));
    reads.commit().unwrap();
    both_heard(&subscriptions, &[]);
    engine.check().unwrap();
}

#[test]
fn a_sleeping_subscriber_is_woken_t6() {
    let engine = engine(16 << 20);
    for subscription in both(&engine) {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(2));
                engine.put(&job(1)).unwrap();
                engine.put_leased(&job(2), &lease(2)).unwrap();
            });
            let mut events = Vec::new();
            while events.len() < 3 {
                subscription.wait(None).unwrap();
                events.extend(next(&subscription).map(|(kind, number, ..)| (kind, number)));
            }
            assert_eq!(events, [(Put, 1), (Put, 2), (Expire, 2)]);
        });
        assert_eq!(try_take(&engine, &any_job()), Some(1));
        assert!(!subscription.wait(Some(Duration::ZERO)).unwrap() || next(&subscription).is_some());
    }
}

#[test]
fn a_full_space_takes_no_subscription_and_no_put_is_refused_for_one_n2_b1() {
    let engine = engine(2 << 20);
    let subscription = subscribe(&engine, &any_job(), 4);
    let large = SubscribeTerms::new([Put], 4).with_bytes(Some(8 << 20));
    let patterns = any_job();
    let template = [TemplateRef::new(&patterns)];
    assert!(matches!(engine.subscribe(&template, &large), Err(Error::SpaceFull(_))));
    let mut puts = 0;
    while engine.put(&job(puts)).is_ok() {
        puts += 1;
    }
    let last = std::iter::from_fn(|| next(&subscription)).last();
    assert_eq!(last.map(|(_, number, ..)| number), Some(puts - 1));
    assert_eq!(
        engine.take_all(&template, None, number).unwrap().len(),
        usize::try_from(puts).unwrap()
    );
    engine.check().unwrap();
    let report = engine.check().unwrap();
    assert_eq!((report.subscriptions, report.waiters), (1, 0));
}

#[test]
fn many_subscriptions_to_one_tuple_each_hear_of_it_b2() {
    let engine = engine(64 << 20);
    let all: Vec<_> = (0..200).map(|_| subscribe(&engine, &any_job(), 4)).collect();
    engine.put(&job(1)).unwrap();
    assert_eq!(try_take(&engine, &any_job()), Some(1));
    engine.check().unwrap();
    assert!(all.iter().all(|one| heard(one) == [(Put, 1), (Take, 1)]));
    assert_eq!(engine.stat().unwrap().subscriptions.len(), 200);
    drop(all);
    engine.check().unwrap();
    let too_many = SubscribeTerms::new([Put], EVENTS_MAX + 1);
    let refused = engine.subscribe(&[TemplateRef::new(&any_job())], &too_many);
    assert!(matches!(refused, Err(Error::LimitExceeded { limit: EVENTS_MAX, .. })));
}

/// There are more sets of fixed fields than a shape files by, so many templates are compared with what they do not match.
#[test]
fn of_many_templates_each_hears_what_is_equal_in_the_fields_that_it_fixes_n1_m2() {
    let engine = engine(64 << 20);
    let ones = [
        Field::Int(1),
        Field::Bool(true),
        Field::Str("more than a word"),
        Field::Bytes(b"bytes"),
        Field::Float(0.5),
        Field::Null,
    ];
    let others = [
        Field::Int(-1),
        Field::Bool(false),
        Field::Str("more than a wore"),
        Field::Bytes(b"bytes\0"),
        Field::Float(-0.5),
        Field::Null,
    ];
    let subscriptions: Vec<Subscription> = (0..64)
        .map(|fixed: u32| {
            let pattern = |(index, field): (usize, &Field<'static>)| match fixed >> index & 1 {
                1 => PatternRef::Actual(*field),
                _ => PatternRef::Kinds(KindSet::of(field.kind())),
            };
            let patterns: Vec<PatternRef<'_>> = ones.iter().enumerate().map(pattern).collect();
            subscribe(&engine, &patterns, 100)
        })
        .collect();
    for different in 0..32 {
        let field = |index: usize| [ones, others][different >> index & 1][index];
        engine.put(&[field(0), field(1), field(2), field(3), field(4), field(5)]).unwrap();
    }
    for (fixed, subscription) in subscriptions.iter().enumerate() {
        let heard = std::iter::from_fn(|| next_kind(subscription)).count();
        let expected = (0..32).filter(|different| different & fixed == 0).count();
        assert_eq!(heard, expected, "fixed fields {fixed:b}");
    }
}

fn next_kind(subscription: &Subscription) -> Option<EventKind> {
    subscription.try_next(|event| Ok::<_, Error>(event.kind)).unwrap()
}

#[test]
fn a_wide_subscription_hears_of_shapes_that_come_later_in_one_order_n1() {
    let engine = engine(16 << 20);
    let subscription = subscribe(&engine, &[PatternRef::Actual(Field::Str("job")), ANY], 100);
    engine.put(&[Field::Str("job"), Field::Bool(true)]).unwrap();
    engine.put(&[Field::Str("job"), Field::Float(0.5)]).unwrap();
    engine.put(&[Field::Str("job"), Field::Bool(false)]).unwrap();
    engine.put(&[Field::Int(1), Field::Float(0.5)]).unwrap();
    let keep = |event: tupelo_engine::Event<'_>| Ok::<_, Error>(event.tuple.to_tuple().unwrap());
    let events = std::iter::from_fn(|| subscription.try_next(keep).unwrap());
    let events: Vec<String> = events.map(|tuple| tuple.to_string()).collect();
    assert_eq!(events, [r#"("job", true)"#, r#"("job", 0.5)"#, r#"("job", false)"#]);
}

#[test]
fn a_subscriber_that_only_looks_leaves_the_time_to_who_waits_t6() {
    let engine = engine(16 << 20);
    let subscription = subscribe(&engine, &any_job(), 100);
    let lease = LeaseTerms { lease: Some(Duration::from_millis(1)), after: None };
    engine.put_leased(&job(1), &lease).unwrap();
    // Nobody else lets the lease end.
    while next(&subscription).is_none_or(|(kind, ..)| kind != Expire) {
        thread::yield_now();
    }
    let later = LeaseTerms { lease: None, after: Some(Duration::from_millis(10)) };
    engine.put_leased(&job(2), &later).unwrap();
    let notifier = engine.notifier().unwrap();
    assert!(notifier.next_look() < Duration::from_millis(100), "until it is visible, not a slice");
}

#[test]
fn what_the_visitor_refuses_counts_as_missed_before_the_next_n2() {
    let engine = engine(16 << 20);
    let condition = Condition::new("f[1] > 0").unwrap();
    for condition in [None, Some(&condition)] {
        let patterns = any_job();
        let template = [TemplateRef { condition, ..TemplateRef::new(&patterns) }];
        let terms = SubscribeTerms::new([Put], 2);
        let subscription = engine.subscribe(&template, &terms).unwrap();
        let refuse = || subscription.try_next(|_| Err::<(), _>(Error::LeaseExpired)).unwrap_err();
        put_all(&engine, 1..=3);
        assert_eq!(refuse(), Error::LeaseExpired);
        assert_eq!(refuse(), Error::LeaseExpired);
        engine.put(&job(4)).unwrap();
        // One was dropped for there was no place for it, and two were refused.
        assert_eq!(next(&subscription), Some((Put, 4, 4, 3)));
        engine.put(&job(5)).unwrap();
        assert_eq!(next(&subscription), Some((Put, 5, 5, 0)));
    }
}
