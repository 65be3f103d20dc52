//! The note about a tuple that Python cannot make, and that stays in its space. It says how to remove the tuple, since
//! the tuple may be the first that every take meets.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyString;

use tupelo::{Alternative, Field, Pattern, Template, TupleView, Value};

use crate::errors::Failure;

/// Longest text or bytes by which such a tuple is told from others; of a longer field its kind has to do.
const FIELD_BYTES_MAX: usize = 40;

/// The same failure, with a note that says how to remove the tuple. Not for an exception that is no `Exception`, such
/// as Ctrl-C.
#[cold]
pub(crate) fn noted(py: Python<'_>, view: TupleView<'_>, why: Failure) -> Failure {
    if let Failure::Raised(exception) = &why
        && exception.is_instance_of::<PyException>(py)
        && let Some(template) = template(view)
        && let Ok(text) = PyString::new(py, &template.to_string()).repr()
    {
        let note = format!(
            "the tuple stays where it is; to remove it unread: space.discard(ts.parse({text}), limit=1)"
        );
        // The failure itself is what counts.
        let _ = exception.value(py).call_method1("add_note", (note,));
    }
    why
}

/// A template of the tuple by its short fields.
fn template(view: TupleView<'_>) -> Option<Template> {
    let patterns = view.fields().map(|field| match field {
        Field::Str(text) if text.len() > FIELD_BYTES_MAX => field.kind().into(),
        Field::Bytes(bytes) if bytes.len() > FIELD_BYTES_MAX => field.kind().into(),
        Field::Encoded(encoded) => encoded.kind.into(),
        short => Value::from_field(&short).map_or(short.kind().into(), Pattern::Actual),
    });
    let patterns: Vec<Pattern> = patterns.collect();
    let Some(class) = view.class() else { return Some(Template::new(patterns)) };
    let fields = class.fields().map(str::to_owned).zip(patterns);
    Some(Alternative::entry(class.name(), fields).ok()?.into())
}
