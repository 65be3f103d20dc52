//! What the program `tupelo` has signals do.
//!
//! Not about memory: it is here since it needs `unsafe`, whose home this crate is. No library calls it, for how signals are
//! handled is the business of a program.

/// Has the system keep how a child of this process ends until somebody waits for it. A process that was started with
/// `SIGCHLD` ignored, as by a shell after `trap '' CHLD`, has inherited that: then the system forgets how its children
/// end, and a wait for one fails. Programs that this one starts, or becomes, inherit what is usual.
pub fn keep_ends_of_children() {
    let before = set(libc::SIGCHLD, libc::SIG_DFL);
    if before != libc::SIG_IGN {
        set(libc::SIGCHLD, before);
    }
}

/// Sets what a signal does, and returns what it did before. `handler` is one that the system has, or was returned by this.
fn set(signal: libc::c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
    // SAFETY: nothing of ours runs by it; a handler that was there before may run as it did before.
    unsafe { libc::signal(signal, handler) }
}
