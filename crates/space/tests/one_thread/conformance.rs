//! The cases of `conformance/` hold on every engine.

use std::path::Path;

use crate::common::{Facade, WITH_FILES};
use tupelo_model::conformance::run_folder;

#[test]
fn every_engine_keeps_every_rule_of_the_cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    for engine in WITH_FILES {
        run_folder(&folder, |case| Facade::new(engine, case.limits));
    }
}
