//! Arguments to fields and patterns.
//!
//! Nearly every call has only plain values and types, which borrow from the caller's own objects and need no memory of
//! ours: the first pass. The second is for arrays beside them, which borrow their elements, too. Any other object sends
//! the whole call down the third, which owns the values that it makes. Both hand the result to a closure, so that
//! neither outlives its memory.

use std::ffi::c_int;
use std::sync::Arc;

use arrayvec::ArrayVec;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyEllipsis, PyFloat, PyInt, PyString, PyTuple, PyType};

use tupelo::image::ARITY_MAX;
use tupelo::{
    Class, EncodeError, Encoded, Field, KindSet, Pattern, PatternRef, TemplateRef, TupleRef, Value,
};

use crate::arrays::{self, ArrayArgument};
use crate::call::Argument;
use crate::entries::{self, EntryClass};
use crate::errors::{self, Failure};
use crate::formals::{Formal, Rest};
use crate::known::{self, exactly};
use crate::objects::Objects;
use crate::patterns;
use crate::refusal::Refusal;
use crate::sent::Sent;
use crate::space::Handle;
use crate::template::{self, Template};
use crate::values;

/// Gives `use_tuple` the arguments as a tuple to put: a sole instance of a class of entries is that entry.
///
/// # Errors
///
/// `NotEncodable` naming the field that cannot be stored, `TypeError` for a sole plain tuple, or the error of
/// `use_tuple`.
#[inline]
pub(crate) fn with_fields<'a, R>(
    py: Python<'_>,
    (source, arguments): (Source, &'a [Argument<'a, '_>]),
    handle: &Handle,
    use_tuple: impl FnOnce(TupleRef<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    // Filled in place: it is 3 KiB, and moving it would cost more than filling it.
    let mut fields = ArrayVec::<Field<'a>, ARITY_MAX>::new();
    if arguments.len() <= ARITY_MAX
        && arguments.iter().all(|argument| plain(argument, |field| fields.push(field)))
    {
        return use_tuple(TupleRef { fields: &fields, class: None });
    }
    let mut arrays = ArrayVec::<ArrayArgument<'a>, ARRAYS_MAX>::new();
    if arguments.len() <= ARITY_MAX
        && arguments.iter().all(|argument| plain(argument, |_| ()) || lent(argument, &mut arrays))
    {
        return with_arrays(arguments, &arrays, use_tuple);
    }
    if let [sole] = arguments
        && let Some((entry, false)) = entries::of_object(sole)?
    {
        entries::meet(py, handle, &entry)?;
        entry.require_made_again().map_err(|why| why.into_exception(py, format_args!("this")))?;
        let (class, values) = entry.stored(sole)?;
        return with_entry(py, class, &values, handle, use_tuple);
    }
    let owned = owned_fields(py, (source, arguments), handle.objects())?;
    let fields: Vec<_> = owned.iter().map(OwnedField::field).collect();
    use_tuple(TupleRef { fields: &fields, class: None })
}

/// Gives `use_tuple` arguments of which the ones that are not plain are `arrays`.
#[inline(never)]
fn with_arrays<'a, R>(
    arguments: &'a [Argument<'a, '_>],
    arrays: &'a [ArrayArgument<'a>],
    use_tuple: impl FnOnce(TupleRef<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let (mut fields, mut rest) = (ArrayVec::<Field<'a>, ARITY_MAX>::new(), arrays.iter());
    for argument in arguments {
        if !plain(argument, |field| fields.push(field)) {
            fields.extend(rest.next().map(ArrayArgument::field));
        }
    }
    use_tuple(TupleRef { fields: &fields, class: None })
}

/// Gives `use_tuple` the entry of this class with these values.
fn with_entry<R>(
    py: Python<'_>,
    names: &'static Class,
    values: &[Bound<'_, PyAny>],
    handle: &Handle,
    use_tuple: impl FnOnce(TupleRef<'_>) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let class = Some(names);
    let mut fields = Vec::with_capacity(values.len());
    if values.iter().all(|value| plain(value, |field| fields.push(field))) {
        return use_tuple(TupleRef { fields: &fields, class });
    }
    let owned = names.fields().zip(values).map(|(name, value)| {
        OwnedField::new(value, handle.objects())
            .map_err(|why| why.into_exception(py, format_args!("field {name}")))
    });
    let owned: Vec<_> = owned.collect::<PyResult<_>>()?;
    let fields: Vec<_> = owned.iter().map(OwnedField::field).collect();
    use_tuple(TupleRef { fields: &fields, class })
}

/// A tuple or an entry among several to put, with what its fields are taken from.
pub(crate) struct Given<'py> {
    fields: Vec<Bound<'py, PyAny>>,
    /// Of an entry its instance, and its stored form.
    entry: Option<(Arc<EntryClass>, &'static Class)>,
}

impl<'py> Given<'py> {
    /// What `object` is to be put as; `None` if it is neither a plain tuple nor an entry.
    pub(crate) fn new(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if let Some(tuple) = exactly::<PyTuple>(object) {
            return Ok(Some(Self { fields: tuple.iter().collect(), entry: None }));
        }
        let Some((entry, false)) = entries::of_object(object)? else { return Ok(None) };
        let (class, fields) = entry.stored(object)?;
        Ok(Some(Self { fields, entry: Some((entry, class)) }))
    }
}

/// Gives `use_tuples` several tuples.
///
/// # Errors
///
/// `NotEncodable` naming the tuple and the field that cannot be stored, or the error of `use_tuples`.
pub(crate) fn with_tuples<R>(
    py: Python<'_>,
    tuples: &[Given<'_>],
    handle: &Handle,
    use_tuples: impl FnOnce(&[TupleRef<'_>]) -> Result<R, Failure>,
) -> Result<R, Failure> {
    // First what needs memory, so that then everything can be borrowed.
    let mut owned = Vec::new();
    for (number, tuple) in tuples.iter().enumerate() {
        if let Some((entry, _)) = &tuple.entry {
            entries::meet(py, handle, entry)?;
            let place = format_args!("tuple {number}");
            entry.require_made_again().map_err(|why| why.into_exception(py, place))?;
        }
        for (index, field) in tuple.fields.iter().enumerate() {
            if !plain(field, |_| ()) {
                let refused = |why: Refusal| match &tuple.entry {
                    None => why.into_exception(py, format_args!("tuple {number}, field {index}")),
                    Some((_, class)) => {
                        let name = class.fields().nth(index).unwrap_or_default();
                        why.into_exception(py, format_args!("tuple {number}, field {name}"))
                    }
                };
                owned.push(OwnedField::new(field, handle.objects()).map_err(refused)?);
            }
        }
    }
    let mut others = owned.iter();
    let mut all = Vec::new();
    for field in tuples.iter().flat_map(|tuple| &tuple.fields) {
        if !plain(field, |field| all.push(field)) {
            all.extend(others.next().map(OwnedField::field));
        }
    }
    let mut rest = all.as_slice();
    let tuples: Vec<TupleRef<'_>> = tuples
        .iter()
        .map(|tuple| {
            let (fields, behind) = rest.split_at(tuple.fields.len());
            rest = behind;
            TupleRef { fields, class: tuple.entry.as_ref().map(|(_, class)| *class) }
        })
        .collect();
    use_tuples(&tuples)
}

/// Gives `use_template` the arguments as a template: its alternatives, nearly always one.
///
/// # Errors
///
/// `TemplateError` or `NotEncodable` naming the field that is no pattern, `TypeError` for a sole plain
/// tuple, or what `use_template` fails with.
#[inline]
pub(crate) fn with_template<'a, R>(
    py: Python<'_>,
    (source, arguments): (Source, &'a [Argument<'a, '_>]),
    use_template: impl FnOnce(&[TemplateRef<'_>]) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let mut patterns = ArrayVec::<PatternRef<'a>, ARITY_MAX>::new();
    if arguments.len() <= ARITY_MAX
        && arguments.iter().all(|argument| {
            plain(argument, |field| patterns.push(PatternRef::Actual(field)))
                || push_formal(argument, &mut patterns)
        })
    {
        return use_template(&[TemplateRef::new(&patterns)]);
    }
    if let [before @ .., last] = arguments
        && patterns.len() == before.len()
        && last.is_exact_instance_of::<Rest>()
    {
        return use_template(&[TemplateRef::beginning(&patterns)]);
    }
    let template = owned_template(py, (source, arguments))?;
    template.with_refs(use_template).map_err(|why| not_encodable(py, why))?
}

/// Arrays of one tuple for which no memory is needed.
const ARRAYS_MAX: usize = 4;

/// Appends the array that `object` is, if that is stored as it lies. `false` for any other, and where there is no place.
#[inline]
fn lent<'a>(
    object: &'a Bound<'_, PyAny>,
    arrays: &mut ArrayVec<ArrayArgument<'a>, ARRAYS_MAX>,
) -> bool {
    match arrays::lent(object) {
        Some(Ok(array)) => arrays.try_push(array).is_ok(),
        _ => false,
    }
}

/// Gives `push` the field for an object that is stored as it is. `false`, and no field, for any other.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "the field is built in its place: moving it costs 10 ns each"
)]
fn plain<'a>(object: &'a Bound<'_, PyAny>, mut push: impl FnMut(Field<'a>)) -> bool {
    if let Some(text) = exactly::<PyString>(object) {
        let Ok(text) = text.to_str() else { return false };
        push(Field::Str(text));
    } else if let Some(int) = exactly::<PyInt>(object) {
        let Some(int) = int64(int) else { return false };
        push(Field::Int(int));
    } else if let Some(float) = exactly::<PyFloat>(object) {
        push(Field::Float(float.value()));
    } else if let Some(bytes) = exactly::<PyBytes>(object) {
        push(Field::Bytes(bytes.as_bytes()));
    } else if object.is_none() {
        push(Field::Null);
    } else if let Some(truth) = exactly::<PyBool>(object) {
        push(Field::Bool(truth.is_true()));
    } else {
        return false;
    }
    true
}

/// Appends the pattern for a built-in type, `...`, or what `F` makes. `false` for any other.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the pattern is built in its place, not moved there")]
fn push_formal<'a>(
    object: &'a Bound<'_, PyAny>,
    patterns: &mut ArrayVec<PatternRef<'a>, ARITY_MAX>,
) -> bool {
    if let Some(class) = exactly::<PyType>(object) {
        let Some(kind) = patterns::class_kind(class) else { return false };
        patterns.push(PatternRef::Kinds(KindSet::of(kind)));
    } else if object.is_exact_instance_of::<PyEllipsis>() {
        patterns.push(PatternRef::ANY);
    } else if let Some(formal) = exactly::<Formal>(object) {
        match formal.get().pattern() {
            Pattern::Kinds(kinds) => patterns.push(PatternRef::Kinds(*kinds)),
            Pattern::Test(test) if !test.is_impossible() => patterns.push(PatternRef::Test(test)),
            // What nothing can match, which is refused where there is time for a message; and `F == value`, which
            // needs an encoding.
            Pattern::Test(_) | Pattern::Actual(_) => return false,
        }
    } else {
        return false;
    }
    true
}

/// The integer, or `None` if it does not fit in 64 bits.
#[inline]
fn int64(int: &Bound<'_, PyInt>) -> Option<i64> {
    let mut overflow: c_int = 0;
    // SAFETY: the object is an `int`, so no exception can be raised.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(int.as_ptr(), &raw mut overflow) };
    (overflow == 0).then_some(value)
}

/// A field with the memory that it points at.
enum OwnedField<'a> {
    /// A field that borrows from the caller's object.
    Borrowed(Field<'a>),
    /// A value that is a field as it is.
    Plain(Value),
    /// A value that is stored as its encoding.
    Encoded(tupelo::Kind, Vec<u8>),
    /// An array, its data still with the caller.
    Array(ArrayArgument<'a>),
}

impl<'a> OwnedField<'a> {
    /// The field for `object`.
    fn new(object: &'a Bound<'_, PyAny>, objects: Objects) -> Result<Self, Refusal> {
        let mut borrowed = None;
        if plain(object, |field| borrowed = Some(field))
            && let Some(field) = borrowed
        {
            return Ok(Self::Borrowed(field));
        }
        if let Some(sent) = exactly::<Sent>(object) {
            return Self::sent(sent.get().value(object.py()), objects);
        }
        // Not by way of a value: that would copy the data.
        if known::NDARRAY.is_class_of(object)?
            && let Some(array) = arrays::array(object)?
        {
            return Ok(Self::Array(array));
        }
        Self::owned(values::value(object, objects)?)
    }

    /// The field for the value of a [`Sent`].
    fn sent(object: &'a Bound<'_, PyAny>, objects: Objects) -> Result<Self, Refusal> {
        match arrays::lent(object) {
            Some(Ok(array)) => Ok(Self::Array(array)),
            _ => Self::owned(values::sent(object, objects)?),
        }
    }

    /// The field for a value.
    fn owned(value: Value) -> Result<Self, Refusal> {
        Ok(match value {
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Str(_)
            | Value::Bytes(_) => Self::Plain(value),
            _ => Self::Encoded(value.kind(), value.encode().map_err(Refusal::from_message)?),
        })
    }

    /// The field itself.
    fn field(&self) -> Field<'_> {
        match self {
            Self::Borrowed(field) => *field,
            Self::Plain(Value::Bool(value)) => Field::Bool(*value),
            Self::Plain(Value::Int(value)) => Field::Int(*value),
            Self::Plain(Value::Float(value)) => Field::Float(*value),
            Self::Plain(Value::Str(text)) => Field::Str(text),
            Self::Plain(Value::Bytes(bytes)) => Field::Bytes(bytes),
            Self::Plain(_) => Field::Null,
            Self::Encoded(kind, bytes) => Field::Encoded(Encoded::whole(*kind, bytes)),
            Self::Array(array) => array.field(),
        }
    }
}

/// The fields for arguments that are not all plain.
#[cold]
fn owned_fields<'a>(
    py: Python<'_>,
    (source, arguments): (Source, &'a [Argument<'_, '_>]),
    objects: Objects,
) -> PyResult<Vec<OwnedField<'a>>> {
    refuse_sole_tuple(
        arguments,
        source,
        "give its fields, as in put(*t); a tuple whose one field is t goes in by put_all([(t,)])",
    )?;
    let field = |(index, argument): (usize, &'a Argument<'_, '_>)| {
        OwnedField::new(argument, objects)
            .map_err(|why| why.into_exception(py, format_args!("field {index}")))
    };
    let mut fields = Vec::with_capacity(arguments.len());
    for argument in arguments.iter().enumerate() {
        fields.push(field(argument)?);
    }
    Ok(fields)
}

/// The template for arguments that are not all plain.
#[cold]
pub(crate) fn owned_template(
    py: Python<'_>,
    (source, arguments): (Source, &[Argument<'_, '_>]),
) -> PyResult<tupelo::Template> {
    refuse_sole_tuple(arguments, source, "give its patterns, as in take(*t)")?;
    if let [sole] = arguments {
        if let Ok(template) = sole.cast::<Template>() {
            return Ok(template.get().template().clone());
        }
        if let Some((entry, is_class)) = entries::of_object(sole)? {
            return entries::template(sole, (&entry, is_class), &[]);
        }
    }
    let (fields, rest) = match arguments {
        [fields @ .., last] if last.is_instance_of::<Rest>() => (fields, true),
        fields => (fields, false),
    };
    let patterns = fields.iter().enumerate();
    let patterns: Vec<_> = patterns
        .map(|(index, field)| patterns::pattern_at(field, index))
        .collect::<PyResult<_>>()?;
    let template = template::within_limits(py, template::alternative(patterns, rest))?;
    // Refused here, so that a template that exists can be used.
    template.with_refs(|_| ()).map_err(|why| not_encodable(py, why))?;
    Ok(template)
}

/// Where the fields or patterns of a tuple come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The positional arguments. A sole plain tuple among them is nearly always a forgotten `*`, and
    /// would quietly store or find something else: it is refused.
    Positional,
    /// One argument that is a tuple, as in `to=(…)`: its elements are the fields.
    Tuple,
}

fn refuse_sole_tuple(arguments: &[Argument<'_, '_>], source: Source, advice: &str) -> PyResult<()> {
    match arguments {
        [sole] if source == Source::Positional && sole.is_exact_instance_of::<PyTuple>() => {
            Err(PyTypeError::new_err(format!("the only argument is a tuple: {advice}")))
        }
        _ => Ok(()),
    }
}

fn not_encodable(py: Python<'_>, why: EncodeError) -> PyErr {
    errors::not_encodable(py, &why.to_string(), None)
}
