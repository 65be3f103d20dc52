//! Are the spaces well, which processes hold them up, and which callers wait in vain?

use std::fs;

use tupelo::{Error, Explanation, Kind, Space, Stat};

use super::{Finding, unserved};
use crate::commands::look::{by_template, who_waits};
use crate::commands::{connect_existing, pids};
use crate::failure::Failure;
use crate::format;

const FULL_PERCENT: u64 = 90;
/// Templates that are listed.
const TEMPLATES_MAX: usize = 8;

/// The lines about every space, or that there are none.
pub(super) fn findings() -> Vec<Finding> {
    match tupelo::spaces() {
        Ok(spaces) if spaces.is_empty() => vec![Finding::ok("spaces", "none here")],
        Ok(spaces) => {
            spaces.iter().flat_map(|entry| findings_of(&format!("shm://{}", entry.name))).collect()
        }
        Err(error) => vec![Finding::fix("spaces", error.to_string())],
    }
}

/// The lines about the space at `url`: a line about it, one per stopped process, one per template that callers wait
/// for.
pub(super) fn findings_of(url: &str) -> Vec<Finding> {
    let looked = connect_existing(url).and_then(|space| {
        let stat = space.stat()?;
        Ok((stat, waiting(url, &space)?, unserved::findings(url, &space)?))
    });
    let (stat, waiting, unserved) = match looked {
        Ok(looked) => looked,
        Err(failure) => {
            let why = failure.message().unwrap_or_default().replace("\n  ", "; ");
            return vec![Finding::fix("space", format!("{url}: {why}"))];
        }
    };
    let mut findings = vec![space(url, &stat)];
    findings.extend(pids(&stat).into_iter().filter(|pid| is_stopped(*pid)).map(|pid| {
        let effect = "if that was inside a lock, it holds everybody up";
        let text = format!("{url}: process {pid} is stopped; {effect}: kill -CONT {pid}");
        Finding::warn("stopped", text)
    }));
    findings.extend(waiting);
    findings.extend(unserved);
    findings
}

fn space(url: &str, stat: &Stat) -> Finding {
    const SUBJECT: &str = "space";
    let used_percent = 100 * stat.bytes_used / stat.bytes_max.max(1);
    let ended = stat.processes.iter().filter(|process| !process.alive).count() as u64;
    let ended = match ended {
        0 => String::new(),
        ended => format!(" (and {} ended, to be cleaned up after)", format::count(ended)),
    };
    let text = format!(
        "{url}: {}, {} ({used_percent} % full), {}{ended}",
        format::plural(stat.tuples, "tuple", "tuples"),
        format::bytes(stat.bytes_used),
        format::plural(pids(stat).len() as u64, "process", "processes"),
    );
    if used_percent >= FULL_PERCENT {
        Finding::warn(SUBJECT, format!("{text}: almost full; are the takers running?"))
    } else {
        Finding::ok(SUBJECT, text)
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name of the program, which stands in brackets and may have any letters.
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['T', 't']))
}

/// The lines about the callers that wait for a tuple: one line per template, the templates with most callers first. As
/// a rule such callers are early, or idle. Otherwise a field of the template is wrong: so the line shows the nearest
/// tuple, too.
fn waiting(url: &str, space: &Space) -> Result<Vec<Finding>, Failure> {
    let waiting = by_template(space.blocked()?);
    let listed = waiting.iter().take(TEMPLATES_MAX);
    let listed = listed.map(|(text, pids, template)| {
        let explanation = template.with_refs(|refs| space.explain(refs)).map_err(Error::from)??;
        let who = format!("{url}: {} for {text}", who_waits(pids));
        Ok::<_, Failure>(of_waiting(&who, &explanation))
    });
    listed.collect()
}

fn of_waiting(who: &str, explanation: &Explanation) -> Finding {
    const SUBJECT: &str = "waiting taker";
    let shown = explanation.to_string();
    let text = format!("{who}; {}", shown.lines().next().unwrap_or_default());
    let differences = explanation.nearest.as_ref().map(|nearest| &nearest.differences[..]);
    match differences {
        // A name, or a kind: it is mistyped, there or here. Another value may yet come.
        Some([one]) if one.field == 0 || is_kind(&one.found) => Finding::warn(SUBJECT, text),
        _ => Finding::ok(SUBJECT, text),
    }
}

fn is_kind(found: &str) -> bool {
    Kind::ALL.iter().any(|kind| kind.name() == found)
}
