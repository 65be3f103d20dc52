//! Sockets at which a supervisor listens for the program that it starts: systemd's socket activation.
//!
//! Not about memory: it is here since it needs `unsafe`, whose home this crate is. No library calls it, for what a program was
//! given at its start is the program's business.

use std::env;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use libc::c_int;

/// The number of the first descriptor that is given so.
const FIRST: c_int = 3;
/// More than anybody gives.
const COUNT_MAX: c_int = 1024;

/// The sockets that were given to this process, with their names (`FileDescriptorName=`); none without a supervisor that gives some,
/// and at each call but the first.
///
/// # Errors
///
/// The environment speaks of descriptors that are not open.
pub fn listening_sockets() -> io::Result<Vec<(OwnedFd, String)>> {
    static ARE_TAKEN: AtomicBool = AtomicBool::new(false);
    // Who was started by the one that they are for may have inherited the variables.
    let is_for_us = number("LISTEN_PID") == Some(std::process::id().cast_signed());
    let count = number("LISTEN_FDS").filter(|_| is_for_us).unwrap_or(0).clamp(0, COUNT_MAX);
    if count == 0 || ARE_TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    (FIRST..FIRST + count)
        .map(|number| Ok((taken(number)?, names.next().unwrap_or_default().to_owned())))
        .collect()
}

fn number(name: &str) -> Option<c_int> {
    env::var(name).ok()?.trim().parse().ok()
}

/// Makes a descriptor that this process was started with one of its own, which programs that it starts do not get.
fn taken(number: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved. A number that is no descriptor is refused.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, as was just seen. Whoever has started this process gave it away by naming this process in the
    // environment, and the flag above has let nobody take it before.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
