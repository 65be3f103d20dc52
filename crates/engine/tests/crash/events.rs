//! Subscriptions survive deaths at any instruction (rules C1, L5, N1 to N3): of the process whose operation they hear
//! of, of the subscriber, and of the process that cleans up. An event exists if and only if the operation that it tells
//! of has happened.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::shared::{
    BYTES, Found, INT, contents, int, kill_everywhere, kill_once_and_twice, kill_twice, put, shown,
    space, take, text,
};
use tupelo_crashtest::fork;
use tupelo_engine::{
    Claim, ClaimTerms, Engine, Error, EventKind, LeaseTerms, Order, SubscribeTerms, Subscription,
    Transaction,
};
use tupelo_tuple::{Field, KindSet, PatternRef, TemplateRef};

const ANY: PatternRef<'static> = PatternRef::Kinds(KindSet::ALL);
/// One that selects a shape, and one that does not.
const TEMPLATES: [[PatternRef<'static>; 2]; 2] = [[INT, INT], [ANY, INT]];
const LONG: ClaimTerms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };

/// A space that has held tuples of two integers.
fn used() -> Arc<Engine> {
    let engine = space(8 << 20);
    put(&engine, 6, 6);
    assert!(take(&engine, &[INT, INT]).is_some());
    engine
}

fn subscribe(engine: &Arc<Engine>, patterns: &[PatternRef<'_>], buffer: usize) -> Subscription {
    let terms = SubscribeTerms::new(EventKind::ALL, buffer);
    engine.subscribe(&[TemplateRef::new(patterns)], &terms).unwrap()
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

/// What waits, as text, with the numbers of what was missed; the sequence numbers have no other gaps.
fn heard(subscription: &Subscription) -> Vec<String> {
    let keep = |event: tupelo_engine::Event<'_>| {
        let what = format!("{:?} {}", event.kind, shown(event.tuple)?);
        Ok::<_, Error>((event.sequence, event.missed, what))
    };
    let mut before = None;
    let events = std::iter::from_fn(|| subscription.try_next(keep).unwrap());
    let events = events.map(|(sequence, missed, what)| {
        assert!(before.replace(sequence).is_none_or(|before| before + 1 + missed == sequence));
        if missed == 0 { what } else { format!("{missed} missed, {what}") }
    });
    events.collect()
}

/// Kills in `script`, and whoever cleans up after it; what is heard tells of the first steps of `steps`, and the contents are those
/// after so many.
fn told_as_it_is(
    engine: &Arc<Engine>,
    subscription: &Subscription,
    script: impl Fn(&Arc<Engine>),
    steps: &[(&[&str], &[&str])],
) {
    kill_once_and_twice(engine, script, is_told_as_it_is(subscription, steps));
}

/// The judge of [`told_as_it_is`]: events and contents belong to the same step.
fn is_told_as_it_is(
    subscription: &Subscription,
    steps: &[(&[&str], &[&str])],
) -> impl Fn(Found, bool) {
    move |found, ended| {
        let heard = heard(subscription);
        let step = steps.iter().position(|(events, contents)| {
            heard == *events && found.tuples.iter().eq(contents.iter())
        });
        assert!(step.is_some(), "{heard:?} of {:?}", found.tuples);
        assert!(!ended || step == Some(steps.len() - 1), "ended after step {step:?}");
        assert_eq!((found.report.held(), found.report.subscriptions), (0, 1));
    }
}

fn claim(engine: &Arc<Engine>) -> Claim {
    let template = [INT, INT];
    let claimed = engine.try_claim(&[TemplateRef::new(&template)], Order::Fifo, &LONG, shown);
    claimed.unwrap().unwrap().0
}

#[test]
fn a_put_and_a_take_are_heard_if_and_only_if_they_happened_n1() {
    for patterns in TEMPLATES {
        let engine = used();
        let subscription = subscribe(&engine, &patterns, 8);
        let script = |engine: &Arc<Engine>| {
            put(engine, 5, 1);
            assert!(take(engine, &[int(5), INT]).is_some());
        };
        let steps: [(&[&str], &[&str]); 3] =
            [(&[], &[]), (&["Put 5,1"], &["5,1"]), (&["Put 5,1", "Take 5,1"], &[])];
        // Between the two sections of a take that is heard, the tuple is nobody's but goes back.
        told_as_it_is(&engine, &subscription, script, &steps);
    }
}

#[test]
fn what_is_dropped_is_dropped_if_and_only_if_the_newer_one_is_there_n2() {
    for patterns in TEMPLATES {
        let engine = used();
        let subscription = subscribe(&engine, &patterns, 2);
        put(&engine, 1, 1);
        put(&engine, 2, 2);
        let script = |engine: &Arc<Engine>| put(engine, 3, 3);
        let steps: [(&[&str], &[&str]); 2] = [
            (&["Put 1,1", "Put 2,2"], &["1,1", "2,2"]),
            (&["1 missed, Put 2,2", "Put 3,3"], &["1,1", "2,2", "3,3"]),
        ];
        told_as_it_is(&engine, &subscription, script, &steps);
    }
}

#[test]
fn a_buffer_without_a_free_byte_loses_only_what_is_said_to_be_missed_n2() {
    let engine = space(8 << 20);
    let subscription = subscribe(&engine, &[text("blob"), BYTES], 256);
    let blob = vec![7; 9_000];
    let put_blob = |engine: &Engine, bytes: &[u8]| {
        engine.put(&[Field::Str("blob"), Field::Bytes(bytes)]).unwrap();
    };
    for _ in 0..9 {
        put_blob(&engine, &blob);
    }
    let before = contents(&engine).len();
    let script = |engine: &Arc<Engine>| put_blob(engine, &blob[..8_000]);
    kill_once_and_twice(&engine, script, |found, ended| {
        let events = heard(&subscription);
        let is_put = events.last().unwrap() == "Put blob,8000xSome(7)";
        assert_eq!(found.tuples.len(), before + usize::from(is_put));
        assert!(is_put || !ended);
        // Nine puts, of which the first two find no room together with what follows them.
        let lost = 9 + usize::from(is_put) - events.len();
        assert!(events[0].starts_with(&format!("{lost} missed")), "{events:?}");
    });
}

#[test]
fn many_events_of_one_step_are_heard_together_n1_o5() {
    let engine = used();
    engine.put(&[Field::Str("a"), Field::Int(0)]).unwrap();
    let subscription = subscribe(&engine, &[ANY, INT], 2);
    let script = |engine: &Arc<Engine>| {
        let tuples: [&[Field<'_>]; 3] = [
            &[Field::Str("c"), Field::Int(1)],
            &[Field::Int(5), Field::Int(1)],
            &[Field::Str("b"), Field::Int(1)],
        ];
        assert_eq!(engine.put_all(&tuples).unwrap(), 3);
    };
    let steps: [(&[&str], &[&str]); 2] =
        [(&[], &["a,0"]), (&["1 missed, Put 5,1", "Put b,1"], &["5,1", "a,0", "c,1", "b,1"])];
    told_as_it_is(&engine, &subscription, script, &steps);
}

#[test]
fn the_end_of_a_claim_is_heard_if_and_only_if_it_has_ended_n1_k2() {
    let engine = used();
    put(&engine, 5, 1);
    let subscription = subscribe(&engine, &[INT, INT], 8);
    let script = |engine: &Arc<Engine>| {
        claim(engine).abort("no disk").unwrap();
        claim(engine).done(&[(&[Field::Int(7), Field::Int(7)]).into()]).unwrap();
    };
    let steps: [(&[&str], &[&str]); 4] = [
        (&[], &["5,1"]),
        // From the abort, or because the holder died; then from the abort and because the holder died.
        (&["Return 5,1"], &["5,1"]),
        (&["Return 5,1", "Return 5,1"], &["5,1"]),
        (&["Return 5,1", "Take 5,1", "Put 7,7"], &["7,7"]),
    ];
    told_as_it_is(&engine, &subscription, script, &steps);
}

#[test]
fn the_end_of_a_lease_is_heard_if_and_only_if_the_tuple_is_gone_n1_l1() {
    for patterns in TEMPLATES {
        let engine = used();
        let terms = LeaseTerms { lease: Some(Duration::from_millis(1)), after: None };
        for value in 1..=3 {
            engine.put_leased(&[Field::Int(5), Field::Int(value)], &terms).unwrap();
        }
        let subscription = subscribe(&engine, &patterns, 8);
        thread::sleep(Duration::from_millis(3));
        let script = |engine: &Arc<Engine>| assert!(take(engine, &[INT, INT]).is_none());
        // Whoever looks makes it happen, so that there is only one legal state.
        let steps: [(&[&str], &[&str]); 1] = [(&["Expire 5,1", "Expire 5,2", "Expire 5,3"], &[])];
        kill_everywhere(&engine, script, is_told_as_it_is(&subscription, &steps));
        // The recoverer looks, too, and so cleans up as well.
        kill_twice(&engine, script, script, is_told_as_it_is(&subscription, &steps));
    }
}

#[test]
fn an_event_is_taken_out_once_or_is_still_there_n1() {
    for patterns in TEMPLATES {
        let engine = used();
        let subscription = subscribe(&engine, &patterns, 8);
        for value in 1..=3 {
            put(&engine, 5, value);
        }
        let script = |_: &Arc<Engine>| {
            assert_eq!(subscription.try_next(|event| shown(event.tuple)).unwrap().unwrap(), "5,1");
        };
        let all: [&str; 3] = ["Put 5,1", "Put 5,2", "Put 5,3"];
        let tuples: &[&str] = &["5,1", "5,2", "5,3"];
        told_as_it_is(&engine, &subscription, script, &[(&all, tuples), (&all[1..], tuples)]);
        // The next one to look for an event is killed as well. It may have had the one that the first did not get.
        let recoverer = |_: &Arc<Engine>| {
            assert!(subscription.try_next(|event| shown(event.tuple)).unwrap().is_some());
        };
        kill_twice(&engine, script, recoverer, |found, ended| {
            let events = heard(&subscription);
            let taken = all.len() - events.len();
            assert!(taken <= 2 && (taken > 0 || !ended), "{events:?}");
            assert_eq!((events, found.tuples), (texts(&all[taken..]), texts(tuples)));
        });
    }
}

#[test]
fn a_subscriber_that_dies_leaves_no_trace_l5() {
    let key = "k".repeat(300);
    let long = [text(&key), ANY];
    for patterns in [&TEMPLATES[0], &TEMPLATES[1], &long] {
        let engine = used();
        put(&engine, 6, 6);
        let owned = engine.check().unwrap().extents_owned;
        let script = |engine: &Arc<Engine>| {
            let subscription = subscribe(engine, patterns, 8);
            put(engine, 5, 5);
            assert!(take(engine, &[int(5), INT]).is_some());
            drop(subscription);
        };
        kill_everywhere(&engine, script, |found, _| {
            let rest = found.tuples.iter().filter(|tuple| *tuple != "5,5");
            assert!(rest.eq(["6,6"]));
            assert_eq!((found.report.subscriptions, found.report.waiters), (0, 0));
            // The table of waiters, the next ring and the next long template may have one each.
            assert!(found.report.extents_owned <= owned + 3, "{:?}", found.report);
            let rest = [int(5), INT];
            while take(&engine, &rest).is_some() {}
        });
    }
}

#[test]
fn the_sweep_of_a_dead_subscriber_can_be_done_again_l5() {
    let engine = used();
    let dying = fork(|| {
        let subscriptions = TEMPLATES.map(|patterns| subscribe(&engine, &patterns, 8));
        put(&engine, 5, 5);
        std::mem::forget(subscriptions);
        std::process::abort();
    });
    assert_eq!(dying.wait(), tupelo_crashtest::Exit::Killed(6));
    assert_eq!(engine.check().unwrap().subscriptions, 2);
    let script = |engine: &Arc<Engine>| engine.sweep().unwrap();
    kill_everywhere(&engine, script, |found, _| {
        assert_eq!((found.tuples, found.report.subscriptions), (vec!["5,5".to_owned()], 0));
    });
}

#[test]
fn what_is_heard_survives_the_death_of_an_recoverer_that_comes_by_with_work_too_n1() {
    for patterns in TEMPLATES {
        let engine = used();
        for value in 0..3 {
            put(&engine, 6, value);
        }
        let subscription = subscribe(&engine, &patterns, 2);
        put(&engine, 7, 7);
        let script = |engine: &Arc<Engine>| {
            assert!(take(engine, &[int(6), int(1)]).is_some());
            put(engine, 8, 8);
        };
        let steps: [(&[&str], &[&str]); 3] = [
            (&["Put 7,7"], &["6,0", "6,1", "6,2", "7,7"]),
            (&["Put 7,7", "Take 6,1"], &["6,0", "6,2", "7,7"]),
            (&["1 missed, Take 6,1", "Put 8,8"], &["6,0", "6,2", "7,7", "8,8"]),
        ];
        let recoverer = |engine: &Arc<Engine>| assert!(take(engine, &[int(9), INT]).is_none());
        kill_twice(&engine, script, recoverer, is_told_as_it_is(&subscription, &steps));
    }
}

/// A transaction that takes `(1, 1)` and `(1, 2)`, reads `(2, 2)`, and is to put `(3, 3)` and `(4, 4)`.
fn transaction(engine: &Arc<Engine>) -> Transaction {
    let mut transaction = Transaction::begin(vec![Arc::clone(engine)], LONG.ttl).unwrap();
    for value in 1..=2 {
        let template = [int(1), int(value)];
        let template = [TemplateRef::new(&template)];
        assert!(transaction.try_take(0, &template, Order::Fifo, shown).unwrap().is_some());
    }
    let template = [int(2), INT];
    let template = [TemplateRef::new(&template)];
    assert!(transaction.try_read(0, &template, Order::Fifo, shown).unwrap().is_some());
    for number in 3..=4 {
        transaction.put(0, &[Field::Int(number), Field::Int(number)]).unwrap();
    }
    transaction
}

/// What is heard of it, and what is there: before it, and if it dies or is rolled back anywhere; and after its commit.
const BEFORE: [&str; 3] = ["1,1", "1,2", "2,2"];
const OF_TRANSACTION: [(&[&str], &[&str]); 6] = [
    (&[], &BEFORE),
    // What a dead process held comes back in any order.
    (&["Return 1,2"], &BEFORE),
    (&["Return 1,2", "Return 1,1"], &BEFORE),
    (&["Return 1,1"], &BEFORE),
    (&["Return 1,1", "Return 1,2"], &BEFORE),
    (&["Take 1,1", "Take 1,2", "Put 3,3", "Put 4,4"], &["2,2", "3,3", "4,4"]),
];

fn with_tuples_of_a_transaction() -> Arc<Engine> {
    let engine = used();
    for (key, value) in [(1, 1), (1, 2), (2, 2)] {
        put(&engine, key, value);
    }
    engine
}

#[test]
fn a_commit_is_heard_whole_or_not_at_all_x7() {
    for patterns in TEMPLATES {
        let engine = with_tuples_of_a_transaction();
        let subscription = subscribe(&engine, &patterns, 8);
        let script = |engine: &Arc<Engine>| transaction(engine).commit().unwrap();
        told_as_it_is(&engine, &subscription, script, &OF_TRANSACTION);
    }
}

#[test]
fn of_a_roll_back_each_return_is_heard_if_and_only_if_it_happened_x7_x5() {
    let engine = with_tuples_of_a_transaction();
    let subscription = subscribe(&engine, &TEMPLATES[0], 8);
    let script = |engine: &Arc<Engine>| transaction(engine).abort().unwrap();
    told_as_it_is(&engine, &subscription, script, &OF_TRANSACTION[..5]);
}

#[test]
fn ending_a_subscription_survives_the_death_of_the_recoverer_too_l5() {
    let engine = used();
    put(&engine, 6, 6);
    let script = |engine: &Arc<Engine>| drop(subscribe(engine, &TEMPLATES[1], 8));
    let judge = |found: Found, _| {
        assert_eq!((found.tuples, found.report.subscriptions), (vec!["6,6".to_owned()], 0));
    };
    kill_twice(&engine, script, |engine| engine.sweep().unwrap(), judge);
    kill_twice(
        &engine,
        script,
        |engine| put(engine, 6, 6),
        |found, _| {
            assert_eq!(found.report.subscriptions, 0);
        },
    );
}

#[test]
fn who_only_looks_for_events_hears_that_a_dead_holder_s_tuple_is_back_l5_k2() {
    let engine = used();
    put(&engine, 5, 5);
    let subscription = subscribe(&engine, &[int(5), INT], 8);
    let dying = fork(|| {
        std::mem::forget(claim(&engine));
        std::process::abort();
    });
    assert_eq!(dying.wait(), tupelo_crashtest::Exit::Killed(6));
    let mut found = Vec::new();
    while found.is_empty() {
        found = heard(&subscription);
    }
    assert_eq!(found, ["Return 5,5"]);
}
