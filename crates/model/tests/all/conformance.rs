//! The cases of `conformance/` hold for the model, and cover every delivered rule.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tupelo_model::State;
use tupelo_model::conformance::{read_folder, run_folder};
use tupelo_model::{Limits, Space};

/// The families whose rules one caller can see. C is shown by killing processes, in the engine's tests; so is L5, the
/// end of owners.
const FAMILIES: [char; 9] = ['V', 'M', 'O', 'T', 'B', 'L', 'K', 'X', 'N'];
const SHOWN_ELSEWHERE: [&str; 1] = ["L5"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn empty_spaces(limits: Limits) -> State {
    State::new(Space::with_limits(limits), Space::with_limits(limits))
}

#[test]
fn the_model_keeps_every_rule_of_the_cases() {
    run_folder(&repository().join("conformance"), |case| empty_spaces(case.limits));
}

#[test]
fn every_delivered_rule_has_a_case_and_every_case_a_delivered_rule() {
    let contract = std::fs::read_to_string(repository().join("docs/semantics.md")).unwrap();
    let delivered: BTreeSet<String> = delivered_rules(&contract)
        .filter(|rule| rule.starts_with(FAMILIES) && !SHOWN_ELSEWHERE.contains(rule))
        .map(str::to_owned)
        .collect();
    assert!(delivered.len() > 25, "docs/semantics.md was not understood: {delivered:?}");

    let cases = read_folder(&repository().join("conformance"));
    let cited: BTreeSet<String> = cases.iter().flat_map(|case| case.rules.clone()).collect();
    assert_eq!(delivered, cited, "left: delivered rules; right: rules that cases cite");
}

/// The numbers of the rules that are not marked as not delivered, nor in a family that is.
fn delivered_rules(contract: &str) -> impl Iterator<Item = &str> {
    let mut family_delivered = true;
    contract.lines().filter_map(move |line| {
        if line.starts_with("## ") {
            family_delivered = !line.contains("(not delivered yet)");
        }
        let (number, rest) = line.strip_prefix("- ")?.split_once(' ')?;
        let digits = number.strip_prefix(|letter: char| letter.is_ascii_uppercase())?;
        let is_rule = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        (is_rule && family_delivered && !rest.starts_with("*(not delivered yet)*"))
            .then_some(number)
    })
}

/// Why a file with this one case can not be read.
fn refused(name: &str, case: &str) -> String {
    let folder = std::env::temp_dir().join(format!("tupelo-model-{}-{name}", std::process::id()));
    let file = format!("{{\"cases\": [{case}]}}");
    std::fs::create_dir_all(&folder).expect("a folder of this test");
    std::fs::write(folder.join("case.json"), file).expect("a file in it");
    let read = std::panic::catch_unwind(|| read_folder(&folder).len());
    std::fs::remove_dir_all(&folder).expect("the folder that was just made");
    *read.expect_err(case).downcast::<String>().expect("a message")
}

#[test]
fn limits_that_are_no_object_are_refused() {
    for limits in ["3", "[]", "\"tuples_max\""] {
        let case = format!(r#"{{"name": "c", "rule": [], "limits": {limits}, "steps": []}}"#);
        assert_eq!(refused("limits", &case), "case.json: c: `limits` is not an object");
    }
}

#[test]
fn kinds_of_events_that_are_no_list_are_refused() {
    let step = r#"{"subscribe": "_", "as": "s", "on": "put", "buffer": 8}"#;
    let case = format!(r#"{{"name": "c", "rule": [], "steps": [{step}]}}"#);
    let why = refused("kinds", &case);
    assert!(why.ends_with("`on` is not a list"), "{why}");
}

#[test]
fn a_search_that_wants_something_else_is_refused() {
    let step = r#"{"search": "_", "want": "raed", "gives": null}"#;
    let case = format!(r#"{{"name": "c", "rule": [], "steps": [{step}]}}"#);
    let why = refused("want", &case);
    assert!(why.ends_with("`want` is neither \"take\" nor \"read\""), "{why}");
}

#[test]
fn the_names_of_the_cases_differ() {
    let cases = read_folder(&repository().join("conformance"));
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
}
