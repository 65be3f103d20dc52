//! Whether a process died: asked often, so it is to be cheap, and answered by the kernel alone.
//!
//! To read in `/proc` whether a process lives takes 8 us. A descriptor of the process (`pidfd`) is readable from its
//! end on, and one `poll` asks all of them at once (200 ns). So each process keeps descriptors of the others in its
//! segment. It keeps a limited number, since a program has other uses for them. For processes beyond that number, and
//! where the kernel has no such descriptors (before Linux 5.3), `/proc` is read.
//!
//! A program may close these descriptors, since it does not know them, and have files of its own under their numbers.
//! Then a noticed death is seen a second time, and no other file is closed.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Mutex;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;

use crate::clock::monotonic_coarse_ns;
use crate::kept::Kept;
use crate::process::{self, ProcessId};

/// Most descriptors that are kept for one segment: a sixteenth of the default limit of a program.
const WATCHED_MAX: usize = 64;

/// How long the descriptors count as unchanged: to check one takes as long as to ask all.
const TRUSTED_NS: u64 = 10_000_000;

/// The processes of one segment, as this process watches them.
#[derive(Default)]
pub(crate) struct Deaths {
    watch: Mutex<Watch>,
}

#[derive(Default)]
struct Watch {
    watched: Vec<Watched>,
    /// When the descriptors were last checked.
    looked_ns: u64,
}

struct Watched {
    process: ProcessId,
    pidfd: Kept<OwnedFd>,
}

impl Watched {
    /// Whether the descriptor says itself that it is one of the process. To older kernels than Linux 6.9 all descriptors
    /// of processes are one file.
    fn names_process(&self) -> bool {
        let number = self.pidfd.as_fd().as_raw_fd();
        let said = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let pid = said.lines().find_map(|line| line.strip_prefix("Pid:"));
        // -1 if the process has ended and its parent has noticed.
        pid.is_some_and(|pid| [&*self.process.pid.to_string(), "-1"].contains(&pid.trim()))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.names_process() {
            self.pidfd.disown();
        }
    }
}

impl Deaths {
    /// Whether one of `processes` is dead.
    pub(crate) fn any(&self, processes: &[ProcessId]) -> bool {
        // Not waited for: in the child of a fork it may be locked for ever, by a thread that is the parent's.
        let Ok(mut watch) = self.watch.try_lock() else {
            return processes.iter().any(|one| !process::is_alive(one.pid, one.start_time));
        };
        let now_ns = monotonic_coarse_ns();
        if now_ns.saturating_sub(watch.looked_ns) > TRUSTED_NS {
            watch.looked_ns = now_ns;
            watch.watched.retain(|watched| watched.pidfd.get().is_some());
        }
        let watched = &mut watch.watched;
        watched.retain(|watched| processes.contains(&watched.process));
        for process in processes {
            if watched.iter().any(|watched| watched.process == *process) {
                continue;
            }
            let pidfd = (watched.len() < WATCHED_MAX).then(|| open(*process)).flatten();
            // Only now, since the number may be another's by the time that it is opened.
            if !process::is_alive(process.pid, process.start_time) {
                return true;
            }
            watched
                .extend(pidfd.map(|pidfd| Watched { process: *process, pidfd: Kept::new(pidfd) }));
        }
        has_ended(watched)
    }

    /// Closes the descriptors. The next question opens them anew.
    pub(crate) fn close_descriptors(&self) {
        // Not waited for, as in `any`. Whoever is at it needs them.
        if let Ok(mut watch) = self.watch.try_lock() {
            watch.watched.clear();
        }
    }
}

/// A descriptor of the process that has this number now.
fn open(process: ProcessId) -> Option<OwnedFd> {
    // Another process wrote the number: it may be none.
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Whether one of the watched has ended.
fn has_ended(watched: &[Watched]) -> bool {
    let mut all: Vec<PollFd<'_>> =
        watched.iter().map(|one| PollFd::new(&one.pidfd, PollFlags::IN)).collect();
    // A failure (no memory in the kernel) tells nothing: the next caller learns it.
    poll(&mut all, Some(&Timespec::default())).is_ok_and(|ended| ended > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::thread;

    use tupelo_crashtest::{Exit, fork};

    use super::*;

    #[test]
    fn a_death_is_seen_at_the_first_look_and_at_later_ones() {
        // Waits for input, which never comes.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let process = ProcessId { pid, start_time: process::thread_start_time(pid) };
        let deaths = Deaths::default();
        assert!(!deaths.any(&[process]), "opens a descriptor");
        assert!(!deaths.any(&[process]), "asks it");
        assert_eq!(deaths.watch.lock().unwrap().watched.len(), 1);
        let earlier = ProcessId { pid, start_time: process.start_time - 1 };
        assert!(Deaths::default().any(&[earlier]), "another process has its number");
        child.kill().unwrap();
        while !deaths.any(&[process]) {
            thread::yield_now();
        }
        child.wait().unwrap();
        assert!(deaths.any(&[process]) && Deaths::default().any(&[process]));
        assert!(!deaths.any(&[]), "it is no longer of interest");
        assert!(deaths.watch.lock().unwrap().watched.is_empty());
    }

    #[test]
    fn a_death_is_seen_though_the_program_has_closed_the_descriptor_and_has_its_number() {
        let alone = fork(|| {
            let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            let pid = child.id();
            let process = ProcessId { pid, start_time: process::thread_start_time(pid) };
            let deaths = Deaths::default();
            assert!(!deaths.any(&[process]));
            let number = deaths.watch.lock().unwrap().watched[0].pidfd.as_fd().as_raw_fd();
            // SAFETY: no memory is involved, and this process has no other threads.
            unsafe { libc::close(number) };
            // A file without a writer is not readable, like the descriptor of a living process.
            let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            assert_eq!(ours.as_raw_fd(), number, "the lowest free number");
            child.kill().unwrap();
            while !deaths.any(&[process]) {
                thread::yield_now();
            }
            drop(deaths);
            (&theirs).write_all(b"still open").unwrap();
            child.wait().unwrap();
        });
        assert_eq!(alone.wait(), Exit::Done);
    }
}
