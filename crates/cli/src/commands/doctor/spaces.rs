//! Are the spaces well, who holds them up, and who waits in vain?

use std::fs;

use tupelo::{ShapeStat, Stat};

use super::Finding;
use crate::commands::{connect_existing, pids};
use crate::format;

const FULL_PERCENT: u64 = 90;

/// What is to say of every space, or that there are none.
pub(super) fn findings() -> Vec<Finding> {
    match tupelo::spaces() {
        Ok(spaces) if spaces.is_empty() => vec![Finding::ok("spaces", "none here")],
        Ok(spaces) => {
            spaces.iter().flat_map(|entry| findings_of(&format!("shm://{}", entry.name))).collect()
        }
        Err(error) => vec![Finding::fix("spaces", error.to_string())],
    }
}

/// What is to say of the space at `url`: a line about it, one per stopped process, one per shape that is waited for in
/// vain so far.
pub(super) fn findings_of(url: &str) -> Vec<Finding> {
    let looked = connect_existing(url).and_then(|space| Ok(space.stat()?));
    let stat = match looked {
        Ok(stat) => stat,
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
    findings.extend(stat.shapes.iter().filter_map(|shape| waiting(url, shape, &stat)));
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

/// Callers that wait for tuples of a shape, while none of those that are there have it. As a rule they are early, or
/// idle. Where not, kind or arity are wrong: so what lies there untaken is told beside it.
fn waiting(url: &str, shape: &ShapeStat, stat: &Stat) -> Option<Finding> {
    const SUBJECT: &str = "waiting taker";
    if shape.waiting == 0 || shape.count > 0 {
        return None;
    }
    let callers = format::plural(shape.waiting, "caller waits", "callers wait");
    let text = format!("{url}: {callers} for {}, of which there are none", shape.shape);
    let untaken = stat.shapes.iter().filter(|other| other.count > 0 && other.waiting == 0);
    Some(match untaken.max_by_key(|other| other.count) {
        None => Finding::ok(SUBJECT, text),
        Some(other) => {
            let count = format::count(other.count);
            let way_out = "does a kind or a field differ? `tupelo explain` tells for a template";
            let text = format!("{text}, but {count} {}, for which nobody waits", other.shape);
            Finding::warn(SUBJECT, format!("{text}; {way_out}"))
        }
    })
}
