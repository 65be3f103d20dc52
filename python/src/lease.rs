//! A lease as an object of Python (rules L1 to L4).

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use tupelo::Error;

use crate::errors;
use crate::refusal::stays_here;
use crate::space::Handle;
use crate::timeout;
use crate::values;

/// The time that the space keeps a tuple. The tuple stays when this is forgotten.
///
/// Made by `Space.put` with `lease=` or `after=`.
///
///     >>> lease = space.put("host", "node-a", lease=60)
///     >>> lease.renew(3600)
///     >>> 3599 < lease.expires_in_s <= 3600
///     True
///     >>> with lease.keep_alive():
///     ...     space.count("host", str)  # an hour of work: the tuple stays, and goes if this process dies
///     1
///     >>> lease.cancel()
///     >>> space.count("host", str)
///     0
#[pyclass(frozen, module = "tupelo", name = "Lease")]
pub(crate) struct Lease {
    held: tupelo::Lease,
    /// How long it was at first; `None` for ever.
    length: Option<Duration>,
    /// The tuple: for messages.
    fields: Py<PyTuple>,
    space: Py<Handle>,
    /// Whether it was ended here: then it is not lost.
    is_cancelled: AtomicBool,
}

impl Lease {
    /// The object for a lease, in `space`, of the tuple of `fields`; it was `length` at first.
    pub(crate) fn new(
        held: tupelo::Lease,
        (length, fields): (Option<Duration>, Py<PyTuple>),
        space: Py<Handle>,
    ) -> Self {
        Self { held, length, fields, space, is_cancelled: AtomicBool::new(false) }
    }

    /// The exception for what went wrong; of a lease that has ended it says which one.
    /// The lease, for a call that may say itself when it returns.
    fn held(&self, sync: Option<&Bound<'_, PyAny>>) -> PyResult<Cow<'_, tupelo::Lease>> {
        let sync = self.space.get().sync(sync)?;
        Ok(sync.map_or(Cow::Borrowed(&self.held), |sync| Cow::Owned(self.held.with_sync(sync))))
    }

    #[cold]
    fn exception(&self, py: Python<'_>, error: Error) -> PyErr {
        let Error::LeaseExpired { problem, is_held } = error else {
            return self.space.get().exception(py, error.into());
        };
        let tuple = values::shown(self.fields.bind(py));
        let length = self.length.map_or_else(
            || "put without an end".to_owned(),
            |length| format!("put for {} s", length.as_secs_f64()),
        );
        // Relaxed: as in `cancel`.
        let how = match (is_held, self.is_cancelled.load(Ordering::Relaxed)) {
            (true, _) => "",
            (false, true) => "; it was cancelled here",
            // The space keeps nothing of a tuple that is gone.
            (false, false) => "; its lease ended, or somebody took it",
        };
        let problem = format!("{problem}: {tuple}, {length}{how}");
        self.space.get().exception(py, Error::LeaseExpired { problem, is_held }.into())
    }
}

#[pymethods]
impl Lease {
    /// How long the tuple will stay, in seconds; None for ever.
    ///
    /// While it is not visible yet this is how long it will stay from then on.
    ///
    /// Raises:
    ///     `LeaseExpired`: it is not there any more.
    #[getter]
    fn expires_in_s(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let left = self.held.expires_in().map_err(|error| self.exception(py, error))?;
        Ok(left.map(|left| left.as_secs_f64()))
    }

    /// Let the tuple stay for so many seconds from now; by default for as long as at first (rule L2).
    ///
    /// `sync` says when the call returns, as for `Space.put`.
    ///
    /// Raises:
    ///     `LeaseExpired`: the lease has ended, or the tuple was taken.
    #[pyo3(signature = (seconds = None, *, sync = None))]
    fn renew(
        &self,
        py: Python<'_>,
        seconds: Option<&Bound<'_, PyAny>>,
        sync: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let held = self.held(sync)?;
        let length = seconds.map_or(Ok(None), |seconds| timeout::RENEWAL.of(seconds))?;
        let renewed = match length {
            Some(length) => held.renew(Some(length)),
            None => held.renew_as_before(),
        };
        renewed.map_err(|error| self.exception(py, error))
    }

    /// Remove the tuple (rule L2). `sync` says when the call returns, as for `Space.put`.
    ///
    /// Raises:
    ///     `LeaseExpired`: the lease has ended, or the tuple was taken. Or the tuple is held (claimed, taken in an open
    ///         transaction, or handed to a blocked take), and nothing has changed.
    #[pyo3(signature = (*, sync = None))]
    fn cancel(&self, py: Python<'_>, sync: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.held(sync)?.cancel().map_err(|error| self.exception(py, error))?;
        // Relaxed: it guards nothing; a thread that sees it late reports a lease that was cancelled meanwhile as lost.
        self.is_cancelled.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Return a context manager that renews the lease at the begin of its block, and as long as that runs.
    ///
    /// Raises:
    ///     `LeaseExpired`: at the begin of the block: the lease has ended already, or the tuple was taken. At its end: that
    ///         happened meanwhile. The tuple was taken, or this process did not run for longer than the lease. If the block
    ///         raised something else, that goes on, and a note says so. A block that cancels the lease has not lost it.
    ///     `ValueError`: at the begin of the block: the lease never ends.
    fn keep_alive(slf: Bound<'_, Self>) -> KeepAlive {
        KeepAlive { lease: slf.unbind(), kept: Mutex::default() }
    }

    /// Refused.
    #[expect(clippy::unused_self, reason = "a method of the protocol of pickle")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(stays_here("a lease", "renew and cancel it here"))
    }

    fn __repr__(&self) -> String {
        match self.held.expires_in() {
            Ok(Some(left)) => format!("<Lease, {} s left>", left.as_secs_f64()),
            Ok(None) => "<Lease for ever>".to_owned(),
            Err(_) => "<Lease, ended>".to_owned(),
        }
    }

    /// No `__clear__`: a cycle leads through something that was changed after this was made, which has one.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.fields)?;
        visit.call(&self.space)
    }
}

/// Renews a lease as long as a block runs, without the interpreter.
#[pyclass(frozen, module = "tupelo")]
pub(crate) struct KeepAlive {
    lease: Py<Lease>,
    kept: Mutex<Option<tupelo::KeepAlive>>,
}

impl KeepAlive {
    fn set(&self, keep_alive: Option<tupelo::KeepAlive>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = keep_alive;
    }
}

#[pymethods]
impl KeepAlive {
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        let lease = self.lease.get();
        let keep_alive = lease.held.keep_alive().map_err(|error| lease.exception(py, error))?;
        self.set(Some(keep_alive));
        Ok(())
    }

    /// Renew no longer; say so if there was nothing to renew any more.
    #[pyo3(signature = (_kind, exception, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.set(None);
        let lease = self.lease.get();
        if lease.is_cancelled.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Err(error) = lease.held.expires_in() else { return Ok(()) };
        let lost = lease.exception(py, error);
        if exception.is_none() {
            return Err(lost);
        }
        errors::add_note(py, &PyErr::from_value(exception.clone()), &lost)
    }

    /// As that of the lease.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.lease)
    }
}
