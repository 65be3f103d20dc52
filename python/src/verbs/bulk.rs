//! Several matches at once: `take_all`, `discard`, `read_all`, `take_many`, `count`.

use std::ffi::CStr;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyTuple};

use tupelo::{Space, TemplateRef, TupleView, Watch};

use crate::call::{Argument, Call, Verb};
use crate::errors::{self, Failure};
use crate::results;
use crate::space::Handle;
use crate::template;
use crate::timeout;
use crate::values;
use crate::waiting::{self, Deadline};

/// `take_all(*template, limit=None, sync=None, where=None)`
pub(crate) struct TakeAll;

impl Verb for TakeAll {
    const NAME: &'static CStr = c"take_all";
    const CHANGES: bool = true;
    const DOC: &'static CStr = c"take_all($self, /, *template, limit=None, sync=None, where=None)
--

Remove and return the tuples that match now, in one step (rule O6). Does not wait.

Args:
    template: as for `take`.
    limit: how many at most; the oldest of a shape go first. None for all.
    sync: as for `put`.
    where: as for `take`.

Returns:
    A list of tuples, perhaps empty.

Raises:
    TransactionTooBig: there are more than one step can change, some 600 000. Nothing was removed.

If the call ends early:
    It does not wait.
    Death of this process: all of the tuples were removed, or none. Removed ones are lost with it.

>>> space.put_all((\"job\", n) for n in range(3))
3
>>> space.take_all(\"job\", int, limit=2)
[('job', 0), ('job', 1)]
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [limit] = call.keywords(["limit"])?;
        let limit = limit.map_or(Ok(None), |limit| optional_count("limit", limit))?;
        let taken = call.with_template(|template| {
            call.space().take_all(template, limit, |view| call.tuple(view))
        })?;
        Ok(PyList::new(call.py, taken)?.into_any())
    }
}

/// `discard(*template, limit=None, sync=None, where=None)`
pub(crate) struct Discard;

impl Verb for Discard {
    const NAME: &'static CStr = c"discard";
    const CHANGES: bool = true;
    const DOC: &'static CStr = c"discard($self, /, *template, limit=None, sync=None, where=None)
--

Remove the tuples that match now, in one step (rule O6), and return how many. Does not wait.

As `take_all`, but no objects are made of the tuples. Tuples that cannot be read here go, too.

Args:
    template: as for `take`.
    limit: how many at most; the oldest of a shape go first. None for all.
    sync: as for `put`.
    where: as for `take`.

Raises:
    TransactionTooBig: there are more than one step can change, some 600 000. Nothing was removed.

If the call ends early:
    It does not wait.
    Death of this process: all of the tuples were removed, or none. Removed ones are lost with it.

>>> space.put_all((\"job\", n) for n in range(3))
3
>>> space.discard(\"job\", int)
3
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [limit] = call.keywords(["limit"])?;
        let limit = limit.map_or(Ok(None), |limit| optional_count("limit", limit))?;
        let removed = call.with_template(|template| {
            call.space().take_all(template, limit, |_| Ok::<_, Failure>(()))
        })?;
        Ok(removed.len().into_pyobject(call.py).map_err(PyErr::from)?.into_any())
    }
}

/// `read_all(*template, limit=None, where=None)`
pub(crate) struct ReadAll;

impl Verb for ReadAll {
    const NAME: &'static CStr = c"read_all";
    const DOC: &'static CStr = c"read_all($self, /, *template, limit=None, where=None)
--

Return copies of the tuples that match now, all of one moment (rule O6). Does not wait.

The arguments are those of `take_all`.

Returns:
    A list of tuples, perhaps empty.

If the call ends early:
    It neither waits nor changes the space: nothing is left to undo.

>>> space.put_all((\"job\", n) for n in range(3))
3
>>> space.read_all(\"job\", int)
[('job', 0), ('job', 1), ('job', 2)]
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [limit] = call.keywords(["limit"])?;
        let limit = limit.map_or(Ok(None), |limit| optional_count("limit", limit))?;
        let read = call.with_template(|template| {
            call.space().read_all(template, limit, |view| call.tuple(view))
        })?;
        Ok(PyList::new(call.py, read)?.into_any())
    }
}

/// `take_many(*template, n, at_least=None, timeout=None, sync=None, where=None)`
pub(crate) struct TakeMany;

impl Verb for TakeMany {
    const NAME: &'static CStr = c"take_many";
    const CHANGES: bool = true;
    const DOC: &'static CStr =
        c"take_many($self, /, *template, n, at_least=None, timeout=None, sync=None, where=None)
--

Wait until enough tuples match, then remove and return them in one step.

Args:
    template: as for `take`.
    n: how many to take at most.
    at_least: how many must be there. By default n.
    timeout: longest wait, in seconds. None waits for ever; 0 does not wait.
    sync: as for `put`.
    where: as for `take`.

Returns:
    A list of at_least to n tuples.

Raises:
    Timeout: there were not enough in time; the message says how many. Nothing was removed.
    TransactionTooBig: they are more than one step can change, some 600 000. Nothing was removed.
    ValueError: at_least is more than n.

If the call ends early:
    Timeout, or interruption by a signal handler that raises: no tuple was removed.
    Death of this process: all of the tuples were removed, or none. Removed ones are lost with it.

>>> space.put_all((\"squared\", n, n * n) for n in range(3))
3
>>> space.take_many(\"squared\", int, int, n=3, timeout=1.0)
[('squared', 0, 0), ('squared', 1, 1), ('squared', 2, 4)]
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [at_most, at_least, timeout] = call.keywords(["n", "at_least", "timeout"])?;
        let Some(at_most) = at_most else {
            return Err(PyTypeError::new_err(
                "take_many() needs n, the number of tuples, as in take_many(\"squared\", int, n=10)",
            )
            .into());
        };
        let numbers = at_least_and_most(at_most, at_least.map(|least| &**least))?;
        let timeout = timeout::seconds("timeout", timeout)?;
        let taken = call.with_template(|template| {
            take_many(call, template, numbers, Deadline::after(timeout))
        })?;
        Ok(PyList::new(call.py, taken)?.into_any())
    }
}

/// How many tuples `take_many` takes at least, and at most.
///
/// # Errors
///
/// `ValueError` and `TypeError` for what are no such numbers.
pub(crate) fn at_least_and_most(
    n: &Bound<'_, PyAny>,
    at_least: Option<&Bound<'_, PyAny>>,
) -> PyResult<(usize, usize)> {
    let at_most = count("n", n)?;
    let at_least = at_least.map_or(Ok(None), |least| optional_count("at_least", least))?;
    let at_least = at_least.unwrap_or(at_most);
    if at_least > at_most {
        return Err(PyValueError::new_err(format!(
            "at_least is {at_least}, more than n, which is {at_most}"
        )));
    }
    Ok((at_least, at_most))
}

fn take_many<'py>(
    call: &Call<'_, 'py>,
    template: &[TemplateRef<'_>],
    (at_least, at_most): (usize, usize),
    deadline: Deadline,
) -> Result<Vec<Bound<'py, PyAny>>, Failure> {
    let take = || call.space().try_take_many(template, at_least, at_most, |view| call.tuple(view));
    if let Some(taken) = take()? {
        return Ok(taken);
    }
    if !deadline.is_now() {
        // Watching begins before the next look, so that no put in between is missed.
        let puts = call.space().watch(template, Watch::Put)?;
        loop {
            if let Some(taken) = take()? {
                return Ok(taken);
            }
            if !waiting::wait(call.py, &puts, &deadline)? {
                break;
            }
        }
    }
    Err(too_few(call.py, (call.space(), template), at_least, deadline.timeout()).into())
}

/// Take enough matches together, or return None if there are too few. For a caller that waits in a manner of its own.
///
/// The arguments are those of `take_many`: the patterns as a tuple, the fields of a class of entries and `where` as a dict.
#[pyfunction]
#[pyo3(signature = (space, template, fields, /, *, n, at_least))]
pub(crate) fn try_take_many<'py>(
    space: &Bound<'py, Handle>,
    template: &Bound<'py, PyTuple>,
    fields: &Bound<'py, PyDict>,
    n: &Bound<'py, PyAny>,
    at_least: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyList>>> {
    let (py, handle) = (space.py(), space.get());
    let (at_least, at_most) = at_least_and_most(n, Some(at_least))?;
    let asked: Vec<Argument<'_, '_>> = template.iter_borrowed().collect();
    let tuple = |view: TupleView<'_>| results::tuple(py, view, &asked, handle.objects());
    let taken = template::with_sought(handle, (template, Some(fields)), |template| {
        handle.space().try_take_many(template, at_least, at_most, tuple)
    })?;
    taken.map(|taken| PyList::new(py, taken)).transpose()
}

/// `Timeout`, with how many there were: the caller's first question.
#[cold]
pub(crate) fn too_few(
    py: Python<'_>,
    (space, template): (&Space, &[TemplateRef<'_>]),
    at_least: usize,
    timeout: Duration,
) -> PyErr {
    let explanation = space.explain_if_possible(template);
    let free = explanation.matches - explanation.read;
    let (found, wanted) = (grouped(free), grouped(at_least as u64));
    let (template, url) = (explanation.template(), space.url());
    let seconds = timeout.as_secs_f64();
    let message =
        format!("{found} of {wanted} tuples matched {template} within {seconds} s in {url}");
    let hint = if explanation.matches == 0 || explanation.read > 0 {
        explanation.to_string()
    } else {
        "nothing was removed; did a worker stop with a tuple in its hands?".to_owned()
    };
    errors::make(py, "Timeout", &message, Some(&hint), Some(url))
}

/// A count with its thousands apart: `1 000`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// `count(*template, where=None)`
pub(crate) struct Count;

impl Verb for Count {
    const NAME: &'static CStr = c"count";
    const DOC: &'static CStr = c"count($self, /, *template, where=None)
--

Return how many tuples match, at one moment (rule O6).

Args:
    template: as for `take`.
    where: as for `take`.

If the call ends early:
    It neither waits nor changes the space: nothing is left to undo.

>>> space.put_all((\"job\", n) for n in range(3))
3
>>> space.count(\"job\", int)
3
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        call.no_keywords()?;
        let count = call.with_template(|template| Ok(call.space().count(template)?))?;
        Ok(count.into_pyobject(call.py).map_err(PyErr::from)?.into_any())
    }
}

pub(crate) fn optional_count(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    if argument.is_none() { Ok(None) } else { count(name, argument).map(Some) }
}

/// The number in the argument `name`.
pub(crate) fn count(name: &str, argument: &Bound<'_, PyAny>) -> PyResult<usize> {
    // Shown only where it is wrong: that runs code of its class, and looks for signals.
    let number: Option<i128> =
        if argument.is_instance_of::<PyBool>() { None } else { argument.extract().ok() };
    let number = number.ok_or_else(|| {
        let shown = values::shown(argument);
        PyTypeError::new_err(format!("{name} is {shown}: give how many, as an int"))
    })?;
    usize::try_from(number).map_err(|_| {
        let shown = values::shown(argument);
        let advice =
            if number < 0 { "give a number from 0 on" } else { "no space has so many tuples" };
        PyValueError::new_err(format!("{name} is {shown}: {advice}"))
    })
}
