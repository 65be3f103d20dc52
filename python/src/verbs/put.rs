//! `put`, `put_all`, `put_if_absent`.

use std::ffi::CStr;
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use tupelo::{Error, Field, TemplateRef, Watch};

use crate::arguments::{self, Source};
use crate::call::{Argument, Call, Verb};
use crate::errors::Failure;
use crate::known;
use crate::template::Template;
use crate::timeout;
use crate::waiting::{self, Deadline};

/// `put(*fields, timeout=None)`
pub(crate) struct Put;

impl Verb for Put {
    const NAME: &'static CStr = c"put";
    const DOC: &'static CStr = c"put($self, /, *fields, timeout=None)
--

Add the tuple of these fields.

When it returns, every later operation of any process sees the tuple (rule O2). A field may be
None, bool, int, float, str, bytes, Decimal, datetime with a zone, UUID, list, tuple, dict, an
array, or any object that can be pickled; the space keeps a copy (V2).

Args:
    fields: the fields, as positional arguments.
    timeout: longest wait for room when the space is full, in seconds. None does not wait.

Raises:
    SpaceFull: there was no room. Nothing was stored.
    NotEncodable: a field can not be stored; the message names it. Nothing was stored.

>>> space.put(\"job\", 17, b\"resize\")
>>> space.take(\"job\", int, ...)
('job', 17, b'resize')
";

    #[inline]
    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [timeout] = call.keywords(["timeout"])?;
        let timeout = timeout::seconds("timeout", timeout)?;
        let (py, space) = (call.py, call.space());
        arguments::with_fields(
            py,
            (Source::Positional, call.fields),
            call.handle.objects(),
            |fields| match space.put(fields) {
                Ok(()) => Ok(call.none()),
                Err(full @ Error::SpaceFull { .. }) => {
                    put_when_room(call, fields, timeout, full).map(|()| call.none())
                }
                Err(why) => Err(why.into()),
            },
        )
    }
}

/// Puts as soon as others have made room, if the caller waits for that at all.
#[cold]
fn put_when_room(
    call: &Call<'_, '_>,
    fields: &[Field<'_>],
    timeout: Option<Duration>,
    full: Error,
) -> Result<(), Failure> {
    let Some(timeout) = timeout else { return Err(full.into()) };
    let deadline = Deadline::after(Some(timeout));
    let anything = TemplateRef::beginning(&[]);
    let removal = call.space().watch(&[anything], Watch::Removal)?;
    loop {
        match call.space().put(fields) {
            Err(Error::SpaceFull { .. }) if waiting::wait(call.py, &removal, &deadline)? => {}
            done => return Ok(done?),
        }
    }
}

/// `put_all(tuples)`
pub(crate) struct PutAll;

impl Verb for PutAll {
    const NAME: &'static CStr = c"put_all";
    const DOC: &'static CStr = c"put_all($self, tuples, /)
--

Add several tuples, all of them or none; they become visible together (rule O5).

Args:
    tuples: the tuples; any iterable, also a generator.

Returns:
    How many there were.

Raises:
    SpaceFull: there was no room. Nothing was stored.
    NotEncodable: a field can not be stored. Nothing was stored.

>>> space.put_all((\"square\", n) for n in range(3))
3
>>> space.count(\"square\", int)
3
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        call.no_keywords()?;
        let [tuples] = call.fields else {
            return Err(PyTypeError::new_err(
                "put_all() takes one argument, an iterable of tuples, as in \
                 put_all([(\"job\", 1), (\"job\", 2)])",
            )
            .into());
        };
        let tuples = collect(tuples)?;
        let space = call.space();
        let count = arguments::with_tuples(call.py, &tuples, call.handle.objects(), |tuples| {
            Ok(space.put_all(tuples)?)
        })?;
        Ok(count.into_pyobject(call.py).map_err(PyErr::from)?.into_any())
    }
}

/// The tuples of an iterable.
fn collect<'py>(tuples: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let item = |(number, item): (usize, PyResult<Bound<'py, PyAny>>)| {
        let item = item?;
        item.cast_into_exact::<PyTuple>().map_err(|other| {
            let class = known::class_name(&other.into_inner());
            PyTypeError::new_err(format!(
                "item {number} has the type {class}: put_all() is given tuples, as in \
                 put_all([(\"job\", 1), (\"job\", 2)])"
            ))
        })
    };
    let tuples = known::items("the argument of put_all()", tuples, "tuples")?;
    tuples.enumerate().map(item).collect()
}

/// `put_if_absent(*fields, unless=None)`
pub(crate) struct PutIfAbsent;

impl Verb for PutIfAbsent {
    const NAME: &'static CStr = c"put_if_absent";
    const DOC: &'static CStr = c"put_if_absent($self, /, *fields, unless=None)
--

Add the tuple of these fields unless a match of `unless` is there; one step (rule O8).

Of any number of racing callers exactly one puts. A tuple that somebody holds and may give back
counts as there (O9).

Args:
    fields: the fields, as positional arguments.
    unless: a tuple of patterns, or a template made by `like`. By default the fields themselves.

Returns:
    Whether it put.

>>> space.put_if_absent(\"leader\", 812, unless=(\"leader\", int))
True
>>> space.put_if_absent(\"leader\", 813, unless=(\"leader\", int))
False
";

    fn call<'py>(call: &Call<'_, 'py>) -> Result<Bound<'py, PyAny>, Failure> {
        let [unless] = call.keywords(["unless"])?;
        let unless: Vec<Argument<'_, 'py>> = match unless {
            None => call.fields.to_vec(),
            Some(patterns) => patterns_of("unless", patterns)?,
        };
        let (py, space) = (call.py, call.space());
        let put = arguments::with_template(py, (Source::Tuple, &unless), |unless| {
            arguments::with_fields(
                py,
                (Source::Positional, call.fields),
                call.handle.objects(),
                |fields| Ok(space.put_if_absent(fields, unless)?),
            )
        })?;
        Ok(put.into_pyobject(py).map_err(PyErr::from)?.to_owned().into_any())
    }
}

/// The patterns in the keyword argument `name`: those of a tuple, or one template.
fn patterns_of<'a, 'py>(
    name: &str,
    argument: &'a Argument<'a, 'py>,
) -> PyResult<Vec<Argument<'a, 'py>>> {
    let object: &'a Bound<'py, PyAny> = argument;
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        return Ok(tuple.iter_borrowed().collect());
    }
    if argument.is_instance_of::<Template>() {
        return Ok(vec![*argument]);
    }
    let class = known::class_name(argument);
    Err(PyTypeError::new_err(format!(
        "{name} has the type {class}: give a tuple of patterns, such as (\"leader\", int), or like(...)"
    )))
}
