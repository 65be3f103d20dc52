//! `F` and its results: formals beyond a type, the order of a take, and `REST`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound as End;

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};

use tupelo::image::ARITY_MAX;
use tupelo::{Alternative, FieldName, Kind, KindSet, Order, Pattern, PatternError, Template};

use crate::errors;
use crate::known;
use crate::objects::Objects;
use crate::patterns;
use crate::refusal::Refusal;
use crate::template::{Reduced, reduced};
use crate::values;

/// A predicate on one field, such as `F > 3` (rule M5). Made by `F`, and by joining what `F` has made.
///
///     >>> (F > 3) & (F != 7)
///     <Formal > 3 & != 7>
///     >>> space.put_all([("n", 7), ("n", 8), ("n", "eight")])
///     3
///     >>> space.take("n", (F > 3) & (F != 7))
///     ('n', 8)
///     >>> space.take("n", (F < 0) | str)
///     ('n', 'eight')
///     >>> space.try_take("n", ~(F == 7)) is None
///     True
#[pyclass(frozen, generic, module = "tupelo", name = "Formal")]
pub(crate) struct Formal {
    pattern: Pattern,
}

impl Formal {
    /// The test of the field.
    #[inline]
    pub(crate) const fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    fn new(pattern: Result<Pattern, PatternError>, py: Python<'_>) -> PyResult<Self> {
        Ok(Self { pattern: pattern.map_err(|why| template_error(py, &why.to_string(), None))? })
    }
}

/// A template that cannot be made.
pub(crate) fn template_error(py: Python<'_>, message: &str, hint: Option<&str>) -> PyErr {
    errors::make(py, "TemplateError", message, hint, None)
}

fn no_truth(py: Python<'_>) -> PyErr {
    template_error(
        py,
        "F cannot be used as true or false, which is what `0 < F < 10` and `F > 3 and F < 9` do",
        Some("write F.between(0, 10, ends=\"()\") or (F > 3) & (F < 9)"),
    )
}

#[pymethods]
#[expect(clippy::unused_self, reason = "methods of Python objects have one")]
impl Formal {
    /// Fields that both match.
    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        let both = [self.pattern.clone(), patterns::pattern(other)?];
        Self::new(Pattern::all(both), other.py())
    }

    fn __rand__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__and__(other)
    }

    /// Fields that either matches.
    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        let either = [self.pattern.clone(), patterns::pattern(other)?];
        Self::new(Pattern::any_of(either), other.py())
    }

    fn __ror__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.__or__(other)
    }

    /// Fields of any kind that this does not match.
    fn __invert__(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(Pattern::not(self.pattern.clone()), py)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Err(no_truth(py))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().pattern == self.pattern)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.pattern.to_string())
    }

    fn __repr__(&self) -> String {
        format!("<Formal {}>", self.pattern)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "decode_formal", &Template::new(vec![self.pattern.clone()]))
    }
}

/// The hash of a text, for objects that are equal when their texts are.
pub(crate) fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The formal that was pickled as this encoding, which is that of a template of one pattern.
#[pyfunction]
pub(crate) fn decode_formal(encoding: &[u8]) -> PyResult<Formal> {
    let template = Template::decode(encoding);
    let template = template.map_err(|why| PyValueError::new_err(why.to_string()))?;
    match template.alternatives() {
        [Alternative { patterns, .. }] if patterns.len() == 1 => {
            Ok(Formal { pattern: patterns[0].clone() })
        }
        _ => Err(PyValueError::new_err("the encoding is not of one pattern")),
    }
}

/// The class of `F`, which stands for the field: compare it to get a formal.
#[pyclass(frozen, module = "tupelo", name = "FieldProxy")]
pub(crate) struct FieldProxy;

#[pymethods]
#[expect(clippy::unused_self, reason = "methods of Python objects have one")]
impl FieldProxy {
    #[new]
    const fn new() -> Self {
        Self
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, operator: CompareOp) -> PyResult<Formal> {
        let py = other.py();
        let value = operand(other)?;
        let pattern = match operator {
            CompareOp::Eq => Ok(Pattern::Actual(value)),
            CompareOp::Ne => Pattern::not(Pattern::Actual(value)),
            CompareOp::Lt => Pattern::range(End::Unbounded, End::Excluded(value)),
            CompareOp::Le => Pattern::range(End::Unbounded, End::Included(value)),
            CompareOp::Gt => Pattern::range(End::Excluded(value), End::Unbounded),
            CompareOp::Ge => Pattern::range(End::Included(value), End::Unbounded),
        };
        Formal::new(pattern, py)
    }

    fn __hash__(&self) -> u64 {
        hash_of("F")
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Err(no_truth(py))
    }

    fn __repr__(&self) -> &'static str {
        "F"
    }

    fn __reduce__(&self) -> &'static str {
        "F"
    }

    /// Fields from `low` to `high`, both included unless `ends` says otherwise (rule M5).
    ///
    /// `int` and `float` are compared numerically, `str` and `bytes` by code point and byte.
    ///
    /// Args:
    ///     low: the least value.
    ///     high: the greatest.
    ///     ends: `[` or `]` for an included end, `(` or `)` for an excluded one. By default "[]".
    ///
    /// Raises:
    ///     `TemplateError`: a value has no order, or the two have none together.
    ///     `ValueError`: `ends` is something else.
    ///
    ///     >>> space.put_all(("n", n) for n in range(3))
    ///     3
    ///     >>> space.count("n", F.between(0, 2)), space.count("n", F.between(0, 2, ends="[)"))
    ///     (3, 2)
    #[pyo3(signature = (low, high, /, *, ends = None))]
    fn between(
        &self,
        low: &Bound<'_, PyAny>,
        high: &Bound<'_, PyAny>,
        ends: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Formal> {
        let ends = ends.map_or(Ok("[]"), |ends| known::text("ends", ends))?;
        let (low_value, high_value) = (operand(low)?, operand(high)?);
        let (low_end, high_end) = match ends {
            "[]" => (End::Included(low_value), End::Included(high_value)),
            "[)" => (End::Included(low_value), End::Excluded(high_value)),
            "(]" => (End::Excluded(low_value), End::Included(high_value)),
            "()" => (End::Excluded(low_value), End::Excluded(high_value)),
            other => {
                return Err(PyValueError::new_err(format!(
                    "ends is {other:?}: give \"[]\", \"[)\", \"(]\" or \"()\""
                )));
            }
        };
        Formal::new(Pattern::range(low_end, high_end), low.py())
    }

    /// Fields that are equal to one of `values`, as actuals are (rule M2).
    ///
    /// Raises:
    ///     `TemplateError`: no field can have one of the values.
    ///     `TypeError`: `values` cannot be iterated over.
    ///     `ValueError`: there are too many.
    ///
    ///     >>> space.put("tile", 2)
    ///     >>> space.take("tile", F.in_({2, 3}))
    ///     ('tile', 2)
    fn in_(&self, values: &Bound<'_, PyAny>) -> PyResult<Formal> {
        let values = known::items("values", values, "values, as in F.in_({2, 3})")?;
        let values: Vec<_> = values.map(|value| operand(&value?)).collect::<PyResult<_>>()?;
        Ok(Formal {
            pattern: Pattern::is_in(values)
                .map_err(|why| PyValueError::new_err(why.to_string()))?,
        })
    }

    /// Text that matches a glob: `*` is any run of characters, `?` any character, `[a-z]` a character of the set.
    ///
    /// Raises:
    ///     `TemplateError`: the glob makes no sense, as one with a `[` that nothing closes.
    ///     `TypeError`: it is no text.
    ///
    ///     >>> space.put("file", "img/cat.png")
    ///     >>> space.take("file", F.glob("img/*.png"))
    ///     ('file', 'img/cat.png')
    fn glob(&self, pattern: &Bound<'_, PyAny>) -> PyResult<Formal> {
        Formal::new(Pattern::glob(known::text("pattern", pattern)?), pattern.py())
    }

    /// Text or bytes that begin with `start`.
    ///
    /// Raises:
    ///     `TemplateError`: it is neither text nor bytes.
    ///
    ///     >>> space.put("file", "img/cat.png")
    ///     >>> space.take("file", F.prefix("img/"))
    ///     ('file', 'img/cat.png')
    fn prefix(&self, start: &Bound<'_, PyAny>) -> PyResult<Formal> {
        Formal::new(Pattern::prefix(operand(start)?), start.py())
    }

    /// Any `int` or `float`.
    #[getter]
    fn number(&self) -> Formal {
        let numbers = KindSet::of(Kind::Int).or(KindSet::of(Kind::Float));
        Formal { pattern: Pattern::Kinds(numbers) }
    }

    /// Any object that is stored as a pickle, or as the like of it in another language.
    #[getter]
    fn opaque(&self) -> Formal {
        Formal { pattern: Pattern::Kinds(KindSet::of(Kind::Opaque)) }
    }

    /// For `order=`: the tuple with the largest value in a field first (rule T2). The field is given by its number, from 0 on,
    /// and of entries by its name, as in `F.max("priority")`.
    ///
    /// Raises:
    ///     `TypeError`: it is neither a number nor a name.
    ///     `ValueError`: no tuple has so many fields.
    ///
    ///     >>> space.put_all([("task", 5), ("task", 9), ("task", 2)])
    ///     3
    ///     >>> space.take("task", int, order=F.max(1))
    ///     ('task', 9)
    fn max(&self, field: &Bound<'_, PyAny>) -> PyResult<FieldOrder> {
        if let Some(name) = field_name(field)? {
            return Ok(FieldOrder { order: Order::MaxOf(name), text: format!("F.max({name:?})") });
        }
        let index = field_index(field)?;
        Ok(FieldOrder { order: Order::Max(index), text: format!("F.max({index})") })
    }

    /// For `order=`: the tuple with the smallest value in a field first (rule T2). The field is given by its number, from 0 on,
    /// and of entries by its name, as in `F.min("priority")`.
    ///
    /// Raises:
    ///     `TypeError`: it is neither a number nor a name.
    ///     `ValueError`: no tuple has so many fields.
    ///
    ///     >>> space.put_all([("task", 5), ("task", 9), ("task", 2)])
    ///     3
    ///     >>> space.take("task", int, order=F.min(1))
    ///     ('task', 2)
    fn min(&self, field: &Bound<'_, PyAny>) -> PyResult<FieldOrder> {
        if let Some(name) = field_name(field)? {
            return Ok(FieldOrder { order: Order::MinOf(name), text: format!("F.min({name:?})") });
        }
        let index = field_index(field)?;
        Ok(FieldOrder { order: Order::Min(index), text: format!("F.min({index})") })
    }
}

/// A value that a formal compares with.
fn operand(object: &Bound<'_, PyAny>) -> PyResult<tupelo::Value> {
    values::value(object, Objects::Compared).map_err(|why| match why {
        Refusal::Raised(exception) => exception,
        Refusal::Unstorable { what, hint, .. } => {
            let message = format!("the value to compare with is {what}");
            template_error(object.py(), &message, hint.as_deref())
        }
    })
}

/// The name of a field of entries, if it is a text.
fn field_name(field: &Bound<'_, PyAny>) -> PyResult<Option<FieldName>> {
    let Ok(name) = field.cast::<PyString>() else { return Ok(None) };
    let name = FieldName::new(name.to_str()?);
    name.map(Some).map_err(|why| PyValueError::new_err(why.to_string()))
}

fn field_index(index: &Bound<'_, PyAny>) -> PyResult<usize> {
    let Some(number) = whole_number(index)? else {
        let shown = values::shown(index);
        return Err(PyTypeError::new_err(format!(
            "field is {shown}: give the number of a field, from 0 on, or the name of one of entries"
        )));
    };
    // One beyond 64 bits is a number too, of which there is no field.
    let number = number.extract().unwrap_or(i64::MAX);
    usize::try_from(number).ok().filter(|number| *number < ARITY_MAX).ok_or_else(|| {
        PyValueError::new_err(format!(
            "field {number} does not exist: give the number of a field, from 0 to {}",
            ARITY_MAX - 1
        ))
    })
}

/// The number that `object` is, as an `int` or by its `__index__`; `None` if it is none, as a `bool`.
fn whole_number<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyInt>>> {
    if object.is_instance_of::<PyBool>() {
        return Ok(None);
    }
    if let Ok(number) = object.cast::<PyInt>() {
        return Ok(Some(number.clone()));
    }
    let py = object.py();
    match py.import("operator")?.getattr("index")?.call1((object,)) {
        Ok(number) => Ok(Some(number.cast_into::<PyInt>()?)),
        Err(why) if why.is_instance_of::<PyTypeError>(py) => Ok(None),
        Err(raised) => Err(raised),
    }
}

/// An order by a field, made by `F.max` and `F.min`.
#[pyclass(frozen, module = "tupelo", name = "FieldOrder")]
pub(crate) struct FieldOrder {
    order: Order,
    text: String,
}

impl FieldOrder {
    /// The order.
    pub(crate) const fn order(&self) -> Order {
        self.order
    }
}

#[pymethods]
impl FieldOrder {
    fn __repr__(&self) -> &str {
        &self.text
    }
}

/// The class of `REST`: as the last of a template, any number of further fields (rule M1).
#[pyclass(frozen, module = "tupelo", name = "Rest")]
pub(crate) struct Rest;

#[pymethods]
#[expect(clippy::unused_self, reason = "methods of Python objects have one")]
impl Rest {
    #[new]
    const fn new() -> Self {
        Self
    }

    fn __repr__(&self) -> &'static str {
        "REST"
    }

    fn __reduce__(&self) -> &'static str {
        "REST"
    }
}
