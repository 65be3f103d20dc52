//! Is the file of a space whole, and how fast is its disk?

use std::path::{Path, absolute};
use std::time::Duration;

use tupelo::{Error, Examination, file_url, shell_word};

use super::Finding;
use crate::failure::Failure;
use crate::format;

/// A sync that takes longer makes each durable call slow.
const SYNC_SLOW: Duration = Duration::from_millis(20);

/// Whether a URL is that of a space which is kept in a file.
pub(super) fn is_kept(url: &str) -> bool {
    url.starts_with("file://")
}

/// The lines about the file of the space at `url`, of which what can be read is written to `save_to`.
pub(super) fn findings(url: &str, save_to: Option<&Path>) -> Result<Vec<Finding>, Failure> {
    let found = match tupelo::examine_file(url, save_to) {
        Ok(found) => found,
        // The line about the space says so.
        Err(Error::SpaceNotFound { .. }) if save_to.is_none() => return Ok(Vec::new()),
        Err(error) if save_to.is_none() => {
            return Ok(vec![Finding::fix("file", format!("{url}: {}", error.message()))]);
        }
        Err(error) => return Err(error.into()),
    };
    let mut findings = vec![file(url, &found, save_to.is_some())];
    if let Some(to) = save_to {
        findings.push(saved(url, &found, to)?);
    }
    findings.extend(found.sync_time.map(|time| disk(url, time)));
    Ok(findings)
}

/// The line about the new file, with what to open.
fn saved(url: &str, found: &Examination, to: &Path) -> Result<Finding, Failure> {
    let new = absolute(to).unwrap_or_else(|_| to.to_owned());
    let tuples = format::plural(found.tuples, "tuple", "tuples");
    let text = format!("{tuples} of {url} are in {}", to.display());
    Ok(Finding::ok(
        "saved",
        match &tupelo::spaces_in(&new)?[..] {
            [one] => format!("{text}: open it as {}", shell_word(&file_url(&new, &one.name))),
            several => {
                format!("{text}, with {}", format::plural(several.len() as u64, "space", "spaces"))
            }
        },
    ))
}

fn file(url: &str, found: &Examination, is_saved: bool) -> Finding {
    const SUBJECT: &str = "file";
    let tuples = format::plural(found.tuples, "tuple", "tuples");
    let text = format!("{url}: {} for {tuples}", format::bytes(found.bytes));
    if found.gaps == 0 && found.problems.is_empty() {
        return Finding::ok(SUBJECT, format!("{text}, and whole"));
    }
    let problem = found.problems.first().map_or("some tuples do not decode", String::as_str);
    let gaps = format::plural(found.gaps, "place", "places");
    let way_out = if is_saved {
        "what can be read is saved".to_owned()
    } else {
        format!("tupelo doctor {} --save NEW_FILE", shell_word(url))
    };
    Finding::fix(
        SUBJECT,
        format!("{text} that can be read, and {gaps} that can not ({problem}): {way_out}"),
    )
}

fn disk(url: &str, sync: Duration) -> Finding {
    const SUBJECT: &str = "disk";
    let text = format!("{url}: a sync of the disk takes {:.2} ms", sync.as_secs_f64() * 1e3);
    if sync > SYNC_SLOW {
        Finding::warn(SUBJECT, format!("{text}, and so does each durable call of a thread alone"))
    } else {
        Finding::ok(SUBJECT, text)
    }
}
