//! A notifier as an object: what `tupelo.aio` and futures wait with.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use tupelo::{Error, Notifier};

use super::waiter::WaiterObject;
use crate::errors;
use crate::space::Handle;
use crate::subscription::Subscription;

/// Tells its one owner which of many waiters of a space have something.
///
/// An event loop calls `listen`, and waits until `fileno()` is readable; a thread calls `sleep`. Both look
/// around every `next_look()` seconds.
#[pyclass(frozen, module = "tupelo._native", name = "Notifier")]
pub(crate) struct NotifierObject {
    /// None once it was closed.
    notifier: Mutex<Option<Arc<Notifier>>>,
    url: String,
}

/// The objects that a notifier can tell of.
#[derive(FromPyObject)]
enum Place<'py> {
    Waiter(Bound<'py, WaiterObject>),
    Subscription(Bound<'py, Subscription>),
}

impl NotifierObject {
    /// Locked for a moment only, never while the owner sleeps.
    fn locked(&self) -> MutexGuard<'_, Option<Arc<Notifier>>> {
        self.notifier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, ask: impl FnOnce(&Notifier) -> R) -> PyResult<R> {
        let notifier = self.locked().clone();
        notifier
            .as_deref()
            .map(ask)
            .ok_or_else(|| PyRuntimeError::new_err("this notifier is closed"))
    }

    /// Lets it tell of what happens to `waiter`; returns the number under which it does.
    pub(crate) fn ring_for(&self, waiter: &tupelo::Waiter) -> PyResult<u32> {
        self.with(|notifier| notifier.add(waiter))
    }

    fn exception(&self, py: Python<'_>, error: &Error) -> PyErr {
        errors::from_space(py, error, &self.url)
    }
}

#[pymethods]
impl NotifierObject {
    #[new]
    fn new(space: &Bound<'_, Handle>) -> PyResult<Self> {
        let (py, space) = (space.py(), space.get().space());
        let notifier =
            space.notifier().map_err(|error| errors::from_space(py, &error, space.url()))?;
        Ok(Self { notifier: Mutex::new(Some(Arc::new(notifier))), url: space.url().to_owned() })
    }

    /// The descriptor that is readable when something was told to the notifier while its owner listened.
    fn fileno(&self) -> PyResult<i32> {
        self.with(|notifier| notifier.as_fd().as_raw_fd())
    }

    /// Let it tell of what happens to `waiter`; return the number under which it does.
    fn add(&self, py: Python<'_>, waiter: Place<'_>) -> PyResult<u32> {
        match waiter {
            Place::Waiter(waiter) => self.ring_for(&*waiter.get().current()?),
            Place::Subscription(subscription) => {
                let subscription = subscription.get().open()?;
                self.with(|notifier| notifier.add_subscription(&subscription))?
                    .map_err(|error| self.exception(py, &error))
            }
        }
    }

    /// Forget a waiter. A closed notifier has forgotten all.
    fn remove(&self, number: u32) {
        if let Some(notifier) = &*self.locked() {
            notifier.remove(number);
        }
    }

    /// The numbers of waiters that something may have happened to since the last call.
    fn drain(&self) -> PyResult<Vec<u32>> {
        self.with(Notifier::drain)
    }

    /// Begin to listen; False if something has happened already.
    fn listen(&self) -> PyResult<bool> {
        self.with(Notifier::listen)
    }

    /// How long the owner may wait before it looks around, in seconds.
    fn next_look(&self) -> PyResult<f64> {
        self.with(|notifier| notifier.next_look().as_secs_f64())
    }

    /// Say that the owner does not wait any more, until it listens or sleeps again. A closed notifier rests.
    fn rest(&self) {
        if let Some(notifier) = &*self.locked() {
            notifier.rest();
        }
    }

    /// Do what blocked callers do now and then; return the waiters that have a tuple, and all watches.
    fn look(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        // It waits for locks, if something is due.
        py.detach(|| self.with(Notifier::look))?.map_err(|error| self.exception(py, &error))
    }

    /// As `look`, for a caller that has waited long enough. A closed notifier tells of no place.
    fn last_look(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let Some(notifier) = self.locked().clone() else { return Ok(Vec::new()) };
        py.detach(|| notifier.last_look()).map_err(|error| self.exception(py, &error))
    }

    /// Sleep until the notifier has something to tell, or for so many seconds. For an owner that is a thread.
    fn sleep(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        py.detach(|| {
            self.with(|notifier| notifier.sleep(Duration::from_secs_f64(seconds.max(0.0))))
        })
    }

    /// Give the notifier back.
    fn close(&self, py: Python<'_>) {
        let notifier = self.locked().take();
        // It may have to wait for a lock, in a destructor, too.
        py.detach(|| drop(notifier));
    }
}
