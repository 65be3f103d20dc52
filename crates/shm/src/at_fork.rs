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

/// In the order in which they came. Found without a lock, which a fork could meet.
static HANDLERS: [OnceLock<&'static dyn AtFork>; HANDLERS_MAX] =
    [const { OnceLock::new() }; HANDLERS_MAX];
const HANDLERS_MAX: usize = 4;

/// Has this done around each fork from now on. Of several handlers, the last is the first before a fork, and the last
/// after it. Called once per handler.
///
/// # Panics
///
/// If there are four handlers already, or no memory for one.
pub fn at_fork(handler: &'static dyn AtFork) {
    watch_forks();
    let has_place = HANDLERS.iter().any(|place| place.set(handler).is_ok());
    assert!(has_place, "there are at most {HANDLERS_MAX} handlers of forks per process");
}

fn handlers() -> impl DoubleEndedIterator<Item = &'static dyn AtFork> {
    HANDLERS.iter().filter_map(|place| place.get().copied())
}

pub(crate) fn before() {
    handlers().rev().for_each(AtFork::before);
}

pub(crate) fn after(is_child: bool) {
    handlers().for_each(|handler| handler.after(is_child));
}
