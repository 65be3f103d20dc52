//! Who is alive: processes and threads by number and start time, and a count of forks.
//!
//! A number alone does not name a process: the system gives it out again. The pair with the start time
//! (in clock ticks since boot, from `/proc/<pid>/stat`) does. The kernel decides about life and death
//! here, never a timeout: a stopped process is alive.

use std::fs;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::{addresses, desk};

/// A process, or a thread, for as long as the machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId {
    /// The system's number.
    pub pid: u32,
    /// When it started, in clock ticks since boot; 0 if unknown.
    pub start_time: u64,
}

/// Start time of this process; 0 before it was read, and again after a fork.
static OWN_START_TIME: AtomicU64 = AtomicU64::new(0);

impl ProcessId {
    /// The calling process. The first call after a start or a fork reads a file (8 us).
    pub fn current() -> Self {
        watch_forks();
        let pid = std::process::id();
        // Relaxed: the child handler of a fork clears it in the only thread there is.
        let mut start_time = OWN_START_TIME.load(Ordering::Relaxed);
        if start_time == 0 {
            start_time = self::start_time("self");
            OWN_START_TIME.store(start_time, Ordering::Relaxed);
        }
        Self { pid, start_time }
    }
}

/// Whether the process still runs. A zombie does not. In doubt (no `/proc`, start time 0) the answer is
/// yes: to take the living for dead would take their memory away, the reverse costs only time.
pub fn is_alive(pid: u32, start_time: u64) -> bool {
    same_and_alive(stat(&pid.to_string()), start_time)
}

/// Whether the thread still runs, of whatever process. In doubt the answer is yes.
pub fn thread_is_alive(tid: u32, start_time: u64) -> bool {
    // /proc/<tid>/stat exists for every thread, though only leaders are listed.
    is_alive(tid, start_time)
}

/// When the thread started, in clock ticks since boot; 0 if it can not be found out. Reads a file (8 us).
pub fn thread_start_time(tid: u32) -> u64 {
    start_time(&tid.to_string())
}

fn start_time(process: &str) -> u64 {
    match stat(process) {
        Found::Alive { start_time } => start_time,
        Found::Dead | Found::Unknown => 0,
    }
}

fn same_and_alive(found: Found, expected_start_time: u64) -> bool {
    match found {
        Found::Alive { start_time } => {
            expected_start_time == 0 || start_time == expected_start_time
        }
        Found::Dead => false,
        Found::Unknown => true,
    }
}

/// What `/proc` says about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Alive { start_time: u64 },
    Dead,
    Unknown,
}

fn stat(process: &str) -> Found {
    match fs::read(format!("/proc/{process}/stat")) {
        Ok(text) => parse_stat(&text),
        // ESRCH: it died between open and read.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Found::Dead,
        Err(error) if error.kind() == ErrorKind::NotFound && proc_is_mounted() => Found::Dead,
        Err(_) => Found::Unknown,
    }
}

/// Without `/proc` every process would look dead.
fn proc_is_mounted() -> bool {
    fs::exists("/proc/self/stat").unwrap_or(false)
}

/// Reads state (field 3) and start time (field 22). Field 2 is the program's name in parentheses, which
/// may itself hold spaces, parentheses and line breaks: the fields count from its last parenthesis.
fn parse_stat(text: &[u8]) -> Found {
    let Some(name_end) = text.iter().rposition(|&byte| byte == b')') else {
        return Found::Unknown;
    };
    let mut fields =
        text[name_end + 1..].split(|&byte| byte == b' ').filter(|part| !part.is_empty());
    match fields.next() {
        Some(b"Z" | b"X" | b"x") => return Found::Dead,
        Some(_) => {}
        None => return Found::Unknown,
    }
    let start_time = fields.nth(18).and_then(|field| std::str::from_utf8(field).ok()?.parse().ok());
    start_time.map_or(Found::Unknown, |start_time| Found::Alive { start_time })
}

/// How often this process, or its ancestors since they first used this crate, forked before it came to
/// be. What a thread remembers about itself (its number, its robust list, its slot) holds for one
/// generation.
#[inline]
pub fn fork_generation() -> u32 {
    // Relaxed: changes only in the child of a fork, before it has a second thread.
    FORK_GENERATION.load(Ordering::Relaxed)
}

static FORK_GENERATION: AtomicU32 = AtomicU32::new(0);

/// Has forks counted from now on. Every mapping sees to it; further calls do nothing.
///
/// # Panics
///
/// If there is no memory for a fork handler.
pub fn watch_forks() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    // Not `Once`: its lock, held by another thread during a fork, would hang the child. The price is a
    // fork in the very moment of the first call, which goes uncounted.
    if WATCHED.load(Ordering::Relaxed) || WATCHED.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the handlers are functions of this crate, which is never unloaded while they are
    // registered: glibc drops a library's handlers with the library.
    let code = unsafe {
        libc::pthread_atfork(
            Some(before_fork),
            Some(after_fork_in_parent),
            Some(after_fork_in_child),
        )
    };
    assert!(code == 0, "no memory for a fork handler");
}

extern "C" fn before_fork() {
    addresses::before_fork();
}

extern "C" fn after_fork_in_parent() {
    addresses::after_fork();
}

extern "C" fn after_fork_in_child() {
    FORK_GENERATION.fetch_add(1, Ordering::Relaxed);
    desk::forget();
    OWN_START_TIME.store(0, Ordering::Relaxed);
    addresses::after_fork();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, state: &str) -> Vec<u8> {
        // Fields 4 to 21, then the start time and what follows.
        let between = (4..=21).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        format!("1234 ({name}) {state} {between} 987654321 23 24\n").into_bytes()
    }

    #[test]
    fn a_start_time_is_found_whatever_the_program_is_called() {
        for name in ["cat", "a b", ") Z 1", "((", "a)\nR 0 0", ""] {
            let found = parse_stat(&line(name, "S"));
            assert_eq!(found, Found::Alive { start_time: 987_654_321 }, "{name:?}");
        }
        let not_text = [b"1 (\xff\xfe) ".as_slice(), &line("x", "R")[9..]].concat();
        assert_eq!(parse_stat(&not_text), Found::Alive { start_time: 987_654_321 });
    }

    #[test]
    fn zombies_are_dead_and_the_stopped_are_not() {
        for state in ["Z", "X", "x"] {
            assert_eq!(parse_stat(&line("a", state)), Found::Dead);
        }
        for state in ["R", "S", "D", "T", "t", "I"] {
            assert_ne!(parse_stat(&line("a", state)), Found::Dead);
        }
    }

    #[test]
    fn what_can_not_be_read_is_taken_for_alive() {
        for text in ["", "1234", "1234 (a", "1234 (a) ", "1234 (a) S 1 2 3", "1 (a) S 4 5 x"] {
            let found = parse_stat(text.as_bytes());
            assert_eq!(found, Found::Unknown, "{text:?}");
            assert!(same_and_alive(found, 7));
        }
        assert!(same_and_alive(Found::Alive { start_time: 5 }, 0), "start time unknown");
        assert!(!same_and_alive(Found::Alive { start_time: 5 }, 7), "a later process");
    }
}
