//! Living processes: processes and threads by number and start time, and a count of forks.
//!
//! A number alone does not name a process: the system gives it out again. The pair with the start time
//! (in clock ticks since boot, from `/proc/<pid>/stat`) does. The kernel decides about life and death
//! here, never a timeout: a stopped process is alive.

use std::fs;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::{addresses, at_fork, context};

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
/// What [`program`] says; 0 before it was read.
static OWN_PROGRAM: AtomicU64 = AtomicU64::new(0);

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

/// The number of this process's current program. The system gives a process some random bytes when it becomes a program
/// (`exec`), which changes neither number nor start time. 0 if the system does not. (Rejected: the beginning of the
/// stack, which is random only where addresses are.)
pub(crate) fn program() -> u64 {
    // Relaxed: all threads find the same, and so do children that are forked.
    let known = OWN_PROGRAM.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let program = random_of_program().map_or(0, |bytes| {
        let (first, second) = (u64::from_ne_bytes(bytes.0), u64::from_ne_bytes(bytes.1));
        // Secrets of the program are made of them: of both no more is told than what tells two programs apart.
        let mixed = first.rotate_left(29) ^ second.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(32) | 1
    });
    OWN_PROGRAM.store(program, Ordering::Relaxed);
    program
}

/// The random bytes of this program, in two halves.
fn random_of_program() -> Option<([u8; 8], [u8; 8])> {
    // SAFETY: asks for a word that the system has left.
    let address = usize::try_from(unsafe { libc::getauxval(libc::AT_RANDOM) }).ok()?;
    if address == 0 {
        return None;
    }
    let bytes = std::ptr::with_exposed_provenance::<[[u8; 8]; 2]>(address);
    // SAFETY: the system has left sixteen bytes there, which stay as long as the program, and are never written.
    let [first, second] = unsafe { bytes.read() };
    Some((first, second))
}

/// Whether the process still runs, with any of its threads: if its first thread has ended it looks like a zombie, and
/// lives. A process that only waits for its parent to notice does not run. In doubt (no `/proc`, start time 0) the
/// answer is yes: to take the living for dead would take their memory away, the reverse costs only time.
pub fn is_alive(pid: u32, start_time: u64) -> bool {
    stat(&pid.to_string()).is_alive(start_time, Found::process_runs)
}

/// Whether the thread still runs, of whatever process. In doubt the answer is yes.
pub fn thread_is_alive(tid: u32, start_time: u64) -> bool {
    // /proc/<tid>/stat exists for every thread, though only leaders are listed.
    stat(&tid.to_string()).is_alive(start_time, Found::thread_runs)
}

/// When the thread started, in clock ticks since boot; 0 if that cannot be found out. Reads a file (8 us).
pub fn thread_start_time(tid: u32) -> u64 {
    start_time(&tid.to_string())
}

fn start_time(process: &str) -> u64 {
    match stat(process) {
        Found::There { start_time, .. } => start_time,
        Found::Gone | Found::Unknown => 0,
    }
}

/// What `/proc` says about a thread, and the process that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    There {
        start_time: u64,
        /// Whether it is a zombie, or about to be none.
        has_ended: bool,
        /// Of its process, with itself.
        threads: u64,
    },
    Gone,
    Unknown,
}

impl Found {
    /// Whether it is the process that started then, and runs.
    fn is_alive(self, expected_start_time: u64, runs: impl Fn(Self) -> bool) -> bool {
        match self {
            Self::There { start_time, .. } => {
                runs(self) && (expected_start_time == 0 || start_time == expected_start_time)
            }
            Self::Gone => false,
            Self::Unknown => true,
        }
    }

    fn thread_runs(self) -> bool {
        matches!(self, Self::There { has_ended: false, .. })
    }

    /// Whether any thread of the process runs, of which this is the first. A zombie counts itself among the threads as
    /// long as there are others, and at most itself when there is none.
    fn process_runs(self) -> bool {
        matches!(self, Self::There { has_ended, threads, .. } if !has_ended || threads > 1)
    }
}

fn stat(process: &str) -> Found {
    match fs::read(format!("/proc/{process}/stat")) {
        Ok(text) => parse_stat(&text),
        // ESRCH: it died between open and read.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Found::Gone,
        Err(error) if error.kind() == ErrorKind::NotFound && proc_is_mounted() => Found::Gone,
        Err(_) => Found::Unknown,
    }
}

/// Without `/proc` every process would look dead.
fn proc_is_mounted() -> bool {
    fs::exists("/proc/self/stat").unwrap_or(false)
}

/// Reads state (field 3), number of threads (20) and start time (22). Field 2 is the program's name in parentheses, which may
/// itself hold spaces, parentheses and line breaks: the fields count from its last parenthesis.
fn parse_stat(text: &[u8]) -> Found {
    let Some(name_end) = text.iter().rposition(|&byte| byte == b')') else {
        return Found::Unknown;
    };
    let mut fields =
        text[name_end + 1..].split(|&byte| byte == b' ').filter(|part| !part.is_empty());
    let Some(state) = fields.next() else { return Found::Unknown };
    let has_ended = matches!(state, b"Z" | b"X" | b"x");
    let mut number =
        |skipped| std::str::from_utf8(fields.nth(skipped)?).ok()?.trim_end().parse::<u64>().ok();
    match (number(16), number(1)) {
        (Some(threads), Some(start_time)) => Found::There { start_time, has_ended, threads },
        _ => Found::Unknown,
    }
}

/// How often this process, or its ancestors since they first used this crate, forked before it came to be. A thread's
/// knowledge of itself (its number, its robust list, its slot) holds for one generation.
#[inline]
pub fn fork_generation() -> u32 {
    // Relaxed: changes only in the child of a fork, before it has a second thread.
    FORK_GENERATION.load(Ordering::Relaxed)
}

static FORK_GENERATION: AtomicU32 = AtomicU32::new(0);

/// The number of the processor that the calling thread runs on (10 ns). It may run on another one right after.
#[inline]
pub fn processor() -> u32 {
    u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0)
}

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
    // First: whoever it waits for may want addresses.
    at_fork::before();
    addresses::before_fork();
}

extern "C" fn after_fork_in_parent() {
    addresses::after_fork();
    at_fork::after(false);
}

extern "C" fn after_fork_in_child() {
    FORK_GENERATION.fetch_add(1, Ordering::Relaxed);
    context::forget();
    OWN_START_TIME.store(0, Ordering::Relaxed);
    addresses::after_fork();
    at_fork::after(true);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, state: &str, threads: u64) -> Vec<u8> {
        // Fields 4 to 19, the number of threads, field 21, the start time, and what follows.
        let between = (4..=19).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        format!("1234 ({name}) {state} {between} {threads} 0 987654321 23 24\n").into_bytes()
    }

    const RUNS: Found = Found::There { start_time: 987_654_321, has_ended: false, threads: 3 };

    #[test]
    fn a_start_time_is_found_whatever_the_program_is_called() {
        for name in ["cat", "a b", ") Z 1", "((", "a)\nR 0 0", ""] {
            assert_eq!(parse_stat(&line(name, "S", 3)), RUNS, "{name:?}");
        }
        let not_text = [b"1 (\xff\xfe) ".as_slice(), &line("x", "R", 3)[9..]].concat();
        assert_eq!(parse_stat(&not_text), RUNS);
    }

    #[test]
    fn zombies_are_dead_and_the_stopped_are_not() {
        for state in ["Z", "X", "x"] {
            for threads in [0, 1] {
                let found = parse_stat(&line("a", state, threads));
                assert!(!found.process_runs() && !found.thread_runs(), "{state} {threads}");
            }
        }
        for state in ["R", "S", "D", "T", "t", "I"] {
            let found = parse_stat(&line("a", state, 1));
            assert!(found.process_runs() && found.thread_runs(), "{state}");
        }
    }

    #[test]
    fn a_process_lives_on_when_its_first_thread_has_ended() {
        let found = parse_stat(&line("a", "Z", 2));
        assert!(found.process_runs() && !found.thread_runs());
    }

    #[test]
    fn a_process_is_one_program_whichever_thread_asks() {
        let program = program();
        assert_ne!(program, 0);
        OWN_PROGRAM.store(0, Ordering::Relaxed);
        assert_eq!(std::thread::spawn(self::program).join().unwrap(), program);
    }

    #[test]
    fn what_can_not_be_read_is_taken_for_alive() {
        for text in ["", "1234", "1234 (a", "1234 (a) ", "1234 (a) S 1 2 3", "1 (a) S 4 5 x"] {
            let found = parse_stat(text.as_bytes());
            assert_eq!(found, Found::Unknown, "{text:?}");
            assert!(found.is_alive(7, Found::process_runs));
        }
        assert!(RUNS.is_alive(0, Found::process_runs), "start time unknown");
        assert!(!RUNS.is_alive(7, Found::process_runs), "a later process");
    }
}
