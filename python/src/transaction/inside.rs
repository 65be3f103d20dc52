//! A space as a transaction sees it (rule X6), with the verbs of a space.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use tupelo::{Inside, Order, Transaction, Want};

use super::waits::Visitor;
use crate::arguments::{self, Source};
use crate::call::Argument;
use crate::entries::require_clear;
use crate::errors::Failure;
use crate::order;
use crate::space::Handle;
use crate::timeout;
use crate::verbs::bulk::{at_least_and_most, optional_count};
use crate::verbs::put::{absent, collect, lease_terms, refuse_timeout};
use crate::verbs::swap::new_fields;
use crate::verbs::waiter::WaiterObject;

/// A space as a transaction sees it (rule X6): the visible tuples, without those that it has taken, and with those that it
/// has put.
///
/// The verbs are those of `Space`. Their effects are not visible outside before the transaction commits. No other
/// caller can read or take the tuples that it has taken. Others can read the tuples that it has read, and not take them
/// (X3).
#[pyclass(frozen, subclass, weakref, module = "tupelo", name = "TransactionSpace")]
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

    pub(super) fn handle(&self) -> &Handle {
        self.space.get()
    }

    pub(super) fn exception(&self, py: Python<'_>, failure: Failure) -> PyErr {
        self.handle().exception(py, failure)
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
    ///     `NotEncodable`: a field cannot be stored. The transaction goes on.
    ///     `TypeError`: there is a `timeout=`: room is looked for at commit.
    ///
    /// `lease` is how long the tuple stays, and `after` how long until others see it. Both are in seconds and count from
    /// the commit. None, the default, is for ever, and at once. The transaction itself sees the tuple at once.
    ///
    ///     >>> with space.transaction() as t:
    ///     ...     t.put("job", 1)
    ///     ...     t.count("job", int), space.count("job", int)
    ///     (1, 0)
    #[pyo3(
        signature = (*fields, lease = None, after = None, **options),
        text_signature = "($self, /, *fields, lease=None, after=None)"
    )]
    fn put(
        &self,
        fields: &Bound<'_, PyTuple>,
        lease: Option<&Bound<'_, PyAny>>,
        after: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let py = fields.py();
        refuse_timeout(("put", "in a transaction"), options)?;
        let terms = lease_terms(lease, after)?;
        let fields: Vec<Argument<'_, '_>> = fields.iter_borrowed().collect();
        arguments::with_fields(py, (Source::Positional, &fields), self.handle(), |fields| {
            Ok(self.inside().put_on(fields, &terms)?)
        })
        .map_err(|failure| self.exception(py, failure))
    }

    /// Add several tuples when the transaction commits; return how many.
    ///
    /// The arguments and the exceptions are those of `put` here, and of `Space.put_all`.
    ///
    ///     >>> with space.transaction() as t:
    ///     ...     t.put_all(("job", n) for n in range(3))
    ///     3
    #[pyo3(
        signature = (tuples, /, *, lease = None, after = None, **options),
        text_signature = "($self, tuples, /, *, lease=None, after=None)"
    )]
    fn put_all(
        &self,
        tuples: &Bound<'_, PyAny>,
        lease: Option<&Bound<'_, PyAny>>,
        after: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<usize> {
        let py = tuples.py();
        refuse_timeout(("put_all", "in a transaction"), options)?;
        let terms = lease_terms(lease, after)?;
        let tuples = collect(tuples)?;
        arguments::with_tuples(py, &tuples, self.handle(), |tuples| {
            self.inside().put_all_on(tuples, &terms)?;
            Ok(tuples.len())
        })
        .map_err(|failure| self.exception(py, failure))
    }

    /// Add the tuple of these fields when the transaction commits, unless something matches `unless` (rule O8).
    ///
    /// It looks at what the transaction sees, and at what others hold. The commit looks again. Returning False locks nothing.
    ///
    /// Args:
    ///     fields, unless: as for `Space.put_if_absent`. `unless` has no `where=` here.
    ///     lease, after: as for `put`.
    ///
    /// Raises:
    ///     `Aborted`: the transaction's ttl has passed. At the commit: another caller has put a match, and nothing happened.
    ///     `NotEncodable`: a field cannot be stored. The transaction goes on.
    ///     `TypeError`: there is a `timeout=`: room is looked for at commit.
    ///
    ///     >>> with space.transaction() as t:
    ///     ...     t.put_if_absent("owner", 7, unless=("owner", int)), t.put_if_absent("owner", 8, unless=("owner", int))
    ///     (True, False)
    #[expect(clippy::too_many_arguments, reason = "keyword-only options of the public API")]
    #[pyo3(
        signature = (*fields, unless = None, lease = None, after = None, **options),
        text_signature = "($self, /, *fields, unless=None, lease=None, after=None)"
    )]
    fn put_if_absent(
        &self,
        fields: &Bound<'_, PyTuple>,
        unless: Given<'_, '_>,
        lease: Given<'_, '_>,
        after: Given<'_, '_>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<bool> {
        refuse_timeout(("put_if_absent", "in a transaction"), options)?;
        let (py, terms) = (fields.py(), lease_terms(lease, after)?);
        let fields: Vec<Argument<'_, '_>> = fields.iter_borrowed().collect();
        let unless = unless.map(Bound::as_borrowed);
        let unless = absent(&fields, unless.as_ref())?;
        arguments::with_template(py, (Source::Tuple, &unless), |unless| {
            arguments::with_fields(py, (Source::Positional, &fields), self.handle(), |fields| {
                Ok(self.inside().put_if_absent(fields, unless, &terms)?)
            })
        })
        .map_err(|failure| self.exception(py, failure))
    }

    /// Take a match, waiting for one, or until another transaction gives one back (rule X4).
    ///
    /// Args:
    ///     template: as for `Space.take`.
    ///     timeout: longest wait, in seconds. None waits as long as the transaction may be open; 0 does not wait.
    ///     order: as for `Space.take`; by default "fifo".
    ///     where: as for `Space.take`.
    ///
    /// Raises:
    ///     `Timeout`: nothing matched in time. The transaction goes on.
    ///     `Aborted`: its ttl ended first, as it does in a deadlock; the message names the template (X6).
    ///
    ///     >>> space.put("job", 1)
    ///     >>> with space.transaction() as t:
    ///     ...     t.take("job", int, timeout=1.0)
    ///     ('job', 1)
    #[pyo3(
        signature = (*template, timeout = None, order = None, **fields),
        text_signature = "($self, /, *template, timeout=None, order='fifo', where=None)"
    )]
    fn take<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        timeout: Given<'_, 'py>,
        order: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        require_clear(template)?;
        let (timeout, order) = (seconds(timeout)?, order_of(order)?);
        self.with_template((template, fields), |template, visitor| {
            match self.take_now(template, order, visitor)? {
                Some(tuple) => Ok(tuple),
                None if timeout == Some(Duration::ZERO) => {
                    Err(self.inside().timeout("take", template, Duration::ZERO).into())
                }
                None => self.wait_to_take(template, (order, visitor), ("take", timeout)),
            }
        })
    }

    /// Copy a match, waiting for one; no other caller can take it before the end of the transaction (rule X3).
    ///
    /// The arguments and the exceptions are those of `take`.
    ///
    ///     >>> space.put("rate", 0.01)
    ///     >>> with space.transaction() as t:
    ///     ...     t.read("rate", float), space.try_take("rate", float)
    ///     (('rate', 0.01), None)
    #[pyo3(
        signature = (*template, timeout = None, order = None, **fields),
        text_signature = "($self, /, *template, timeout=None, order='fifo', where=None)"
    )]
    fn read<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        timeout: Given<'_, 'py>,
        order: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        require_clear(template)?;
        let (timeout, order) = (seconds(timeout)?, order_of(order)?);
        self.with_template((template, fields), |template, visitor| {
            order::require_numbers(visitor.py, order, template)?;
            self.retry(template, visitor.py, ("read", timeout), || {
                self.inside().try_read(template, order, |view| visitor.tuple(view))
            })
        })
    }

    /// Take a match, or return None at once: also if another transaction has it (rule X4).
    ///
    /// The arguments are those of `take`. It raises `Aborted` once the transaction's ttl has passed.
    ///
    ///     >>> with space.transaction() as t:
    ///     ...     t.try_take("job", int) is None
    ///     True
    #[pyo3(
        signature = (*template, order = None, **fields),
        text_signature = "($self, /, *template, order='fifo', where=None)"
    )]
    fn try_take<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        order: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        require_clear(template)?;
        let order = order_of(order)?;
        self.with_template((template, fields), |template, visitor| {
            self.take_now(template, order, visitor)
        })
    }

    /// Copy a match, or return None at once; as `read` and `try_take`.
    ///
    ///     >>> with space.transaction() as t:
    ///     ...     t.try_read("job", int) is None
    ///     True
    #[pyo3(
        signature = (*template, order = None, **fields),
        text_signature = "($self, /, *template, order='fifo', where=None)"
    )]
    fn try_read<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        order: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        require_clear(template)?;
        let order = order_of(order)?;
        self.with_template((template, fields), |template, visitor| {
            order::require_numbers(visitor.py, order, template)?;
            self.inside().try_read(template, order, |view| visitor.tuple(view))
        })
    }

    /// Take the matches of one moment, and return a list of them.
    ///
    /// Args:
    ///     template: as for `Space.take`.
    ///     limit: how many at most; the oldest of a shape go first. None, the default, for all.
    ///     where: as for `Space.take`.
    ///
    /// Raises:
    ///     `Aborted`: the transaction's ttl has passed.
    ///     `TransactionTooBig`: there are more than one step can change, some 300 000. None was taken, and the
    ///         transaction goes on.
    ///
    ///     >>> space.put_all(("job", n) for n in range(3))
    ///     3
    ///     >>> with space.transaction() as t:
    ///     ...     t.take_all("job", int, limit=2)
    ///     [('job', 0), ('job', 1)]
    #[pyo3(
        signature = (*template, limit = None, **fields),
        text_signature = "($self, /, *template, limit=None, where=None)"
    )]
    fn take_all<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        limit: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        require_clear(template)?;
        let limit = limit_of(limit)?;
        let taken = self.with_template((template, fields), |template, visitor| {
            self.inside().take_all(template, limit, |view| visitor.tuple(view))
        })?;
        PyList::new(template.py(), taken)
    }

    /// Take the matches of one moment and return how many there were; no objects are made of the tuples.
    ///
    /// The arguments and the exceptions are those of `take_all`.
    ///
    ///     >>> space.put_all(("job", n) for n in range(3))
    ///     3
    ///     >>> with space.transaction() as t:
    ///     ...     t.discard("job", int)
    ///     3
    #[pyo3(
        signature = (*template, limit = None, **fields),
        text_signature = "($self, /, *template, limit=None, where=None)"
    )]
    fn discard(
        &self,
        template: &Bound<'_, PyTuple>,
        limit: Given<'_, '_>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<usize> {
        require_clear(template)?;
        let limit = limit_of(limit)?;
        let taken = self.with_template((template, fields), |template, _| {
            self.inside().take_all(template, limit, |_| Ok::<_, Failure>(()))
        })?;
        Ok(taken.len())
    }

    /// Copy the matches of one moment; no other caller can take them before the end of the transaction (rule X3).
    ///
    /// The arguments and the exceptions are those of `take_all`; one step can read some 250 000.
    ///
    ///     >>> space.put("job", 1)
    ///     >>> with space.transaction() as t:
    ///     ...     t.read_all("job", int)
    ///     [('job', 1)]
    #[pyo3(
        signature = (*template, limit = None, **fields),
        text_signature = "($self, /, *template, limit=None, where=None)"
    )]
    fn read_all<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        limit: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        require_clear(template)?;
        let limit = limit_of(limit)?;
        let read = self.with_template((template, fields), |template, visitor| {
            self.inside().read_all(template, limit, |view| visitor.tuple(view))
        })?;
        PyList::new(template.py(), read)
    }

    /// Take `n` matches together, or at least `at_least`, waiting for them; return a list of them.
    ///
    /// Args:
    ///     template: as for `Space.take`.
    ///     n: how many to take at most.
    ///     `at_least`: how many must be there. By default n.
    ///     timeout: longest wait, in seconds, as for `take`.
    ///     where: as for `Space.take`.
    ///
    /// Raises:
    ///     `Timeout`: there were not enough in time. Nothing was taken, and the transaction goes on.
    ///     `Aborted`, `TransactionTooBig`: as for `take` and `take_all`.
    ///
    ///     >>> space.put_all(("squared", n) for n in range(3))
    ///     3
    ///     >>> with space.transaction() as t:
    ///     ...     t.take_many("squared", int, n=5, at_least=3, timeout=1.0)
    ///     [('squared', 0), ('squared', 1), ('squared', 2)]
    #[expect(clippy::too_many_arguments, reason = "keyword-only options of the public API")]
    #[pyo3(
        signature = (*template, n, at_least = None, timeout = None, **fields),
        text_signature = "($self, /, *template, n, at_least=None, timeout=None, where=None)"
    )]
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
        let taken = self.with_template((template, fields), |template, visitor| {
            self.retry(template, visitor.py, ("take_many", timeout), || {
                self.inside().try_take_many(template, at_least, at_most, |view| visitor.tuple(view))
            })
        })?;
        PyList::new(template.py(), taken)
    }

    /// Replace a match by another tuple when the transaction commits, waiting for one; return the old one.
    ///
    /// Args:
    ///     template: as for `Space.take`.
    ///     to: the new tuple, or the new entry.
    ///     timeout: longest wait for a match, in seconds, as for `take`.
    ///     where: as for `Space.take`.
    ///
    /// Raises:
    ///     `Timeout`, `Aborted`: as for `take`.
    ///     `NotEncodable`: a field of the new tuple cannot be stored. Nothing was taken.
    ///
    ///     >>> space.put("state", "idle")
    ///     >>> with space.transaction() as t:
    ///     ...     t.swap("state", str, to=("state", "busy"))
    ///     ('state', 'idle')
    #[pyo3(
        signature = (*template, to = None, timeout = None, **fields),
        text_signature = "($self, /, *template, to, timeout=None, where=None)"
    )]
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
        self.with_template((template, fields), |template, visitor| {
            arguments::with_fields(py, (Source::Tuple, &to), self.handle(), |new| {
                // What can be wrong with it is found out before anything is taken.
                self.inside().check(new)?;
                let old = match self.take_now(template, Order::Fifo, visitor)? {
                    Some(old) => old,
                    None if timeout == Some(Duration::ZERO) => {
                        let inside = self.inside();
                        return Err(inside.timeout("swap", template, Duration::ZERO).into());
                    }
                    None => {
                        self.wait_to_take(template, (Order::Fifo, visitor), ("swap", timeout))?
                    }
                };
                self.inside().put(new)?;
                Ok(old)
            })
        })
    }

    /// Replace a match by another tuple when the transaction commits, or return None at once; as `swap`.
    ///
    ///     >>> with space.transaction() as t:
    ///     ...     t.try_swap("state", "idle", to=("state", "busy")) is None
    ///     True
    #[pyo3(
        signature = (*template, to = None, **fields),
        text_signature = "($self, /, *template, to, where=None)"
    )]
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
        self.with_template((template, fields), |template, visitor| {
            arguments::with_fields(py, (Source::Tuple, &to), self.handle(), |new| {
                self.inside().check(new)?;
                let old = self.take_now(template, Order::Fifo, visitor)?;
                if old.is_some() {
                    self.inside().put(new)?;
                }
                Ok(old)
            })
        })
    }

    /// Count the matches of one moment. Locks nothing: others may change the number.
    ///
    /// The arguments are those of `Space.count`. It raises `Aborted` once the transaction's ttl has passed.
    ///
    ///     >>> space.put("job", 1)
    ///     >>> with space.transaction() as t:
    ///     ...     t.count("job", int)
    ///     1
    #[pyo3(signature = (*template, **fields), text_signature = "($self, /, *template, where=None)")]
    fn count(
        &self,
        template: &Bound<'_, PyTuple>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u64> {
        self.with_template((template, fields), |template, _| Ok(self.inside().count(template)?))
    }

    /// Take enough matches together, or return None if there are too few. For a caller that waits in its own manner.
    #[pyo3(signature = (*template, n, at_least = None, **fields))]
    fn _try_take_many<'py>(
        &self,
        template: &Bound<'py, PyTuple>,
        n: &Bound<'py, PyAny>,
        at_least: Given<'_, 'py>,
        fields: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let (at_least, at_most) = at_least_and_most(n, at_least)?;
        let taken = self.with_template((template, fields), |template, visitor| {
            self.inside().try_take_many(template, at_least, at_most, |view| visitor.tuple(view))
        })?;
        taken.map(|taken| PyList::new(template.py(), taken)).transpose()
    }

    /// Join the wait queue to take a match ("take"), or watch for one ("put"). For a caller that waits in its own manner.
    #[pyo3(signature = (want, /, *template))]
    fn _waiter(&self, want: &str, template: &Bound<'_, PyTuple>) -> PyResult<WaiterObject> {
        let want = if want == "take" { Want::Take } else { Want::Read };
        let waiter = self.with_template((template, None), |template, _| {
            Ok(self.inside().waiter(template, want)?)
        })?;
        Ok(WaiterObject::new(waiter, self.space.clone_ref(template.py())))
    }

    /// Take the tuple that a waiter was handed; None, and the place in the wait queue is kept, if there is none.
    fn _finish_take<'py>(
        &self,
        py: Python<'py>,
        waiter: &Bound<'py, WaiterObject>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let visitor = Visitor { py, fields: &[], handle: self.handle() };
        let finished = self.inside().finish_take(waiter.get().taken()?, |view| visitor.tuple(view));
        let finished = finished.map_err(|failure: Failure| self.exception(py, failure))?;
        Ok(waiter.get().kept(finished))
    }

    /// How long a call may wait, in seconds: not longer than the transaction may be open.
    #[pyo3(signature = (timeout = None))]
    fn _wait_at_most(&self, timeout: Given<'_, '_>) -> PyResult<f64> {
        Ok(self.inside().wait_at_most(seconds(timeout)?).as_secs_f64())
    }

    /// Whether a take without a match has to watch, and try again: tuples that the transaction has read itself are not
    /// handed over.
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
