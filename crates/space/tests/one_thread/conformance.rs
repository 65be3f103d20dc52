//! The cases of `conformance/` hold on every engine.

use std::path::Path;

use crate::common::{ENGINES, Facade};
use tupelo_model::conformance::run_folder;

#[test]
fn every_engine_keeps_every_rule_of_the_cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    for engine in ENGINES {
        run_folder(&folder, |case| Facade::new(engine, case.limits));
    }
}
