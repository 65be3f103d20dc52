//! `tupelo explain`: the page of an error, or why a template matches nothing.

use super::connect_existing;
use crate::arguments::Explain;
use crate::failure::Failure;
use crate::output::Output;
use crate::words::{self, Asked};

/// The pages, by code. A test checks that every error of the library has one.
const PAGES: &[(&str, &str)] = &[];

pub(crate) fn run(
    options: Explain,
    url: Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    match options.words.first() {
        None if url.is_none() => contents(output),
        Some(word) => match code(word) {
            Some(code) => page(&code, output),
            None => no_match(options.words, url, output),
        },
        None => no_match(options.words, url, output),
    }
}

/// The code that a word spells: `TUP-003`, `tup-3`.
fn code(word: &str) -> Option<String> {
    let number: u16 = word.to_ascii_uppercase().strip_prefix("TUP-")?.parse().ok()?;
    Some(format!("TUP-{number:03}"))
}

/// One line per page: its heading.
fn contents(output: &mut Output) -> Result<(), Failure> {
    PAGES.iter().try_for_each(|(code, page)| {
        let heading = page.lines().next().unwrap_or_default().trim_start_matches("# ");
        if output.json {
            output.object(&serde_json::json!({ "code": code, "heading": heading }))
        } else {
            output.line(heading)
        }
    })
}

fn page(code: &str, output: &mut Output) -> Result<(), Failure> {
    let Some((_, page)) = PAGES.iter().find(|(known, _)| *known == code) else {
        return Err(Failure::Usage(format!(
            "there is no error {code}\n  `tupelo explain` lists those there are."
        )));
    };
    if output.json {
        output.object(&serde_json::json!({ "code": code, "page": page }))
    } else {
        output.line(page.trim_end())
    }
}

fn no_match(words: Vec<String>, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let (url, words) = words::space_and_fields(words, url)?;
    let asked = Asked::parse(&words)?;
    let space = connect_existing(&url)?;
    let explanation = asked.with(|template| space.explain(template))?;
    if output.json {
        output.object(&serde_json::json!({ "url": url, "explanation": explanation.to_string() }))
    } else {
        output.line(explanation)
    }
}
