//! Stored tuples to Python tuples.

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use tupelo::{
    ArrayView, BigInt, Class, Decimal, Encoded, Field, Kind, Map, Timestamp, TupleView, Value,
};

use crate::call::Argument;
use crate::errors::Failure;
use crate::objects::{self, Objects};
use crate::refusal::Refusal;
use crate::{arrays, entries, known, unreadable};

/// The tuple in `view` as a Python tuple.
///
/// `template` is the caller's. A `str`, `int` or `bytes` in it is an actual, so the matched field is equal to it. The
/// caller's own object serves as the copy: such objects are immutable (V2), and passing one on costs a tenth of making
/// one.
///
/// # Errors
///
/// `NotEncodable` naming the field that Python cannot represent (V3).
#[inline]
pub(crate) fn tuple<'py>(
    py: Python<'py>,
    view: TupleView<'_>,
    template: &[Argument<'_, 'py>],
    objects: Objects,
) -> Result<Bound<'py, PyAny>, Failure> {
    made(py, view, template, objects).map_err(|why| unreadable::noted(py, view, why))
}

/// The same, without a word about the fate of a tuple that cannot be made.
#[inline]
fn made<'py>(
    py: Python<'py>,
    view: TupleView<'_>,
    template: &[Argument<'_, 'py>],
    objects: Objects,
) -> Result<Bound<'py, PyAny>, Failure> {
    if let Some(class) = view.class() {
        return entry(py, view, class, template, objects);
    }
    let result = empty_tuple(py, view.len())?;
    for index in 0..view.len() {
        let field = match template.get(index) {
            Some(actual) if is_immutable(actual) => Bound::clone(actual),
            _ => stored(py, view, index, objects)?,
        };
        // SAFETY: a tuple and an index; the field becomes the tuple's own, also if that fails.
        let status =
            unsafe { ffi::PyTuple_SetItem(result.as_ptr(), index.cast_signed(), field.into_ptr()) };
        if status != 0 {
            // Other code got hold of the unfinished tuple, by way of the garbage collector.
            return Err(PyErr::fetch(py).into());
        }
    }
    Ok(result)
}

/// The fields in `view`, which is no entry, as a Python tuple as far as possible. If Python cannot represent a field,
/// an exception with the reason stands in its place.
///
/// # Errors
///
/// An exception that is no `Exception`, such as `KeyboardInterrupt`.
#[cold]
pub(crate) fn partly<'py>(
    py: Python<'py>,
    view: TupleView<'_>,
    objects: Objects,
) -> Result<Bound<'py, PyAny>, Failure> {
    let field = |index| match stored(py, view, index, objects) {
        Err(why) if why.is_instance_of::<PyException>(py) => Ok(why.value(py).clone().into_any()),
        done => done,
    };
    let fields: Vec<_> = (0..view.len()).map(field).collect::<PyResult<_>>()?;
    Ok(PyTuple::new(py, fields)?.into_any())
}

/// The entry in `view` as an instance of its class.
#[cold]
fn entry<'py>(
    py: Python<'py>,
    view: TupleView<'_>,
    class: &'static Class,
    template: &[Argument<'_, 'py>],
    objects: Objects,
) -> Result<Bound<'py, PyAny>, Failure> {
    Ok(entries::object(py, class, template, |index| stored(py, view, index, objects))?)
}

/// A tuple with `len` places to fill.
///
/// Not `PyTuple::new`: by way of an iterator each field costs twice as much.
#[inline]
fn empty_tuple(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached, and `len` is no more than fits in memory.
    let tuple = unsafe { ffi::PyTuple_New(len.cast_signed()) };
    // SAFETY: the call above returned a new reference, or null with an exception set. A tuple that is
    // dropped with empty places is allowed.
    unsafe { Bound::from_owned_ptr_or_err(py, tuple) }
}

#[inline]
fn is_immutable(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBytes>()
}

/// The object for field `index`.
#[inline]
fn stored<'py>(
    py: Python<'py>,
    view: TupleView<'_>,
    index: usize,
    objects: Objects,
) -> PyResult<Bound<'py, PyAny>> {
    match view.field(index) {
        Some(Field::Int(value)) => Ok(value.into_pyobject(py)?.into_any()),
        Some(Field::Float(value)) => Ok(value.into_pyobject(py)?.into_any()),
        Some(Field::Str(text)) => Ok(PyString::new(py, text).into_any()),
        Some(Field::Bytes(bytes)) => Ok(PyBytes::new(py, bytes).into_any()),
        Some(Field::Null) => Ok(py.None().into_bound(py)),
        Some(Field::Bool(value)) => Ok(value.into_pyobject(py)?.to_owned().into_any()),
        Some(Field::Encoded(encoded)) => {
            decoded(py, &encoded, objects).map_err(|why| refused(py, view, index, why))
        }
        None => Err(refused(py, view, index, damaged())),
    }
}

/// The exception for field `index`, of an entry by its name.
#[cold]
fn refused(py: Python<'_>, view: TupleView<'_>, index: usize, why: Refusal) -> PyErr {
    match view.class().and_then(|class| class.fields().nth(index)) {
        Some(name) => why.into_exception(py, format_args!("field {name}")),
        None => why.into_exception(py, format_args!("field {index}")),
    }
}

fn damaged() -> Refusal {
    Refusal::new("damaged", "tell us how this space came about: it should be impossible")
}

/// The object for a field that is stored as its encoding.
#[cold]
fn decoded<'py>(
    py: Python<'py>,
    encoded: &Encoded<'_>,
    objects: Objects,
) -> Result<Bound<'py, PyAny>, Refusal> {
    if encoded.kind == Kind::Array && encoded.body.is_empty() {
        // Without the copy that a value would own.
        let array = ArrayView::parse(encoded.head).ok_or_else(damaged)?;
        return arrays::to_python(py, &array);
    }
    let value = Value::from_field(&Field::Encoded(*encoded)).map_err(|_| damaged())?;
    object(py, &value, objects)
}

/// The object for a value.
///
/// # Errors
///
/// Its description (as in "field 2 is …") if Python cannot represent it, or a part of it.
pub(crate) fn object<'py>(
    py: Python<'py>,
    value: &Value,
    objects: Objects,
) -> Result<Bound<'py, PyAny>, Refusal> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py).map_err(PyErr::from)?.to_owned().into_any(),
        Value::Int(value) => value.into_pyobject(py).map_err(PyErr::from)?.into_any(),
        Value::BigInt(value) => big_int(py, value)?,
        Value::Float(value) => value.into_pyobject(py).map_err(PyErr::from)?.into_any(),
        Value::Str(text) => PyString::new(py, text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Decimal(value) => decimal(py, value)?,
        Value::Timestamp(value) => datetime(py, *value)?,
        Value::Uuid(bytes) => {
            let arguments = PyDict::new(py);
            arguments.set_item("bytes", PyBytes::new(py, bytes))?;
            known::UUID.import(py)?.call((), Some(&arguments))?
        }
        Value::Array(_) => {
            let encoding = value.encode().map_err(Refusal::from_message)?;
            arrays::to_python(py, &ArrayView::parse(&encoding).ok_or_else(damaged)?)?
        }
        Value::List(items) => PyList::new(py, objects_of(py, items, objects)?)?.into_any(),
        Value::Tuple(items) => PyTuple::new(py, objects_of(py, items, objects)?)?.into_any(),
        Value::Map(map) => dict(py, map, objects)?.into_any(),
        Value::Opaque(stored) => objects::to_python(py, stored, objects)?,
        Value::Entry(entry) => {
            let names = entry.fields().iter().map(|(name, _)| name);
            let class =
                Class::new(entry.name(), entry.bases(), names).map_err(Refusal::from_message)?;
            entries::object(py, class, &[], |index| {
                let (name, value) = &entry.fields()[index];
                object(py, value, objects).map_err(|why| {
                    let class = entry.name();
                    why.into_exception(py, format_args!("field {name} of the entry {class}"))
                })
            })?
        }
        other => {
            return Err(Refusal::new(
                format!("{other}, which this version can not return"),
                "read it on the command line, with `tupelo read`",
            ));
        }
    })
}

fn objects_of<'py>(
    py: Python<'py>,
    items: &[Value],
    objects: Objects,
) -> Result<Vec<Bound<'py, PyAny>>, Refusal> {
    let items = items.iter().enumerate();
    items
        .map(|(index, item)| {
            object(py, item, objects).map_err(|why| why.within(|| format!("[{index}]")))
        })
        .collect()
}

fn dict<'py>(py: Python<'py>, map: &Map, objects: Objects) -> Result<Bound<'py, PyDict>, Refusal> {
    let dict = PyDict::new(py);
    for (key, item) in map.ordered() {
        let step = || format!("[{key}]");
        let item = object(py, item, objects).map_err(|why| why.within(step))?;
        let key_object = object(py, key, objects)?;
        dict.set_item(key_object, item).map_err(|why| {
            if why.is_instance_of::<PyTypeError>(py) {
                let kind = key.kind().name();
                Refusal::new(
                    format!("a map with the key {key}, a {kind}, which no dict can have"),
                    "read it on the command line, with `tupelo read`",
                )
            } else {
                why.into()
            }
        })?;
    }
    if dict.len() < map.pairs().len() {
        return Err(Refusal::new(
            "a map with keys that Python calls equal, such as 1 and 1.0",
            "read it on the command line, with `tupelo read`",
        ));
    }
    Ok(dict)
}

fn big_int<'py>(py: Python<'py>, value: &BigInt) -> PyResult<Bound<'py, PyAny>> {
    let bytes = PyBytes::new(py, value.magnitude());
    let magnitude = py.get_type::<PyInt>().call_method1("from_bytes", (bytes, "big"))?;
    if value.is_negative() { magnitude.neg() } else { Ok(magnitude) }
}

/// The number as a `Decimal`. One beyond its limits is refused: Python would raise without saying what, or make it a
/// NaN (V3).
fn decimal<'py>(py: Python<'py>, value: &Decimal) -> Result<Bound<'py, PyAny>, Refusal> {
    let last = value.exponent();
    let first = last + i64::try_from(value.digits().len() - 1).unwrap_or(i64::MAX / 2);
    if !decimals_reach(py, first, last)? {
        return Err(Refusal::new(
            format!("a decimal with the exponent {first}, for which Python has no room"),
            "read it on the command line, with `tupelo read`",
        ));
    }
    Ok(known::DECIMAL.import(py)?.call1((value.to_string(),))?)
}

/// Whether there are decimals in Python with these exponents of the first and the last digit.
fn decimals_reach(py: Python<'_>, first: i64, last: i64) -> PyResult<bool> {
    /// So far they reach on every machine.
    const EVERYWHERE: i64 = 400_000_000;
    if first <= EVERYWHERE && last >= -EVERYWHERE {
        return Ok(true);
    }
    let module = py.import("decimal")?;
    let limit = |name: &str| module.getattr(name)?.extract::<i64>();
    Ok(first <= limit("MAX_EMAX")? && last >= limit("MIN_ETINY")?)
}

/// The moment as a `datetime` in UTC, which has microseconds; finer ones are refused, not rounded (V3).
fn datetime(py: Python<'_>, moment: Timestamp) -> Result<Bound<'_, PyAny>, Refusal> {
    let ns = moment.ns();
    if ns % 1_000 != 0 {
        return Err(Refusal::new(
            format!("the timestamp {moment}, whose nanoseconds a datetime can not hold"),
            "put whole microseconds, or the nanoseconds as an int",
        ));
    }
    let microseconds = ns / 1_000;
    let timedelta = py.import("datetime")?.getattr("timedelta")?;
    let since_epoch = timedelta.call1((0, 0, microseconds))?;
    Ok(known::epoch(py)?.add(since_epoch)?)
}
