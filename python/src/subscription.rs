//! A subscription as an object of Python (rules N1 to N3).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use tupelo::Event;

use crate::errors::Failure;
use crate::refusal::stays_here;
use crate::results;
use crate::space::Handle;
use crate::timeout;
use crate::waiting::{self, Deadline};

/// An iterator over the events of the tuples that match a template; it waits for the next event.
///
/// Made by `Space.subscribe`. As a context manager it ends itself; it also ends when it is forgotten.
///
///     >>> with space.subscribe("alarm", str) as alarms:
///     ...     space.put("alarm", "smoke")
///     ...     space.put("alarm", "fire")
///     ...     print(next(alarms).tuple, alarms.waiting, alarms.next(timeout=1).seq, alarms.try_next())
///     ('alarm', 'smoke') 1 2 None
#[pyclass(frozen, generic, weakref, module = "tupelo", name = "Subscription")]
pub(crate) struct Subscription {
    /// None once it was closed.
    held: Mutex<Option<Arc<tupelo::Subscription>>>,
    /// Also keeps the connection open.
    space: Py<Handle>,
    /// The kinds of events, in words: for messages.
    heard: String,
}

impl Subscription {
    /// The object for a subscription to `space`.
    pub(crate) fn new(
        subscription: tupelo::Subscription,
        space: Py<Handle>,
        heard: String,
    ) -> Self {
        Self { held: Mutex::new(Some(Arc::new(subscription))), space, heard }
    }

    /// Locked for a moment only, never during a wait.
    fn locked(&self) -> MutexGuard<'_, Option<Arc<tupelo::Subscription>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subscription, unless it was closed.
    pub(crate) fn current(&self) -> Option<Arc<tupelo::Subscription>> {
        self.locked().clone()
    }

    pub(crate) fn open(&self) -> PyResult<Arc<tupelo::Subscription>> {
        self.current().ok_or_else(|| {
            PyValueError::new_err("this subscription was closed: subscribe again to hear more")
        })
    }

    fn exception(&self, py: Python<'_>, failure: Failure) -> PyErr {
        self.space.get().exception(py, failure)
    }

    /// The oldest event that waits, if one does.
    fn first<'py>(
        &self,
        py: Python<'py>,
        subscription: &tupelo::Subscription,
    ) -> Result<Option<Bound<'py, PyAny>>, Failure> {
        let objects = self.space.get().objects();
        subscription.try_next(|event: Event<'_>| {
            let tuple = results::tuple(py, event.tuple, &[], objects)?;
            let class = py.import("tupelo.events")?.getattr("Event")?;
            let fields = (event.kind.name(), tuple, event.sequence, event.missed);
            // Not by `class` itself: that is a function in Python, in which a Ctrl-C would come between.
            Ok(py.get_type::<PyTuple>().call_method1("__new__", (class, fields))?)
        })
    }

    /// Waits for an event; `None` if the time has run out, or the subscription was closed meanwhile.
    fn wait_for<'py>(
        &self,
        py: Python<'py>,
        deadline: &Deadline,
    ) -> Result<Option<Bound<'py, PyAny>>, Failure> {
        loop {
            let Some(subscription) = self.current() else { return Ok(None) };
            if let Some(event) = self.first(py, &subscription)? {
                return Ok(Some(event));
            }
            if !waiting::for_event(py, &subscription, deadline)? {
                return Ok(None);
            }
        }
    }
}

#[pymethods]
impl Subscription {
    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().open()?;
        Ok(slf)
    }

    /// Wait for the next event. Ends when the subscription is closed: also between two events, since another thread may close it
    /// while this one is busy with an event.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let event = self.wait_for(py, &Deadline::after(None));
        let event = event.map_err(|failure| self.exception(py, failure))?;
        event.ok_or_else(|| PyStopIteration::new_err(()))
    }

    /// Return the next event, waiting for it up to `timeout` seconds; None waits for ever.
    ///
    /// Raises:
    ///     `Timeout`: no event came in time. Later events are not lost.
    #[pyo3(signature = (timeout = None))]
    fn next<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.open()?;
        let timeout = timeout.map(Bound::as_borrowed);
        let deadline = Deadline::after(timeout::seconds("timeout", timeout.as_ref())?);
        let event = self.wait_for(py, &deadline);
        let event = event.map_err(|failure| self.exception(py, failure))?;
        event.ok_or_else(|| match self.open() {
            Ok(_) => self.timed_out(py, deadline.timeout().as_secs_f64()),
            Err(closed) => closed,
        })
    }

    /// Return the next event, or None at once if none waits.
    fn try_next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let subscription = self.open()?;
        self.first(py, &subscription).map_err(|failure| self.exception(py, failure))
    }

    /// How many events wait; with `where=`, it may hold for some of them only.
    #[getter]
    fn waiting(&self) -> PyResult<usize> {
        Ok(self.open()?.waiting())
    }

    /// End the subscription; waiting events are dropped. Callers that wait for an event stop. One that can be resumed keeps the
    /// events that wait, and is done with those that it has told.
    fn close(&self) {
        let subscription = self.locked().take();
        if let Some(subscription) = &subscription {
            subscription.done();
        }
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().open()?;
        Ok(slf)
    }

    /// End it. If the block has raised, the last event was not dealt with.
    #[pyo3(signature = (_kind, exception, _traceback, /))]
    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        if exception.is_none() { self.close() } else { self.give_up() }
    }

    /// End it, whose last event was not dealt with.
    #[pyo3(name = "_drop")]
    fn give_up(&self) {
        drop(self.locked().take());
    }

    /// Refused.
    #[expect(clippy::unused_self, reason = "a method of the protocol of pickle")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(stays_here("a subscription", "subscribe in the other process"))
    }

    fn __repr__(&self) -> String {
        let url = self.space.get().url();
        match self.current() {
            Some(subscription) => {
                format!("<Subscription to {url}, {} waiting>", subscription.waiting())
            }
            None => format!("<Subscription to {url}, closed>"),
        }
    }
}

impl Subscription {
    #[cold]
    fn timed_out(&self, py: Python<'_>, seconds: f64) -> PyErr {
        let url = self.space.get().url();
        let message = format!("no {} within {seconds} s in {url}", self.heard);
        let hint =
            "only what happens from the subscription on is told; read_all() shows what is there";
        crate::errors::make(py, "Timeout", &message, Some(hint), Some(url))
    }
}

/// The exception of a wait for an event that was in vain. For a caller that waits in a manner of its own.
#[pyfunction]
#[pyo3(signature = (subscription, seconds, /))]
pub(crate) fn no_event(subscription: &Bound<'_, Subscription>, seconds: f64) -> PyErr {
    subscription.get().timed_out(subscription.py(), seconds)
}
