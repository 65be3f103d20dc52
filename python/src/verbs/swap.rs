//! `swap` and `try_swap`.

use std::ffi::CStr;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use tupelo::{Durability, TemplateRef, TupleRef, Watch};

use crate::arguments::{self, Source};
use crate::call::{Argument, Call, Verb};
use crate::entries;
use crate::errors::Failure;
use crate::known;
use crate::template::Template;
use crate::timeout;
use crate::waiting::{self, Deadline};

/// `swap(*template, to, timeout=None, sync=None, where=None)`
pub(crate) struct Swap;

impl Verb for Swap {
    const NAME: &'static CStr = c"swap";
    const CHANGES: bool = true;
    const DOC: &'static CStr = c"swap($self, /, *template, to, timeout=None, sync=None, where=None)
--

Replace a tuple that matches by another, in one step, waiting for one if there is none (rule O8).

Args:
    template: as for `take`.
    to: the new tuple, or the new entry.
    timeout: longest wait for a match, in seconds. None waits for ever; 0 does not wait.
    sync: as for `put`.
    where: as for `take`.

Returns:
    The old tuple.

Raises:
    Timeout: nothing matched in time. Nothing was changed.
    SpaceFull: there is no room for the new tuple. Nothing was changed. The call does not wait for
        room, and no tuple is dropped for it.
    NotEncodable: a field of the new tuple cannot be stored. Nothing was changed.

If the call ends early:
    Timeout, or interruption by a signal handler that raises: nothing was changed.
    Death of this process: the tuple was replaced or not; no caller sees both or neither.

>>> space.put(\"state\", \"idle\")
>>> space.swap(\"state\", \"idle\", to=(\"state\", \"busy\"))
('state', 'idle')
>>> space.read(\"state\", str)
('state', 'busy')
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [to, timeout] = call.keywords(["to", "timeout"])?;
        let to = new_fields("swap", to)?;
        let timeout = timeout::seconds("timeout", timeout)?;
        call.with_template(|template| {
            arguments::with_fields(call.py, (Source::Tuple, &to), call.handle, |fields| {
                swap(call, template, fields, Deadline::after(timeout))
            })
        })
    }
}

fn swap<'py>(
    call: &Call<'_, 'py>,
    template: &[TemplateRef<'_>],
    to: TupleRef<'_>,
    deadline: Deadline,
) -> Result<Bound<'py, PyAny>, Failure> {
    if let Some(old) = try_swap(call, template, to)? {
        return Ok(old);
    }
    if !deadline.is_now() {
        // Watching begins before the next look, so that no put in between is missed.
        let puts = call.space().watch(template, Watch::Put)?;
        loop {
            if let Some(old) = try_swap(call, template, to)? {
                return Ok(old);
            }
            if !waiting::wait(call.py, &puts, &deadline)? {
                break;
            }
        }
    }
    Err(call.space().timeout("swap", template, deadline.timeout()).into())
}

/// `update(*template, to, timeout=None, sync=None, where=None)`
pub(crate) struct Update;

impl Verb for Update {
    const NAME: &'static CStr = c"update";
    const CHANGES: bool = true;
    const RENEWS: bool = true;
    const DOC: &'static CStr =
        c"update($self, /, *template, to, timeout=None, sync=None, where=None)
--

Replace a match by the result of a function, in one step, and return that; waits for a match.

It is a transaction: no other caller can take the tuple meanwhile. If the function raises, or this
process dies, the tuple is back at its place. Keep the function short.

Args:
    template: as for `take`.
    to: is called with the tuple or entry, and returns the new one.
    timeout: longest wait for a match, in seconds. None waits for ever; 0 does not wait.
    sync: as for `put`.
    where: as for `take`.

Returns:
    The new tuple or entry, which takes the last place (O8).

Raises:
    Timeout: nothing matched in time. Nothing has changed.
    Aborted: the function took longer than 30 seconds. Nothing has changed.
    SpaceFull: there is no room for the new one. Nothing has changed.
    TypeError: the function returned neither a tuple nor an entry. Nothing has changed.

If the call ends early:
    Timeout, or interruption by a signal handler that raises: nothing has changed.
    Death of this process: the tuple was replaced, or is back at its place at once.

>>> space.put(\"counter\", 41)
>>> space.update(\"counter\", int, to=lambda old: (\"counter\", old[1] + 1))
('counter', 42)
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [to, timeout] = call.keywords(["to", "timeout"])?;
        let Some(to) = to else {
            return Err(PyTypeError::new_err(
                "update() needs to, the function that makes the new tuple, as in \
                 update(\"counter\", int, to=lambda old: (\"counter\", old[1] + 1))",
            )
            .into());
        };
        let template = Template::from(call.owned_template()?);
        let update = call.py.import("tupelo.updating")?.getattr("update")?;
        let sync = call.sync().map(Durability::name);
        Ok(update.call1((call.origin, template, to, timeout, sync))?)
    }
}

/// `try_swap(*template, to, sync=None, where=None)`
pub(crate) struct TrySwap;

impl Verb for TrySwap {
    const NAME: &'static CStr = c"try_swap";
    const CHANGES: bool = true;
    const DOC: &'static CStr = c"try_swap($self, /, *template, to, sync=None, where=None)
--

Replace a tuple that matches by another, in one step, or return None at once if there is none.

The arguments are those of `swap`.

Raises:
    SpaceFull: there is no room for the new tuple. Nothing was changed.
    NotEncodable: a field of the new tuple cannot be stored. Nothing was changed.

If the call ends early:
    It does not wait.
    Death of this process: the tuple was replaced or not; no caller sees both or neither.

>>> space.try_swap(\"state\", \"idle\", to=(\"state\", \"busy\")) is None
True
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [to] = call.keywords(["to"])?;
        let to = new_fields("try_swap", to)?;
        let old = call.with_template(|template| {
            arguments::with_fields(call.py, (Source::Tuple, &to), call.handle, |fields| {
                try_swap(call, template, fields)
            })
        })?;
        Ok(old.unwrap_or_else(|| call.none()))
    }
}

fn try_swap<'py>(
    call: &Call<'_, 'py>,
    template: &[TemplateRef<'_>],
    to: TupleRef<'_>,
) -> Result<Option<Bound<'py, PyAny>>, Failure> {
    call.space().try_swap(template, to, |view| call.tuple(view))
}

/// The fields of the new tuple.
pub(crate) fn new_fields<'a, 'py>(
    verb: &str,
    to: Option<&'a Argument<'a, 'py>>,
) -> PyResult<Vec<Argument<'a, 'py>>> {
    let Some(to) = to else {
        return Err(PyTypeError::new_err(format!(
            "{verb}() needs to, the new tuple, as in {verb}(\"state\", str, to=(\"state\", \"busy\"))"
        )));
    };
    if let Some((_, false)) = entries::of_object(to)? {
        return Ok(vec![*to]);
    }
    let to: &'a Bound<'py, PyAny> = to;
    let Ok(tuple) = to.cast_exact::<PyTuple>() else {
        let class = known::class_name(to);
        return Err(PyTypeError::new_err(format!(
            "to has the type {class}: give the new tuple, as in to=(\"state\", \"busy\")"
        )));
    };
    Ok(tuple.iter_borrowed().collect())
}
