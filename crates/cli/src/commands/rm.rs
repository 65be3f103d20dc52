//! `tupelo rm`: removes spaces, or the matches in one space.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tupelo::{Error, Space, SpaceEntry, TupleView};

use super::whole_file::{self, whole_file};
use super::{connect_existing, pids, require_shared};
use crate::arguments::Rm;
use crate::failure::{Failure, MISSING, USAGE};
use crate::format;
use crate::output::Output;
use crate::words::{self, Asked};

/// Tuples that are removed in one step, which has a maximum: together they need not go at one moment. A step notes its
/// changes; where there is no memory for that, smaller steps follow.
const STEP_TUPLES: usize = 10_000;

pub(crate) fn run(options: Rm, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let words = &options.sought.words;
    if let Some(time) = options.idle {
        if !words.is_empty() || url.is_some() || options.sought.condition.is_some() {
            let problem = "--idle finds the spaces itself\n  Leave out the other words, or --idle.";
            return Err(Failure::Usage(problem.to_owned()));
        }
        return remove_idle(time, options.yes, output);
    }
    // A pattern of such a text stands in quotes.
    if url.is_none() && words.len() > 1 && words.iter().all(|word| words::is_space(word)) {
        return words.iter().try_for_each(|url| remove_space(url, options.yes, output));
    }
    let (url, asked) = options.sought.asked_or_space(url)?;
    let Some(asked) = asked else { return remove_space(&url, options.yes, output) };
    let space = connect_existing(&url)?;
    let count = asked.with(|template| space.count(template))?;
    let what = format!("{} matching {asked} in {url}", format::plural(count, "tuple", "tuples"));
    if count == 0 {
        // Nothing was confirmed, so what comes now is not meant.
        return report_matches(0, &url, output);
    }
    if !options.yes {
        confirm(&format!("remove {what}?"))?;
    }
    report_matches(remove_matches(&space, &asked)?, &url, output)
}

/// Removes what matches, and returns how much that was. More may match by now than was counted, and that is meant, too:
/// the template was confirmed, not the list.
fn remove_matches(space: &Space, asked: &Asked) -> Result<u64, Failure> {
    let ignored = |_: TupleView<'_>| Ok::<(), Error>(());
    let (mut removed, mut step_tuples) = (0, STEP_TUPLES);
    loop {
        let step = asked.with(|template| {
            Ok::<_, Failure>(space.take_all(template, Some(step_tuples), ignored))
        })?;
        let step = match step {
            Err(Error::SpaceFull { .. }) if step_tuples > 1 => {
                step_tuples /= 10;
                continue;
            }
            step => step.map_err(|error| {
                let done = format::plural(removed, "tuple", "tuples");
                Failure::from(error).within(|why| format!("{why}\n  Removed before it: {done}."))
            })?,
        };
        removed += step.len() as u64;
        if step.len() < step_tuples {
            return Ok(removed);
        }
    }
}

/// Removes the spaces that have not changed for so long, and that no process uses. Asks once.
fn remove_idle(time: Duration, yes: bool, output: &mut Output) -> Result<(), Failure> {
    let idle = idle_spaces(time)?;
    let long = format::seconds(time);
    if idle.is_empty() {
        output.note(format!("no space has been idle for {long}"));
        return Ok(());
    }
    if !yes {
        let spaces = format::plural(idle.len() as u64, "space", "spaces");
        confirm(&format!("remove {spaces}, idle for {long}: {}?", idle.join(", ")))?;
    }
    for url in idle {
        // Meanwhile somebody else may have removed it, or uses it.
        if !is_in_use(&url) {
            match remove_space(&url, true, output) {
                Err(failure) if failure.exit_code() == MISSING => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}

/// The spaces of this user in which nothing has happened for so long.
fn idle_spaces(time: Duration) -> Result<Vec<String>, Failure> {
    #[expect(clippy::disallowed_methods, reason = "files have dates")]
    let now = SystemTime::now();
    let is_old =
        |space: &SpaceEntry| now.duration_since(space.modified).is_ok_and(|since| since >= time);
    let old = tupelo::spaces()?.into_iter().filter(is_old);
    let urls = old.map(|space| format!("shm://{}", space.name));
    Ok(urls.filter(|url| !is_in_use(url)).collect())
}

/// Whether some other process is in the space. Of a damaged one nobody knows: then yes.
fn is_in_use(url: &str) -> bool {
    let stat = connect_existing(url).and_then(|space| Ok(space.stat()?));
    !stat.is_ok_and(|stat| pids(&stat).is_empty())
}

fn remove_space(url: &str, yes: bool, output: &mut Output) -> Result<(), Failure> {
    let url = require_shared(url)?;
    if let Some(path) = whole_file(url)? {
        return remove_file(&path, url, yes, output);
    }
    // A damaged space, or one of another version, cannot be looked into but has to be removable.
    let looked = connect_existing(url).and_then(|space| Ok(space.stat()?.tuples));
    let tuples = match looked {
        // There is none, or this is no name of one: nothing to ask about.
        Err(failure) if matches!(failure.exit_code(), USAGE | MISSING) => return Err(failure),
        looked => looked.ok(),
    };
    if !yes {
        let tuples = tuples
            .map(|tuples| format!(" with {}", format::plural(tuples, "tuple", "tuples")))
            .unwrap_or_default();
        confirm(&format!("remove the space {url}{tuples}?"))?;
    }
    tupelo::remove(url)?;
    // Of a space that could not be looked into it is not known how many there were.
    let with = tuples.map(|tuples| format!(", with {}", format::plural(tuples, "tuple", "tuples")));
    report(tuples, url, &format!("space removed: {url}{}", with.unwrap_or_default()), output)
}

/// Removes a file with all its spaces.
fn remove_file(path: &Path, url: &str, yes: bool, output: &mut Output) -> Result<(), Failure> {
    let spaces = match tupelo::spaces_in(path) {
        Err(error @ Error::SpaceNotFound { .. }) => return Err(error.into()),
        // A damaged file, or one of another version, cannot be looked into but has to be removable.
        looked => looked.ok(),
    };
    let file = path.display();
    if !yes {
        let amount = spaces.as_ref().map(|spaces| match whole_file::names(spaces) {
            names if names.is_empty() => format!(" with its {}", whole_file::amount(spaces)),
            names => format!(" with its {} ({names})", whole_file::amount(spaces)),
        });
        confirm(&format!("remove the file {file}{}?", amount.unwrap_or_default()))?;
    }
    tupelo::remove(url)?;
    if output.json {
        let (removed, count) = (spaces.as_deref().map(whole_file::tuples), spaces.map(|s| s.len()));
        return output
            .object(&serde_json::json!({ "url": url, "removed": removed, "spaces": count }));
    }
    let with = spaces.map(|spaces| format!(", with {}", whole_file::amount(&spaces)));
    output.line(format!("file removed: {file}{}", with.unwrap_or_default()))
}

fn report_matches(count: u64, url: &str, output: &mut Output) -> Result<(), Failure> {
    let tuples = format::plural(count, "tuple", "tuples");
    report(Some(count), url, &format!("{tuples} removed from {url}"), output)
}

/// Tells how many tuples are gone.
fn report(count: Option<u64>, url: &str, text: &str, output: &mut Output) -> Result<(), Failure> {
    if output.json {
        output.object(&serde_json::json!({ "url": url, "removed": count }))
    } else {
        output.line(text)
    }
}

/// Asks on the terminal; anything but yes is no.
pub(super) fn confirm(question: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(format!(
            "{question}\n  Add --yes: there is no terminal to ask."
        )));
    }
    let mut answer = String::new();
    let asked = write!(io::stderr(), "{question} [y/N] ");
    asked
        .and_then(|()| io::stdin().read_line(&mut answer))
        .map_err(|error| Failure::output(&error))?;
    if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Failure::Other("nothing was removed".to_owned()))
    }
}
