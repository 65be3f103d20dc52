//! The keyword arguments of a verb: the valid ones, and the error for any other.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::call::Argument;
use crate::entries;
use crate::errors;

/// The keyword of all verbs that have a template: a condition over the whole tuple.
pub(crate) const WHERE: &str = "where";

/// The keyword of all verbs that change the space: when the call returns.
pub(crate) const SYNC: &str = "sync";

/// Names that keywords of our verbs have, and of `search` and `gather`: a class with such a field cannot be given with
/// keywords.
pub(crate) const RESERVED: [&str; 21] = [
    "timeout",
    "where",
    "order",
    "limit",
    "n",
    "at_least",
    "idle",
    "to",
    "unless",
    "lease",
    "after",
    "ttl",
    "max_attempts",
    "on",
    "buffer",
    "buffer_bytes",
    "resume",
    "keep",
    "want",
    "progress",
    SYNC,
];

/// The name of a verb, and its keywords.
#[derive(Clone, Copy)]
pub(crate) struct Keywords<'n> {
    pub(crate) verb: &'n str,
    /// All but `where` and `sync`.
    pub(crate) names: &'n [&'n str],
    /// Whether it has a template, and so `where` and the fields of a class of entries (rules M7, M9).
    pub(crate) has_template: bool,
    /// Whether it changes the space, and so has `sync` (rule C4).
    pub(crate) changes: bool,
}

impl Keywords<'_> {
    /// Refuses a class of entries whose fields could be mistaken for the keywords, before any keyword is looked at. A
    /// value may be meant for a field with the name of a keyword.
    ///
    /// # Errors
    ///
    /// `TypeError`, with what would do instead.
    pub(crate) fn require_clear(self, fields: &[Argument<'_, '_>]) -> PyResult<()> {
        if let [sole] = fields
            && self.has_template
            && let Some((entry, true)) = entries::of_object(sole)?
        {
            entry.require_clear()?;
        }
        Ok(())
    }

    /// Refuses a keyword that is not the verb's, unless it is a field of the class of entries that `fields` are about.
    ///
    /// # Errors
    ///
    /// `TypeError` or `UnknownField`, naming it and the nearest valid one.
    pub(crate) fn require_field(
        self,
        py: Python<'_>,
        name: &str,
        fields: &[Argument<'_, '_>],
    ) -> PyResult<()> {
        if (name == WHERE && self.has_template) || (name == SYNC && self.changes) {
            return Ok(());
        }
        let Some(last) = fields.last() else { return Err(self.unknown(py, name)) };
        match entries::of_object(last)? {
            Some((entry, true)) if entry.has_field(name) => Ok(()),
            Some((entry, true)) => {
                entry.require_clear()?;
                Err(entry.no_field(py, name))
            }
            _ => Err(self.unknown(py, name)),
        }
    }

    #[cold]
    fn unknown(self, py: Python<'_>, name: &str) -> PyErr {
        let verb = self.verb;
        let mut names = self.names.to_vec();
        names.extend(self.changes.then_some(SYNC));
        names.extend(self.has_template.then_some(WHERE));
        if names.is_empty() {
            return PyTypeError::new_err(format!(
                "{verb}() takes no keyword arguments, so not {name:?} either"
            ));
        }
        let known = names.join(", ");
        let nearest = errors::nearest(py, name, &names)
            .map_or_else(String::new, |nearest| format!("; did you mean {nearest:?}?"));
        PyTypeError::new_err(format!(
            "{verb}() has no keyword argument {name:?}{nearest} (it takes: {known})"
        ))
    }
}

/// Refuses the keywords that `verb` refuses: neither among `names` nor fields of the class of entries that is the
/// template. For `tupelo.aio`, where Python sorts the keywords.
#[pyfunction]
#[pyo3(signature = (verb, names, template, fields, /))]
#[expect(clippy::needless_pass_by_value, reason = "a tuple of Python arrives as a vector")]
pub(crate) fn require_keywords(
    verb: &str,
    names: Vec<String>,
    template: &Bound<'_, PyTuple>,
    fields: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let keywords = Keywords { verb, names: &names, has_template: true, changes: false };
    let template: Vec<Argument<'_, '_>> = template.iter_borrowed().collect();
    keywords.require_clear(&template)?;
    for (name, _) in fields.iter() {
        keywords.require_field(fields.py(), name.cast::<PyString>()?.to_str()?, &template)?;
    }
    Ok(())
}
