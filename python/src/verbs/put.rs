//! `put`, `put_all`, `put_if_absent`.

use std::ffi::CStr;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};

use tupelo::{Durability, Error, LeaseTerms};

use crate::arguments::{self, Given, Source};
use crate::call::{Argument, Call, Verb};
use crate::entries;
use crate::errors::{self, Failure};
use crate::known;
use crate::lease::Lease;
use crate::template::Template;
use crate::timeout;
use crate::values;
use crate::waiting;

/// `put(*fields, lease=None, after=None, timeout=None, sync=None)`
pub(crate) struct Put;

impl Verb for Put {
    const NAME: &'static CStr = c"put";
    const HAS_TEMPLATE: bool = false;
    const CHANGES: bool = true;
    const DOC: &'static CStr = c"put($self, /, *fields, lease=None, after=None, timeout=None, sync=None)
--

Add the tuple of these fields, or the entry that is the only argument.

When it returns, every later operation of any process sees the tuple (rule O2). A field may be
None, bool, int, float, str, bytes, Decimal, datetime with a zone, UUID, list, tuple, dict or an
array. It may also be any other object that can be pickled. The space keeps a copy (V2).

Args:
    fields: the fields, as positional arguments.
    lease: how long the tuple stays, in seconds; then it disappears (L1). None keeps it for ever.
    after: the delay until the tuple is visible, in seconds; its lease counts from then (L3).
    timeout: longest wait for room when the space is full, in seconds; 0 does not wait. None waits for
        ever in a space created with when_full=\"wait\", and in others not at all.
    sync: when the call returns, if the space is kept in a file: \"group\" when the change is on disk,
        \"none\" at once. None as given to `connect`.

Returns:
    With lease or after, the Lease, which can be renewed and cancelled. Otherwise None.

Raises:
    SpaceFull: there was no room, even after the timeout. Nothing was stored.
    NotEncodable: a field cannot be stored; the message names it. Nothing was stored.

If the call ends early:
    Timeout, or interruption by a signal handler that raises: nothing was stored.
    Death of this process: the tuple was stored or not, never half of it. Once `put` has returned, the
        tuple stays without this process.

>>> space.put(\"job\", 17, b\"resize\")
>>> space.take(\"job\", int, ...)
('job', 17, b'resize')
>>> lease = space.put(\"host\", \"node-a\", lease=60)
>>> lease.cancel()
>>> space.try_take(\"host\", str) is None
True
";

    #[inline]
    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [lease, after, timeout] = call.keywords(["lease", "after", "timeout"])?;
        let timeout = timeout::seconds("timeout", timeout)?;
        if (lease.is_some() || after.is_some())
            && let Some(terms) = terms(lease, after)?
        {
            return put_leased(call, &terms, timeout);
        }
        let (py, space) = (call.py, call.space());
        arguments::with_fields(py, (Source::Positional, call.fields), call.handle, |tuple| {
            waiting::with_room(py, space, timeout, || space.put(tuple)).map(|()| call.none())
        })
    }
}

/// Refuses the keyword `timeout` of a `verb` that puts later: `where_` its tuples are held back. The error says which verb
/// takes it. Refuses unknown keywords, too.
pub(crate) fn refuse_timeout(
    (verb, where_): (&str, &str),
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let Some((name, _)) = options.and_then(|options| options.iter().next()) else { return Ok(()) };
    let name = name.str()?;
    let name = name.to_string_lossy();
    if name != "timeout" {
        return Err(PyTypeError::new_err(format!("{verb}() has no keyword argument {name:?}")));
    }
    Err(PyTypeError::new_err(format!(
        "{verb}() {where_} has no timeout=: its tuples appear at the end, which waits for room. \
         space.{verb}(..., timeout=...) has it, and puts at once"
    )))
}

/// The terms of what is put later.
pub(crate) fn lease_terms(
    lease: Option<&Bound<'_, PyAny>>,
    after: Option<&Bound<'_, PyAny>>,
) -> PyResult<LeaseTerms> {
    let lease = lease.map_or(Ok(None), |lease| timeout::LEASE.of(lease))?;
    let after = after.map_or(Ok(None), |after| timeout::AFTER.of(after))?;
    Ok(LeaseTerms { lease, after })
}

/// The terms in the arguments; `None` if there are none.
#[cold]
fn terms(
    lease: Option<&Argument<'_, '_>>,
    after: Option<&Argument<'_, '_>>,
) -> PyResult<Option<LeaseTerms>> {
    let lease = lease.map_or(Ok(None), |lease| timeout::LEASE.of(lease))?;
    let after = after.map_or(Ok(None), |after| timeout::AFTER.of(after))?;
    Ok((lease.is_some() || after.is_some()).then_some(LeaseTerms { lease, after }))
}

/// Puts on terms, and returns the lease.
#[inline(never)]
fn put_leased<'py>(
    call: &Call<'_, 'py>,
    terms: &LeaseTerms,
    timeout: Option<Duration>,
) -> Result<Bound<'py, PyAny>, Failure> {
    let (py, space) = (call.py, call.space());
    let lease =
        arguments::with_fields(py, (Source::Positional, call.fields), call.handle, |tuple| {
            waiting::with_room(py, space, timeout, || space.put_leased(tuple, terms))
        })?;
    lease_object(call, lease, terms)
}

/// The lease of the tuple that a call has put on `terms`.
fn lease_object<'py>(
    call: &Call<'_, 'py>,
    lease: tupelo::Lease,
    terms: &LeaseTerms,
) -> Result<Bound<'py, PyAny>, Failure> {
    let fields = PyTuple::new(call.py, call.fields)?.unbind();
    let lease = Lease::new(lease, (terms.lease, fields), call.handle_object());
    Ok(Bound::new(call.py, lease)?.into_any())
}

/// `put_all(tuples, lease=None, after=None, timeout=None, sync=None)`
pub(crate) struct PutAll;

impl Verb for PutAll {
    const NAME: &'static CStr = c"put_all";
    const HAS_TEMPLATE: bool = false;
    const CHANGES: bool = true;
    const ITERATES: bool = true;
    const DOC: &'static CStr = c"put_all($self, tuples, /, *, lease=None, after=None, timeout=None, atomic=True, progress=None, sync=None)
--

Add several tuples, all of them or none; they become visible together (rule O5).

Args:
    tuples: the tuples and entries; any iterable, also a generator.
    lease: how long each of them stays, in seconds, as for put.
    after: the delay until they are visible, in seconds, as for put.
    timeout: longest wait for room for all of them, in seconds, as for put.
    atomic: False puts any number of tuples, in atomic steps of 10 000. An exception then has a note
        with the number that was put before; the timeout is for each step.
    progress: with such steps: is called after each with the number put so far.
    sync: as for `put`.

Returns:
    How many there were.

Raises:
    SpaceFull: there was no room, even after the timeout. Nothing was stored.
    TransactionTooBig: there are more than one step can change, some 600 000. Nothing was stored.
    NotEncodable: a field cannot be stored. Nothing was stored.

If the call ends early:
    Timeout, or interruption by a signal handler that raises: nothing was stored; with
        `atomic=False`, the steps before stay.
    Death of this process: all tuples of the step were stored, or none.

>>> space.put_all((\"square\", n) for n in range(3))
3
>>> space.put_all(((\"square\", n) for n in range(3, 20_000)), atomic=False)
19997
>>> space.count(\"square\", int)
20000
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [lease, after, timeout, atomic, progress] =
            call.keywords(["lease", "after", "timeout", "atomic", "progress"])?;
        let terms = terms(lease, after)?;
        let limits = (lease, after, timeout, call.sync().map(Durability::name));
        let timeout = timeout::seconds("timeout", timeout)?;
        let [tuples] = call.fields else {
            return Err(PyTypeError::new_err(
                "put_all() takes one argument, an iterable of tuples, as in \
                 put_all([(\"job\", 1), (\"job\", 2)])",
            )
            .into());
        };
        if in_steps(atomic, progress)? {
            let steps = call.py.import("tupelo.stepping")?.getattr("put_in_steps")?;
            return Ok(steps.call1((call.origin, tuples, progress, limits))?);
        }
        let tuples = collect(tuples)?;
        let space = call.space();
        let count = arguments::with_tuples(call.py, &tuples, call.handle, |tuples| {
            waiting::with_room(call.py, space, timeout, || match &terms {
                None => space.put_all(tuples),
                Some(terms) => space.put_all_leased(tuples, terms),
            })
        });
        let count = count.map_err(|failure| advised(call.py, failure, call.space().url()))?;
        Ok(count.into_pyobject(call.py).map_err(PyErr::from)?.into_any())
    }
}

/// Whether tuples are put in several steps.
///
/// # Errors
///
/// `TypeError` for an `atomic` that is no bool, `ValueError` for `progress` of a single step.
pub(crate) fn in_steps(
    atomic: Option<&Argument<'_, '_>>,
    progress: Option<&Argument<'_, '_>>,
) -> PyResult<bool> {
    let atomic = match atomic {
        None => true,
        Some(atomic) => atomic.extract::<bool>().map_err(|_| {
            let shown = values::shown(atomic);
            PyTypeError::new_err(format!("atomic is {shown}: give True or False"))
        })?,
    };
    if atomic && progress.is_some_and(|progress| !progress.is_none()) {
        return Err(PyValueError::new_err(
            "progress is given, and there is one step only: give atomic=False, too",
        ));
    }
    Ok(!atomic)
}

/// The failure of one step, with the way out for one that is too large.
#[cold]
fn advised(py: Python<'_>, failure: Failure, url: &str) -> Failure {
    match failure {
        Failure::Space(error @ Error::TransactionTooBig { .. }) => {
            let hint = "put_all(..., atomic=False) puts them in steps, each of which is atomic";
            let message = error.message();
            errors::make(py, "TransactionTooBig", &message, Some(hint), Some(url)).into()
        }
        failure => failure,
    }
}

/// The tuples of an iterable.
pub(crate) fn collect<'py>(tuples: &Bound<'py, PyAny>) -> PyResult<Vec<Given<'py>>> {
    let item = |(number, item): (usize, PyResult<Bound<'py, PyAny>>)| {
        let item = item?;
        Given::new(&item)?.ok_or_else(|| {
            let class = known::class_name(&item);
            PyTypeError::new_err(format!(
                "item {number} has the type {class}: put_all() is given tuples, as in \
                 put_all([(\"job\", 1), (\"job\", 2)])"
            ))
        })
    };
    let tuples = known::items("the argument of put_all()", tuples, "tuples")?;
    tuples.enumerate().map(item).collect()
}

/// `put_if_absent(*fields, unless=None, lease=None, after=None, timeout=None, sync=None)`
pub(crate) struct PutIfAbsent;

impl Verb for PutIfAbsent {
    const NAME: &'static CStr = c"put_if_absent";
    const HAS_TEMPLATE: bool = false;
    const CHANGES: bool = true;
    const DOC: &'static CStr =
        c"put_if_absent($self, /, *fields, unless=None, lease=None, after=None, timeout=None, sync=None)
--

Add the tuple of these fields unless the space has a match of `unless`; one step (rule O8).

Of any number of racing callers exactly one puts. A held tuple that may come back counts as a match
(O9).

Args:
    fields: the fields, as positional arguments.
    unless: a tuple of patterns, an entry, or a template made by `like`. By default the fields
        themselves.
    lease: how long the tuple stays, in seconds, as for put.
    after: the delay until the tuple is visible, in seconds, as for put.
    timeout: longest wait for room, in seconds, as for put.
    sync: as for `put`.

Returns:
    Whether the tuple was put. With lease or after: the Lease, or None if nothing was put.

Raises:
    SpaceFull: there was no room, even after the timeout. Nothing was stored.
    NotEncodable: a field cannot be stored. Nothing was stored.

If the call ends early:
    Timeout, or interruption by a signal handler that raises: nothing was stored.
    Death of this process: the tuple was stored or not, never half of it.

>>> space.put_if_absent(\"leader\", 812, unless=(\"leader\", int))
True
>>> space.put_if_absent(\"leader\", 813, unless=(\"leader\", int))
False
>>> lease = space.put_if_absent(\"sweeper\", 812, unless=(\"sweeper\", int), lease=60)
>>> space.put_if_absent(\"sweeper\", 813, unless=(\"sweeper\", int), lease=60) is None
True
>>> lease.cancel()
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [unless, lease, after, timeout] =
            call.keywords(["unless", "lease", "after", "timeout"])?;
        let terms = terms(lease, after)?;
        let timeout = timeout::seconds("timeout", timeout)?;
        let unless = absent(call.fields, unless)?;
        let (py, space) = (call.py, call.space());
        let fields = (Source::Positional, call.fields);
        arguments::with_template(py, (Source::Tuple, &unless), |unless| {
            arguments::with_fields(py, fields, call.handle, |tuple| {
                let Some(terms) = &terms else {
                    let put = || space.put_if_absent(tuple, unless);
                    let put = waiting::with_room(py, space, timeout, put)?;
                    return Ok(PyBool::new(py, put).to_owned().into_any());
                };
                let put = || space.put_if_absent_leased(tuple, unless, terms);
                match waiting::with_room(py, space, timeout, put)? {
                    Some(lease) => lease_object(call, lease, terms),
                    None => Ok(call.none()),
                }
            })
        })
    }
}

/// The patterns of what has to be absent: those in `unless`, or else the `fields` themselves.
pub(crate) fn absent<'a, 'py>(
    fields: &[Argument<'a, 'py>],
    unless: Option<&'a Argument<'a, 'py>>,
) -> PyResult<Vec<Argument<'a, 'py>>> {
    match unless.filter(|unless| !unless.is_none()) {
        None => Ok(fields.to_vec()),
        Some(patterns) => patterns_of("unless", patterns),
    }
}

/// The patterns in the keyword argument `name`: the patterns of a tuple, or one template.
fn patterns_of<'a, 'py>(
    name: &str,
    argument: &'a Argument<'a, 'py>,
) -> PyResult<Vec<Argument<'a, 'py>>> {
    let object: &'a Bound<'py, PyAny> = argument;
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        return Ok(tuple.iter_borrowed().collect());
    }
    if argument.is_instance_of::<Template>() || entries::of_object(argument)?.is_some() {
        return Ok(vec![*argument]);
    }
    let class = known::class_name(argument);
    Err(PyTypeError::new_err(format!(
        "{name} has the type {class}: give a tuple of patterns, such as (\"leader\", int), an entry, or like(...)"
    )))
}
