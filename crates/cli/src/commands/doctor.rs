//! `tupelo doctor`: is this machine fit for spaces, and are its spaces well?
//!
//! Each line is `ok`, `warn` (it works, but not as well as it could) or `fix` (something will fail, and
//! the line says what to do). It ends with 1 if there is anything to fix.

use std::fs;
use std::thread;

use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};
use serde_json::json;
use tupelo::{ConnectOptions, Space, SpaceEntry};

use super::{connect_existing, pids};
use crate::failure::Failure;
use crate::format;
use crate::output::{Color, Output};

const SHARED_MEMORY: &str = "/dev/shm";
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Below it not even a small space has room to grow.
const ROOM_MIN_BYTES: u64 = 16 << 20;
const FULL_PERCENT: u64 = 90;
/// Every space needs one descriptor for a moment; interpreters and their libraries need the rest.
const FILES_MIN: u64 = 64;

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

pub(crate) fn run(output: &mut Output) -> Result<(), Failure> {
    let mut findings =
        vec![shared_memory(), address_space(), file_size(), open_files(), cores(), clock()];
    findings.push(namespace());
    findings.extend(spaces());
    let mut sound = true;
    for finding in &findings {
        sound &= !matches!(finding.level, Level::Fix);
        print(finding, output)?;
    }
    if sound { Ok(()) } else { Err(Failure::Told(1)) }
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

fn shared_memory() -> Finding {
    const SUBJECT: &str = "shared memory";
    let Ok(room) = statvfs(SHARED_MEMORY) else {
        return Finding::fix(SUBJECT, format!("{SHARED_MEMORY} is missing: mount a tmpfs there"));
    };
    let free_bytes = room.f_bavail * room.f_frsize;
    let total_bytes = room.f_blocks * room.f_frsize;
    let text = format!(
        "{SHARED_MEMORY} has {} free of {}",
        format::bytes(free_bytes),
        format::bytes(total_bytes)
    );
    let space_bytes = ConnectOptions::default().size_bytes;
    if free_bytes < ROOM_MIN_BYTES {
        Finding::fix(
            SUBJECT,
            format!("{text}: puts will fail; remove spaces (tupelo ls, tupelo rm)"),
        )
    } else if free_bytes < space_bytes {
        let space = format::bytes(space_bytes);
        let way_out = "in a container, start it with --shm-size=1g";
        Finding::warn(
            SUBJECT,
            format!("{text}: less than one space may grow to ({space}); {way_out}"),
        )
    } else {
        Finding::ok(SUBJECT, text)
    }
}

fn address_space() -> Finding {
    const SUBJECT: &str = "address space";
    let space_bytes = ConnectOptions::default().size_bytes;
    match getrlimit(Resource::As).current {
        None => Finding::ok(SUBJECT, "no limit"),
        Some(limit) => {
            let text = format!("limited to {} per process (ulimit -v)", format::bytes(limit));
            let space = format::bytes(space_bytes);
            if limit < 2 * space_bytes {
                Finding::fix(SUBJECT, format!("{text}: a space of {space} may not fit; raise it"))
            } else {
                Finding::warn(SUBJECT, format!("{text}: each space that is open counts {space}"))
            }
        }
    }
}

fn file_size() -> Finding {
    const SUBJECT: &str = "file size";
    match getrlimit(Resource::Fsize).current {
        None => Finding::ok(SUBJECT, "no limit"),
        Some(limit) => Finding::fix(
            SUBJECT,
            format!(
                "limited to {} (ulimit -f), which a space that grows beyond it runs into; raise it",
                format::bytes(limit)
            ),
        ),
    }
}

fn open_files() -> Finding {
    const SUBJECT: &str = "open files";
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < FILES_MIN => {
            Finding::warn(SUBJECT, format!("at most {limit} per process (ulimit -n), which is few"))
        }
        Some(limit) => {
            Finding::ok(SUBJECT, format!("at most {} per process", format::count(limit)))
        }
        None => Finding::ok(SUBJECT, "no limit"),
    }
}

fn cores() -> Finding {
    const SUBJECT: &str = "cores";
    match thread::available_parallelism().map_or(1, usize::from) {
        1 => Finding::warn(SUBJECT, "one: a waiting process must sleep before the other can run"),
        several => Finding::ok(SUBJECT, several.to_string()),
    }
}

fn clock() -> Finding {
    const SUBJECT: &str = "clock";
    match fs::read_to_string(CLOCK_SOURCE) {
        Ok(source) => {
            let source = source.trim();
            // These are read through the kernel: a microsecond each instead of some nanoseconds.
            if matches!(source, "hpet" | "acpi_pm" | "jiffies") {
                Finding::warn(
                    SUBJECT,
                    format!("source {source}, which is slow to read; prefer tsc"),
                )
            } else {
                Finding::ok(SUBJECT, format!("source {source}"))
            }
        }
        Err(_) => Finding::ok(SUBJECT, "its source is not shown here"),
    }
}

fn namespace() -> Finding {
    const SUBJECT: &str = "pid namespace";
    match fs::read_link("/proc/self/ns/pid") {
        Ok(name) => Finding::ok(
            SUBJECT,
            format!("{}: processes of one space must share it", name.display()),
        ),
        Err(_) => {
            Finding::fix(SUBJECT, "/proc is missing: a dead process can not be told from others")
        }
    }
}

/// One line per space, or one that there are none.
fn spaces() -> Vec<Finding> {
    match tupelo::spaces() {
        Ok(spaces) if spaces.is_empty() => vec![Finding::ok("spaces", "none here")],
        Ok(spaces) => spaces.iter().map(space).collect(),
        Err(error) => vec![Finding::fix("spaces", error.to_string())],
    }
}

fn space(entry: &SpaceEntry) -> Finding {
    const SUBJECT: &str = "space";
    let url = format!("shm://{}", entry.name);
    let looked = connect_existing(&url).and_then(|space: Space| Ok(space.stat()?));
    let stat = match looked {
        Ok(stat) => stat,
        Err(failure) => {
            let why = failure.message().unwrap_or_default().replace("\n  ", "; ");
            return Finding::fix(SUBJECT, format!("{url}: {why}"));
        }
    };
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
        format::plural(pids(&stat).len() as u64, "process", "processes"),
    );
    if used_percent >= FULL_PERCENT {
        Finding::warn(SUBJECT, format!("{text}: almost full; are the takers running?"))
    } else {
        Finding::ok(SUBJECT, text)
    }
}
