//! The interpreter's work around a call that waits for a server: it lets other threads run, and looks for Ctrl-C.

use std::cell::RefCell;

use pyo3::prelude::*;

use tupelo::Surroundings;

/// The interpreter of this process.
pub(crate) static INTERPRETER: Interpreter = Interpreter;

pub(crate) struct Interpreter;

thread_local! {
    /// The exception of a signal handler while this thread waited for a server, until the call is given up with it.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The exception of a signal handler in this thread, once.
pub(crate) fn interruption() -> Option<PyErr> {
    RAISED.with_borrow_mut(Option::take)
}

impl Surroundings for Interpreter {
    fn without_lock(&self, act: &mut (dyn FnMut() + Send)) {
        Python::attach(|py| py.detach(act));
    }

    fn is_interrupted(&self) -> bool {
        Python::attach(|py| match py.check_signals() {
            Ok(()) => false,
            Err(raised) => {
                RAISED.set(Some(raised));
                true
            }
        })
    }
}
