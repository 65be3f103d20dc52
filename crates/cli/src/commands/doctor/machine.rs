//! Is this machine fit for spaces?

use std::fs;
use std::thread;

use rustix::process::{Resource, getrlimit};
use tupelo::ConnectOptions;

use super::Finding;
use crate::commands::shared_memory::{DIRECTORY, Room};
use crate::format;

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Every space needs one descriptor for a moment; interpreters and their libraries need the rest.
const FILES_MIN: u64 = 64;

/// One line per part of the machine.
pub(super) fn findings() -> Vec<Finding> {
    vec![shared_memory(), address_space(), file_size(), open_files(), cores(), clock(), namespace()]
}

fn shared_memory() -> Finding {
    const SUBJECT: &str = "shared memory";
    let Some(room) = Room::now() else {
        return Finding::fix(SUBJECT, format!("{DIRECTORY} is missing: mount a tmpfs there"));
    };
    let free_bytes = room.free_bytes;
    let text = format!(
        "{DIRECTORY} has {} free of {}",
        format::bytes(free_bytes),
        format::bytes(room.total_bytes)
    );
    let space_bytes = ConnectOptions::default().size_bytes;
    if room.is_used_up() {
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
    let Some(limit) = getrlimit(Resource::As).current else {
        return Finding::ok(SUBJECT, "no limit");
    };
    let space_bytes = ConnectOptions::default().address_bytes();
    let text = format!("limited to {} per process (ulimit -v)", format::bytes(limit));
    let space = format::bytes(space_bytes);
    if limit < 2 * space_bytes {
        Finding::fix(SUBJECT, format!("{text}: a space takes {space} and may not fit; raise it"))
    } else {
        Finding::warn(SUBJECT, format!("{text}: each space that is open counts {space}"))
    }
}

fn file_size() -> Finding {
    const SUBJECT: &str = "file size";
    let Some(limit) = getrlimit(Resource::Fsize).current else {
        return Finding::ok(SUBJECT, "no limit");
    };
    let space_bytes = ConnectOptions::default().address_bytes();
    let text = format!("limited to {} (ulimit -f)", format::bytes(limit));
    let space = format::bytes(space_bytes);
    if limit < space_bytes {
        Finding::fix(SUBJECT, format!("{text}: the file of a space has {space}; raise it"))
    } else {
        Finding::ok(SUBJECT, text)
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
