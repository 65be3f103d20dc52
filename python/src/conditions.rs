//! `where=`: a condition over the whole tuple, as text in CEL (rule M9).

use pyo3::prelude::*;

use tupelo::{Class, Condition, ParseError, Template};

use crate::formals::template_error;
use crate::known;
use crate::values;

/// The end of each error.
const HINT: &str = "where= takes CEL text, evaluated where the tuple lives, as in where=\"f[1] % 2 == 0\"; of an entry \
                    the fields are names, as in where=\"priority > 3\"; docs/how-to/where.md has all of it";

/// The condition that an argument says.
///
/// # Errors
///
/// `TemplateError` with the place of the mistake, and what would be right there.
pub(crate) fn condition(argument: &Bound<'_, PyAny>) -> PyResult<Condition> {
    let py = argument.py();
    let Ok(text) = known::text("where", argument) else {
        let message = format!("where is {}, which is no text", values::shown(argument));
        return Err(template_error(py, &message, Some(HINT)));
    };
    Condition::new(text).map_err(|why| refusal(py, text, &why))
}

/// `template`, for the matches that also fulfil `condition`.
///
/// # Errors
///
/// `TemplateError` if the condition has a name that no tuple has.
pub(crate) fn added(
    py: Python<'_>,
    template: Template,
    condition: &Condition,
) -> PyResult<Template> {
    template.with_condition(condition).map_err(|why| refusal(py, condition.text(), &why))
}

/// As [`added`], for a template of entries of `class`.
///
/// # Errors
///
/// `TemplateError` if the condition has a name that is no field of the class.
pub(crate) fn added_for(
    py: Python<'_>,
    template: Template,
    condition: &Condition,
    class: &Class,
) -> PyResult<Template> {
    condition.require_class(class).map_err(|why| refusal(py, condition.text(), &why))?;
    added(py, template, condition)
}

fn refusal(py: Python<'_>, text: &str, why: &ParseError) -> PyErr {
    template_error(py, &format!("where={text:?} is no condition: {why}"), Some(HINT))
}
