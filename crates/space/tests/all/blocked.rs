//! Who is blocked, and for what; what ends it, and what can not be done with it.

use std::thread;
use std::time::{Duration, Instant};

use crate::common::{ENGINES, Temporary, keep};
use tupelo::{
    ClaimTerms, Condition, ConnectOptions, Error, Field, Kind, KindSet, Order, PatternRef,
    Template, TemplateRef, Want, Watch, fields, template,
};
use tupelo_crashtest::{Exit, fork};
use tupelo_model::Limits;

const MINUTE: Duration = Duration::from_secs(60);
/// Under which nobody tries twice.
const ONCE: ClaimTerms = ClaimTerms { ttl: MINUTE, attempts_max: Some(1) };

/// What is said to be waited for, with the processes.
fn blocked(temporary: &Temporary) -> Vec<(u32, String)> {
    let all = temporary.space.blocked().unwrap();
    all.into_iter().map(|one| (one.pid, one.template.to_string())).collect()
}

#[test]
fn each_template_is_told_as_it_was_given_until_nobody_waits() {
    let long = "x".repeat(100_000);
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let space = &temporary.space;
        let (actual, of) = (PatternRef::Actual, |kind| PatternRef::Kinds(KindSet::of(kind)));
        let patterns: Vec<Vec<PatternRef<'_>>> = vec![
            vec![actual(Field::Str("job")), actual(Field::Int(7)), of(Kind::Str)],
            vec![of(Kind::Int), actual(Field::Int(-1)), actual(Field::Float(2.5))],
            // In words of their own: longer than a wait node, of several kinds, and of any.
            vec![actual(Field::Str(&long)), of(Kind::Int)],
            vec![actual(Field::Str("any")), PatternRef::ANY],
        ];
        let waiters: Vec<_> = patterns
            .iter()
            .zip([Want::Take, Want::Read, Want::Take, Want::Read])
            .map(|(patterns, want)| space.waiter(&[TemplateRef::new(patterns)], want).unwrap())
            .collect();
        let watch = space.watch(&[template!["watched"]], Watch::Put).unwrap();

        let told = blocked(&temporary);
        let texts: Vec<String> =
            patterns.iter().map(|patterns| TemplateRef::new(patterns).to_string()).collect();
        let expected: Vec<_> = texts.into_iter().map(|text| (std::process::id(), text)).collect();
        assert_eq!(told, expected);
        let own: Vec<Template> =
            space.blocked().unwrap().into_iter().map(|one| one.template).collect();
        for (one, patterns) in own.iter().zip(&patterns) {
            assert_eq!(*one, TemplateRef::new(patterns).to_template().unwrap());
        }

        drop((waiters, watch));
        assert_eq!(blocked(&temporary), []);
    }
}

#[test]
fn a_handle_that_is_closed_ends_what_waits_by_it_and_takes_nothing_any_more_l5_t5() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let plain = template!["job", Kind::Int];
        let even = Condition::new("f[1] % 2 == 0").unwrap();
        let conditional = TemplateRef { condition: Some(&even), ..plain };
        let verbs = ["take", "read", "claim"];
        let cases = verbs.into_iter().flat_map(|verb| [(verb, plain), (verb, conditional)]);
        for (verb, template) in cases {
            let template = [template];
            let handle = temporary.connect_again();
            let forgotten = Some(MINUTE);
            let ended = thread::scope(|scope| {
                let waits = scope.spawn(|| match verb {
                    "take" => handle.take(&template, Order::Fifo, forgotten, keep).map(drop),
                    "read" => handle.read(&template, Order::Fifo, forgotten, keep).map(drop),
                    _ => handle.claim(&template, Order::Fifo, forgotten, &ONCE, keep).map(drop),
                });
                while temporary.space.stat().unwrap().waiters == 0 {
                    thread::yield_now();
                }
                handle.close();
                waits.join().unwrap()
            });
            assert!(matches!(ended, Err(Error::SpaceClosed { .. })), "{verb}: {ended:?}");
        }
        temporary.space.put(&fields!["job", 1]).unwrap();
        assert_eq!(temporary.space.count(&[plain]).unwrap(), 1);
    }
}

#[test]
fn what_was_handed_over_before_the_handle_was_closed_goes_back_t5() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let handle = temporary.connect_again();
        let template = [template!["job", Kind::Int]];
        let [take, claim] = [(); 2].map(|()| handle.waiter(&template, Want::Take).unwrap());
        (0..2).for_each(|number| temporary.space.put(&fields!["job", number]).unwrap());
        assert_eq!(temporary.space.count(&template).unwrap(), 0);
        handle.close();
        let refused = take.finish_now(keep).unwrap_err();
        assert!(matches!(refused, Error::SpaceClosed { .. }), "{refused:?}");
        let refused = claim.finish_claim(&ONCE, keep).unwrap_err();
        assert!(matches!(refused, Error::SpaceClosed { .. }), "{refused:?}");
        assert_eq!(temporary.space.count(&template).unwrap(), 2);
    }
}

#[test]
fn what_a_notifier_told_of_is_picked_up_without_waiting_for_a_look_around() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let space = &temporary.space;
        let notifier = space.notifier().unwrap();
        let attempt = |number| {
            let waiter = space.waiter(&[template!["job", Kind::Int]], Want::Take).unwrap();
            let added = notifier.add(&waiter);
            space.put(&fields!["job", number]).unwrap();
            assert_eq!(notifier.drain(), [added]);
            notifier.remove(added);
            let begin = Instant::now();
            waiter.finish(keep).unwrap();
            begin.elapsed()
        };
        // Of one that is late, this machine was busy; whoever waits for a look around is late in each of them.
        let fastest = (0..20).map(attempt).min().unwrap();
        assert!(fastest < Duration::from_millis(50), "{fastest:?}");
    }
}

#[test]
fn a_copy_can_be_neither_claimed_nor_taken_and_what_is_elsewhere_not_either_t1() {
    for engine in ENGINES {
        let options = ConnectOptions { tuples_max: Some(2), ..ConnectOptions::default() };
        let temporary = Temporary::with(engine, &options);
        let other = Temporary::new(engine, Limits::default());
        let (space, template) = (&temporary.space, [template!["job", Kind::Int]]);
        space.put(&fields!["job", 1]).unwrap();
        other.space.put(&fields!["job", 2]).unwrap();
        let copy = || space.waiter(&template, Want::Read).unwrap();
        let refused = copy().finish_claim(&ONCE, keep).unwrap_err();
        assert!(matches!(refused, Error::Misuse { .. }), "{refused:?}");
        let transaction = space.transaction(&[], MINUTE).unwrap();
        let refused = transaction.at(0).finish_take(copy(), keep).unwrap_err();
        assert!(matches!(refused, Error::Misuse { .. }), "{refused:?}");
        let elsewhere = other.space.waiter(&template, Want::Take).unwrap();
        let refused = transaction.at(0).finish_take(elsewhere, keep).unwrap_err();
        assert!(refused.to_string().contains(other.space.url()), "{refused}");
        transaction.commit().unwrap();
        assert_eq!(other.space.count(&template).unwrap(), 1);
        space.put(&fields!["job", 3]).unwrap();
        assert_eq!(space.read_all(&template, None, keep).unwrap().len(), 2);
    }
}

/// Its place in the wait queue is the parent's, and so is what is handed over there.
#[test]
fn the_child_of_a_fork_picks_up_nothing_that_its_parent_waits_for_t1() {
    let temporary = Temporary::new("shm", Limits::default());
    let (space, template) = (&temporary.space, [template!["job", Kind::Int]]);
    let mut places = [(); 2].map(|()| Some(space.waiter(&template, Want::Take).unwrap()));
    (0..2).for_each(|number| space.put(&fields!["job", number]).unwrap());
    let child = fork(|| {
        let [finishes, claims] = places.each_mut().map(|place| place.take().unwrap());
        assert!(matches!(finishes.wait(None), Err(Error::Misuse { .. })));
        assert!(matches!(finishes.finish_now(keep), Err(Error::Misuse { .. })));
        assert!(matches!(claims.finish_claim(&ONCE, keep), Err(Error::Misuse { .. })));
    });
    assert_eq!(child.wait(), Exit::Done);
    for (place, told) in places.into_iter().zip([r#"("job", 0)"#, r#"("job", 1)"#]) {
        assert_eq!(place.unwrap().finish(keep).unwrap().to_string(), told);
    }
}
