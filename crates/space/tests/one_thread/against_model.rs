//! Every engine against the model: the same operations by chance, and every answer must be one that the
//! rules allow (V2, V3, M, O, T, B1). At the end the contents must agree, too.
//!
//! What is random prints its seed. `TUPELO_TORTURE_SECONDS` makes it run as long as that.

use crate::common::{Facade, WITH_FILES, rounds};
use proptest::strategy::{Just, Strategy};
use tupelo_model::{Limits, Operation, Place, Space, State, random, run_against_model};

/// Enough to find each of the faults of the model's own tests, many times over.
const CASES: u32 = 500;
/// Of a space that is kept in a file one in so many: each of its steps is a transaction of SQLite.
const CASES_PER_FILE: u32 = 8;
/// Long ones.
const BULK_CASES: u32 = 12;
/// So many tuples in one step fill the undo log more than once.
const BULK_TUPLES_MAX: usize = 1_500;

#[test]
fn every_answer_of_every_engine_is_one_that_the_rules_allow() {
    agree(CASES, &(random::limits(), random::operations(60)));
}

#[test]
fn operations_on_many_tuples_at_once_agree_as_well_o5_o6_o7() {
    agree(BULK_CASES, &(Just(Limits::default()), random::bulk_operations(BULK_TUPLES_MAX)));
}

fn agree(cases: u32, inputs: &impl Strategy<Value = (Limits, Vec<(Place, Operation)>)>) {
    rounds(|_| {
        for engine in WITH_FILES {
            let cases = if engine == "file" { cases.div_ceil(CASES_PER_FILE) } else { cases };
            random::check(cases, inputs, |(limits, operations)| {
                let space = || Space::with_limits(limits);
                let mut facade = Facade::new(engine, limits);
                run_against_model(&mut facade, State::new(space(), space()), &operations)
                    .map_err(|objection| format!("{engine}: {objection}"))
            });
        }
    });
}
