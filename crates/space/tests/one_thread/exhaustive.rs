//! Every short sequence of operations against the model: what random ones may miss, of the operations that change what the
//! others find. All answers must be such that the rules allow, and at the end the contents must agree.
//!
//! In the set, longer sequences are made up of these by chance (`against_model.rs`).

use crate::common::{ENGINES, Facade};
use tupelo::{Kind, Template, TemplateRef, Tuple, template, tuple};
use tupelo_crashtest::torture_time;
use tupelo_model::{
    ClaimTerms, Limits, Operation, Order, Place, Space, State, Want, run_against_model,
};

/// Of so many operations each sequence consists.
const LENGTH: usize = 3;
/// With `TUPELO_TORTURE_SECONDS`, in one of the engines: a hundred thousand sequences, in a minute.
const LENGTH_LONG: usize = 4;
/// Nothing ends by itself.
const HOURS_MS: u64 = 24 * 3_600_000;

fn owned(template: TemplateRef<'_>) -> Template {
    template.to_template().unwrap()
}

fn label(of: &str) -> String {
    of.to_owned()
}

fn put(tuple: Tuple) -> Operation {
    Operation::Put { tuple }
}

fn take(template: Template) -> Operation {
    Operation::TryTake { template, order: Order::Fifo }
}

/// What the sequences are made of.
fn operations() -> Vec<Operation> {
    let [first, second] = [tuple!["a", 1_i64], tuple!["a", 2_i64]];
    let any_a = || owned(template!["a", Kind::Int]);
    let inside =
        |operation| Operation::Inside { label: label("t"), operation: Box::new(operation) };
    let terms = ClaimTerms { ttl_ms: HOURS_MS, attempts_max: Some(1) };
    vec![
        put(first.clone()),
        put(second),
        take(any_a()),
        take(owned(template!["a", 2_i64])),
        Operation::TakeAll { template: owned(template![..]), limit: None },
        Operation::TrySwap { template: any_a(), to: tuple!["b", 1_i64] },
        Operation::Start { label: label("w"), want: Want::Take, template: any_a() },
        Operation::Cancel { label: label("w") },
        Operation::Claim { label: label("c"), template: any_a(), order: Order::Fifo, terms },
        Operation::Abort { label: label("c"), reason: label("no") },
        Operation::Done { label: label("c") },
        Operation::Requeue { template: any_a() },
        Operation::Begin { label: label("t"), ttl_ms: HOURS_MS },
        inside(take(any_a())),
        inside(put(first)),
        Operation::Commit { label: label("t") },
        Operation::RollBack { label: label("t") },
        Operation::MoveTo { template: any_a() },
    ]
}

/// Runs each sequence that begins with `begin` and has `left` more operations of `all`; returns how many there are. Shorter ones
/// are the beginnings of longer ones, which agree only if they do.
fn run_all(
    engine: &str,
    all: &[Operation],
    begin: &mut Vec<(Place, Operation)>,
    left: usize,
) -> usize {
    if left == 0 {
        let space = || Space::with_limits(Limits::default());
        let mut facade = Facade::new(engine, Limits::default());
        let ran = run_against_model(&mut facade, State::new(space(), space()), begin);
        assert!(ran.is_ok(), "{engine}: {begin:#?}: {}", ran.unwrap_err());
        return 1;
    }
    let mut count = 0;
    for operation in all {
        begin.push((Place::Main, operation.clone()));
        count += run_all(engine, all, begin, left - 1);
        begin.pop();
    }
    count
}

#[test]
fn every_sequence_of_three_operations_is_answered_as_the_rules_allow() {
    let all = operations();
    for engine in ENGINES {
        assert_eq!(run_all(engine, &all, &mut Vec::new(), LENGTH), 5_832);
    }
    if torture_time().is_some() {
        assert_eq!(run_all(ENGINES[0], &all, &mut Vec::new(), LENGTH_LONG), 104_976);
    }
}
