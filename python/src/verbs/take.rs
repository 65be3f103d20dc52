//! The single-match verbs: `take`, `read`, `try_take`, `try_read`.

use std::ffi::CStr;
use std::time::Duration;

use pyo3::prelude::*;

use tupelo::{Order, Outcome, TemplateRef, Waiter};

use crate::call::{Call, Verb};
use crate::errors::Failure;
use crate::order;
use crate::timeout;
use crate::waiting::{self, Deadline};

/// `take(*template, timeout=None, order="fifo", sync=None, where=None)`
pub(crate) struct Take;

impl Verb for Take {
    const NAME: &'static CStr = c"take";
    const CHANGES: bool = true;
    const DOC: &'static CStr = c"take($self, /, *template, timeout=None, order='fifo', sync=None, where=None)
--

Remove and return a tuple that matches, waiting for one if there is none.

Each tuple is taken by exactly one caller, in any process (rule T1). By default the oldest match
goes first (T2). Blocked takes are served in FIFO order (T3).

Args:
    template: one pattern per field. A value matches itself; a type (int, str, ...) matches any
        value of exactly that type; `...` matches anything; `F` makes conditions. Or one template,
        made by `like` or `parse`.
    timeout: longest wait, in seconds. None waits for ever; 0 does not wait.
    order: \"fifo\", \"lifo\", \"random\", \"any\", F.max(field) or F.min(field).
    sync: as for `put`.
    where: a condition over the whole tuple `f`, as CEL text: \"f[1] % 2 == 0\" (rule M9). For an
        entry the fields are names: \"priority > 3\". The space evaluates it beside the data.

Returns:
    The tuple as it was put.

Raises:
    Timeout: nothing matched in time.

If the call ends early:
    Timeout, or interruption by a signal handler that raises: no tuple was removed. A tuple on its way
        goes back to its place.
    Death of this process: a tuple that it was not yet handed stays in the space. A tuple that it was
        handed is lost with it: use `claim` to have it back.

>>> space.put(\"job\", 17, b\"resize\")
>>> space.take(\"job\", int, ..., timeout=1.0)
('job', 17, b'resize')
";

    #[inline]
    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [timeout, order] = call.keywords(["timeout", "order"])?;
        let order = order::order(order)?;
        let deadline = timeout::seconds("timeout", timeout)?;
        call.give_up_after(deadline);
        call.with_template_in(order, |template| {
            if deadline == Some(Duration::ZERO) {
                return try_take(call, template, order)?
                    .ok_or_else(|| timed_out(call, ("take", template), deadline));
            }
            match call.space().take_or_wait(template, order, |view| call.tuple(view))? {
                Outcome::Done(tuple) => Ok(tuple),
                Outcome::Waits(waiter) => wait(call, ("take", template), waiter, deadline),
            }
        })
    }
}

/// `read(*template, timeout=None, order="fifo", where=None)`
pub(crate) struct Read;

impl Verb for Read {
    const NAME: &'static CStr = c"read";
    const DOC: &'static CStr = c"read($self, /, *template, timeout=None, order='fifo', where=None)
--

Return a copy of a tuple that matches, waiting for one if there is none. It stays in the space.

The arguments are those of `take`.

Raises:
    Timeout: nothing matched in time.

If the call ends early:
    Timeout, interruption, or death of this process: the space is as before the call.

>>> space.put(\"rate\", 0.01)
>>> space.read(\"rate\", float)
('rate', 0.01)
>>> space.count(\"rate\", float)
1
";

    #[inline]
    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [timeout, order] = call.keywords(["timeout", "order"])?;
        let order = order::order(order)?;
        let deadline = timeout::seconds("timeout", timeout)?;
        call.give_up_after(deadline);
        call.with_template_in(order, |template| {
            if deadline == Some(Duration::ZERO) {
                return try_read(call, template, order)?
                    .ok_or_else(|| timed_out(call, ("read", template), deadline));
            }
            match call.space().read_or_wait(template, order, |view| call.tuple(view))? {
                Outcome::Done(tuple) => Ok(tuple),
                Outcome::Waits(waiter) => wait(call, ("read", template), waiter, deadline),
            }
        })
    }
}

/// `try_take(*template, order="fifo", sync=None, where=None)`
pub(crate) struct TryTake;

impl Verb for TryTake {
    const NAME: &'static CStr = c"try_take";
    const CHANGES: bool = true;
    const DOC: &'static CStr = c"try_take($self, /, *template, order='fifo', sync=None, where=None)
--

Remove and return a tuple that matches, or return None at once if there is none (rule O4).

The arguments are those of `take`.

If the call ends early:
    It does not wait.
    Death of this process: a tuple that it was not yet handed stays in the space. A tuple that it was
        handed is lost with it: use `claim` to have it back.

>>> space.put(\"job\", 17)
>>> space.try_take(\"job\", int)
('job', 17)
>>> space.try_take(\"job\", int) is None
True
";

    #[inline]
    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [order] = call.keywords(["order"])?;
        let order = order::order(order)?;
        let found = call.with_template_in(order, |template| try_take(call, template, order))?;
        Ok(found.unwrap_or_else(|| call.none()))
    }
}

/// `try_read(*template, order="fifo", where=None)`
pub(crate) struct TryRead;

impl Verb for TryRead {
    const NAME: &'static CStr = c"try_read";
    const DOC: &'static CStr = c"try_read($self, /, *template, order='fifo', where=None)
--

Return a copy of a tuple that matches, or None at once if there is none (rule O4).

The arguments are those of `take`.

If the call ends early:
    It neither waits nor changes the space: nothing is left to undo.

>>> space.put(\"job\", 17)
>>> space.try_read(\"job\", int)
('job', 17)
>>> space.try_read(\"stop\") is None
True
";

    #[inline]
    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [order] = call.keywords(["order"])?;
        let order = order::order(order)?;
        let found = call.with_template_in(order, |template| try_read(call, template, order))?;
        Ok(found.unwrap_or_else(|| call.none()))
    }
}

#[inline]
fn try_take<'py>(
    call: &Call<'_, 'py>,
    template: &[TemplateRef<'_>],
    order: Order,
) -> Result<Option<Bound<'py, PyAny>>, Failure> {
    call.space().try_take(template, order, |view| call.tuple(view))
}

#[inline]
fn try_read<'py>(
    call: &Call<'_, 'py>,
    template: &[TemplateRef<'_>],
    order: Order,
) -> Result<Option<Bound<'py, PyAny>>, Failure> {
    call.space().try_read(template, order, |view| call.tuple(view))
}

/// Waits for a match, in the wait queue for it. An announced tuple may not exist, as its put has died: then the call waits on for
/// the remaining time only.
#[cold]
fn wait<'py>(
    call: &Call<'_, 'py>,
    (verb, template): (&'static str, &[TemplateRef<'_>]),
    mut waiter: Waiter,
    timeout: Option<Duration>,
) -> Result<Bound<'py, PyAny>, Failure> {
    let deadline = Deadline::after(timeout);
    while waiting::last_wait(call.py, &waiter, &deadline)? {
        match waiter.finish_now(|view| call.tuple(view))? {
            Outcome::Done(tuple) => return Ok(tuple),
            Outcome::Waits(again) => waiter = again,
        }
    }
    // It is out of the wait queue when the error looks at the space.
    drop(waiter);
    Err(timed_out(call, (verb, template), timeout))
}

/// The failure of a call that found no match in time.
#[cold]
fn timed_out(
    call: &Call<'_, '_>,
    (verb, template): (&'static str, &[TemplateRef<'_>]),
    timeout: Option<Duration>,
) -> Failure {
    call.space().timeout(verb, template, timeout.unwrap_or_default()).into()
}
