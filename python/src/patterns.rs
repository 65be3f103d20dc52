//! Python objects to patterns: what stands in one place of a template.
//!
//! A type is a formal, and `...` and `typing.Any` match anything. A union of types is a union of formals. A formal that
//! `F` makes is itself, and any other object is an actual (rules M2 to M5).

use pyo3::prelude::*;
use pyo3::type_object::PyTypeInfo;
use pyo3::types::{
    PyBool, PyBytes, PyDict, PyEllipsis, PyFloat, PyInt, PyList, PyMemoryView, PyNone, PyString,
    PyTuple, PyType,
};

use tupelo::{Kind, KindSet, Pattern};

use crate::entries;
use crate::formals::{self, FieldProxy, Formal, Rest};
use crate::known::{self, KnownClass};
use crate::objects::Objects;
use crate::refusal::Refusal;
use crate::template::Template;
use crate::values;

/// The pattern for `object`.
///
/// # Errors
///
/// `TemplateError` or `NotEncodable` if it is none; without a place, which [`pattern_at`] adds.
pub(crate) fn pattern(object: &Bound<'_, PyAny>) -> PyResult<Pattern> {
    convert(object).map_err(|why| exception(object.py(), why, "the operand"))
}

/// The pattern for `object`, which is field number `index` of a template.
///
/// # Errors
///
/// `TemplateError` or `NotEncodable` if it is none, naming the field.
pub(crate) fn pattern_at(object: &Bound<'_, PyAny>, index: usize) -> PyResult<Pattern> {
    possible(object).map_err(|why| exception(object.py(), why, &format!("field {index}")))
}

/// The pattern for `object`, which is the field `name` of a class of entries.
///
/// # Errors
///
/// As [`pattern_at`].
pub(crate) fn pattern_of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Pattern> {
    possible(object).map_err(|why| exception(object.py(), why, &format!("field {name}")))
}

/// A pattern that a field can match: a call would wait for ever for one of another.
fn possible(object: &Bound<'_, PyAny>) -> Result<Pattern, Misfit> {
    let pattern = convert(object)?;
    if !pattern.is_impossible() {
        return Ok(pattern);
    }
    Err(Misfit::Pattern {
        what: format!("{pattern}, which no value matches"),
        hint: "the lower bound goes first, F.in_ needs a value, and both sides of & have to match one value",
    })
}

/// Why an object is no pattern.
enum Misfit {
    /// It is an actual that cannot be stored, so that no stored value could match it.
    Value(Refusal),
    /// It makes no sense in this place.
    Pattern { what: String, hint: &'static str },
}

impl From<Refusal> for Misfit {
    fn from(refusal: Refusal) -> Self {
        Self::Value(refusal)
    }
}

impl From<PyErr> for Misfit {
    fn from(exception: PyErr) -> Self {
        Self::Value(exception.into())
    }
}

fn exception(py: Python<'_>, misfit: Misfit, place: &str) -> PyErr {
    match misfit {
        Misfit::Value(refusal) => refusal.into_exception(py, format_args!("{place}")),
        Misfit::Pattern { what, hint } => {
            formals::template_error(py, &format!("{place} is {what}"), Some(hint))
        }
    }
}

fn convert(object: &Bound<'_, PyAny>) -> Result<Pattern, Misfit> {
    if let Ok(class) = object.cast::<PyType>() {
        return class_pattern(class);
    }
    if object.is_instance_of::<PyEllipsis>() {
        return Ok(Pattern::ANY);
    }
    if let Ok(formal) = object.cast::<Formal>() {
        return Ok(formal.get().pattern().clone());
    }
    if let Some(members) = known::union_members(object)? {
        let patterns =
            members.iter().map(|member| convert(&member)).collect::<Result<Vec<_>, _>>()?;
        return Pattern::any_of(patterns)
            .map_err(|why| Misfit::Pattern { what: why.to_string(), hint: "use fewer types" });
    }
    refuse_misplaced(object)?;
    Ok(Pattern::Actual(values::value(object, Objects::Compared)?))
}

/// Refuses what has a place in a template, but not this one.
fn refuse_misplaced(object: &Bound<'_, PyAny>) -> Result<(), Misfit> {
    let (what, hint) = if object.is_instance_of::<Template>() {
        ("a whole template", "give it as the only argument, or write its patterns here")
    } else if object.is_instance_of::<Rest>() {
        (
            "REST before the end",
            "REST stands for all further fields: write it last, or ... for one field",
        )
    } else if object.is_instance_of::<FieldProxy>() {
        ("F without a comparison", "write a condition such as F > 3, or ... for any value")
    } else {
        return Ok(());
    };
    Err(Misfit::Pattern { what: what.to_owned(), hint })
}

/// The classes of modules that may not be loaded, and the kinds that they stand for.
static KNOWN_KINDS: [(&KnownClass, Kind); 4] = [
    (&known::NDARRAY, Kind::Array),
    (&known::DATETIME, Kind::Timestamp),
    (&known::UUID, Kind::Uuid),
    (&known::DECIMAL, Kind::Decimal),
];

/// The fields that the formal `class` accepts: of a kind (rule M3), or entries of a class (rule M5).
fn class_pattern(class: &Bound<'_, PyType>) -> Result<Pattern, Misfit> {
    let of_kind = |kind| Pattern::Kinds(KindSet::of(kind));
    if let Some(kind) = class_kind(class) {
        return Ok(of_kind(kind));
    }
    if known::is_typing_any(class)? {
        return Ok(Pattern::ANY);
    }
    for (known, kind) in KNOWN_KINDS {
        if known.is(class)? {
            return Ok(of_kind(kind));
        }
    }
    if let Some((entry, _)) = entries::of_object(class)? {
        return Ok(Pattern::class(entry.names().name()));
    }
    Err(Misfit::Pattern {
        what: format!("the class {}, which is no kind of field", values::shown(class)),
        hint: "formals are int, float, str, bytes, bool, type(None), list, tuple, dict, datetime, \
               Decimal, UUID, numpy.ndarray, F.number, F.opaque (any pickled object), or ... (anything)",
    })
}

/// The kind that a class stands for, as far as that can be told at once. That is for built-in classes, and for known
/// classes that were met before.
#[inline]
pub(crate) fn class_kind(class: &Bound<'_, PyType>) -> Option<Kind> {
    builtin_kind(class).or_else(|| {
        let met = |(known, _): &&(&KnownClass, Kind)| known.was_met_as(class);
        KNOWN_KINDS.iter().find(met).map(|(_, kind)| *kind)
    })
}

/// The kind that a built-in class stands for, if it is one.
#[inline]
fn builtin_kind(class: &Bound<'_, PyType>) -> Option<Kind> {
    let py = class.py();
    let class = class.as_type_ptr();
    // The most frequent ones first: this is a chain of comparisons of addresses.
    Some(if class == PyInt::type_object_raw(py) {
        Kind::Int
    } else if class == PyFloat::type_object_raw(py) {
        Kind::Float
    } else if class == PyString::type_object_raw(py) {
        Kind::Str
    } else if class == PyBytes::type_object_raw(py) {
        Kind::Bytes
    } else if class == PyBool::type_object_raw(py) {
        Kind::Bool
    } else if class == PyNone::type_object_raw(py) {
        Kind::Null
    } else if class == PyList::type_object_raw(py) {
        Kind::List
    } else if class == PyTuple::type_object_raw(py) {
        Kind::Tuple
    } else if class == PyDict::type_object_raw(py) {
        Kind::Map
    } else if class == PyMemoryView::type_object_raw(py) {
        Kind::Array
    } else {
        return None;
    })
}
