//! A claim as an object of Python (rules K1 to K4).

use std::ffi::CString;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyResourceWarning;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyStringMethods, PyTuple};

use tupelo::{Error, KeepAlive};

use crate::arguments::{self, Source};
use crate::call::Argument;
use crate::errors::{self, Failure};
use crate::known;
use crate::refusal::stays_here;
use crate::space::Handle;
use crate::timeout;
use crate::values;
use crate::verbs::put::{lease_terms, refuse_timeout};
use crate::waiting;

/// A tuple that this process holds, until the claim is done or the tuple goes back to the space.
///
/// Made by `Space.claim`. As a context manager it gives the tuple and renews itself as long as the block runs. The end
/// of the block completes the claim; an exception aborts it. A forgotten claim is aborted, with a `ResourceWarning`.
///
///     >>> space.put("order", 7)
///     >>> claim = space.claim("order", int, ttl=30, max_attempts=3)
///     >>> with claim as (_, order):
///     ...     claim.put("shipped", order)  # appears when the block has ended well, or never
///     >>> space.take("shipped", int), claim.attempt, claim.settled
///     (('shipped', 7), 1, True)
#[pyclass(frozen, generic, weakref, module = "tupelo", name = "Claim")]
pub(crate) struct Claim {
    held: tupelo::Claim,
    tuple: Py<PyAny>,
    /// Also keeps the connection open.
    space: Py<Handle>,
    /// Renews the claim while a block runs.
    keep_alive: Mutex<Option<KeepAlive>>,
    /// How it ended, as far as that is known here: for messages.
    ending: OnceLock<&'static str>,
}

impl Claim {
    /// The object for a claim of `tuple` in `space`.
    pub(crate) fn new(held: tupelo::Claim, tuple: Py<PyAny>, space: Py<Handle>) -> Self {
        Self { held, tuple, space, keep_alive: Mutex::default(), ending: OnceLock::new() }
    }

    fn set_keep_alive(&self, keep_alive: Option<KeepAlive>) {
        let mut kept = self.keep_alive.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = keep_alive;
    }

    /// The exception for what went wrong; for a claim that was lost it says which one.
    #[cold]
    fn exception(&self, py: Python<'_>, failure: Failure) -> PyErr {
        let handle = self.space.get();
        match failure {
            Failure::Space(error @ Error::ClaimLost { .. }) => {
                let _ = self.ending.set("was lost");
                let (tuple, ttl_s) = (self.tuple.bind(py), self.held.ttl().as_secs_f64());
                let (tuple, problem) = (values::shown(tuple), error.message());
                let message = format!("your claim on {tuple} (ttl {ttl_s} s) is lost: {problem}");
                let url = handle.url();
                errors::make(py, "ClaimLost", &message, error.hint().as_deref(), Some(url))
            }
            Failure::Space(Error::Misuse { hint, .. }) if self.held.is_settled() => {
                let (tuple, fence) = (values::shown(self.tuple.bind(py)), self.fence());
                let ending = self.ending.get().copied().unwrap_or("has ended");
                let problem = format!(
                    "the claim was settled already: it {ending} (on {tuple}, fence {fence})"
                );
                let lost = "claim again: the tuple is another's work now, or will be";
                let hint = if ending == "was lost" { Some(lost.to_owned()) } else { hint };
                handle.exception(py, Error::Misuse { problem, hint }.into())
            }
            failure => handle.exception(py, failure),
        }
    }

    fn settle(&self, py: Python<'_>, settled: Result<(), Error>) -> PyResult<()> {
        settled.map_err(|error| self.exception(py, error.into()))
    }

    /// Ends the claim of a block that went well.
    fn done_at_end(&self, py: Python<'_>) -> PyResult<()> {
        let done = self.done(py, None, None);
        if let Err(why) = &done
            && !self.held.is_settled()
        {
            // No caller is left to try again: the tuple goes back, with the raised error as the reason.
            self.abort_at_end(py, why)?;
        }
        done
    }

    /// Warns that the claim ends since it was forgotten.
    #[cold]
    fn warn_forgotten(&self, py: Python<'_>) -> PyResult<()> {
        let message = format!(
            "a claim on {} (fence {}) was forgotten: its tuple goes back, as after a failed attempt. \
             Keep the claim, and call done() or abort(), or use it as a `with` block",
            values::shown(self.tuple.bind(py)),
            self.fence(),
        );
        let message = CString::new(message.replace('\0', "\\0"))?;
        PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &message, 1)
    }

    /// Ends the claim of a block that failed with `exception`, which goes on.
    fn abort_at_end(&self, py: Python<'_>, exception: &PyErr) -> PyResult<()> {
        match self.held.abort(&reason_of(py, exception)) {
            Ok(()) => {
                let _ = self.ending.set("was aborted");
                Ok(())
            }
            Err(error) => errors::add_note(py, exception, &self.exception(py, error.into())),
        }
    }
}

impl Drop for Claim {
    /// The claim was forgotten: the tuple goes back with `held`, and another caller gets it. That is nearly always a
    /// mistake.
    fn drop(&mut self) {
        if !self.held.is_open() {
            return;
        }
        // Not while the interpreter ends: then the end of the process gives it back.
        Python::try_attach(|py| {
            // The exception that forgot this claim is still on its way.
            let raised = PyErr::take(py);
            if let Err(why) = self.warn_forgotten(py) {
                // The filter makes it an error, and no caller is there to catch it.
                why.write_unraisable(py, None);
            }
            if let Some(raised) = raised {
                raised.restore(py);
            }
        });
    }
}

#[pymethods]
impl Claim {
    /// The tuple.
    #[getter]
    fn tuple(&self, py: Python<'_>) -> Py<PyAny> {
        self.tuple.clone_ref(py)
    }

    /// The number of the claim, greater than that of every earlier one in the space (rule K1).
    ///
    /// Your writes to other systems can carry it, so that a writer whose claim was lost is recognised.
    #[getter]
    fn fence(&self) -> u64 {
        self.held.fence()
    }

    /// Which attempt at the tuple this is; the first is 1.
    #[getter]
    fn attempt(&self) -> u32 {
        self.held.attempt()
    }

    /// Whether it was done or aborted here. A claim that was lost is found out at its end.
    #[getter]
    fn settled(&self) -> bool {
        self.held.is_settled()
    }

    /// Consume the tuple; the puts under the claim appear at the same moment (rules K2, K4).
    ///
    /// `timeout` is the longest wait for room for that, in seconds, as for `put`; the claim is not renewed meanwhile,
    /// unless a block does. `sync` says when the call returns, as for `Space.put`.
    ///
    /// Raises:
    ///     `ClaimLost`: the tuple is another's work now, or will be, and nothing was put (K3).
    ///     `SpaceFull`: the puts under the claim found no room. The claim goes on.
    ///     `TransactionTooBig`: the puts are more than one step can change, some 600 000 tuples. The claim goes on.
    ///     `ValueError`: the claim was done or aborted before.
    #[pyo3(signature = (*, timeout = None, sync = None))]
    fn done(
        &self,
        py: Python<'_>,
        timeout: Option<&Bound<'_, PyAny>>,
        sync: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let timeout = timeout.map(Bound::as_borrowed);
        let timeout = timeout::seconds("timeout", timeout.as_ref())?;
        let space = self.space.get().space();
        let sync = self.space.get().sync(sync)?;
        let done = || sync.map_or_else(|| self.held.done(), |sync| self.held.done_with_sync(sync));
        waiting::with_room(py, &space, timeout, done)
            .map_err(|failure| self.exception(py, failure))?;
        let _ = self.ending.set("was done");
        Ok(())
    }

    /// Put the tuple back at its old place (rule K2); the puts under the claim are discarded.
    ///
    /// After its last attempt it goes to the dead letters instead (K5), where `reason` is kept. `sync` says when the
    /// call returns, as for `Space.put`.
    ///
    /// Raises:
    ///     `ClaimLost`: the tuple is back already (K3).
    ///     `ValueError`: the claim was done or aborted before.
    #[pyo3(signature = (reason = None, *, sync = None))]
    fn abort(
        &self,
        py: Python<'_>,
        reason: Option<&Bound<'_, PyAny>>,
        sync: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let reason = reason
            .map_or(Ok("aborted, no reason given"), |reason| known::text("reason", reason))?;
        let aborted = match self.space.get().sync(sync)? {
            Some(sync) => self.held.abort_with_sync(reason, sync),
            None => self.held.abort(reason),
        };
        self.settle(py, aborted)?;
        let _ = self.ending.set("was aborted");
        Ok(())
    }

    /// Let the claim run for `ttl` seconds from now; by default for as long as at first.
    ///
    /// Raises:
    ///     `ClaimLost`: it has run out already (K3).
    ///     `ValueError`: the claim was done or aborted before.
    #[pyo3(signature = (ttl = None))]
    fn extend(&self, py: Python<'_>, ttl: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let ttl: Option<Duration> = ttl.map_or(Ok(None), |ttl| timeout::TTL_AGAIN.of(ttl))?;
        self.settle(py, self.held.extend(ttl))
    }

    /// Add the tuple of these fields at the moment when the claim is done, or never (rule K4).
    ///
    /// Until then the tuple belongs to the claim alone, and takes no room. So a claim that has run out accepts it all
    /// the same. Then `done` raises, and nothing was put.
    ///
    /// Raises:
    ///     `NotEncodable`: a field cannot be stored. The claim goes on.
    ///     `ValueError`: the claim was done or aborted before.
    ///     `TypeError`: there is a `timeout=`: whether there is room is known when the claim is done.
    ///
    /// `lease` is how long the tuple stays, and `after` the delay until it is visible, in seconds. Both count from the
    /// moment when the claim is done. By default the tuple stays for ever, and is visible at once.
    ///
    ///     >>> space.put("order", 7)
    ///     >>> claim = space.claim("order", int)
    ///     >>> claim.put("shipped", 7)
    ///     >>> space.count("shipped", int)
    ///     0
    ///     >>> claim.done()
    ///     >>> space.take("shipped", int)
    ///     ('shipped', 7)
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
        refuse_timeout(("put", "under a claim"), options)?;
        let terms = lease_terms(lease, after)?;
        let fields: Vec<Argument<'_, '_>> = fields.iter_borrowed().collect();
        let handle = self.space.get();
        arguments::with_fields(py, (Source::Positional, &fields), handle, |fields| {
            Ok(self.held.put_on(fields, &terms)?)
        })
        .map_err(|failure| self.exception(py, failure))
    }

    /// Discard the puts under the claim, which goes on; return how many tuples that were. For a worker whose result is
    /// larger than the space, and that answers with an error instead.
    fn _discard_puts(&self) -> usize {
        self.held.discard_puts()
    }

    /// Renew the claim, and go on doing so; return the tuple.
    ///
    /// Raises:
    ///     `ClaimLost`: it has run out already (K3).
    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let keep_alive = self.held.keep_alive();
        let keep_alive = keep_alive.map_err(|error| self.exception(py, error.into()))?;
        self.set_keep_alive(Some(keep_alive));
        Ok(self.tuple.clone_ref(py))
    }

    /// End the claim, unless the block did: done, or aborted if it raised.
    #[pyo3(signature = (_kind, exception, _traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let ended = if self.held.is_settled() {
            Ok(())
        } else if exception.is_none() {
            self.done_at_end(py)
        } else {
            self.abort_at_end(py, &PyErr::from_value(exception.clone()))
        };
        self.set_keep_alive(None);
        ended
    }

    /// Refused.
    #[expect(clippy::unused_self, reason = "a method of the protocol of pickle")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(stays_here("a claim", "send its tuple, or claim in the other process"))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let tuple = values::shown(self.tuple.bind(py));
        format!("<Claim {tuple}, attempt {}, fence {}>", self.attempt(), self.fence())
    }

    /// No `__clear__`: a cycle leads through something that was changed after this was made, which has one.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.tuple)?;
        visit.call(&self.space)
    }
}

/// Class and text of an exception, as the last line of a traceback has them.
fn reason_of(py: Python<'_>, exception: &PyErr) -> String {
    let class = exception.get_type(py).qualname();
    let class = class.map_or_else(|_| "exception".to_owned(), |name| name.to_string());
    // If the text of an exception cannot be made, its class still identifies it.
    let text = exception.value(py).str().ok();
    match text.as_ref().map(|text| text.to_string_lossy()) {
        Some(text) if !text.is_empty() => format!("{class}: {text}"),
        _ => class,
    }
}
