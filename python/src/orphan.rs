//! A worker process that ends when its parent does, however that ended.
//!
//! A thread of its own waits for the parent, outside of the interpreter. So it also ends a worker that is inside a long
//! call of C code. Rejected: `PR_SET_PDEATHSIG`, which fires at the end of the parent's *thread*.
//!
//! The worker's code may close descriptors that are not its own. So the descriptor of the parent counts only while it
//! is unchanged, and the parent's number decides. Nothing is closed: the process needs the descriptor until it ends.

use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::thread;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open};

/// The interval between two checks that the descriptor is unchanged.
const SLICE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Have the system kill this process as soon as its parent, the process `parent`, is gone.
///
/// Raises:
///     `OSError`: the system cannot watch a process.
#[pyfunction]
pub(crate) fn end_with_parent(parent: i32) -> PyResult<()> {
    let parent = Pid::from_raw(parent)
        .ok_or_else(|| PyValueError::new_err(format!("parent is {parent}: give a process id")))?;
    let watched = Watched::new(parent)
        .map_err(|error| PyOSError::new_err(format!("cannot watch a process: {error}")))?;
    let thread = thread::Builder::new().name("tupelo orphan".into());
    thread.spawn(move || end_after(parent, watched)).map_err(PyErr::from)?;
    Ok(())
}

/// A descriptor of the parent, which is never closed.
struct Watched {
    pidfd: ManuallyDrop<OwnedFd>,
    /// Device and inode.
    identity: Option<(u64, u64)>,
}

impl Watched {
    /// Begins to watch the parent; ends this process if it is gone.
    fn new(parent: Pid) -> rustix::io::Result<Self> {
        let pidfd = match pidfd_open(parent, PidfdFlags::empty()) {
            Ok(pidfd) => ManuallyDrop::new(pidfd),
            Err(Errno::SRCH) => end(),
            Err(error) => return Err(error),
        };
        // It may have ended before, and its number may be another's by now.
        end_if_orphan(parent);
        let identity = identity(&pidfd);
        Ok(Self { pidfd, identity })
    }

    /// Waits until the parent has ended, or for a while.
    fn wait(&self) {
        // Whatever it says, the parent's number decides.
        let _ = poll(&mut [PollFd::new(&*self.pidfd, PollFlags::IN)], Some(&SLICE));
    }

    /// Whether the number still stands for the opened object.
    fn is_same(&self) -> bool {
        self.identity.is_some() && identity(&self.pidfd) == self.identity
    }
}

fn identity(file: &OwnedFd) -> Option<(u64, u64)> {
    fstat(file).ok().map(|status| (status.st_dev, status.st_ino))
}

fn end_after(parent: Pid, mut watched: Watched) {
    loop {
        watched.wait();
        end_if_orphan(parent);
        if watched.is_same() {
            continue;
        }
        // The worker has closed it. Without another one, the parent's number is asked now and then.
        match Watched::new(parent) {
            Ok(another) => watched = another,
            Err(_) => thread::sleep(std::time::Duration::from_secs(1)),
        }
    }
}

fn end_if_orphan(parent: Pid) {
    if getppid() != Some(parent) {
        end();
    }
}

/// Kills this process: whatever it holds is a claim, and comes back.
fn end() -> ! {
    // It can always be sent to oneself; the loop is for the moment until it arrives.
    loop {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
