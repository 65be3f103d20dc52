//! The signal handling of the program `tupelo`.
//!
//! Not about memory: it is here since it needs `unsafe`, whose home this crate is. No library calls it, for how signals are
//! handled is the business of a program.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_int, sighandler_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpgrp, getpid, kill_process};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// The signals by which a program is told to end.
const ENDINGS: [c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Has the system keep how a child of this process ends until this process waits for it. A process may have inherited
/// an ignored `SIGCHLD`, as from a shell after `trap '' CHLD`. Then the system forgets how its children end, and a wait
/// for one fails. Programs that this one starts, or becomes, inherit the default.
pub fn keep_ends_of_children() {
    let before = set(libc::SIGCHLD, libc::SIG_DFL);
    if before != libc::SIG_IGN {
        set(libc::SIGCHLD, before);
    }
}

/// As long as this lives, a signal that ends the process gives the terminal back first. An ignored signal stays
/// ignored.
pub struct TerminalGuard {
    /// What each of the signals did before.
    before: [(c_int, sighandler_t); ENDINGS.len()],
}

/// The bytes and settings that give a terminal back.
struct Terminal {
    settings: Termios,
    farewell: &'static str,
}

/// Null until there is one.
static TERMINAL: AtomicPtr<Terminal> = AtomicPtr::new(ptr::null_mut());

impl TerminalGuard {
    /// At a signal, `farewell` is written to standard output, and the terminal at standard input gets the settings back that it
    /// has now.
    ///
    /// The handler does it all, wherever the program is. Rejected: to note the signal and end at the next look at the
    /// note. That look never comes where the program waits for a lock that a stopped process has.
    ///
    /// # Errors
    ///
    /// Standard input is no terminal.
    pub fn new(farewell: &'static str) -> io::Result<Self> {
        let settings = tcgetattr(stdin())?;
        // Leaked: a handler in another thread may still look at it when the guard is gone.
        let terminal = Box::leak(Box::new(Terminal { settings, farewell }));
        // Release pairs with the Acquire in `give_back`: a reader of the pointer sees its contents.
        TERMINAL.store(terminal, Ordering::Release);
        Ok(Self { before: ENDINGS.map(|signal| (signal, handle(signal))) })
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        for (signal, before) in self.before {
            set(signal, before);
        }
    }
}

/// Has the signal give the terminal back, unless it is ignored. Returns the earlier action.
fn handle(signal: c_int) -> sighandler_t {
    if is_ignored(signal) {
        return libc::SIG_IGN;
    }
    set(signal, give_back as *const () as sighandler_t)
}

/// The handler. It calls the system, and nothing that takes a lock, has memory of its own, or may panic.
extern "C" fn give_back(signal: c_int) {
    // Acquire pairs with the Release in `TerminalGuard::new`.
    let terminal = TERMINAL.load(Ordering::Acquire);
    // SAFETY: it is null, or was leaked there, and nobody writes to it.
    let terminal = unsafe { terminal.as_ref() };
    if let Some(terminal) = terminal
        && !is_in_background()
    {
        // Both are best effort: the terminal may be gone.
        if takes_output() {
            let _ = rustix::io::write(stdout(), terminal.farewell.as_bytes());
        }
        let _ = tcsetattr(stdin(), OptionalActions::Now, &terminal.settings);
    }
    set(signal, libc::SIG_DFL);
    if let Some(signal) = Signal::from_named_raw(signal) {
        // It ends the process as soon as the handler returns, if not before.
        let _ = kill_process(getpid(), signal);
    }
}

/// Whether the terminal is another program's now. What this one does to it would stop it.
fn is_in_background() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|foreground| foreground != getpgrp())
}

/// Whether a write would not wait. It would where Ctrl-S has halted the output, and the process would not end.
fn takes_output() -> bool {
    let mut output = [PollFd::from_borrowed_fd(stdout(), PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut output, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Whether a signal is ignored. Asked without a change: between a change and its undoing the signal would end a process
/// that ignores it.
fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is given, and there is room for the present one.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zero bytes are an action, with or without an answer.
    asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Sets the action of a signal, and returns the earlier one. `handler` is `give_back`, an action of the system, or an
/// earlier result of this.
fn set(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: `give_back` does nothing that a handler may not do; the earlier action may run as it did before.
    unsafe { libc::signal(signal, handler) }
}
