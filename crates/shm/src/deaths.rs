//! Whether somebody died: asked often, so it is to be cheap, and answered by the kernel alone.
//!
//! To read in `/proc` whether a process lives takes 8 us. A descriptor of the process (`pidfd`) is readable from
//! its end on, and one `poll` asks all of them at once (200 ns). So each process keeps descriptors of the others
//! in its segment. It keeps a limited number, since a program has other uses for them; about processes beyond
//! that, and where the kernel gives none (before Linux 5.3), `/proc` is read.

use std::os::fd::OwnedFd;
use std::sync::Mutex;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;

use crate::process::{self, ProcessId};

/// Most descriptors that are kept for one segment: a sixteenth of what a program may have by default.
const WATCHED_MAX: usize = 64;

/// The processes of one segment, as this process watches them.
#[derive(Default)]
pub(crate) struct Deaths {
    watched: Mutex<Vec<Watched>>,
}

struct Watched {
    process: ProcessId,
    pidfd: OwnedFd,
}

impl Deaths {
    /// Whether one of `processes` is dead.
    pub(crate) fn any(&self, processes: &[ProcessId]) -> bool {
        // Not waited for: in the child of a fork it may be locked for ever, by a thread that is the parent's.
        let Ok(mut watched) = self.watched.try_lock() else {
            return processes.iter().any(|one| !process::is_alive(one.pid, one.start_time));
        };
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
            watched.extend(pidfd.map(|pidfd| Watched { process: *process, pidfd }));
        }
        has_ended(&watched)
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
    // A failure (no memory in the kernel) tells nothing: whoever asks next learns it.
    poll(&mut all, Some(&Timespec::default())).is_ok_and(|ended| ended > 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::thread;

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
        assert_eq!(deaths.watched.lock().unwrap().len(), 1);
        let earlier = ProcessId { pid, start_time: process.start_time - 1 };
        assert!(Deaths::default().any(&[earlier]), "another process has its number");
        child.kill().unwrap();
        while !deaths.any(&[process]) {
            thread::yield_now();
        }
        child.wait().unwrap();
        assert!(deaths.any(&[process]) && Deaths::default().any(&[process]));
        assert!(!deaths.any(&[]), "it is no longer of interest");
        assert!(deaths.watched.lock().unwrap().is_empty());
    }
}
