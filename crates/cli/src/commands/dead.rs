//! `tupelo dead` and `tupelo requeue`: tuples whose last attempt has failed, and how they are tried again (rule K5).

use serde_json::json;
use tupelo::{Obituary, Space, Tuple};

use super::connect_existing;
use crate::arguments::{Dead, Requeue};
use crate::failure::Failure;
use crate::format;
use crate::json;
use crate::output::Output;
use crate::words::{self, Asked};

/// What is asked for where nothing is said: every tuple.
const EVERYTHING: &str = "...";

/// Prints the dead tuples that match, the oldest of each shape first. They stay where they are.
pub(crate) fn list(options: Dead, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let (url, mut words) = words::space_and_words(options.words, url)?;
    if words.is_empty() {
        words.push(EVERYTHING.to_owned());
    }
    let (space, asked) = open(&url, &words, options.condition.as_deref())?;
    let letters = asked.with(|template| {
        space.dead(template, |view, obituary| {
            Ok::<(Tuple, Obituary), Failure>((words::owned(view)?, obituary))
        })
    })?;
    letters.iter().try_for_each(|(tuple, obituary)| print(tuple, obituary, output))
}

/// Puts the dead tuples that match back at their old places.
pub(crate) fn requeue(
    options: Requeue,
    url: Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    let (url, words) = words::space_and_fields(options.words, url)?;
    let (space, asked) = open(&url, &words, options.condition.as_deref())?;
    let count = asked.with(|template| space.requeue(template))?;
    if output.json {
        return output.object(&json!({ "url": url, "requeued": count }));
    }
    output.line(format!("{} back in {url}", format::plural(count, "tuple is", "tuples are")))
}

fn open(url: &str, words: &[String], condition: Option<&str>) -> Result<(Space, Asked), Failure> {
    let asked = Asked::parse(words)?.on_condition(condition)?;
    Ok((connect_existing(url)?, asked))
}

fn print(tuple: &Tuple, obituary: &Obituary, output: &mut Output) -> Result<(), Failure> {
    let reasons: Vec<&str> = obituary.reasons.iter().map(|one| one.reason.as_str()).collect();
    if output.json {
        let mut object = json::line(tuple);
        object["attempts"] = json!(obituary.attempts);
        object["reasons"] = json!(reasons);
        return output.object(&object);
    }
    let attempts = format::plural(u64::from(obituary.attempts), "attempt", "attempts");
    output.line(format_args!("{tuple}   {attempts}"))?;
    // The last one says most; a text of several lines stays a part of its tuple.
    let last = reasons.last().copied().unwrap_or("the reasons found no room");
    last.lines().try_for_each(|line| output.line(format_args!("  {line}")))
}
