//! Operations with a condition over the whole tuple survive death at any instruction (C1 to C3, M9, T5).

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use crate::shared::{INT, kill_everywhere, kill_twice, one_of, put, shown, space, take};
use tupelo_engine::{Engine, Order, Want};
use tupelo_tuple::{Condition, KindSet, PatternRef, TemplateRef};

const ANY: PatternRef<'static> = PatternRef::Kinds(KindSet::ALL);
/// Narrow templates wait in the partition of their shape, multi-shape ones in the line of those.
const TEMPLATES: [[PatternRef<'static>; 2]; 2] = [[INT, INT], [ANY, ANY]];

/// A space with three tuples, and a condition that the second of them fulfils.
fn three() -> (Arc<Engine>, Condition) {
    let engine = space(8 << 20);
    for value in 1..=3 {
        put(&engine, 6, value);
    }
    (engine, Condition::new("f[0] / f[1] == 3").unwrap())
}

fn texts(tuples: &[&str]) -> Vec<String> {
    tuples.iter().map(ToString::to_string).collect()
}

#[test]
fn a_take_with_a_condition_takes_or_does_not() {
    for patterns in &TEMPLATES {
        let (engine, condition) = three();
        let legal = [texts(&["6,1", "6,2", "6,3"]), texts(&["6,1", "6,3"])];
        let script = |engine: &Arc<Engine>| {
            let template =
                TemplateRef { condition: Some(&condition), ..TemplateRef::new(patterns) };
            assert_eq!(
                engine.try_take(&[template], Order::Fifo, shown).unwrap(),
                Some("6,2".into())
            );
        };
        one_of(&engine, script, &legal);
    }
}

#[test]
fn a_waiter_that_found_its_tuple_itself_picks_it_up_or_it_is_back() {
    for patterns in &TEMPLATES {
        for want in [Want::Take, Want::Read] {
            let (engine, condition) = three();
            let before = texts(&["6,1", "6,2", "6,3"]);
            let after = if want == Want::Take { texts(&["6,1", "6,3"]) } else { before.clone() };
            let script = |engine: &Arc<Engine>| {
                let template =
                    TemplateRef { condition: Some(&condition), ..TemplateRef::new(patterns) };
                let waiter = engine.waiter(&[template], want).unwrap();
                assert_eq!(waiter.finish(shown).unwrap(), "6,2");
            };
            kill_everywhere(&engine, script, |found, ended| {
                assert!(found.tuples == after || (!ended && found.tuples == before), "{found:?}");
                assert_eq!((found.report.held(), found.report.waiters), (0, 0));
            });
        }
    }
}

#[test]
fn a_waiter_with_a_condition_that_dies_leaves_no_trace_whoever_clears_up_after_it() {
    for patterns in &TEMPLATES {
        let (engine, condition) = three();
        let before = texts(&["6,1", "6,2", "6,3"]);
        let script = |engine: &Arc<Engine>| {
            let template =
                TemplateRef { condition: Some(&condition), ..TemplateRef::new(patterns) };
            // Found, handed over, and given back.
            drop(engine.waiter(&[template], Want::Take).unwrap());
        };
        let recoverer = |engine: &Arc<Engine>| engine.sweep().unwrap();
        kill_twice(&engine, script, recoverer, |found, _| {
            assert_eq!((&found.tuples, found.report.waiters), (&before, 0));
            assert_eq!(found.report.held(), 0);
        });
    }
}

#[test]
fn a_waiter_gets_what_a_killed_put_has_stored_or_nothing_o3_t6() {
    for patterns in &TEMPLATES {
        let engine = space(8 << 20);
        let condition = Condition::new("f[1] == 9").unwrap();
        put(&engine, 6, 1);
        let template = TemplateRef { condition: Some(&condition), ..TemplateRef::new(patterns) };
        let waiter = RefCell::new(Some(engine.waiter(&[template], Want::Take).unwrap()));
        let script = |engine: &Arc<Engine>| put(engine, 6, 9);
        kill_everywhere(&engine, script, |found, ended| {
            let is_there = found.tuples.contains(&"6,9".to_owned());
            assert!(is_there || !ended);
            // Who judges is a fork of the process that joined the wait queue.
            let waiter = waiter.take().unwrap();
            assert_eq!(waiter.wait(Some(Duration::ZERO)).unwrap(), is_there);
            if is_there {
                assert_eq!(waiter.finish(shown).unwrap(), "6,9");
            } else {
                waiter.give_up().unwrap();
            }
            assert_eq!(take(&engine, &[INT, INT]), Some("6,1".into()));
            put(&engine, 6, 1);
            engine.check().unwrap();
        });
        drop(waiter);
    }
}
