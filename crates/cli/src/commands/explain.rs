//! `tupelo explain`: the page of an error, or why a template matches nothing.

use super::connect_existing;
use crate::arguments::Explain;
use crate::failure::Failure;
use crate::output::Output;
use crate::words::{self, Asked};

/// The pages, by code. A test checks that every error of the library has one.
const PAGES: &[(&str, &str)] = &[
    ("TUP-001", include_str!("../../errors/TUP-001.md")),
    ("TUP-002", include_str!("../../errors/TUP-002.md")),
    ("TUP-003", include_str!("../../errors/TUP-003.md")),
    ("TUP-004", include_str!("../../errors/TUP-004.md")),
    ("TUP-005", include_str!("../../errors/TUP-005.md")),
    ("TUP-006", include_str!("../../errors/TUP-006.md")),
    ("TUP-007", include_str!("../../errors/TUP-007.md")),
    ("TUP-008", include_str!("../../errors/TUP-008.md")),
    ("TUP-009", include_str!("../../errors/TUP-009.md")),
    ("TUP-010", include_str!("../../errors/TUP-010.md")),
    ("TUP-011", include_str!("../../errors/TUP-011.md")),
    ("TUP-012", include_str!("../../errors/TUP-012.md")),
    ("TUP-013", include_str!("../../errors/TUP-013.md")),
    ("TUP-014", include_str!("../../errors/TUP-014.md")),
    ("TUP-015", include_str!("../../errors/TUP-015.md")),
    ("TUP-016", include_str!("../../errors/TUP-016.md")),
    ("TUP-017", include_str!("../../errors/TUP-017.md")),
    ("TUP-018", include_str!("../../errors/TUP-018.md")),
    ("TUP-019", include_str!("../../errors/TUP-019.md")),
    ("TUP-020", include_str!("../../errors/TUP-020.md")),
    ("TUP-021", include_str!("../../errors/TUP-021.md")),
    ("TUP-022", include_str!("../../errors/TUP-022.md")),
    ("TUP-023", include_str!("../../errors/TUP-023.md")),
    ("TUP-024", include_str!("../../errors/TUP-024.md")),
    ("TUP-025", include_str!("../../errors/TUP-025.md")),
    ("TUP-026", include_str!("../../errors/TUP-026.md")),
    ("TUP-030", include_str!("../../errors/TUP-030.md")),
];

pub(crate) fn run(
    options: Explain,
    url: Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    // With a space named beforehand every word is a field.
    match options.words.first() {
        None if url.is_none() => contents(output),
        Some(word)
            if url.is_none()
                && let Some(code) = code(word) =>
        {
            page(&code, output)
        }
        _ => no_match(options, url, output),
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

fn no_match(options: Explain, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let (url, words) = words::space_and_fields(options.words, url)?;
    let asked = Asked::parse(&words)?.on_condition(options.condition.as_deref())?;
    let space = connect_existing(&url)?;
    let explanation = asked.with(|template| space.explain(template))?;
    if output.json {
        output.object(&serde_json::json!({ "url": url, "explanation": explanation.to_string() }))
    } else {
        output.line(explanation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_with_its_code_and_stays_within_a_screen() {
        for (code, page) in PAGES {
            assert!(page.starts_with(&format!("# {code} ")), "{code}");
            assert!(page.lines().all(|line| line.chars().count() <= 110), "{code}");
        }
    }

    /// The library's codes are in its source alone; nothing there lists them.
    #[test]
    fn every_error_of_the_library_has_a_page() {
        let source = include_str!("../../../space/src/error.rs");
        let codes: Vec<&str> =
            source.match_indices("\"TUP-").map(|(at, _)| &source[at + 1..at + 8]).collect();
        assert!(!codes.is_empty());
        for code in codes {
            assert!(PAGES.iter().any(|(known, _)| *known == code), "{code} has no page");
        }
    }
}
