//! A case, and how a folder of them is read.
//!
//! The files are part of this repository. One that cannot be read is a mistake of its author, so reading panics with
//! the place and the correct form.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::step::{Probe, probes};
use crate::{Limits, WhenFull};

/// One case, compiled.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of its file, without the folder.
    pub file: String,
    /// A true sentence.
    pub name: String,
    /// The rules that it holds, such as `M2`.
    pub rules: Vec<String>,
    /// What its two spaces are created with.
    pub limits: Limits,
    pub(super) probes: Vec<Probe>,
}

/// Reads all cases of a folder, file by file in the order of their names.
///
/// # Panics
///
/// If a file cannot be read or is not as `conformance/README.md` says.
pub fn read_folder(folder: &Path) -> Vec<Case> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry of a folder that was just opened").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| read_file(file)).collect()
}

fn read_file(path: &Path) -> Vec<Case> {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let json: Json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let cases = json["cases"].as_array().unwrap_or_else(|| panic!("{file}: `cases` is not a list"));
    cases.iter().map(|json| case(&file, json)).collect()
}

fn case(file: &str, json: &Json) -> Case {
    let name = json["name"].as_str().unwrap_or_else(|| panic!("{file}: a case without a name"));
    let place = format!("{file}: {name}");
    let known = ["name", "rule", "limits", "steps"];
    for key in json.as_object().into_iter().flat_map(|case| case.keys()) {
        assert!(known.contains(&key.as_str()), "{place}: `{key}` is not one of {known:?}");
    }
    let list = |key: &str| {
        json[key].as_array().unwrap_or_else(|| panic!("{place}: `{key}` is not a list"))
    };
    let rules = list("rule").iter().map(|rule| {
        rule.as_str().unwrap_or_else(|| panic!("{place}: a rule is a text")).to_owned()
    });
    let steps = list("steps").iter().enumerate();
    Case {
        file: file.to_owned(),
        name: name.to_owned(),
        rules: rules.collect(),
        limits: limits(&place, &json["limits"]),
        probes: steps.flat_map(|(index, step)| probes(&place, index + 1, step)).collect(),
    }
}

fn limits(place: &str, json: &Json) -> Limits {
    let mut limits = Limits::default();
    if json.is_null() {
        return limits; // most cases have none
    }
    let named = json.as_object().unwrap_or_else(|| panic!("{place}: `limits` is not an object"));
    for (key, value) in named {
        if key == "when_full" {
            limits.when_full = match value.as_str() {
                Some("error") => WhenFull::Error,
                Some("wait") => WhenFull::Wait,
                Some("drop-oldest") => WhenFull::DropOldest,
                _ => panic!("{place}: {value} is no policy"),
            };
            continue;
        }
        assert!(key == "tuples_max", "{place}: `{key}` is not a limit");
        let number = value.as_u64().unwrap_or_else(|| panic!("{place}: `{key}` is not a number"));
        limits.tuples_max = Some(usize::try_from(number).expect("a small number"));
    }
    limits
}
