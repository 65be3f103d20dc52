//! Why an object cannot be stored, and where in the arguments it stands.

use std::fmt::{self, Display, Write};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors;

/// The exception for pickling an object that is of use in this process alone: its name, and what to do `instead`.
#[cold]
pub(crate) fn stays_here(what: &str, instead: &str) -> PyErr {
    PyTypeError::new_err(format!("{what} stays with the process that made it: {instead}"))
}

/// An object that was refused, or an exception that its own code raised.
pub(crate) enum Refusal {
    /// The object cannot be stored.
    Unstorable {
        /// The steps to it from its field, the last one first: `[3]`, `['key']`.
        path: Vec<String>,
        /// Its description, as in "field 2 is …".
        what: String,
        /// What to put instead.
        hint: Option<String>,
    },
    /// Python code raised.
    Raised(PyErr),
}

impl From<PyErr> for Refusal {
    fn from(exception: PyErr) -> Self {
        Self::Raised(exception)
    }
}

impl Refusal {
    /// An object that cannot be stored: it is `what`, and `hint` says what to put instead.
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unstorable { path: Vec::new(), what: what.into(), hint: Some(hint.into()) }
    }

    /// The same, for a value that the encoding refuses: its message says what to do.
    pub(crate) fn from_message(message: impl Display) -> Self {
        let what = format!("refused: {message}");
        Self::Unstorable { path: Vec::new(), what, hint: None }
    }

    /// The same, seen from the container in which the object stands at `step`.
    pub(crate) fn within(mut self, step: impl FnOnce() -> String) -> Self {
        if let Self::Unstorable { path, .. } = &mut self {
            path.push(step());
        }
        self
    }

    /// The exception to raise for the field at `place`, such as "field 2".
    pub(crate) fn into_exception(self, py: Python<'_>, place: fmt::Arguments<'_>) -> PyErr {
        /// Steps of a path that are shown; a deeper one names its beginning.
        const STEPS_MAX: usize = 8;
        match self {
            Self::Raised(exception) => exception,
            Self::Unstorable { path, what, hint } => {
                let mut place = place.to_string();
                for step in path.iter().rev().take(STEPS_MAX) {
                    place.push_str(step);
                }
                if path.len() > STEPS_MAX {
                    // Writing to a string does not fail.
                    let _ = write!(place, "… ({} levels)", path.len());
                }
                errors::not_encodable(py, &format!("{place} is {what}"), hint.as_deref())
            }
        }
    }
}
