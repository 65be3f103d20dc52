//! A lease as an object of Python (rules L1 to L4).

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use tupelo::Error;

use crate::space::Handle;
use crate::timeout;

/// The time that the space keeps a tuple. The tuple stays when this is forgotten.
///
/// Made by `Space.put` with `lease=` or `after=`.
///
///     >>> lease = space.put("host", "node-a", lease=60)
///     >>> lease.renew(3600)
///     >>> 3599 < lease.expires_in <= 3600
///     True
///     >>> with lease.keep_alive():
///     ...     space.count("host", str)  # an hour of work: the tuple stays, and goes if this process dies
///     1
///     >>> lease.cancel()
///     >>> space.count("host", str)
///     0
#[pyclass(frozen, module = "tupelo", name = "Lease")]
pub(crate) struct Lease {
    lease: tupelo::Lease,
    space: Py<Handle>,
}

impl Lease {
    /// The object for a lease in `space`.
    pub(crate) fn new(lease: tupelo::Lease, space: Py<Handle>) -> Self {
        Self { lease, space }
    }

    fn exception(&self, py: Python<'_>, error: Error) -> PyErr {
        self.space.get().exception(py, error.into())
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
    fn expires_in(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let left = self.lease.expires_in().map_err(|error| self.exception(py, error))?;
        Ok(left.map(|left| left.as_secs_f64()))
    }

    /// Let the tuple stay for so many seconds from now; by default for as long as at first (rule L2).
    ///
    /// Raises:
    ///     `LeaseExpired`: the lease has ended, or the tuple was taken.
    #[pyo3(signature = (seconds = None))]
    fn renew(&self, py: Python<'_>, seconds: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let length = seconds.map_or(Ok(None), |seconds| timeout::RENEWAL.of(seconds))?;
        let renewed = match length {
            Some(length) => self.lease.renew(Some(length)),
            None => self.lease.renew_as_before(),
        };
        renewed.map_err(|error| self.exception(py, error))
    }

    /// Remove the tuple (rule L2).
    ///
    /// Raises:
    ///     `LeaseExpired`: the lease has ended, or the tuple was taken; or somebody has it in hands (claimed, taken in an
    ///         open transaction, or handed to a blocked take), and nothing has changed.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        self.lease.cancel().map_err(|error| self.exception(py, error))
    }

    /// Return a context manager that renews the lease as long as its block runs.
    fn keep_alive(slf: Bound<'_, Self>) -> KeepAlive {
        KeepAlive { lease: slf.unbind(), kept: Mutex::default() }
    }

    fn __repr__(&self) -> String {
        match self.lease.expires_in() {
            Ok(Some(left)) => format!("<Lease, {} s left>", left.as_secs_f64()),
            Ok(None) => "<Lease for ever>".to_owned(),
            Err(_) => "<Lease, ended>".to_owned(),
        }
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
        let keep_alive = lease.lease.keep_alive().map_err(|error| lease.exception(py, error))?;
        self.set(Some(keep_alive));
        Ok(())
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        self.set(None);
    }
}
