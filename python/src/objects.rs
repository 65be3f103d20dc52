//! Objects of no kind that other languages share: pickled, tagged with the name of their class.
//!
//! Reading a pickle runs code that its writer chose. The operating system guards the memory of `mem://` and `shm://`.
//! So there it is no more than a program of the same user can do anyway, and it is the default. `objects="strict"`
//! refuses both directions (docs/semantics.md, V1).

use pyo3::exceptions::{PyAttributeError, PyImportError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use tupelo::{Opaque, Value};

use crate::known;
use crate::refusal::Refusal;

/// The codec with which Python's objects are stored.
const PICKLE: &str = "pickle";
/// The protocol, understood by every Python that this package runs on.
const PROTOCOL: u8 = 5;

/// What becomes of an object of no other kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Objects {
    /// It is stored as a pickle.
    Pickled,
    /// It is refused: the space was opened with `objects="strict"`.
    Refused,
    /// It is refused because it stands in a template, where a pickle has nothing to compare.
    Compared,
}

/// The value for `object`, which is of no other kind.
pub(crate) fn value(object: &Bound<'_, PyAny>, objects: Objects) -> Result<Value, Refusal> {
    let class = known::class_name(object);
    match objects {
        Objects::Pickled => pickled(object, &class),
        Objects::Refused => Err(Refusal::new(
            format!("a {class}, which this space refuses (objects=\"strict\")"),
            "put its parts as str, int, float, bytes, list or dict",
        )),
        Objects::Compared => Err(Refusal::new(
            format!("a {class}, which is stored as a pickle and so can not be compared"),
            "write F.opaque, which matches any such object, or ..., which matches anything",
        )),
    }
}

fn pickled(object: &Bound<'_, PyAny>, class: &str) -> Result<Value, Refusal> {
    let py = object.py();
    let bytes = match py.import("pickle")?.getattr("dumps")?.call1((object, PROTOCOL)) {
        Ok(bytes) => bytes,
        Err(why) if why.is_instance_of::<pyo3::exceptions::PyException>(py) => {
            let why = why.value(py);
            return Err(Refusal::new(
                format!("a {class}, which can not be pickled: {why}"),
                "put its parts as str, int, float, bytes, list or dict",
            ));
        }
        Err(interrupt) => return Err(interrupt.into()),
    };
    let bytes = bytes.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes().to_vec();
    Ok(Value::Opaque(Opaque { codec: PICKLE.to_owned(), type_name: type_name(object)?, bytes }))
}

/// The full name of the class of `object`, as in `fractions.Fraction`.
fn type_name(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let class = object.get_type();
    let module = class.module()?;
    let name = class.qualname()?;
    Ok(format!("{module}.{name}"))
}

/// The object for a stored one.
///
/// # Errors
///
/// Its description (as in "field 2 is …") if it cannot be made here.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    stored: &Opaque,
    objects: Objects,
) -> Result<Bound<'py, PyAny>, Refusal> {
    let class = &stored.type_name;
    if stored.codec != PICKLE {
        return Err(Refusal::new(
            format!("a {class} encoded by {:?}, which Python can not read", stored.codec),
            "read it in the language that put it",
        ));
    }
    if objects != Objects::Pickled {
        return Err(Refusal::new(
            format!("a pickled {class}, which this connection refuses (objects=\"strict\")"),
            "if you trust all who put into this space, connect with objects=\"pickle\"",
        ));
    }
    let bytes = PyBytes::new(py, &stored.bytes);
    py.import("pickle")?.getattr("loads")?.call1((bytes,)).map_err(|why| {
        if !why.is_instance_of::<pyo3::exceptions::PyException>(py) {
            return Refusal::Raised(why);
        }
        let name = why
            .get_type(py)
            .name()
            .map_or_else(|_| String::new(), |name: Bound<'_, PyString>| name.to_string());
        // A missing module, or one without the class.
        let missing =
            why.is_instance_of::<PyImportError>(py) || why.is_instance_of::<PyAttributeError>(py);
        Refusal::new(
            format!("a pickled {class}, which can not be loaded here: {name}: {}", why.value(py)),
            if missing {
                "make its module importable in this process"
            } else {
                "mend what the class does when it is unpickled, or put its parts"
            },
        )
    })
}
