//! A place in the wait queue as an object: for compositions in Python (`consume`, `tupelo.aio`), and for tests.

use std::time::Duration;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use tupelo::{Outcome, TupleView, Want, Watch};

use super::{bulk, claim, wait_none};
use crate::arguments::{self, Source};
use crate::call::Argument;
use crate::claim::Claim;
use crate::errors::{self, Failure};
use crate::results;
use crate::space::Handle;
use crate::timeout;
use crate::waiting::{self, Deadline};

/// Join the wait queue for a match ("take", "read") or for "room" in `space`, or watch for events ("put", "removal").
#[pyfunction]
#[pyo3(signature = (space, want, /, *template))]
pub(crate) fn waiter(
    space: &Bound<'_, Handle>,
    want: &str,
    template: &Bound<'_, PyTuple>,
) -> PyResult<WaiterObject> {
    let (py, engine) = (space.py(), space.get().space());
    let template: Vec<Argument<'_, '_>> = template.iter_borrowed().collect();
    let waiter = arguments::with_template(py, (Source::Positional, &template), |template| {
        Ok(match want {
            "take" => engine.waiter(template, Want::Take)?,
            "read" => engine.waiter(template, Want::Read)?,
            "put" => engine.watch(template, Watch::Put)?,
            "removal" => engine.watch(template, Watch::Removal)?,
            "room" => engine.room()?,
            other => return Err(PyValueError::new_err(format!("nobody wants {other:?}")).into()),
        })
    });
    let waiter = waiter.map_err(|failure: Failure| failure.into_exception(py, engine.url()))?;
    Ok(WaiterObject::new(waiter, space.clone().unbind()))
}

/// Join the wait queue to claim a match. A tuple that is handed over and not picked up within `ttl` goes to the next in the
/// wait queue.
#[pyfunction]
#[pyo3(signature = (space, /, *template, ttl, max_attempts = None))]
pub(crate) fn claimant(
    space: &Bound<'_, Handle>,
    template: &Bound<'_, PyTuple>,
    ttl: &Bound<'_, PyAny>,
    max_attempts: Option<&Bound<'_, PyAny>>,
) -> PyResult<WaiterObject> {
    let (py, engine) = (space.py(), space.get().space());
    let max_attempts = max_attempts.map(Bound::as_borrowed);
    let terms = claim::terms(Some(&ttl.as_borrowed()), max_attempts.as_ref())?;
    let template: Vec<Argument<'_, '_>> = template.iter_borrowed().collect();
    let waiter = arguments::with_template(py, (Source::Positional, &template), |template| {
        Ok(engine.claimant(template, &terms)?)
    });
    let waiter = waiter.map_err(|failure: Failure| failure.into_exception(py, engine.url()))?;
    Ok(WaiterObject::new(waiter, space.clone().unbind()))
}

/// The time that an argument gives, in seconds; None for ever.
#[pyfunction]
pub(crate) fn seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let seconds = timeout::seconds(name, Some(&value.as_borrowed()))?;
    Ok(seconds.map(|seconds| seconds.as_secs_f64()))
}

/// How long a put waits for room whose caller gave this `timeout`, in seconds; None for ever.
#[pyfunction]
#[pyo3(signature = (space, timeout, /))]
pub(crate) fn time_limit(
    space: &Bound<'_, Handle>,
    timeout: &Bound<'_, PyAny>,
) -> PyResult<Option<f64>> {
    let timeout = timeout::seconds("timeout", Some(&timeout.as_borrowed()))?;
    let deadline = waiting::deadline(&space.get().space(), timeout);
    Ok(deadline.limit().map(|seconds| seconds.as_secs_f64()))
}

/// The exception of a call that waited in vain; `at_least` is how many `take_many` waited for.
#[pyfunction]
#[pyo3(signature = (space, verb, seconds, /, *template, at_least = 1))]
pub(crate) fn timed_out(
    space: &Bound<'_, Handle>,
    verb: &str,
    seconds: f64,
    template: &Bound<'_, PyTuple>,
    at_least: usize,
) -> PyResult<PyErr> {
    let (py, space) = (space.py(), space.get().space());
    let timeout = Duration::from_secs_f64(seconds);
    let template: Vec<Argument<'_, '_>> = template.iter_borrowed().collect();
    let error = arguments::with_template(py, (Source::Positional, &template), |template| {
        let of_one =
            |verb| errors::from_space(py, &space.timeout(verb, template, timeout), space.url());
        Ok::<_, Failure>(match verb {
            "take_many" => bulk::too_few(py, (&*space, template), at_least, timeout),
            "wait_none" => wait_none::still_there(py, (&*space, template), timeout),
            "read" => of_one("read"),
            "claim" => of_one("claim"),
            "swap" => of_one("swap"),
            _ => of_one("take"),
        })
    });
    error.map_err(|failure| failure.into_exception(py, space.url()))
}

/// A place in the wait queue for a match, or a watch. Cancelled when it is forgotten.
#[pyclass(frozen, module = "tupelo._native", name = "Waiter")]
pub(crate) struct WaiterObject {
    /// None once it was finished or cancelled.
    waiter: Mutex<Option<Arc<tupelo::Waiter>>>,
    space: Py<Handle>,
}

impl WaiterObject {
    pub(crate) fn new(waiter: tupelo::Waiter, space: Py<Handle>) -> Self {
        Self { waiter: Mutex::new(Some(Arc::new(waiter))), space }
    }

    /// Locked for a moment only, never while Python code or a wait runs.
    fn locked(&self) -> MutexGuard<'_, Option<Arc<tupelo::Waiter>>> {
        self.waiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the waiter out, to finish it.
    pub(crate) fn taken(&self) -> PyResult<tupelo::Waiter> {
        let waiter = self.locked().take();
        let waiter = waiter.ok_or_else(|| PyRuntimeError::new_err("this waiter is done"))?;
        Arc::into_inner(waiter)
            .ok_or_else(|| PyRuntimeError::new_err("another thread waits with this waiter"))
    }

    pub(crate) fn current(&self) -> PyResult<Arc<tupelo::Waiter>> {
        let waiter = self.locked().clone();
        waiter.ok_or_else(|| PyRuntimeError::new_err("this waiter is done"))
    }

    /// Picks up a tuple, and waits for one without the lock of the interpreter.
    fn finish_in<'py>(
        &self,
        py: Python<'py>,
        mut waiter: tupelo::Waiter,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        loop {
            match waiter.finish_now(|view| self.tuple(py, view))? {
                Outcome::Done(tuple) => return Ok(tuple),
                Outcome::Waits(again) => waiter = again,
            }
            waiting::wait(py, &waiter, &Deadline::after(None))?;
        }
    }

    /// The tuple as Python gets it.
    fn tuple<'py>(
        &self,
        py: Python<'py>,
        view: TupleView<'_>,
    ) -> Result<Bound<'py, PyAny>, Failure> {
        results::tuple(py, view, &[], self.space.get().objects())
    }

    /// What `outcome` has; a waiter that still waits stays here.
    pub(crate) fn kept<R>(&self, outcome: Outcome<R>) -> Option<R> {
        match outcome {
            Outcome::Done(result) => Some(result),
            Outcome::Waits(waiter) => {
                *self.locked() = Some(Arc::new(waiter));
                None
            }
        }
    }

    fn exception(&self, py: Python<'_>, failure: Failure) -> PyErr {
        failure.into_exception(py, self.space.get().url())
    }
}

#[pymethods]
impl WaiterObject {
    /// Wait; return whether it happened. If not, the place in the wait queue is kept.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let waiter = self.current()?;
        let timeout = timeout.map(Bound::as_borrowed);
        let timeout = timeout::seconds("timeout", timeout.as_ref())?;
        waiting::wait(py, &waiter, &Deadline::after(timeout))
            .map_err(|failure| self.exception(py, failure))
    }

    /// Return the tuple that `wait` announced. If its put has died, there is none: then wait for another.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let finished = self.finish_in(py, self.taken()?);
        finished.map_err(|failure| self.exception(py, failure))
    }

    /// Return the tuple that was handed over, or None if there is none: then the place in the wait queue is kept.
    fn finish_now<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let finished = self.taken()?.finish_now(|view| self.tuple(py, view));
        let finished = finished.map_err(|failure| self.exception(py, failure))?;
        Ok(self.kept(finished))
    }

    /// Claim the tuple that was handed over; None, and the place in the wait queue is kept, if there is none.
    ///
    /// With `partly`, as far as it can be read: see `claim_partly`.
    #[pyo3(signature = (*, ttl, max_attempts, partly = false))]
    fn claim_now<'py>(
        &self,
        py: Python<'py>,
        ttl: &Bound<'py, PyAny>,
        max_attempts: &Bound<'py, PyAny>,
        partly: bool,
    ) -> PyResult<Option<Bound<'py, Claim>>> {
        let terms = claim::terms(Some(&ttl.as_borrowed()), Some(&max_attempts.as_borrowed()))?;
        let claimed = self.taken()?.finish_claim(&terms, |view| {
            if partly {
                results::partly(py, view, self.space.get().objects())
            } else {
                self.tuple(py, view)
            }
        });
        let claimed = claimed.map_err(|failure| self.exception(py, failure))?;
        let claimed = self.kept(claimed);
        claimed.map(|claimed| claim::object(py, self.space.clone_ref(py), claimed)).transpose()
    }

    /// Run a put, for a place in the wait queue for room.
    fn with_grant<'py>(&self, put: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.current()?.with_grant(|| put.call0())
    }

    /// End the wait: nothing is handed over from now on. An earlier tuple is to be picked up.
    fn end_wait(&self, py: Python<'_>) -> PyResult<bool> {
        self.current()?.end_wait().map_err(|error| self.exception(py, error.into()))
    }

    /// Give up. A tuple that was handed over goes back to its place (T5).
    fn cancel(&self) {
        let waiter = self.locked().take();
        drop(waiter);
    }

    /// Let what happens here also end a wait of `other`.
    fn wakes(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let woken = self.current()?.wakes(&*other.get().current()?);
        woken.map_err(|error| self.exception(py, error.into()))
    }
}
