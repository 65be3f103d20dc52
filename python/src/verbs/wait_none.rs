//! `wait_none`.

use std::ffi::CStr;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use tupelo::{Space, TemplateRef, Watch};

use crate::call::{Call, Verb};
use crate::errors::{self, Failure};
use crate::space::Handle;
use crate::template;
use crate::timeout;
use crate::waiting::{self, Deadline};

/// `wait_none(*template, timeout=None, where=None)`
pub(crate) struct WaitNone;

impl Verb for WaitNone {
    const NAME: &'static CStr = c"wait_none";
    const DOC: &'static CStr = c"wait_none($self, /, *template, timeout=None, where=None)
--

Wait until no tuple matches (rule O9). A held tuple that may come back counts as a match.

Args:
    template: as for `take`.
    timeout: longest wait, in seconds. None waits for ever; 0 does not wait.
    where: as for `take`.

Raises:
    Timeout: there was always a match; the message says how many there are now.

If the call ends early:
    Timeout, interruption, or death of this process: the space is as before the call.

>>> space.wait_none(\"job\", ...)
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [timeout] = call.keywords(["timeout"])?;
        let timeout = timeout::seconds("timeout", timeout)?;
        call.with_template(|template| wait_none(call, template, Deadline::after(timeout)))?;
        Ok(call.none())
    }
}

fn wait_none(
    call: &Call<'_, '_>,
    template: &[TemplateRef<'_>],
    deadline: Deadline,
) -> Result<(), Failure> {
    let space = call.space();
    if !space.present(template)? {
        return Ok(());
    }
    if !deadline.is_now() {
        // Watching begins before the next look, so that no removal in between is missed.
        let removals = space.watch(template, Watch::Removal)?;
        loop {
            if !space.present(template)? {
                return Ok(());
            }
            if !waiting::wait(call.py, &removals, &deadline)? {
                break;
            }
        }
    }
    Err(still_there(call.py, (space, template), deadline.timeout()).into())
}

/// Whether there is a match, or one that is held. For a caller that waits for the last one to go in a manner of its
/// own.
///
/// The arguments are those of `wait_none`: the patterns as a tuple, the fields of a class of entries and `where` as a dict.
#[pyfunction]
#[pyo3(signature = (space, template, fields, /))]
pub(crate) fn present<'py>(
    space: &Bound<'py, Handle>,
    template: &Bound<'py, PyTuple>,
    fields: &Bound<'py, PyDict>,
) -> PyResult<bool> {
    let handle = space.get();
    template::with_sought(handle, (template, Some(fields)), |template| {
        Ok(handle.space().present(template)?)
    })
}

/// `Timeout`, with how many there are.
#[cold]
pub(crate) fn still_there(
    py: Python<'_>,
    (space, template): (&Space, &[TemplateRef<'_>]),
    timeout: Duration,
) -> PyErr {
    let explanation = space.explain_if_possible(template);
    let (template, url) = (explanation.template(), space.url());
    let seconds = timeout.as_secs_f64();
    let message = format!("{template} still matched after {seconds} s in {url}");
    let hint = if explanation.matches == 0 {
        // Another caller holds them, or they are gone by now.
        explanation.to_string()
    } else {
        format!("{} of them are there now", explanation.matches)
    };
    errors::make(py, "Timeout", &message, Some(&hint), Some(url))
}
