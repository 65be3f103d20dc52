//! Claims, leases and what waits for its time survive the death of whoever handles them, at whichever instruction
//! (rules C1, K2, K4, K5, L1 to L3, L5).

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::shared::{
    Found, INT, contents, int, kill_everywhere, kill_once_and_twice, kill_twice, learn, one_of,
    put, shown, space,
};
use tupelo_crashtest::fork;
use tupelo_engine::{Claim, ClaimTerms, Engine, Error, LeaseTerms, Order};
use tupelo_tuple::{Field, TemplateRef};

const LONG: ClaimTerms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
const ONCE: ClaimTerms = ClaimTerms { attempts_max: Some(1), ..LONG };
const HOUR: Duration = Duration::from_secs(3600);

/// Twelve tuples under three keys, an index over the keys, and a timer that is far away.
fn indexed() -> Arc<Engine> {
    let engine = space(8 << 20);
    for value in 0..12 {
        put(&engine, value % 3, value);
    }
    learn(&engine, &[int(2), INT]);
    let terms = LeaseTerms { lease: Some(HOUR), after: None };
    engine.put_leased(&[Field::Int(9), Field::Int(9)], &terms).unwrap();
    engine
}

/// Claims `(key, value)`.
fn claim(engine: &Arc<Engine>, key: i64, value: i64, terms: &ClaimTerms) -> Claim {
    let template = [int(key), int(value)];
    let claimed = engine.try_claim(&[TemplateRef::new(&template)], Order::Fifo, terms, shown);
    claimed.unwrap().unwrap().0
}

/// How many tuples are dead.
fn dead(engine: &Engine) -> usize {
    let template = [INT, INT];
    let visitor = |_: tupelo_tuple::TupleView<'_>, _| Ok::<_, Error>(());
    engine.dead(&[TemplateRef::new(&template)], visitor).unwrap().len()
}

/// How many tuples are not visible yet.
fn delayed(engine: &Engine) -> u64 {
    engine.stat().unwrap().shapes.iter().map(|shape| shape.delayed).sum()
}

fn without(engine: &Engine, tuple: &str) -> Vec<String> {
    contents(engine).into_iter().filter(|one| one != tuple).collect()
}

#[test]
fn what_a_dead_process_had_claimed_is_back_at_its_place_k2() {
    let engine = indexed();
    let before = contents(&engine);
    let script = |engine: &Arc<Engine>| std::mem::forget(claim(engine, 1, 4, &LONG));
    kill_everywhere(&engine, script, |found, _| {
        assert_eq!((found.report.held(), found.tuples), (0, before.clone()));
    });
}

#[test]
fn what_was_claimed_through_a_handle_that_is_given_up_is_back_at_its_place_k2() {
    let engine = indexed();
    let before = contents(&engine);
    let script = |engine: &Arc<Engine>| {
        for value in [4, 7] {
            std::mem::forget(claim(engine, 1, value, &LONG));
        }
        engine.give_up(0).unwrap();
    };
    kill_once_and_twice(&engine, script, |found, ended| {
        assert_eq!((found.report.held(), found.tuples), (0, before.clone()));
        for value in [4, 7] {
            let attempt = claim(&engine, 1, value, &LONG).attempt();
            assert!(attempt == 2 || !ended && attempt == 1, "attempt {attempt}");
        }
    });
}

#[test]
fn a_claimed_tuple_is_done_with_or_back_k2() {
    let engine = indexed();
    let legal = [contents(&engine), without(&engine, "1,4")];
    one_of(&engine, |engine| claim(engine, 1, 4, &LONG).done(&[]).unwrap(), &legal);
}

#[test]
fn what_is_put_under_a_claim_appears_with_the_end_of_the_claim_or_not_at_all_k4() {
    let engine = indexed();
    let mut after = without(&engine, "1,4");
    // Shapes are listed in the order of their birth.
    after.extend(["1,100", "7,101", "old", "new"].map(String::from));
    engine.put(&[Field::Str("old")]).unwrap();
    let legal = [contents(&engine), after];
    let script = |engine: &Arc<Engine>| {
        let claim = claim(engine, 1, 4, &LONG);
        let (first, second) = ([Field::Int(1), Field::Int(100)], [Field::Int(7), Field::Int(101)]);
        claim.done(&[(&first).into(), (&[Field::Str("new")]).into(), (&second).into()]).unwrap();
    };
    one_of(&engine, script, &legal);
}

#[test]
fn an_abort_loses_nothing_k2() {
    let engine = indexed();
    let before = contents(&engine);
    let script = |engine: &Arc<Engine>| claim(engine, 1, 4, &LONG).abort("no disk").unwrap();
    kill_once_and_twice(&engine, script, |found, ended| {
        assert_eq!((found.report.held(), found.tuples), (0, before.clone()));
        // The attempt counts once, whether it was given back by its holder or came back after the holder's death.
        let attempt = claim(&engine, 1, 4, &LONG).attempt();
        assert!(attempt == 2 || !ended && attempt == 1, "attempt {attempt}");
    });
}

#[test]
fn a_tuple_whose_last_attempt_fails_is_there_or_dead_k5() {
    let engine = indexed();
    let legal = [contents(&engine), without(&engine, "1,4")];
    let script = |engine: &Arc<Engine>| claim(engine, 1, 4, &ONCE).abort("no disk").unwrap();
    kill_everywhere(&engine, script, |found, ended| {
        let dead = dead(&engine);
        assert_eq!(found.report.shapes[1].dead, dead as u64);
        assert_eq!(found.tuples, legal[dead], "it is in one place");
        assert!(!ended || dead == 1);
    });
    assert_eq!(engine.requeue(&[TemplateRef::new(&[INT, INT])]).unwrap(), 0, "all was put back");
}

#[test]
fn putting_the_dead_back_happens_or_not_k5() {
    let engine = indexed();
    for value in [4, 7] {
        claim(&engine, 1, value, &ONCE).abort("no disk").unwrap();
    }
    let script = |engine: &Arc<Engine>| {
        assert_eq!(engine.requeue(&[TemplateRef::new(&[INT, INT])]).unwrap(), 2);
    };
    let before = contents(&engine);
    kill_once_and_twice(&engine, script, |found, ended| {
        let dead = dead(&engine);
        assert!(dead == 0 || (dead == 2 && !ended), "both or neither");
        assert_eq!(found.tuples.len(), before.len() + 2 - dead);
    });
}

#[test]
fn a_put_with_a_lease_or_for_later_happens_or_not_l1_l3() {
    let engine = indexed();
    let terms = LeaseTerms { lease: Some(HOUR), after: None };
    let legal = [contents(&engine), [contents(&engine), vec!["5,5".into()]].concat()];
    let script = |engine: &Arc<Engine>| {
        engine.put_leased(&[Field::Int(5), Field::Int(5)], &terms).unwrap();
    };
    one_of(&engine, script, &legal);
    let later = LeaseTerms { lease: None, after: Some(HOUR) };
    let before = contents(&engine);
    let script = |engine: &Arc<Engine>| {
        let lease = engine.put_leased(&[Field::Int(5), Field::Int(5)], &later).unwrap();
        engine.renew(&lease, Some(HOUR)).unwrap();
        engine.cancel(&lease).unwrap();
    };
    kill_once_and_twice(&engine, script, |found, ended| {
        assert_eq!(found.tuples, before, "its time has not come");
        assert!(delayed(&engine) <= u64::from(!ended), "it was cancelled");
    });
}

/// To later, to sooner, and to never: a timer is moved, moved back, and disarmed.
#[test]
fn a_renewal_happens_or_not_whoever_dies_over_it_l2() {
    /// Days, of which a long run takes a small part.
    const DAY: Duration = Duration::from_secs(24 * 3_600);
    const ENDS_IN_DAYS: [Option<u32>; 4] = [Some(1), Some(9), Some(3), None];
    const OF_RECOVERER: Option<u32> = Some(20);
    let engine = indexed();
    let terms = LeaseTerms { lease: Some(DAY), after: None };
    let lease = engine.put_leased(&[Field::Int(5), Field::Int(5)], &terms).unwrap();
    let before = contents(&engine);
    let renew = |days: Option<u32>| engine.renew(&lease, days.map(|days| DAY * days)).unwrap();
    let script = |_: &Arc<Engine>| ENDS_IN_DAYS[1..].iter().for_each(|end| renew(*end));
    let judge_among = |legal: &[Option<u32>], last: &[Option<u32>], found: &Found, ended: bool| {
        let left = engine.expires_in(&lease).unwrap();
        let days = |left: Duration| u32::try_from((left + DAY / 2).as_secs() / DAY.as_secs());
        let left = left.map(|left| days(left).unwrap());
        assert!(if ended { last } else { legal }.contains(&left), "{left:?} days are left");
        assert_eq!(found.tuples, before);
        engine.cancel(&lease).unwrap();
    };
    kill_once_and_twice(&engine, script, |found, ended| {
        judge_among(&ENDS_IN_DAYS, &[None], &found, ended);
    });
    // Who renews it next meets the timer that the dead one was about to move.
    let with_recoverer = [&ENDS_IN_DAYS[..], &[OF_RECOVERER]].concat();
    kill_twice(
        &engine,
        script,
        |_| renew(OF_RECOVERER),
        |found, ended| {
            judge_among(&with_recoverer, &[None, OF_RECOVERER], &found, ended);
        },
    );
}

#[test]
fn what_is_cancelled_is_there_or_gone_whoever_dies_over_it_l2() {
    for (lease, after) in [(Some(HOUR), None), (None, Some(HOUR)), (Some(HOUR), Some(HOUR))] {
        let engine = indexed();
        let terms = LeaseTerms { lease, after };
        let lease = engine.put_leased(&[Field::Int(5), Field::Int(5)], &terms).unwrap();
        let others = without(&engine, "5,5").len();
        let judge = |found: Found, ended: bool| {
            let is_there = match engine.renew(&lease, Some(HOUR)) {
                Ok(()) => true,
                Err(Error::LeaseExpired) => false,
                Err(error) => panic!("{error}"),
            };
            assert!(!is_there || !ended, "it was cancelled");
            let visible = usize::from(is_there && after.is_none());
            assert_eq!(found.tuples.len(), others + visible, "{:?}", found.tuples);
            assert_eq!(delayed(&engine), u64::from(is_there && after.is_some()));
        };
        kill_once_and_twice(&engine, |engine| engine.cancel(&lease).unwrap(), judge);
        // Who also wants it gone, and finds that it is, or sees to it.
        let recoverer = |engine: &Arc<Engine>| {
            assert!(matches!(engine.cancel(&lease), Ok(()) | Err(Error::LeaseExpired)));
        };
        kill_twice(&engine, |engine| engine.cancel(&lease).unwrap(), recoverer, judge);
    }
}

#[test]
fn what_is_due_happens_whoever_dies_over_it_l1_l3_k2() {
    let engine = indexed();
    let brief = Duration::from_millis(1);
    // Of what is claimed for longer, the timers are armed on the way.
    let held = [claim(&engine, 0, 0, &LONG), claim(&engine, 0, 3, &LONG)];
    let before = contents(&engine);
    for value in 0..3 {
        let terms = LeaseTerms { lease: Some(brief), after: None };
        engine.put_leased(&[Field::Int(2), Field::Int(50 + value)], &terms).unwrap();
        let later = LeaseTerms { lease: None, after: Some(brief) };
        engine.put_leased(&[Field::Int(2), Field::Int(60 + value)], &later).unwrap();
    }
    let silent = claim(&engine, 1, 4, &ClaimTerms { ttl: brief, ..LONG });
    thread::sleep(Duration::from_millis(3));
    // What was delayed comes in the order of its moments, which may be one.
    let script = |engine: &Arc<Engine>| {
        assert_eq!(engine.count(&[TemplateRef::new(&[INT, INT])]).unwrap(), 14);
    };
    let judge = |found: Found, _| {
        let (old, mut new) = (found.tuples[..11].to_vec(), found.tuples[11..].to_vec());
        new.sort_unstable();
        assert_eq!(
            (old, new),
            (before.clone(), ["2,60", "2,61", "2,62"].map(String::from).to_vec())
        );
        assert_eq!(engine.check().unwrap().held(), held.len() as u64, "the silent one's is back");
    };
    kill_once_and_twice(&engine, script, judge);
    assert_eq!(silent.done(&[]), Err(Error::ClaimLost { pid: None }));
}

#[test]
fn claims_and_their_ends_survive_the_death_of_the_recoverer_too() {
    let engine = indexed();
    let script = |engine: &Arc<Engine>| {
        let (first, last) = (claim(engine, 1, 4, &LONG), claim(engine, 2, 2, &ONCE));
        first.done(&[(&[Field::Int(1), Field::Int(400)]).into()]).unwrap();
        last.abort("no disk").unwrap();
        std::mem::forget(claim(engine, 0, 6, &LONG));
    };
    let before = contents(&engine);
    let judge = |found: Found, ended: bool| {
        let has = |tuple: &str| found.tuples.iter().any(|one| one == tuple);
        assert_ne!(has("1,4"), has("1,400"), "one of the two");
        assert_eq!(usize::from(has("2,2")) + dead(&engine), 1, "in one place");
        assert!(has("0,6"), "back");
        assert_eq!(found.tuples.len() + dead(&engine), before.len());
        assert!(!ended || has("1,400") && !has("2,2"));
        assert_eq!(found.report.held(), 0);
    };
    kill_twice(&engine, script, |engine| engine.sweep().unwrap(), judge);
    // A claim that finds nothing but what the dead one held.
    let recoverer = |engine: &Arc<Engine>| {
        std::mem::forget(claim(engine, 0, 6, &LONG));
    };
    kill_twice(&engine, script, recoverer, judge);
}

/// To later and to sooner than it was: either moves a timer.
#[test]
fn an_extension_leaves_the_claim_whole_whoever_dies_over_it_k2() {
    let engine = indexed();
    let before = contents(&engine);
    let script = |engine: &Arc<Engine>| {
        let claim = claim(engine, 1, 4, &LONG);
        claim.extend(HOUR * 5).unwrap();
        claim.extend(HOUR / 5).unwrap();
        std::mem::forget(claim);
    };
    let judge = |found: Found, _| {
        assert_eq!((found.report.held(), found.tuples), (0, before.clone()), "it is back");
    };
    kill_once_and_twice(&engine, script, judge);
    let recoverer = |engine: &Arc<Engine>| std::mem::forget(claim(engine, 2, 2, &LONG));
    kill_twice(&engine, script, recoverer, judge);
}

#[test]
fn the_child_of_a_fork_does_not_settle_what_its_parent_has_claimed_k3() {
    let engine = space(8 << 20);
    put(&engine, 1, 1);
    let mine = std::cell::Cell::new(Some(claim(&engine, 1, 1, &LONG)));
    let child = fork(|| {
        // The child's copy, which it also drops.
        let copy = mine.take().unwrap();
        let refused = Err(Error::ClaimForked);
        assert_eq!((copy.done(&[]), copy.abort("")), (refused.clone(), refused));
    });
    assert_eq!(child.wait(), tupelo_crashtest::Exit::Done);
    mine.take().unwrap().done(&[]).unwrap();
    engine.check().unwrap();
}

#[test]
fn a_miss_gets_back_what_a_dead_process_had_claimed_l5() {
    let engine = space(8 << 20);
    put(&engine, 1, 1);
    let dying = fork(|| {
        std::mem::forget(claim(&engine, 1, 1, &LONG));
        std::process::abort();
    });
    let ended = dying.wait();
    assert_eq!(ended, tupelo_crashtest::Exit::Killed(6), "{ended:?}");
    assert_eq!(engine.check().unwrap().held(), 1);
    let again = claim(&engine, 1, 1, &LONG);
    assert_eq!(again.attempt(), 2);
    engine.check().unwrap();
}
