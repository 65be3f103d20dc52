//! A place in line as an object: for what is composed in Python (`consume`), and for tests.

use std::time::Duration;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use tupelo::{Outcome, Want, Watch};

use crate::arguments::{self, Source};
use crate::call::Argument;
use crate::errors::{self, Failure};
use crate::objects::Objects;
use crate::results;
use crate::space::Handle;
use crate::timeout;
use crate::waiting::{self, Deadline};

/// Get in line for a match ("take", "read") in `space`, or watch for events ("put", "removal").
#[pyfunction]
#[pyo3(signature = (space, want, /, *template))]
pub(crate) fn waiter(
    space: &Bound<'_, Handle>,
    want: &str,
    template: &Bound<'_, PyTuple>,
) -> PyResult<WaiterObject> {
    let (py, handle) = (space.py(), space.get());
    let space = handle.space();
    let template: Vec<Argument<'_, '_>> = template.iter_borrowed().collect();
    let waiter = arguments::with_template(py, (Source::Positional, &template), |template| {
        Ok(match want {
            "take" => space.waiter(template, Want::Take)?,
            "read" => space.waiter(template, Want::Read)?,
            "put" => space.watch(template, Watch::Put)?,
            "removal" => space.watch(template, Watch::Removal)?,
            other => return Err(PyValueError::new_err(format!("nobody wants {other:?}")).into()),
        })
    });
    let waiter = waiter.map_err(|failure: Failure| failure.into_exception(py, space.url()))?;
    let waiter = Mutex::new(Some(Arc::new(waiter)));
    Ok(WaiterObject { waiter, url: space.url().to_owned(), objects: handle.objects() })
}

/// The time that an argument gives, in seconds; None for ever.
#[pyfunction]
pub(crate) fn seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let seconds = timeout::seconds(name, Some(&value.as_borrowed()))?;
    Ok(seconds.map(|seconds| seconds.as_secs_f64()))
}

/// The exception of a call that waited in vain.
#[pyfunction]
#[pyo3(signature = (space, verb, seconds, /, *template))]
pub(crate) fn timed_out(
    space: &Bound<'_, Handle>,
    verb: &str,
    seconds: f64,
    template: &Bound<'_, PyTuple>,
) -> PyResult<PyErr> {
    let (py, handle) = (space.py(), space.get());
    let verb = if verb == "read" { "read" } else { "take" };
    let template: Vec<Argument<'_, '_>> = template.iter_borrowed().collect();
    let error = arguments::with_template(py, (Source::Positional, &template), |template| {
        Ok::<_, Failure>(handle.space().timeout(verb, template, Duration::from_secs_f64(seconds)))
    });
    let error = error.map_err(|failure| failure.into_exception(py, handle.space().url()))?;
    Ok(errors::from_space(py, &error, handle.space().url()))
}

/// A place in line for a match, or a watch. Cancelled when it is forgotten.
#[pyclass(frozen, module = "tupelo._native", name = "Waiter")]
pub(crate) struct WaiterObject {
    /// None once it was finished or cancelled.
    waiter: Mutex<Option<Arc<tupelo::Waiter>>>,
    url: String,
    objects: Objects,
}

impl WaiterObject {
    /// Locked for a moment only, never while Python code or a wait runs.
    fn locked(&self) -> MutexGuard<'_, Option<Arc<tupelo::Waiter>>> {
        self.waiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the waiter out, for who finishes it.
    fn taken(&self) -> PyResult<tupelo::Waiter> {
        let waiter = self.locked().take();
        let waiter = waiter.ok_or_else(|| PyRuntimeError::new_err("this waiter is done"))?;
        Arc::into_inner(waiter)
            .ok_or_else(|| PyRuntimeError::new_err("another thread waits with this waiter"))
    }

    pub(crate) fn current(&self) -> PyResult<Arc<tupelo::Waiter>> {
        let waiter = self.locked().clone();
        waiter.ok_or_else(|| PyRuntimeError::new_err("this waiter is done"))
    }
}

#[pymethods]
impl WaiterObject {
    /// Wait; return whether it happened. If not, the place in line is kept.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let waiter = self.current()?;
        let timeout = timeout.map(Bound::as_borrowed);
        let timeout = timeout::seconds("timeout", timeout.as_ref())?;
        waiting::wait(py, &waiter, &Deadline::after(timeout))
            .map_err(|failure| failure.into_exception(py, &self.url))
    }

    /// Return the tuple that `wait` announced.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.taken()?
            .finish(|view| results::tuple(py, view, &[], self.objects))
            .map_err(|failure: Failure| failure.into_exception(py, &self.url))
    }

    /// Return the tuple that was handed over, or None if there is none: then the place in line is kept.
    fn finish_now<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let finished = self.taken()?.finish_now(|view| results::tuple(py, view, &[], self.objects));
        match finished.map_err(|failure: Failure| failure.into_exception(py, &self.url))? {
            Outcome::Done(tuple) => Ok(Some(tuple)),
            Outcome::Waits(waiter) => {
                *self.locked() = Some(Arc::new(waiter));
                Ok(None)
            }
        }
    }

    /// Give up. A tuple that was handed over goes back to its place (T5).
    fn cancel(&self) {
        let waiter = self.locked().take();
        drop(waiter);
    }

    /// Let what happens here also end a wait of `other`.
    fn wakes(&self, other: &Bound<'_, Self>) -> PyResult<()> {
        self.current()?.wakes(&*other.get().current()?);
        Ok(())
    }
}
