//! What others have done around a fork: a library that must not cross one is put away before it, in the parent.

use std::sync::OnceLock;

use crate::process::watch_forks;

/// What is done around each fork of this process.
pub trait AtFork: Sync {
    /// In the thread that forks, before it does. What other threads must not begin until then, they must be kept from.
    fn before(&self);

    /// In the same thread, behind the fork; `is_child` says in which of both processes. A child has this one thread.
    fn after(&self, is_child: bool);
}

static HANDLER: OnceLock<&'static dyn AtFork> = OnceLock::new();

/// Has this done around each fork from now on. There is one such handler per process.
///
/// # Panics
///
/// If there is another one, or no memory for a fork handler.
pub fn at_fork(handler: &'static dyn AtFork) {
    watch_forks();
    let first = *HANDLER.get_or_init(|| handler);
    assert!(std::ptr::addr_eq(first, handler), "there is one handler of forks per process");
}

pub(crate) fn before() {
    if let Some(handler) = HANDLER.get() {
        handler.before();
    }
}

pub(crate) fn after(is_child: bool) {
    if let Some(handler) = HANDLER.get() {
        handler.after(is_child);
    }
}
