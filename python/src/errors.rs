//! Failures of a verb, and the exceptions that they become.
//!
//! The classes are defined in `tupelo/errors.py`, which is imported when the first one is needed.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use tupelo::Error;

use crate::surroundings;

/// Why a verb did not return: the space refused, or Python code raised.
pub(crate) enum Failure {
    /// The space refused.
    Space(Error),
    /// An exception of Python: a wrong argument, or `KeyboardInterrupt` during a wait.
    Raised(PyErr),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Space(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl Failure {
    /// The exception to raise, about the space at `url`.
    #[cold]
    pub(crate) fn into_exception(self, py: Python<'_>, url: &str) -> PyErr {
        match self {
            Self::Raised(exception) => exception,
            Self::Space(error) => from_space(py, &error, url),
        }
    }
}

/// The exception for an error of the space at `url`.
#[cold]
pub(crate) fn from_space(py: Python<'_>, error: &Error, url: &str) -> PyErr {
    if matches!(error, Error::Interrupted { .. })
        && let Some(exception) = surroundings::interruption()
    {
        return exception;
    }
    let Some(class) = class_name(error) else {
        return PyValueError::new_err(error.to_string());
    };
    // The line to type, with what stands for the space in it.
    let hint =
        error.hint().map(|hint| hint.replace("`tupelo rm URL`", &format!("`tupelo rm {url}`")));
    let exception = make(py, class, &error.message(), hint.as_deref(), Some(url));
    let attribute = match error {
        Error::SpaceFull { may_pass: false, .. } => Some(("may_pass", false)),
        Error::ConnectionLost { may_have_happened: true, .. } => Some(("may_have_happened", true)),
        _ => None,
    };
    if let Some((name, value)) = attribute
        && let Err(why) = exception.value(py).setattr(name, value)
    {
        return why;
    }
    exception
}

/// The exception class for an error; `None` for a wrong argument, which is a plain `ValueError`.
fn class_name(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::Timeout { .. } | Error::OutOfTime => "Timeout",
        Error::ConnectionLost { .. } => "ConnectionLost",
        Error::Unsupported { .. } => "Unsupported",
        Error::Protocol { .. } => "ProtocolError",
        Error::SpaceFull { .. } => "SpaceFull",
        Error::ClaimLost { .. } => "ClaimLost",
        Error::LeaseExpired { .. } => "LeaseExpired",
        Error::Aborted { .. } => "Aborted",
        Error::SpaceNotFound { .. } => "SpaceNotFound",
        Error::SpaceClosed { .. } => "SpaceClosed",
        Error::AccessDenied { .. } => "AccessDenied",
        Error::SpaceCorrupted { .. } => "SpaceCorrupted",
        Error::SpaceRemoved { .. } => "SpaceRemoved",
        Error::Stalled { .. } => "Stalled",
        Error::LimitExceeded { .. } => "LimitExceeded",
        Error::TransactionTooBig { .. } => "TransactionTooBig",
        Error::VersionMismatch { .. } => "VersionMismatch",
        Error::Storage { .. } => "StorageError",
        Error::DurabilityUnknown { .. } => "DurabilityUnknown",
        Error::NotEncodable { .. } => "NotEncodable",
        Error::Template { .. } => "TemplateError",
        Error::Misuse { .. } => return None,
        _ => "TupeloError",
    })
}

/// An instance of the class `class` of `tupelo.errors`, which knows its code.
#[cold]
pub(crate) fn make(
    py: Python<'_>,
    class: &str,
    message: &str,
    hint: Option<&str>,
    url: Option<&str>,
) -> PyErr {
    let made = py
        .import("tupelo.errors")
        .and_then(|errors| errors.getattr("make"))
        .and_then(|make| make.call1((class, message, hint, url)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(why) => why,
    }
}

/// A value that cannot be stored: `NotEncodable`, with the hint.
#[cold]
pub(crate) fn not_encodable(py: Python<'_>, message: &str, hint: Option<&str>) -> PyErr {
    make(py, "NotEncodable", message, hint, None)
}

/// Adds `problem`, which came second, to `exception`, which goes on.
#[cold]
pub(crate) fn add_note(py: Python<'_>, exception: &PyErr, problem: &PyErr) -> PyResult<()> {
    exception.value(py).call_method1("add_note", (problem.value(py).str()?,))?;
    Ok(())
}

/// The name among `names` that is most like `name`, if one is like it at all.
#[cold]
pub(crate) fn nearest(py: Python<'_>, name: &str, names: &[&str]) -> Option<String> {
    let matches = py.import("difflib").ok()?.getattr("get_close_matches").ok()?;
    let nearest = matches.call1((name, names, 1)).ok()?.get_item(0).ok()?;
    Some(nearest.cast::<PyString>().ok()?.to_string_lossy().into_owned())
}
