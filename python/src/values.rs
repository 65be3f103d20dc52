//! Python objects to values, except plain scalars, text and bytes.
//!
//! docs/semantics.md (V1) lists the objects that are stored as themselves. Subclasses of `int`, `str`, `float` and
//! `bytes` become their base type. Lists, tuples, dicts and entries are stored part by part, and buffers become arrays.
//! Any other object is pickled, if the space was opened for that, or refused with a hint. Patterns are not values: a
//! type or `...` is refused here (M6).

use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyEllipsis, PyFloat, PyInt, PyList, PyString, PyTuple,
    PyType,
};

use tupelo::{DEPTH_MAX, Decimal, Map, Timestamp, Value};

use crate::formals::{FieldOrder, FieldProxy, Formal, Rest};
use crate::known::{self, exactly};
use crate::objects::{self, Objects};
use crate::refusal::Refusal;
use crate::sent::Sent;
use crate::template::Template;
use crate::{arrays, entries};

/// The value of `object`, which is put as the whole field or inside it.
///
/// # Errors
///
/// [`Refusal`] if it cannot be stored; it says where inside of `object`.
pub(crate) fn value(object: &Bound<'_, PyAny>, objects: Objects) -> Result<Value, Refusal> {
    Converter { objects, sends: false, containers: Vec::new() }.value(object)
}

/// As [`value`], for the value of a [`Sent`].
pub(crate) fn sent(object: &Bound<'_, PyAny>, objects: Objects) -> Result<Value, Refusal> {
    Converter { objects, sends: objects == Objects::Pickled, containers: Vec::new() }.value(object)
}

/// The conversion of one field.
struct Converter {
    objects: Objects,
    /// Whether an object that is no field is pickled (see [`Sent`]).
    sends: bool,
    /// The containers that the current object stands in, outermost first, by identity.
    containers: Vec<usize>,
}

impl Converter {
    fn value(&mut self, object: &Bound<'_, PyAny>) -> Result<Value, Refusal> {
        // Before the scalars, some of which are looked up by name: most objects here are containers.
        if let Some(list) = exactly::<PyList>(object) {
            return Ok(Value::List(self.items(object, list.iter())?));
        }
        if let Some(tuple) = exactly::<PyTuple>(object) {
            return Ok(Value::Tuple(self.items(object, tuple.iter())?));
        }
        if let Some(dict) = exactly::<PyDict>(object) {
            return self.map(object, dict);
        }
        if let Some(part) = exactly::<Sent>(object) {
            return self.sent(part.get().value(object.py()));
        }
        if self.sends {
            return self.part_of_sent(object);
        }
        match self.of_own_kind(object)? {
            Some(value) => Ok(value),
            None => objects::value(object, self.objects),
        }
    }

    /// The value of an object of a kind of its own; `None` for an object that is stored as a pickle.
    fn of_own_kind(&mut self, object: &Bound<'_, PyAny>) -> Result<Option<Value>, Refusal> {
        if let Some(scalar) = scalar(object)? {
            return Ok(Some(scalar));
        }
        if let Some(array) = arrays::array(object)? {
            return array.to_value().map(Some);
        }
        refuse_misplaced(object)?;
        self.entry(object)
    }

    /// The value of what stands in a [`Sent`], which is itself a part of this field.
    fn sent(&mut self, object: &Bound<'_, PyAny>) -> Result<Value, Refusal> {
        let sends = std::mem::replace(&mut self.sends, self.objects == Objects::Pickled);
        let value = self.value(object);
        self.sends = sends;
        value
    }

    /// The value of an object that is no container and is sent: a pickle, where it is no field as it is.
    fn part_of_sent(&mut self, object: &Bound<'_, PyAny>) -> Result<Value, Refusal> {
        if !is_derived(object)? {
            let depth = self.containers.len();
            match self.of_own_kind(object) {
                Ok(Some(value)) => return Ok(value),
                Err(Refusal::Raised(why)) => return Err(Refusal::Raised(why)),
                // It may have been refused within an entry.
                Ok(None) | Err(Refusal::Unstorable { .. }) => self.containers.truncate(depth),
            }
        }
        objects::value(object, self.objects)
    }

    /// The value of an instance of a class of entries; `None` for any other object.
    fn entry(&mut self, object: &Bound<'_, PyAny>) -> Result<Option<Value>, Refusal> {
        let Some((_, false)) = entries::of_object(object)? else { return Ok(None) };
        self.enter(object)?;
        let value = entries::value(object, |field| self.value(field));
        self.containers.pop();
        value
    }

    fn items<'py>(
        &mut self,
        container: &Bound<'py, PyAny>,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> Result<Vec<Value>, Refusal> {
        self.enter(container)?;
        let mut values = Vec::new();
        for (index, item) in items.enumerate() {
            let value = self.value(&item).map_err(|why| why.within(|| format!("[{index}]")))?;
            values.push(value);
        }
        self.containers.pop();
        Ok(values)
    }

    fn map(
        &mut self,
        container: &Bound<'_, PyAny>,
        dict: &Bound<'_, PyDict>,
    ) -> Result<Value, Refusal> {
        self.enter(container)?;
        let mut pairs = Vec::new();
        // Of a copy: pickling a part can run code that changes the dict.
        for (key, item) in dict.copy()?.iter() {
            let step = || format!("[{}]", shown(&key));
            let value = self.value(&item).map_err(|why| why.within(step))?;
            let key = self.value(&key).map_err(|why| why.within(|| "'s keys".to_owned()))?;
            pairs.push((key, value));
        }
        self.containers.pop();
        // In a template the order means nothing, so equal templates are written alike.
        let map = match self.objects {
            Objects::Compared => Map::new(pairs),
            Objects::Pickled | Objects::Refused => Map::in_order(pairs),
        };
        Ok(Value::Map(map.map_err(Refusal::from_message)?))
    }

    /// Notes that the conversion descends into `container`.
    fn enter(&mut self, container: &Bound<'_, PyAny>) -> Result<(), Refusal> {
        let identity = container.as_ptr().addr();
        if self.containers.contains(&identity) {
            let class = known::class_name(container);
            return Err(Refusal::new(
                format!("a {class} that contains itself"),
                "a stored value is a copy, which can not be endless: put the parts as tuples",
            ));
        }
        if self.containers.len() == DEPTH_MAX {
            let class = known::class_name(container);
            return Err(Refusal::new(
                format!("a {class} nested over the limit of {DEPTH_MAX} levels"),
                "flatten it, or put the parts as tuples",
            ));
        }
        self.containers.push(identity);
        Ok(())
    }
}

/// Whether `object` is of a class derived from a scalar class, other than of numpy's: it would come back as a scalar.
fn is_derived(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_scalar = object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyBytes>();
    let is_plain = object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyBytes>();
    Ok(is_scalar && !is_plain && !known::is_numpy_scalar(object)?)
}

/// The value of an object that has no parts; `None` if it has.
fn scalar(object: &Bound<'_, PyAny>) -> Result<Option<Value>, Refusal> {
    Ok(Some(if object.is_none() {
        Value::Null
    } else if let Ok(truth) = object.cast::<PyBool>() {
        Value::Bool(truth.is_true())
    } else if let Ok(int) = object.cast::<PyInt>() {
        integer(int)?
    } else if let Ok(text) = object.cast::<PyString>() {
        Value::Str(text_of(text)?.to_owned())
    } else if known::is_enum(object)? {
        let class = known::class_name(object);
        return Err(Refusal::new(
            format!("a member of the Enum {class}"),
            "put its .value, or derive the class from str or int",
        ));
    } else if let Ok(float) = object.cast::<PyFloat>() {
        Value::Float(float.value())
    } else if let Ok(bytes) = object.cast::<PyBytes>() {
        Value::Bytes(bytes.as_bytes().to_vec())
    } else if object.is_instance_of::<PyByteArray>() {
        return Err(Refusal::new("a bytearray, which can change", "put bytes(x)"));
    } else if known::DECIMAL.is_class_of(object)? {
        decimal(object)?
    } else if known::DATETIME.is_class_of(object)? {
        timestamp(object)?
    } else if known::UUID.is_class_of(object)? {
        uuid(object)?
    } else if known::is_numpy_scalar(object)? {
        return numpy_scalar(object).map(Some);
    } else {
        return Ok(None);
    }))
}

/// The text, as it is stored.
pub(crate) fn text_of<'a>(text: &'a Bound<'_, PyString>) -> Result<&'a str, Refusal> {
    text.to_str().map_err(|exception| {
        let py = text.py();
        let start = exception.value(py).getattr("start").and_then(|start| start.extract::<usize>());
        match (exception.is_instance_of::<PyUnicodeEncodeError>(py), start) {
            (true, Ok(start)) => Refusal::new(
                format!("a str with a lone surrogate at position {start}, which is no text"),
                "put bytes: x.encode(\"utf-8\", \"surrogatepass\")",
            ),
            _ => Refusal::Raised(exception),
        }
    })
}

fn integer(int: &Bound<'_, PyInt>) -> Result<Value, Refusal> {
    if let Ok(small) = int.extract::<i64>() {
        return Ok(Value::Int(small));
    }
    let py = int.py();
    let negative = int.lt(0)?;
    let magnitude = py.get_type::<PyInt>().call1((int.call_method0("__abs__")?,))?;
    let bits: usize = magnitude.call_method0("bit_length")?.extract()?;
    let bytes = magnitude.call_method1("to_bytes", (bits.div_ceil(8), "big"))?;
    let bytes = bytes.cast::<PyBytes>().map_err(PyErr::from)?;
    Value::int_from_sign_magnitude(negative, bytes.as_bytes()).map_err(Refusal::from_message)
}

fn decimal(object: &Bound<'_, PyAny>) -> Result<Value, Refusal> {
    let text = object.str()?;
    if !object.call_method0("is_finite")?.is_truthy()? {
        return Err(Refusal::new(
            format!("the decimal {text}, which is no number"),
            "put a float, which can be nan or inf, or None",
        ));
    }
    Ok(Value::Decimal(Decimal::parse(text.to_str()?).map_err(Refusal::from_message)?))
}

fn timestamp(object: &Bound<'_, PyAny>) -> Result<Value, Refusal> {
    let py = object.py();
    if object.call_method0("utcoffset")?.is_none() {
        return Err(Refusal::new(
            "a datetime without a zone, which is no moment",
            "give it one: datetime.now(UTC), or x.replace(tzinfo=UTC) if it is UTC already",
        ));
    }
    let since_epoch = object.sub(known::epoch(py)?)?;
    let days: i128 = since_epoch.getattr("days")?.extract()?;
    let seconds: i128 = since_epoch.getattr("seconds")?.extract()?;
    let microseconds: i128 = since_epoch.getattr("microseconds")?.extract()?;
    let ns = ((days * 86_400 + seconds) * 1_000_000 + microseconds) * 1_000;
    Ok(Value::Timestamp(Timestamp::from_ns(ns).map_err(Refusal::from_message)?))
}

fn uuid(object: &Bound<'_, PyAny>) -> Result<Value, Refusal> {
    Ok(Value::Uuid(object.getattr("bytes")?.extract()?))
}

/// A scalar of numpy as the number that it is, when Python has such a number. The others would change
/// on the way (a longdouble) or have no meaning elsewhere.
fn numpy_scalar(object: &Bound<'_, PyAny>) -> Result<Value, Refusal> {
    let kind: String = object.getattr("dtype")?.getattr("kind")?.extract()?;
    let item_bytes: usize = object.getattr("itemsize")?.extract()?;
    let is_number = matches!(kind.as_str(), "b" | "i" | "u") || (kind == "f" && item_bytes <= 8);
    if is_number {
        let number = object.call_method0("item")?;
        if let Some(value) = scalar(&number)? {
            return Ok(value);
        }
    }
    let class = known::class_name(object);
    Err(Refusal::new(
        format!("a numpy.{class}, which is no number of Python's own"),
        "put float(x), str(x), or an array: numpy.asarray(x)",
    ))
}

/// Refuses objects that only make sense in a template, and objects that a mistake brings here.
fn refuse_misplaced(object: &Bound<'_, PyAny>) -> Result<(), Refusal> {
    let what = if object.is_instance_of::<PyType>() {
        format!("the type {}", shown(object))
    } else if object.is_instance_of::<PyEllipsis>() {
        "the Ellipsis `...`".to_owned()
    } else if object.is_instance_of::<Formal>()
        || object.is_instance_of::<FieldProxy>()
        || object.is_instance_of::<Template>()
        || object.is_instance_of::<Rest>()
        || object.is_instance_of::<FieldOrder>()
        || known::union_members(object)?.is_some()
    {
        shown(object)
    } else {
        return Ok(());
    };
    Err(Refusal::new(
        format!("{what}, which is for templates and can not be stored"),
        "put a value; take and read are given patterns",
    ))
}

/// The `repr` of an object, cut short.
pub(crate) fn shown(object: &Bound<'_, PyAny>) -> String {
    const CHARACTERS_MAX: usize = 60;
    let text = object.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
    if text.chars().count() > CHARACTERS_MAX {
        text.chars().take(CHARACTERS_MAX).chain(['…']).collect()
    } else {
        text
    }
}
