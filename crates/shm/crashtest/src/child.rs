//! Forked processes that run a closure, and tell their parent how it went.
//!
//! For tests: the test harness has threads, and a fork copies only the calling one. The closure must not
//! wait for anything that another thread of the test could hold. It may allocate (the C library takes
//! care of its allocator) and panic (see below), but not print.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use libc::c_int;

/// Longest that a child may live. A child that hangs on a lock ends by SIGALRM instead of never. Far beyond any need: a
/// stepped child that shares its processor with others takes a minute for 200 000 instructions.
const LIFETIME_S: u32 = 1_800;
/// Exit code of a child whose closure panicked.
const PANICKED: c_int = 101;
/// Room for the message of a panic, in words.
const MESSAGE_WORDS: usize = 1024;

/// A child process that has not been waited for. It is killed if a failed test never waits for it.
#[derive(Debug)]
pub struct Child {
    pid: libc::pid_t,
    message: &'static [AtomicU32],
    /// Whether a wait for it has ended.
    is_gone: Cell<bool>,
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Its closure returned.
    Done,
    /// Its closure panicked with this message.
    Panicked(String),
    /// A signal ended it.
    Killed(c_int),
}

/// The state of a child that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It was stopped by a signal.
    Stopped,
    /// It sleeps: most probably it waits for another process.
    Waits,
    /// It has ended by itself.
    Ended,
    /// This signal ended it.
    Killed(c_int),
}

/// Runs `work` in a forked process, which ends when `work` returns.
///
/// # Panics
///
/// If the system cannot fork.
pub fn fork(work: impl FnOnce()) -> Child {
    report_panics_to_parent();
    let message = shared_words(MESSAGE_WORDS);
    // SAFETY: the child goes on with the calling thread alone, and does nothing that the head of this file forbids.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "can not fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        MESSAGE.store(ptr::from_ref(&message[0]).cast_mut(), Ordering::Relaxed);
        // SAFETY: no memory is involved; the signal ends the process.
        unsafe { libc::alarm(LIFETIME_S) };
        let result = panic::catch_unwind(AssertUnwindSafe(work));
        // SAFETY: no memory is involved. Not `exit`: handlers at exit are the parent's business.
        unsafe { libc::_exit(if result.is_ok() { 0 } else { PANICKED }) }
    }
    Child { pid, message, is_gone: Cell::new(false) }
}

/// Ends the calling thread alone, without a report. If it is the first thread of its process, the process goes on as
/// long as it has others.
pub fn end_this_thread() -> ! {
    loop {
        // SAFETY: the kernel ends this thread here; its stack stays, and what lies there is never dropped.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// Stops the calling process until it is told to go on.
pub fn stop_this_process() {
    // SAFETY: no memory is involved.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Ends the calling process by SIGKILL.
pub fn kill_this_process() -> ! {
    loop {
        // SAFETY: no memory is involved; nothing of this process goes on.
        unsafe { libc::raise(libc::SIGKILL) };
    }
}

impl Child {
    /// The number of the process.
    pub const fn pid(&self) -> u32 {
        self.pid.cast_unsigned()
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: c_int) {
        // SAFETY: no memory is involved, and the number cannot be another process's before `wait`.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// Kills the process and waits until it is gone.
    pub fn kill(self) -> Exit {
        self.signal(libc::SIGKILL);
        self.wait()
    }

    /// Waits until the process is gone.
    pub fn wait(self) -> Exit {
        loop {
            let status = self.wait_status();
            if libc::WIFEXITED(status) {
                return match libc::WEXITSTATUS(status) {
                    0 => Exit::Done,
                    _ => Exit::Panicked(self.panic_message()),
                };
            }
            if libc::WIFSIGNALED(status) {
                return Exit::Killed(libc::WTERMSIG(status));
            }
        }
    }

    /// Whether the process has stopped itself or ended. It is still to be waited for then.
    pub fn has_ended(&self) -> bool {
        self.rest(libc::WNOHANG).is_some()
    }

    /// Waits until the process stops (if it is traced) or ends.
    pub(crate) fn wait_status(&self) -> c_int {
        let mut status = 0;
        loop {
            // SAFETY: `status` is a local variable.
            let pid = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
            if pid == self.pid {
                self.is_gone.set(libc::WIFEXITED(status) || libc::WIFSIGNALED(status));
                return status;
            }
            let error = std::io::Error::last_os_error();
            assert_eq!(error.raw_os_error(), Some(libc::EINTR), "can not wait: {error}");
        }
    }

    /// Waits until the process stops itself or ends. It is still to be waited for then.
    pub(crate) fn rests(&self) -> Rest {
        self.rest(0).unwrap_or(Rest::Waits)
    }

    /// As [`Child::rests`], or until it sleeps.
    pub(crate) fn rests_or_waits(&self) -> Rest {
        loop {
            if let Some(rest) = self.rest(libc::WNOHANG) {
                return rest;
            }
            let stat = std::fs::read(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
            let name_end = stat.iter().rposition(|byte| *byte == b')').unwrap_or(0);
            if stat.get(name_end + 2) == Some(&b'S') {
                return Rest::Waits;
            }
            std::thread::yield_now();
        }
    }

    fn rest(&self, how: c_int) -> Option<Rest> {
        let how = how | libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
        loop {
            let mut found = MaybeUninit::<libc::siginfo_t>::zeroed();
            // SAFETY: `told` is a local variable of that size.
            let code = unsafe {
                libc::waitid(libc::P_PID, self.pid.cast_unsigned(), found.as_mut_ptr(), how)
            };
            if code == 0 {
                // SAFETY: zeros are valid, and the call has filled them in if there is something.
                let found = unsafe { found.assume_init() };
                return match found.si_code {
                    0 => None,
                    libc::CLD_STOPPED => Some(Rest::Stopped),
                    libc::CLD_EXITED => Some(Rest::Ended),
                    // SAFETY: of a child that a signal ended, its number is there.
                    _ => Some(Rest::Killed(unsafe { found.si_status() })),
                };
            }
            let error = std::io::Error::last_os_error();
            assert_eq!(error.raw_os_error(), Some(libc::EINTR), "can not wait: {error}");
        }
    }

    /// What its panic said; empty if it did not panic.
    pub(crate) fn panic_message(&self) -> String {
        let bytes = self.message.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        String::from_utf8_lossy(&bytes.take_while(|&byte| byte != 0).collect::<Vec<_>>())
            .into_owned()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_gone.get() {
            self.signal(libc::SIGKILL);
            // SAFETY: nothing is told, so no memory is involved.
            unsafe { libc::waitpid(self.pid, ptr::null_mut(), 0) };
        }
        // SAFETY: the words were mapped by `shared_words` for this child alone, and `message` is
        // private to it: no other reference is left.
        unsafe { libc::munmap(self.message.as_ptr().cast_mut().cast(), MESSAGE_WORDS * 4) };
    }
}

/// Words that a process shares with the children it forks later: flags, counters, a starting gun.
/// Never freed.
///
/// # Panics
///
/// If there is no memory.
pub fn shared_words(count: usize) -> &'static [AtomicU32] {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let how = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: the system chooses addresses that nobody uses.
    let words = unsafe { libc::mmap(ptr::null_mut(), count * 4, access, how, -1, 0) };
    assert!(words != libc::MAP_FAILED, "can not map: {}", std::io::Error::last_os_error());
    // SAFETY: the mapping is that long, page-aligned, zero, and stays; all access is atomic.
    unsafe { std::slice::from_raw_parts(words.cast(), count) }
}

/// In a child: where the message of a panic goes. Null in the parent.
static MESSAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Has panics of children reported to their parents: the test harness would catch the output, and lose it with the
/// process.
fn report_panics_to_parent() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let message = MESSAGE.load(Ordering::Relaxed);
            if message.is_null() {
                return usual(panic);
            }
            // SAFETY: stored by `fork` in this very process, which never unmaps it.
            let words = unsafe { std::slice::from_raw_parts(message, MESSAGE_WORDS) };
            let text = panic.to_string();
            // One word stays zero: the end.
            for (word, bytes) in words[..MESSAGE_WORDS - 1].iter().zip(text.as_bytes().chunks(4)) {
                let mut chunk = [0; 4];
                chunk[..bytes.len()].copy_from_slice(bytes);
                word.store(u32::from_ne_bytes(chunk), Ordering::Relaxed);
            }
        }));
    });
}
