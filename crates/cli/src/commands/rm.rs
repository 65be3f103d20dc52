//! `tupelo rm`: removes a space, or the tuples in it that match.

use std::io::{self, IsTerminal, Write};

use super::connect_existing;
use crate::arguments::Rm;
use crate::failure::Failure;
use crate::format;
use crate::output::Output;

pub(crate) fn run(options: Rm, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let (url, asked) = options.sought.asked_or_space(url)?;
    let Some(asked) = asked else { return remove_space(&url, options.yes, output) };
    let space = connect_existing(&url)?;
    let count = asked.with(|template| space.count(template))?;
    let what = format!("{} matching {asked} in {url}", format::plural(count, "tuple", "tuples"));
    if count > 0 && !options.yes {
        confirm(&format!("remove {what}?"))?;
    }
    // More may match by now, and those are meant too: the template was confirmed, not the list.
    let removed =
        asked.with(|template| space.take_all(template, None, |_| Ok::<(), Failure>(())))?;
    told(removed.len() as u64, &url, output)
}

fn remove_space(url: &str, yes: bool, output: &mut Output) -> Result<(), Failure> {
    // A damaged space, or one of another version, can not be looked into but has to be removable.
    let tuples = connect_existing(url).and_then(|space| Ok(space.stat()?.tuples)).ok();
    if !yes {
        let tuples = tuples
            .map(|tuples| format!(" with {}", format::plural(tuples, "tuple", "tuples")))
            .unwrap_or_default();
        confirm(&format!("remove the space {url}{tuples}?"))?;
    }
    tupelo::remove(url)?;
    told(tuples.unwrap_or_default(), url, output)
}

fn told(count: u64, url: &str, output: &mut Output) -> Result<(), Failure> {
    if output.json {
        return output.object(&serde_json::json!({ "url": url, "removed": count }));
    }
    let tuples = format::plural(count, "tuple", "tuples");
    output.line(format!("{tuples} removed from {url}"))
}

/// Asks on the terminal; anything but yes is no.
fn confirm(question: &str) -> Result<(), Failure> {
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
