//! Every engine against the model: the same operations by chance, and every answer must be one that the
//! rules allow (V2, V3, M, O, T, B1). At the end the contents must agree, too.
//!
//! What is random prints its seed. `TUPELO_TORTURE_SECONDS` makes it run as long as that.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use common::{ENGINES, Facade, rounds};
use tupelo_model::{Space, State, random, run_against_model};

/// Enough to find each of the faults of the model's own tests, many times over.
const CASES: u32 = 300;

#[test]
fn every_answer_of_every_engine_is_one_that_the_rules_allow() {
    let inputs = (random::limits(), random::operations(60));
    rounds(|_| {
        for engine in ENGINES {
            random::check(CASES, &inputs, |(limits, operations)| {
                let space = || Space::with_limits(limits);
                let mut facade = Facade::new(engine, limits);
                run_against_model(&mut facade, State::new(space(), space()), &operations)
                    .map_err(|objection| format!("{engine}: {objection}"))
            });
        }
    });
}
