//! Templates that are objects: what `like` and `parse` make. Immutable, hashable, usable any number of
//! times and in any process.

use std::fmt::Display;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use tupelo::{Alternative, Condition, Form, TemplateRef};

use crate::arguments::{self, Source};
use crate::call::Argument;
use crate::conditions;
use crate::entries::{self, EntryClass};
use crate::errors::{self, Failure};
use crate::formals::{hash_of, template_error};
use crate::known;
use crate::objects::Objects;
use crate::results;
use crate::space::Handle;

/// A description of tuples: one alternative, or an OR of several (rule M8). Made by `like` and `parse`.
///
/// It can be kept, compared, hashed, pickled, and given to any verb as its only argument.
///
///     >>> work = ts.like("job", int) | ts.like("stop")
///     >>> work
///     <Template ("job", :int) | ("stop")>
///     >>> space.put("stop")
///     >>> space.take(work)
///     ('stop',)
#[pyclass(frozen, generic, module = "tupelo", name = "Template")]
pub(crate) struct Template {
    template: tupelo::Template,
}

impl From<tupelo::Template> for Template {
    fn from(template: tupelo::Template) -> Self {
        Self { template }
    }
}

impl Template {
    /// The template itself.
    pub(crate) const fn template(&self) -> &tupelo::Template {
        &self.template
    }
}

#[pymethods]
impl Template {
    /// A template that matches the tuples of both.
    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(other) = other.cast::<Self>() else {
            return Err(template_error(
                other.py(),
                "only a template can follow `|` here",
                Some("write like(…) | like(…)"),
            ));
        };
        let either = self.template.clone().or(other.get().template.clone());
        within_limits(other.py(), either).map(Self::from)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().template == self.template)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.template.to_string())
    }

    fn __str__(&self) -> String {
        self.template.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Template {}>", self.template)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        reduced(py, "decode_template", &self.template)
    }
}

/// How `pickle` makes an object again: by a function, with an encoding.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>,));

/// How `function` of this module makes an object of `template` again. Not of its text: a long one is not parsed.
pub(crate) fn reduced<'py>(
    py: Python<'py>,
    function: &str,
    template: &tupelo::Template,
) -> PyResult<Reduced<'py>> {
    let encoding = template.encode();
    let encoding = encoding.map_err(|why| errors::not_encodable(py, &why.to_string(), None))?;
    let function = py.import("tupelo._native")?.getattr(function)?;
    Ok((function, (PyBytes::new(py, &encoding),)))
}

/// The template that was pickled as this encoding.
#[pyfunction]
pub(crate) fn decode_template(encoding: &[u8]) -> PyResult<Template> {
    let template = tupelo::Template::decode(encoding);
    template.map(Template::from).map_err(|why| PyValueError::new_err(why.to_string()))
}

/// Make a template of patterns, as a take or a read takes them.
///
/// `like("job", int) | like("stop")` matches either; a take with it removes exactly one tuple.
/// `like(Job, status="new")` matches entries of the class `Job`, whatever its fields are called.
/// `like("job", int, where="f[1] > 3")` has a condition over the whole tuple, as the verbs have.
///
/// Args:
///     template: one pattern per field, as for `Space.take`; or a class of entries.
///     fields: patterns for fields of that class, by name; and `where`, unless the class has such a field.
///
/// Raises:
///     `TemplateError`: the patterns, or the condition, make no sense, or are too many.
///     `UnknownField`: the class has no such field.
///     `NotEncodable`: no field can have the value of one of the patterns.
///
///     >>> space.put_all([("job", 7), ("stop",)])
///     2
///     >>> work = ts.like("job", int, where="f[1] > 3") | ts.like("stop")
///     >>> space.take_all(work)
///     [('job', 7), ('stop',)]
#[pyfunction]
#[pyo3(signature = (*template, **fields))]
pub(crate) fn like(
    template: &Bound<'_, PyTuple>,
    fields: Option<&Bound<'_, PyDict>>,
) -> PyResult<Template> {
    let py = template.py();
    let arguments: Vec<Argument<'_, '_>> = template.iter_borrowed().collect();
    let class = match &arguments[..] {
        [sole] => entries::of_object(sole)?,
        _ => None,
    };
    let is_field =
        class.as_ref().is_some_and(|(entry, is_class)| *is_class && entry.has_field("where"));
    let fields = fields.filter(|fields| !fields.is_empty());
    let (fields, condition) = match fields {
        Some(fields) if !is_field => without_condition(fields)?,
        Some(fields) => (Some(fields.clone()), None),
        None => (None, None),
    };
    let template = named_template(py, (&arguments, class.as_ref()), fields)?;
    let template = match (condition, class) {
        (None, _) => template,
        (Some(condition), None) => conditions::added(py, template, &condition)?,
        (Some(condition), Some((entry, _))) => {
            conditions::added_for(py, template, &condition, entry.names())?
        }
    };
    Ok(Template { template })
}

/// The keywords without `where`, if any are left, and the condition.
fn without_condition<'py>(
    fields: &Bound<'py, PyDict>,
) -> PyResult<(Option<Bound<'py, PyDict>>, Option<Condition>)> {
    let Some(condition) = fields.get_item("where")? else {
        return Ok((Some(fields.clone()), None));
    };
    let condition =
        if condition.is_none() { None } else { Some(conditions::condition(&condition)?) };
    let fields = fields.copy()?;
    fields.del_item("where")?;
    Ok(((!fields.is_empty()).then_some(fields), condition))
}

/// The template of patterns, or of the fields by name of a class of entries.
fn named_template<'py>(
    py: Python<'py>,
    (arguments, class): (&[Argument<'_, 'py>], Option<&(Arc<EntryClass>, bool)>),
    fields: Option<Bound<'py, PyDict>>,
) -> PyResult<tupelo::Template> {
    let Some(fields) = fields else {
        return arguments::owned_template(py, (Source::Positional, arguments));
    };
    let Some((entry, true)) = class else {
        return Err(template_error(
            py,
            "fields by name belong to a class of entries, which stands alone",
            Some("write like(Job, status=...), or like(\"job\", ...) without names"),
        ));
    };
    let keys: Vec<Bound<'_, PyAny>> = fields.keys().iter().collect();
    let values: Vec<Bound<'_, PyAny>> = fields.values().iter().collect();
    let named = keys.iter().zip(&values);
    let named = named.map(|(name, value)| Ok((name.extract()?, value.as_borrowed())));
    let named = named.collect::<PyResult<Vec<(String, Argument<'_, '_>)>>>()?;
    entries::template(&arguments[0], (entry, true), &named)
}

/// Make a template of its text form, as the command line reads it: `parse('"job", :int, _')`.
///
/// Raises:
///     `TemplateError`: the text is none, or the template has too much in it.
///
///     >>> ts.parse('"job", :int, _, 3..9')
///     <Template ("job", :int, _, 3..9)>
///     >>> space.put("job", 7, b"resize", 5)
///     >>> space.take(ts.parse('"job", :int, ...'))
///     ('job', 7, b'resize', 5)
#[pyfunction]
pub(crate) fn parse(text: &Bound<'_, PyAny>) -> PyResult<Template> {
    let (py, text) = (text.py(), known::text("text", text)?);
    let template: tupelo::Template = text.parse().map_err(|why| {
        template_error(
            py,
            &format!("{text:?} is no template: {why}"),
            Some("an example: \"job\", :int, _, 3..9"),
        )
    })?;
    within_limits(py, template).map(Template::from)
}

/// The template of a call, as positional arguments: a class of entries with fields by keyword becomes a template.
///
/// # Errors
///
/// As [`like`], and as [`entries::meet`] for a class of entries.
pub(crate) fn sought<'py>(
    handle: &Handle,
    (given, fields): (&Bound<'py, PyTuple>, Option<&Bound<'py, PyDict>>),
) -> Result<Bound<'py, PyTuple>, Failure> {
    let (py, fields) = (given.py(), fields.filter(|fields| !fields.is_empty()));
    let class = match given.len() {
        1 => entries::of_object(&given.get_item(0)?)?,
        _ => None,
    };
    if let (Some(fields), None | Some((_, false))) = (fields, &class) {
        require_known(fields)?;
    }
    if class.is_none() && fields.is_none() {
        return Ok(given.clone());
    }
    if let Some((entry, is_class)) = class {
        entries::meet(py, handle, &entry)?;
        if is_class {
            entry.require_clear()?;
        }
    }
    Ok(PyTuple::new(py, [Bound::new(py, like(given, fields)?)?])?)
}

/// Gives `use_template` the template of a call, as [`sought`].
///
/// # Errors
///
/// As [`sought`], and what `use_template` says.
pub(crate) fn with_sought<'py, R>(
    handle: &Handle,
    given: (&Bound<'py, PyTuple>, Option<&Bound<'py, PyDict>>),
    use_template: impl FnOnce(&[TemplateRef<'_>]) -> Result<R, Failure>,
) -> PyResult<R> {
    let py = given.0.py();
    let done = sought(handle, given).and_then(|sought| {
        let sought: Vec<Argument<'_, '_>> = sought.iter_borrowed().collect();
        arguments::with_template(py, (Source::Positional, &sought), use_template)
    });
    done.map_err(|failure| handle.exception(py, failure))
}

/// Refuses keywords that a verb has not, where they can be no fields of a class.
fn require_known(fields: &Bound<'_, PyDict>) -> PyResult<()> {
    const KNOWN: [&str; 4] = ["timeout", "order", "where", "to"];
    let py = fields.py();
    for name in fields.keys().iter() {
        let name = name.extract::<String>()?;
        if name != "where" {
            let meant = errors::nearest(py, &name, &KNOWN)
                .map_or_else(|| ".".to_owned(), |nearest| format!("; did you mean {nearest:?}?"));
            return Err(PyTypeError::new_err(format!(
                "there is no keyword argument {name:?}{meant} Fields by name belong to a class of entries, \
                 which stands alone, as in take(Job, status=...)"
            )));
        }
    }
    Ok(())
}

/// Make a tuple of its text form: `parse_tuple('"job", 7')`. For tests, whose cases are texts.
#[pyfunction]
pub(crate) fn parse_tuple<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let tuple: tupelo::Tuple = text
        .parse()
        .map_err(|why| PyValueError::new_err(format!("{text:?} is no tuple: {why}")))?;
    let field = |place: &dyn Display, value: &tupelo::Value| {
        results::object(py, value, Objects::Refused)
            .map_err(|why| why.into_exception(py, format_args!("field {place}")))
    };
    if let Some(class) = tuple.class() {
        return entries::object(py, class, &[], |index| {
            let name = class.fields().nth(index).unwrap_or_default();
            field(&name, &tuple[index])
        });
    }
    let fields = tuple.iter().enumerate().map(|(index, value)| field(&index, value));
    let fields = fields.collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, fields)?.into_any())
}

/// Put a tuple that is given as text, also an entry of a class that this program has not.
#[pyfunction]
pub(crate) fn put_text(space: &Bound<'_, Handle>, text: &str) -> PyResult<()> {
    let tuple: tupelo::Tuple = text
        .parse()
        .map_err(|why| PyValueError::new_err(format!("{text:?} is no tuple: {why}")))?;
    let handle = space.get();
    let put = tuple.with_ref(|tuple| Ok(handle.space().put(tuple)?));
    let put = put.map_err(|why| PyValueError::new_err(format!("{text:?}: {why}")))?;
    put.map_err(|failure: Failure| handle.exception(space.py(), failure))
}

/// Refuses a template beyond the limits when it is made. Otherwise only a call that waits would notice.
///
/// # Errors
///
/// `TemplateError`.
pub(crate) fn within_limits(
    py: Python<'_>,
    template: tupelo::Template,
) -> PyResult<tupelo::Template> {
    match template.require_limits() {
        Ok(()) => Ok(template),
        Err(why) => Err(template_error(py, &why.to_string(), None)),
    }
}

/// The only alternative of these patterns.
pub(crate) fn alternative(patterns: Vec<tupelo::Pattern>, rest: bool) -> tupelo::Template {
    let form = if rest { Form::Rest } else { Form::Exact };
    Alternative { patterns, form, condition: None }.into()
}
