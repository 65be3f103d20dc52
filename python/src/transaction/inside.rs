//! A space as a transaction sees it (rule X6), with the verbs of a space.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use tupelo::{Inside, Order, Outcome, TemplateRef, Transaction, Want};

use crate::arguments::{self, Source};
use crate::call::Argument;
use crate::entries::require_clear;
use crate::errors::Failure;
use crate::order;
use crate::results;
use crate::space::Handle;
use crate::template;
use crate::timeout;
use crate::verbs::bulk::{at_least_and_most, optional_count};
use crate::verbs::put::{collect, refuse_terms};
use crate::verbs::swap::new_fields;
use crate::verbs::waiter::WaiterObject;
use crate::waiting::{self, Deadline};

/// A space as a transaction sees it: what is there for everybody, without what the transaction has taken, and with what
/// it has put (rule X6).
///
/// The verbs are those of `Space`. Nothing of what they do is seen outside before the transaction commits. What it has
/// taken, nobody else can read or take; what it has read, others can read and not take (X3).
#[pyclass(frozen, subclass, module = "tupelo", name = "TransactionSpace")]
pub(crate) struct InsideObject {
    pub(super) held: Arc<Transaction>,
    /// Which of its spaces.
    pub(super) at: usize,
    pub(super) space: Py<Handle>,
}

impl InsideObject {
    pub(super) fn inside(&self) -> Inside<'_> {
        self.held.at(self.at)
    }

    fn handle(&self) -> &Handle {
        self.space.get()
    }

    pub(super) fn exception(&self, py: Python<'_>, failure: Failure) -> PyErr {
        self.handle().exception(py, failure)
    }

    /// Gives `use_template` the template of a call, and what to build the result with.
    fn with_template<'py, R>(
        &self,
        sought: (&Bound<'py, PyTuple>, Option<&Bound<'py, PyDict>>),
        use_template: impl FnOnce(&[TemplateRef<'_>], &Sink<'_, 'py>) -> Result<R, Failure>,
    ) -> PyResult<R> {
        let (py, handle) = (sought.0.py(), self.handle());
        let given = template::sought(handle, sought).map_err(|why| self.exception(py, why))?;
        let given: Vec<Argument<'_, 'py>> = given.iter_borrowed().collect();
        let sink = Sink { py, fields: &given, handle };
        arguments::with_template(py, (Source::Positional, &given), |template| {
            use_template(template, &sink)
        })
        .map_err(|failure| self.exception(py, failure))
    }

    /// Waits to take a match.
    fn wait_to_take<'py>(
        &self,
        template: &[TemplateRef<'_>],
        (order, sink): (Order, &Sink<'_, 'py>),
        (verb, timeout): (&'static str, Option<Duration>),
    ) -> Result<Bound<'py, PyAny>, Failure> {
        let inside = self.inside();
        if inside.has_read()? {
            return self.retry(template, sink.py, (verb, timeout), || {
                self.take_now(template, order, sink)
            });
        }
        let deadline = Deadline::after(Some(inside.wait_at_most(timeout)));
        let mut waiter = inside.waiter(template, Want::Take)?;
        loop {
            match inside.finish_take(waiter, |view| sink.tuple(view))? {
                Outcome::Done(tuple) => return Ok(tuple),
                Outcome::Waits(again) => waiter = again,
            }
            // Something may have been handed over when it was too late.
            if inside.is_over() || !waiting::wait(sink.py, &waiter, &deadline)? {
                drop(waiter);
                return Err(inside.timeout(verb, template, timeout.unwrap_or_default()).into());
            }
        }
    }

    /// Tries again whenever something was put or given back.
    fn retry<R>(
        &self,
        template: &[TemplateRef<'_>],
        py: Python<'_>,
        (verb, timeout): (&'static str, Option<Duration>),
        attempt: impl Fn() -> Result<Option<R>, Failure>,
    ) -> Result<R, Failure> {
        if let Some(done) = attempt()? {
            return Ok(done);
        }
        let inside = self.inside();
        if timeout != Some(Duration::ZERO) {
            let deadline = Deadline::after(Some(inside.wait_at_most(timeout)));
            let puts = inside.waiter(template, Want::Read)?;
            loop {
                if !inside.is_over()
                    && let Some(done) = attempt()?
                {
                    return Ok(done);
                }
                if !waiting::wait(py, &puts, &deadline)? {
                    break;
                }
            }
        }
        Err(inside.timeout(verb, template, timeout.unwrap_or_default()).into())
    }

    fn take_now<'py>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: &Sink<'_, 'py>,
    ) -> Result<Option<Bound<'py, PyAny>>, Failure> {
        order::require_numbers(sink.py, order, template)?;
        self.inside().try_take(template, order, |view| sink.tuple(view))
    }
}

/// What makes tuples of Python.
struct Sink<'a, 'py> {
    py: Python<'py>,
    fields: &'a [Argument<'a, 'py>],
    handle: &'a Handle,
}

impl<'py> Sink<'_, 'py> {
    fn tuple(&self, view: tupelo::TupleView<'_>) -> Result<Bound<'py, PyAny>, Failure> {
        results::tuple(self.py, view, self.fields, self.handle.objects())
    }
}

type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

fn seconds(value: Given<'_, '_>) -> PyResult<Option<Duration>> {
    timeout::seconds("timeout", value.map(Bound::as_borrowed).as_ref())
}

fn order_of(value: Given<'_, '_>) -> PyResult<Order> {
    order::order(value.map(Bound::as_borrowed).as_ref())
}

fn limit_of(value: Given<'_, '_>) -> PyResult<Option<usize>> {
    value.map_or(Ok(None), |limit| optional_count("limit", limit))
}

#[pymethods]
impl InsideObject {
    /// Add the tuple of these fields when the transaction commits (rule X2).
    ///
    /// Raises:
    ///     `Aborted`: the transaction's ttl has passed.
    ///     `NotEncodable`: a field can not be stored. The transaction goes on.
    #[pyo3(signature = (*fields, **options))]
    fn put(
        &self,
        py: Python<'_>,
        fields: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        refuse_terms(("put", "in a transaction"), options)?;
        let fields: Vec<Argument<'_, '_>> = fields.iter_borrowed().collect();
        arguments::with_fields(py, (Source::Positional, &fields), self.handle(), |fields| {
            Ok(self.inside().put(fields)?)
        })
        .map_err(|failure| self.exception(py, failure))
    }

    /// Add several tuples when the transaction commits; return how many.
    #[pyo3(signature = (tuples, /, **options))]
    fn put_all(
        &self,
        py: Python<'_>,
        tuples: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<usize> {
        refuse_terms(("put_all", "in a transaction"), options)?;
        let tuples = collect(tuples)?;
        arguments::with_tuples(py, &tuples, self.handle(), |tuples| {
            self.inside().put_all(tuples)?;
            Ok(tuples.len())
        })
        .map_err(|failure| self.exception(py, failure))
    }

    /// Take a match, waiting for one, or until another transaction gives one back (rule X4).
    ///
    /// Raises:
    ///     `Timeout`: nothing matched in time. The transaction goes on.
    ///     `Aborted`: its ttl ended first, as it does in a deadlock; the message names what was waited for (X6).
    #[pyo3(signature = (*template, timeout = None, order = None, **fields))]
    fn take<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        timeout: Given<'_, 'py>,
        order: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        require_clear(template)?;
        let (timeout, order) = (seconds(timeout)?, order_of(order)?);
        self.with_template((template, fields), |template, sink| {
            match self.take_now(template, order, sink)? {
                Some(tuple) => Ok(tuple),
                None if timeout == Some(Duration::ZERO) => {
                    Err(self.inside().timeout("take", template, Duration::ZERO).into())
                }
                None => self.wait_to_take(template, (order, sink), ("take", timeout)),
            }
        })
    }

    /// Copy a match, waiting for one; nobody else can take it before the end of the transaction (rule X3).
    #[pyo3(signature = (*template, timeout = None, order = None, **fields))]
    fn read<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        timeout: Given<'_, 'py>,
        order: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        require_clear(template)?;
        let (timeout, order) = (seconds(timeout)?, order_of(order)?);
        self.with_template((template, fields), |template, sink| {
            order::require_numbers(sink.py, order, template)?;
            self.retry(template, sink.py, ("read", timeout), || {
                self.inside().try_read(template, order, |view| sink.tuple(view))
            })
        })
    }

    /// Take a match, or return None at once: also if another transaction has it (rule X4).
    #[pyo3(signature = (*template, order = None, **fields))]
    fn try_take<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        order: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        require_clear(template)?;
        let order = order_of(order)?;
        self.with_template((template, fields), |template, sink| {
            self.take_now(template, order, sink)
        })
    }

    /// Copy a match, or return None at once.
    #[pyo3(signature = (*template, order = None, **fields))]
    fn try_read<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        order: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        require_clear(template)?;
        let order = order_of(order)?;
        self.with_template((template, fields), |template, sink| {
            order::require_numbers(sink.py, order, template)?;
            self.inside().try_read(template, order, |view| sink.tuple(view))
        })
    }

    /// Take the matches of one moment.
    #[pyo3(signature = (*template, limit = None, **fields))]
    fn take_all<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        limit: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        require_clear(template)?;
        let limit = limit_of(limit)?;
        let taken = self.with_template((template, fields), |template, sink| {
            self.inside().take_all(template, limit, |view| sink.tuple(view))
        })?;
        PyList::new(template.py(), taken)
    }

    /// Copy the matches of one moment; nobody else can take them before the end of the transaction (rule X3).
    #[pyo3(signature = (*template, limit = None, **fields))]
    fn read_all<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        limit: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        require_clear(template)?;
        let limit = limit_of(limit)?;
        let read = self.with_template((template, fields), |template, sink| {
            self.inside().read_all(template, limit, |view| sink.tuple(view))
        })?;
        PyList::new(template.py(), read)
    }

    /// Take `n` matches together, or at least `at_least`, waiting for them.
    #[expect(clippy::too_many_arguments, reason = "keyword-only options of the public API")]
    #[pyo3(signature = (*template, n, at_least = None, timeout = None, **fields))]
    fn take_many<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        n: &Bound<'py, PyAny>,
        at_least: Given<'_, 'py>,
        timeout: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        require_clear(template)?;
        let (at_least, at_most) = at_least_and_most(n, at_least)?;
        let timeout = seconds(timeout)?;
        let taken = self.with_template((template, fields), |template, sink| {
            self.retry(template, sink.py, ("take_many", timeout), || {
                self.inside().try_take_many(template, at_least, at_most, |view| sink.tuple(view))
            })
        })?;
        PyList::new(template.py(), taken)
    }

    /// Replace a match by another tuple when the transaction commits, waiting for one; return the old one.
    #[pyo3(signature = (*template, to = None, timeout = None, **fields))]
    fn swap<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        to: Given<'_, 'py>,
        timeout: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        require_clear(template)?;
        let (py, timeout) = (template.py(), seconds(timeout)?);
        let to = to.map(Bound::as_borrowed);
        let to = new_fields("swap", to.as_ref())?;
        self.with_template((template, fields), |template, sink| {
            arguments::with_fields(py, (Source::Tuple, &to), self.handle(), |new| {
                // What can be wrong with it is found out before anything is taken.
                self.inside().check(new)?;
                let old = match self.take_now(template, Order::Fifo, sink)? {
                    Some(old) => old,
                    None if timeout == Some(Duration::ZERO) => {
                        let inside = self.inside();
                        return Err(inside.timeout("swap", template, Duration::ZERO).into());
                    }
                    None => self.wait_to_take(template, (Order::Fifo, sink), ("swap", timeout))?,
                };
                self.inside().put(new)?;
                Ok(old)
            })
        })
    }

    /// Replace a match by another tuple when the transaction commits, or return None at once.
    #[pyo3(signature = (*template, to = None, **fields))]
    fn try_swap<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        to: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        require_clear(template)?;
        let py = template.py();
        let to = to.map(Bound::as_borrowed);
        let to = new_fields("try_swap", to.as_ref())?;
        self.with_template((template, fields), |template, sink| {
            arguments::with_fields(py, (Source::Tuple, &to), self.handle(), |new| {
                self.inside().check(new)?;
                let old = self.take_now(template, Order::Fifo, sink)?;
                if old.is_some() {
                    self.inside().put(new)?;
                }
                Ok(old)
            })
        })
    }

    /// Count the matches of one moment. Locks nothing: others may change the number.
    #[pyo3(signature = (*template, **fields))]
    fn count(
        &self,
        template: &Bound<'_, PyTuple>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u64> {
        self.with_template((template, fields), |template, _| Ok(self.inside().count(template)?))
    }

    /// Take enough matches together, or return None if there are too few. For what waits in its own manner.
    #[pyo3(signature = (*template, n, at_least = None, **fields))]
    fn _try_take_many<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        n: &Bound<'py, PyAny>,
        at_least: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let (at_least, at_most) = at_least_and_most(n, at_least)?;
        let taken = self.with_template((template, fields), |template, sink| {
            self.inside().try_take_many(template, at_least, at_most, |view| sink.tuple(view))
        })?;
        taken.map(|taken| PyList::new(template.py(), taken)).transpose()
    }

    /// Get in line to take a match ("take"), or watch for one ("put"). For what waits in its own manner.
    #[pyo3(signature = (want, /, *template))]
    fn _waiter(&self, want: &str, template: &Bound<'_, PyTuple>) -> PyResult<WaiterObject> {
        let want = if want == "take" { Want::Take } else { Want::Read };
        let waiter = self.with_template((template, None), |template, _| {
            Ok(self.inside().waiter(template, want)?)
        })?;
        Ok(WaiterObject::new(waiter, self.space.clone_ref(template.py())))
    }

    /// Take what a waiter was handed; None, and the place in line is kept, if there is nothing.
    fn _finish_take<'py>(
        &self,
        py: Python<'py>,
        waiter: &Bound<'py, WaiterObject>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let sink = Sink { py, fields: &[], handle: self.handle() };
        let finished = self.inside().finish_take(waiter.get().taken()?, |view| sink.tuple(view));
        let finished = finished.map_err(|failure: Failure| self.exception(py, failure))?;
        Ok(waiter.get().kept(finished))
    }

    /// How long a call may wait, in seconds: not longer than the transaction may be open.
    #[pyo3(signature = (timeout = None))]
    fn _wait_at_most(&self, timeout: Given<'_, '_>) -> PyResult<f64> {
        Ok(self.inside().wait_at_most(seconds(timeout)?).as_secs_f64())
    }

    /// Whether a take that finds nothing has to watch, and try again: what the transaction has read itself, nobody
    /// hands over.
    fn _has_read(&self, py: Python<'_>) -> PyResult<bool> {
        self.inside().has_read().map_err(|error| self.exception(py, error.into()))
    }

    /// Whether the time of the transaction has run out: then nothing is to be had.
    fn _is_over(&self) -> bool {
        self.inside().is_over()
    }

    /// The exception of a call that waited in vain.
    #[pyo3(signature = (verb, timeout, /, *template))]
    fn _timed_out(
        &self,
        verb: &str,
        timeout: Given<'_, '_>,
        template: &Bound<'_, PyTuple>,
    ) -> PyResult<PyErr> {
        let py = template.py();
        let verb = ["read", "swap", "take_many"].into_iter().find(|known| *known == verb);
        let timeout = seconds(timeout)?.unwrap_or_default();
        self.with_template((template, None), |template, _| {
            let error = self.inside().timeout(verb.unwrap_or("take"), template, timeout);
            Ok(self.exception(py, error.into()))
        })
    }

    fn __repr__(&self) -> String {
        format!("<TransactionSpace {}>", self.inside().space().url())
    }
}
