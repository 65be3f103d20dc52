//! `tupelo dead` and `tupelo requeue`: tuples whose last attempt has failed, and how they are tried again (rule K5).

use serde_json::json;
use tupelo::{DeadLetterRecord, Tuple};

use super::connect_existing;
use crate::arguments::{Dead, Requeue};
use crate::failure::Failure;
use crate::format;
use crate::output::Output;
use crate::words;

/// Prints the dead tuples that match, the oldest of each shape first. They stay where they are.
pub(crate) fn list(options: Dead, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let (url, asked) = options.sought.asked_or_all(url)?;
    let space = connect_existing(&url)?;
    let letters = asked.with(|template| {
        space.dead(template, |view, dead_letter| {
            Ok::<(Tuple, DeadLetterRecord), Failure>((words::owned(view)?, dead_letter))
        })
    })?;
    letters.iter().try_for_each(|(tuple, dead_letter)| print(tuple, dead_letter, output))
}

/// Puts the dead tuples that match back at their old places.
pub(crate) fn requeue(
    options: Requeue,
    url: Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    let (url, asked) = options.sought.asked(url)?;
    let space = connect_existing(&url)?;
    let count = asked.with(|template| space.requeue(template))?;
    if output.json {
        return output.object(&json!({ "url": url, "requeued": count }));
    }
    output.line(format!("{} back in {url}", format::plural(count, "tuple is", "tuples are")))
}

fn print(
    tuple: &Tuple,
    dead_letter: &DeadLetterRecord,
    output: &mut Output,
) -> Result<(), Failure> {
    let reasons: Vec<&str> = dead_letter.reasons.iter().map(|one| one.reason.as_str()).collect();
    if output.json {
        let mut object = tupelo_json::line(tuple);
        object["attempts"] = json!(dead_letter.attempts);
        object["reasons"] = json!(reasons);
        return output.object(&object);
    }
    let attempts = format::plural(u64::from(dead_letter.attempts), "attempt", "attempts");
    output.line(format_args!("{tuple}   {attempts}"))?;
    // The last one says most; a text of several lines stays a part of its tuple.
    let last = reasons.last().copied().unwrap_or("the reasons found no room");
    last.lines().try_for_each(|line| output.line(format_args!("  {}", harmless(line))))
}

/// Another program's text, without characters that would move the cursor of a terminal.
fn harmless(line: &str) -> String {
    let shown = |letter: char| {
        if letter.is_control() { letter.escape_debug().to_string() } else { letter.to_string() }
    };
    line.chars().map(shown).collect()
}
