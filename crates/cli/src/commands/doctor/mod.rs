//! `tupelo doctor`: is this machine fit for spaces, and are its spaces well?
//!
//! Each line is `ok`, `warn` (it works, but not as well as it could) or `fix` (something will fail, and the line says
//! what to do). What is well and was not asked for by name is one line. It ends with 1 if there is anything to fix.

mod file;
mod machine;
mod removed;
mod spaces;
mod unserved;

use std::path::Path;

use serde_json::json;

use super::connect_existing;
use super::whole_file::has_names_only;
use crate::arguments::Doctor;
use crate::failure::{Failure, USAGE};
use crate::format;
use crate::output::{Color, Output};

#[derive(Clone, Copy)]
enum Level {
    Ok,
    Warn,
    Fix,
}

/// One line of the report.
struct Finding {
    level: Level,
    subject: &'static str,
    text: String,
}

impl Finding {
    fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Ok, subject, text: text.into() }
    }

    fn warn(subject: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Warn, subject, text: text.into() }
    }

    fn fix(subject: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Fix, subject, text: text.into() }
    }
}

pub(crate) fn run(
    options: Doctor,
    url: Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    let url = options.space.or(url);
    if options.save.is_some() && !url.as_deref().is_some_and(file::is_kept) {
        return Err(Failure::Usage(
            "--save needs a space of a file, as in `tupelo doctor file:///srv/jobs.tupelo --save saved.tupelo`"
                .to_owned(),
        ));
    }
    let is_named = url.is_some();
    let spaces = match url {
        Some(url) => of_url(&url, options.save.as_deref())?,
        None => spaces::findings().into_iter().chain(removed::findings()).collect(),
    };
    let machine = machine::findings();
    let folds = !options.all && !output.json;
    let may_fold = machine.iter().map(|one| (one, folds));
    let findings = may_fold.chain(spaces.iter().map(|one| (one, folds && !is_named)));
    let (folded, shown): (Vec<_>, Vec<_>) =
        findings.partition(|(one, may_fold)| *may_fold && matches!(one.level, Level::Ok));
    shown.iter().try_for_each(|(finding, _)| print(finding, output))?;
    if !folded.is_empty() {
        print(&Finding::ok("all well", rest(&folded)), output)?;
    }
    let sound = !shown.iter().any(|(finding, _)| matches!(finding.level, Level::Fix));
    if sound { Ok(()) } else { Err(Failure::Reported(1)) }
}

/// The lines about a space, and about its file, of which what can be read is written to `save_to`.
fn of_url(url: &str, save_to: Option<&Path>) -> Result<Vec<Finding>, Failure> {
    let mut findings = if has_names_only(url)? {
        // No space has this URL, and that is as it should be.
        Vec::new()
    } else {
        match connect_existing(url) {
            // A text that is no name of a space cannot be looked at.
            Err(failure) if failure.exit_code() == USAGE => return Err(failure),
            _ => spaces::findings_of(url),
        }
    };
    if file::is_kept(url) {
        findings.extend(file::findings(url, save_to)?);
    }
    Ok(findings)
}

/// What is well, by subjects: "clock, cores, 3 x space; --all shows it".
fn rest(folded: &[(&Finding, bool)]) -> String {
    let mut subjects: Vec<(&str, u64)> = Vec::new();
    for (Finding { subject, .. }, _) in folded {
        match subjects.iter_mut().find(|(known, _)| known == subject) {
            Some((_, times)) => *times += 1,
            None => subjects.push((subject, 1)),
        }
    }
    let named = subjects.into_iter().map(|(subject, times)| match times {
        1 => subject.to_owned(),
        several => format!("{} x {subject}", format::count(several)),
    });
    format!("{}; --all shows the lines", named.collect::<Vec<_>>().join(", "))
}

fn print(finding: &Finding, output: &mut Output) -> Result<(), Failure> {
    let (word, color) = match finding.level {
        Level::Ok => ("ok", Color::Green),
        Level::Warn => ("warn", Color::Yellow),
        Level::Fix => ("fix", Color::Red),
    };
    if output.json {
        let (subject, text) = (finding.subject, &finding.text);
        return output.object(&json!({ "level": word, "subject": subject, "text": text }));
    }
    let word = output.colored(&format!("{word:<4}"), color);
    output.line(format!("{word}  {:<14}  {}", finding.subject, finding.text))
}
