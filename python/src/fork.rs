//! The effect of a fork on `mem://` spaces: the child has a copy of their memory, which no other process sees.
//!
//! Using it as if it were the space would wait for ever, or lose tuples without a word. So in the child
//! every connection to one is closed, with an error that says why.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::space::Handle;

/// The connections of this process to `mem://` spaces.
///
/// Locked only with the lock of the interpreter held, and never while Python code runs. The thread that forks has both,
/// so the child never finds it locked.
static PRIVATE: Mutex<Vec<Py<PyWeakrefReference>>> = Mutex::new(Vec::new());

fn private() -> MutexGuard<'static, Vec<Py<PyWeakrefReference>>> {
    PRIVATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Note that `space` belongs to this process alone.
#[pyfunction]
pub(crate) fn stays_behind(space: &Bound<'_, Handle>) -> PyResult<()> {
    let py = space.py();
    let reference = PyWeakrefReference::new(space)?.unbind();
    let mut private = private();
    let is_alive = |one: &Py<PyWeakrefReference>| one.bind(py).upgrade().is_some();
    // Dropped behind the lock, since dropping an object can run code.
    let (alive, gone): (Vec<_>, Vec<_>) = private.drain(..).partition(is_alive);
    private.extend(alive);
    private.push(reference);
    drop(private);
    drop(gone);
    Ok(())
}

/// In the child of a fork: close the connections that stay behind in the parent.
#[pyfunction]
pub(crate) fn after_fork(py: Python<'_>) {
    let references = std::mem::take(&mut *private());
    for space in references.iter().filter_map(|one| one.bind(py).upgrade()) {
        if let Ok(space) = space.cast::<Handle>() {
            space.get().stay_behind();
        }
    }
}
