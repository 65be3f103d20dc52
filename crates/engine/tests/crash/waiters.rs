//! Waiting, handing over and picking up survive the death of either side at any instruction (C1 to C3, T5).

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use crate::shared::{
    BYTES, Found, INT, STR, contents, int, kill_everywhere, kill_twice, one_of, put, shown, space,
    take, text,
};
use tupelo_crashtest::fork;
use tupelo_engine::{Engine, Order, Outcome, Waiter, Want};
use tupelo_tuple::{Field, KindSet, PatternRef, TemplateRef};

const ANY: PatternRef<'static> = PatternRef::Kinds(KindSet::ALL);

/// A waiter of this process: narrow for `(key, int)`, wide for `(any, any)`.
fn waiter(
    engine: &Arc<Engine>,
    patterns: &[PatternRef<'_>],
    want: Want,
) -> RefCell<Option<Waiter>> {
    RefCell::new(Some(engine.waiter(&[TemplateRef::new(patterns)], want).unwrap()))
}

/// What the waiter got, if anything; it leaves the wait queue.
fn result(waiter: &RefCell<Option<Waiter>>) -> Option<String> {
    let waiter = waiter.take().unwrap();
    if waiter.wait(Some(Duration::ZERO)).unwrap() {
        return Some(waiter.finish(shown).unwrap());
    }
    // Who judges is a fork of the process that joined the wait queue.
    waiter.give_up().unwrap();
    None
}

/// Of a put of `(5, 1)`: the waiter has it, or it was never there. Never half, never both.
fn served_or_not(found: &Found, got: Option<&str>, ended: bool) {
    assert_eq!(found.tuples, Vec::<String>::new(), "the tuple is nobody's but the waiter's");
    assert!(got == Some("5,1") || (got.is_none() && !ended), "got {got:?}, ended: {ended}");
    assert_eq!(found.report.waiters, u64::from(got.is_none()));
}

#[test]
fn a_put_hands_over_to_a_waiter_or_not() {
    for patterns in [[int(5), INT], [ANY, ANY]] {
        for want in [Want::Take, Want::Read] {
            let engine = space(8 << 20);
            put(&engine, 6, 6);
            assert!(take(&engine, &[INT, INT]).is_some());
            let waiter = waiter(&engine, &patterns, want);
            let script = |engine: &Arc<Engine>| put(engine, 5, 1);
            kill_everywhere(&engine, script, |mut found, ended| {
                let got = result(&waiter);
                if want == Want::Read {
                    // A reader has a copy, and the tuple is there as well.
                    assert_eq!(found.tuples.len(), usize::from(got.is_some()));
                    found.tuples.clear();
                }
                served_or_not(&found, got.as_deref(), ended);
                engine.check().unwrap();
            });
            drop(waiter);
            engine.check().unwrap();
        }
    }
}

#[test]
fn a_put_serves_readers_and_the_first_taker_together_or_nobody() {
    let engine = space(8 << 20);
    put(&engine, 6, 6);
    assert!(take(&engine, &[INT, INT]).is_some());
    let queued = [
        waiter(&engine, &[int(5), INT], Want::Read),
        waiter(&engine, &[ANY, ANY], Want::Take),
        waiter(&engine, &[INT, int(1)], Want::Take),
        waiter(&engine, &[ANY, int(1)], Want::Read),
    ];
    let script = |engine: &Arc<Engine>| put(engine, 5, 1);
    kill_everywhere(&engine, script, |found, ended| {
        assert_eq!(found.tuples, Vec::<String>::new());
        let got = queued.each_ref().map(|waiter| result(waiter).is_some());
        // Of the takers the one that came first.
        assert!(got == [true, true, false, true] || (!ended && got == [false; 4]), "{got:?}");
    });
    drop(queued);
}

#[test]
fn a_waiter_that_dies_leaves_no_trace() {
    for patterns in [[int(5), INT], [ANY, STR]] {
        for want in [Want::Take, Want::Read, Want::Put, Want::Removal] {
            let engine = space(8 << 20);
            put(&engine, 6, 6);
            let legal = [vec!["6,6".to_owned()]];
            // Joins the wait queue, and out again.
            let script = |engine: &Arc<Engine>| {
                drop(engine.waiter(&[TemplateRef::new(&patterns)], want).unwrap());
            };
            kill_everywhere(&engine, script, |found, _| {
                assert_eq!((found.tuples, found.report.waiters), (legal[0].clone(), 0));
            });
        }
    }
}

#[test]
fn who_takes_or_gets_in_line_takes_or_leaves_no_trace() {
    let engine = space(8 << 20);
    put(&engine, 6, 6);
    let script = |engine: &Arc<Engine>| {
        // From now on a wait node is at hand, so that looking and joining the wait queue are one step.
        drop(engine.waiter(&[TemplateRef::new(&[int(5), INT])], Want::Take).unwrap());
        let template = [int(7), INT];
        let outcome = engine.take_or_wait(&[TemplateRef::new(&template)], Order::Fifo, shown);
        assert!(matches!(outcome.unwrap(), Outcome::Waits(_)));
        let template = [int(6), INT];
        let outcome = engine.take_or_wait(&[TemplateRef::new(&template)], Order::Fifo, shown);
        assert!(matches!(outcome.unwrap(), Outcome::Done(_)));
    };
    kill_everywhere(&engine, script, |found, ended| {
        assert!(found.tuples.is_empty() || (!ended && found.tuples == ["6,6"]));
        assert_eq!(found.report.waiters, 0);
    });
}

#[test]
fn a_long_template_of_a_waiter_that_dies_is_freed() {
    let engine = space(8 << 20);
    put(&engine, 6, 6);
    let owned = engine.check().unwrap().extents_owned;
    let key = "k".repeat(300);
    let patterns = [text(&key), ANY];
    let script = |engine: &Arc<Engine>| {
        drop(engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap());
    };
    kill_everywhere(&engine, script, |found, _| {
        assert_eq!((found.report.waiters, found.report.held()), (0, 0));
        // The survivor's own shape may have one.
        assert!(found.report.extents_owned <= owned + 1);
    });
}

#[test]
fn who_finds_a_match_on_joining_the_line_takes_it_or_not() {
    let large = vec![9; 3_000];
    let cases = [
        ([int(5), INT], "5,1"),
        ([ANY, int(1)], "4,1"),
        ([text("large"), BYTES], "large"),
        ([text("large"), ANY], "large"),
    ];
    for (patterns, match_) in cases {
        for want in [Want::Take, Want::Read] {
            let engine = space(8 << 20);
            put(&engine, 4, 1);
            engine.put(&[Field::Str("large"), Field::Bytes(&large)]).unwrap();
            put(&engine, 5, 1);
            put(&engine, 6, 6);
            let before = contents(&engine);
            let mut after = before.clone();
            if want == Want::Take {
                after.retain(|one| !one.starts_with(match_));
            }
            let script = |engine: &Arc<Engine>| {
                let waiter = engine.waiter(&[TemplateRef::new(&patterns)], want).unwrap();
                assert!(waiter.wait(Some(Duration::ZERO)).unwrap());
                let bytes =
                    waiter.finish(|tuple| Ok::<_, tupelo_engine::Error>(tuple.image().len()));
                assert!(bytes.unwrap() > 0);
            };
            one_of(&engine, script, &[before, after]);
        }
    }
}

#[test]
fn who_gives_up_after_being_served_gives_the_tuple_back_to_its_place() {
    for patterns in [[int(5), INT], [ANY, int(1)]] {
        let engine = space(8 << 20);
        for value in 0..3 {
            put(&engine, 5, value);
        }
        let before = contents(&engine);
        let script = |engine: &Arc<Engine>| {
            // Served at once; dropped without picking up.
            drop(engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap());
        };
        one_of(&engine, script, std::slice::from_ref(&before));
    }
}

#[test]
fn a_removal_told_to_a_watcher_happens_or_not() {
    for patterns in [[int(5), INT], [ANY, ANY]] {
        let engine = space(8 << 20);
        put(&engine, 5, 1);
        put(&engine, 5, 2);
        let watcher = waiter(&engine, &patterns, Want::Removal);
        let script = |engine: &Arc<Engine>| assert!(take(engine, &[int(5), int(1)]).is_some());
        let both = [vec!["5,1".to_owned(), "5,2".to_owned()], vec!["5,2".to_owned()]];
        kill_everywhere(&engine, script, |found, ended| {
            assert!(both.contains(&found.tuples) && (!ended || found.tuples.len() == 1));
            assert_eq!(found.report.waiters, 1);
        });
        drop(watcher);
    }
}

/// A space in which a process has died with everything a process can have in its hands.
fn with_a_dead_one() -> Arc<Engine> {
    let engine = space(8 << 20);
    let large = vec![9; 3_000];
    for value in 0..3 {
        put(&engine, 5, value);
        engine.put(&[Field::Int(value), Field::Bytes(&large)]).unwrap();
    }
    let dying = fork(|| {
        let narrow = engine.waiter(&[TemplateRef::new(&[int(5), INT])], Want::Take).unwrap();
        let copy = engine.waiter(&[TemplateRef::new(&[int(5), INT])], Want::Read).unwrap();
        let queued = engine.waiter(&[TemplateRef::new(&[int(7), INT])], Want::Take).unwrap();
        let wide = engine.waiter(&[TemplateRef::new(&[ANY, STR])], Want::Take).unwrap();
        let key = "k".repeat(300);
        let long = engine.waiter(&[TemplateRef::new(&[text(&key), ANY])], Want::Read).unwrap();
        let large_copy = engine.waiter(&[TemplateRef::new(&[int(1), BYTES])], Want::Read).unwrap();
        let picked_up = large_copy.finish(|_| {
            let template = [int(2), BYTES];
            engine.try_take(&[TemplateRef::new(&template)], Order::Fifo, |_| {
                std::process::abort();
                #[expect(unreachable_code, reason = "the type of the visitor's result")]
                Ok::<(), tupelo_engine::Error>(())
            })
        });
        drop((narrow, copy, queued, wide, long, picked_up));
    });
    let ended = dying.wait();
    assert_eq!(ended, tupelo_crashtest::Exit::Killed(6), "{ended:?}");
    engine
}

#[test]
fn what_the_dead_had_in_their_hands_comes_back_once_each_in_its_place() {
    let engine = with_a_dead_one();
    let report = engine.check().unwrap();
    // One handed, one being taken; copies do not count.
    assert_eq!((report.held(), report.tuples(), report.waiters), (2, 4, 3));
    let large = |key: usize| format!("{key},3000xSome(9)");
    let all: Vec<String> =
        ["5,0", "5,1", "5,2"].map(String::from).into_iter().chain((0..3).map(large)).collect();
    let script = |engine: &Arc<Engine>| engine.sweep().unwrap();
    let summary = kill_everywhere(&engine, script, |found, _| {
        assert_eq!(found.tuples, all);
        assert_eq!((found.report.held(), found.report.waiters), (0, 0));
    });
    assert!(summary.steps > 400, "the sweep is the script");
}

#[test]
fn a_hand_over_a_take_and_a_put_survive_the_death_of_the_recoverer_too() {
    let engine = space(8 << 20);
    for value in 0..3 {
        put(&engine, 6, value);
    }
    let waiter = waiter(&engine, &[ANY, int(1_000)], Want::Take);
    let script = |engine: &Arc<Engine>| {
        put(engine, 5, 1_000);
        assert!(take(engine, &[int(6), int(1)]).is_some());
        put(engine, 7, 7);
    };
    let legal = [&["6,0", "6,1", "6,2"] as &[&str], &["6,0", "6,2"], &["6,0", "6,2", "7,7"]];
    let judge = |found: Found, ended: bool| {
        let got = result(&waiter);
        let step = legal.iter().position(|state| *state == found.tuples);
        let step = step.unwrap_or_else(|| panic!("{:?} is no legal state", found.tuples));
        assert!(got.is_some() || step == 0, "the tuple was handed over before the take");
        assert!(!ended || step == 2);
    };
    kill_twice(&engine, script, |engine| engine.sweep().unwrap(), judge);
    kill_twice(&engine, script, |engine| assert!(take(engine, &[int(8), INT]).is_none()), judge);
}

/// All that can be in the wait queue for one put, narrow and multi-shape, copies and the tuple itself.
#[test]
fn serving_all_who_are_in_line_survives_the_death_of_the_recoverer_too() {
    let engine = space(8 << 20);
    put(&engine, 6, 6);
    assert!(take(&engine, &[INT, INT]).is_some());
    let queued = [
        waiter(&engine, &[int(5), INT], Want::Read),
        waiter(&engine, &[int(5), INT], Want::Take),
        waiter(&engine, &[ANY, int(1)], Want::Read),
        waiter(&engine, &[int(5), int(1)], Want::Take),
        waiter(&engine, &[ANY, ANY], Want::Take),
    ];
    let judge = |found: Found, ended: bool| {
        assert_eq!(found.tuples, Vec::<String>::new());
        let got = queued.each_ref().map(|waiter| result(waiter).is_some());
        let all = [true, true, true, false, false];
        assert!(got == all || (!ended && got == [false; 5]), "{got:?}");
    };
    let script = |engine: &Arc<Engine>| put(engine, 5, 1);
    kill_twice(&engine, script, |engine| engine.sweep().unwrap(), judge);
    // Comes by in the shape, and by a template that every line is to be looked through for.
    let recoverer = |engine: &Arc<Engine>| assert!(take(engine, &[int(8), INT]).is_none());
    kill_twice(&engine, script, recoverer, judge);
}

/// The narrow line, which another put of the shape goes through first.
#[test]
fn a_hand_over_in_the_shape_itself_survives_the_death_of_who_puts_next_too() {
    for want in [Want::Take, Want::Read] {
        let engine = space(8 << 20);
        put(&engine, 6, 6);
        let waiter = waiter(&engine, &[int(5), INT], want);
        let script = |engine: &Arc<Engine>| put(engine, 5, 1);
        let judge = |found: Found, ended: bool| {
            let got = result(&waiter);
            let (is_there, is_next_there) =
                (found.tuples.contains(&"5,1".into()), found.tuples.contains(&"5,2".into()));
            // The put of the recoverer serves who is still in the wait queue.
            let first = got.as_deref() == Some("5,1");
            assert!(first || got.is_none() || got.as_deref() == Some("5,2"), "got {got:?}");
            assert!(!ended || first, "who came first is served by the first");
            assert_eq!(is_there, want == Want::Read && first, "{:?}", found.tuples);
            if got.as_deref() == Some("5,2") {
                assert_eq!(is_next_there, want == Want::Read);
            }
            let others = usize::from(is_there) + usize::from(is_next_there);
            assert_eq!(found.tuples.len(), 1 + others, "{:?}", found.tuples);
        };
        kill_twice(&engine, script, |engine| put(engine, 5, 2), judge);
    }
}

/// Joining the wait queue, and out of it, in the middle of others.
#[test]
fn leaving_a_line_survives_the_death_of_the_recoverer_too() {
    for patterns in [[int(5), INT], [ANY, int(1)]] {
        let engine = space(8 << 20);
        put(&engine, 6, 6);
        let before = waiter(&engine, &patterns, Want::Read);
        let script = |engine: &Arc<Engine>| {
            let template = [TemplateRef::new(&patterns)];
            let first = engine.waiter(&template, Want::Take).unwrap();
            let second = engine.waiter(&template, Want::Take).unwrap();
            drop(first);
            drop(second);
        };
        let judge = |found: Found, _| {
            assert_eq!((found.tuples, found.report.waiters), (vec!["6,6".to_owned()], 1));
            put(&engine, 5, 1);
            assert_eq!(result(&before).as_deref(), Some("5,1"));
            assert!(take(&engine, &[int(5), int(1)]).is_some(), "no taker is left in line");
            engine.check().unwrap();
        };
        kill_twice(&engine, script, |engine| engine.sweep().unwrap(), judge);
    }
}

#[test]
fn putting_several_shapes_survives_the_death_of_the_recoverer_too() {
    let engine = space(8 << 20);
    put(&engine, 6, 6);
    engine.put(&[Field::Str("a"), Field::Int(0)]).unwrap();
    let before = contents(&engine);
    let after = ["6,6", "5,1", "a,0", "b,1", "c,d"];
    let script = |engine: &Arc<Engine>| {
        let tuples: [&[Field<'_>]; 3] = [
            &[Field::Str("c"), Field::Str("d")],
            &[Field::Int(5), Field::Int(1)],
            &[Field::Str("b"), Field::Int(1)],
        ];
        assert_eq!(engine.put_all(&tuples).unwrap(), 3);
    };
    let judge = |found: Found, ended: bool| {
        assert!(found.tuples == after || (!ended && found.tuples == before), "{:?}", found.tuples);
    };
    kill_twice(&engine, script, |engine| engine.sweep().unwrap(), judge);
    // Comes by the last of the locked shapes first.
    kill_twice(&engine, script, |engine| assert!(take(engine, &[STR, text("x")]).is_none()), judge);
}
