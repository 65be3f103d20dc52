//! A worker process that ends when its parent does, however that ended.
//!
//! A thread of its own waits for the parent, outside of the interpreter: it also ends a worker that is inside
//! a long call of C code. Rejected: `PR_SET_PDEATHSIG`, which fires at the end of the parent's *thread*.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open};

/// Have the system kill this process as soon as its parent, the process `parent`, is gone.
///
/// Raises:
///     `OSError`: the system can not watch a process.
#[pyfunction]
pub(crate) fn end_with_parent(parent: i32) -> PyResult<()> {
    let parent = Pid::from_raw(parent)
        .ok_or_else(|| PyValueError::new_err(format!("parent is {parent}: give a process id")))?;
    let watched = match pidfd_open(parent, PidfdFlags::empty()) {
        Ok(watched) => watched,
        Err(Errno::SRCH) => end(),
        Err(error) => return Err(PyOSError::new_err(format!("cannot watch a process: {error}"))),
    };
    // It may have ended before, and its number may be another's by now.
    if getppid() != Some(parent) {
        end();
    }
    let thread = thread::Builder::new().name("tupelo orphan".into());
    thread.spawn(move || end_after(&watched)).map_err(PyErr::from)?;
    Ok(())
}

fn end_after(parent: &OwnedFd) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(parent, PollFlags::IN)], None) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => end(),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills this process: whatever it holds is a claim, and comes back.
fn end() -> ! {
    // It can always be sent to oneself; the loop is for the moment until it arrives.
    loop {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
