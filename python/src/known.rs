//! Classes of the standard library and of numpy, looked up without an import of unused modules.
//!
//! An object of such a class can only exist when its module is loaded. So a class whose module is not loaded matches
//! nothing, and `import tupelo` stays cheap.

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyIterator, PyString, PyTuple, PyType};

/// A class of a module that may not be loaded.
pub(crate) struct KnownClass {
    module: &'static str,
    name: &'static str,
    class: PyOnceLock<Py<PyType>>,
}

pub(crate) static DECIMAL: KnownClass = KnownClass::new("decimal", "Decimal");
pub(crate) static DATETIME: KnownClass = KnownClass::new("datetime", "datetime");
pub(crate) static UUID: KnownClass = KnownClass::new("uuid", "UUID");
pub(crate) static NDARRAY: KnownClass = KnownClass::new("numpy", "ndarray");
static NUMPY_GENERIC: KnownClass = KnownClass::new("numpy", "generic");
pub(crate) static MEMMAP: KnownClass = KnownClass::new("numpy", "memmap");
pub(crate) static MASKED_ARRAY: KnownClass = KnownClass::new("numpy.ma", "MaskedArray");
static ENUM: KnownClass = KnownClass::new("enum", "Enum");
static TYPING_ALIAS: KnownClass = KnownClass::new("typing", "_GenericAlias");
static TYPING_ANY: KnownClass = KnownClass::new("typing", "Any");
static UNION: KnownClass = KnownClass::new("types", "UnionType");

impl KnownClass {
    const fn new(module: &'static str, name: &'static str) -> Self {
        Self { module, name, class: PyOnceLock::new() }
    }

    /// The class, if its module is loaded.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> PyResult<Option<&Bound<'py, PyType>>> {
        if let Some(class) = self.class.get(py) {
            return Ok(Some(class.bind(py)));
        }
        // SAFETY: attached to the interpreter whose modules these are.
        let modules = unsafe { ffi::PyImport_GetModuleDict() };
        // SAFETY: an object that is borrowed from the interpreter, which keeps it, or null.
        let modules = unsafe { Bound::from_borrowed_ptr_or_err(py, modules)? };
        // Not `import`: a module that is only half loaded, or blocked by None, counts as absent.
        let Some(module) = modules.cast::<PyDict>()?.get_item(self.module)? else {
            return Ok(None);
        };
        match module.getattr(self.name).map(Bound::cast_into::<PyType>) {
            Ok(Ok(class)) => Ok(Some(self.class.get_or_init(py, || class.unbind()).bind(py))),
            _ => Ok(None),
        }
    }

    /// The class, its module imported if need be.
    pub(crate) fn import<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyType>> {
        let class = self.class.get_or_try_init(py, || {
            let class = py.import(self.module)?.getattr(self.name)?.cast_into::<PyType>();
            class.map(Bound::unbind).map_err(PyErr::from)
        })?;
        Ok(class.bind(py))
    }

    /// Whether `object` is of exactly this class.
    pub(crate) fn is_class_of(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.get(object.py())?.is_some_and(|class| object.get_type().is(class)))
    }

    /// Whether `class` is this one, and was looked up before; no look-up, so it cannot fail.
    pub(crate) fn was_met_as(&self, class: &Bound<'_, PyType>) -> bool {
        self.class.get(class.py()).is_some_and(|known| known.is(class))
    }

    /// Whether `object` is this class.
    pub(crate) fn is(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.get(object.py())?.is_some_and(|class| object.is(class)))
    }

    /// Whether `object` is of this class or a derived one.
    pub(crate) fn is_instance(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.get(object.py())?.map_or(Ok(false), |class| object.is_instance(class))
    }
}

/// `object` as a `T`, if that is exactly its class.
///
/// Not `cast_exact`: on failure it makes an error, with a reference to the class. For a field that is compared with one
/// type after the other, the error costs more than the comparison.
#[inline]
pub(crate) fn exactly<'a, 'py, T: PyTypeInfo>(
    object: &'a Bound<'py, PyAny>,
) -> Option<&'a Bound<'py, T>> {
    // SAFETY: the object was just found to be a `T`.
    object.is_exact_instance_of::<T>().then(|| unsafe { object.cast_unchecked::<T>() })
}

/// Whether `object` is a member of an `Enum`.
pub(crate) fn is_enum(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    ENUM.is_instance(object)
}

/// Whether `object` is a scalar of numpy, such as `numpy.int64(3)`.
pub(crate) fn is_numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    NUMPY_GENERIC.is_instance(object)
}

/// The types in a union such as `int | str` or `typing.Optional[int]`; `None` if it is no union.
pub(crate) fn union_members<'py>(
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let is_union = object.get_type().is(UNION.import(object.py())?)
        // Before Python 3.14 the forms of `typing` are objects of its own classes.
        || (TYPING_ALIAS.is_instance(object)? && is_typing_union(object)?);
    if is_union { Ok(Some(object.getattr("__args__")?.cast_into()?)) } else { Ok(None) }
}

fn is_typing_union(alias: &Bound<'_, PyAny>) -> PyResult<bool> {
    let union = alias.py().import("typing")?.getattr("Union")?;
    Ok(alias.getattr("__origin__")?.is(&union))
}

/// Whether `class` is `typing.Any`, which is a class since Python 3.11.
pub(crate) fn is_typing_any(class: &Bound<'_, PyType>) -> PyResult<bool> {
    TYPING_ANY.is(class)
}

/// 1970-01-01 in UTC, from which moments are counted.
pub(crate) fn epoch(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let epoch = EPOCH.get_or_try_init(py, || {
        let utc = py.import("datetime")?.getattr("timezone")?.getattr("utc")?;
        DATETIME.import(py)?.call1((1970, 1, 1, 0, 0, 0, 0, utc)).map(Bound::unbind)
    })?;
    Ok(epoch.bind(py))
}

/// The text in the argument `name`.
///
/// # Errors
///
/// `TypeError` if it is no str, `ValueError` if it has a lone surrogate, which is no text; both name the argument.
pub(crate) fn text<'a>(name: &str, object: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    let Ok(text) = object.cast::<PyString>() else {
        let class = class_name(object);
        return Err(PyTypeError::new_err(format!("{name} has the type {class}: give a str")));
    };
    text.to_str().map_err(|exception| {
        if !exception.is_instance_of::<PyUnicodeEncodeError>(object.py()) {
            return exception;
        }
        let shown = crate::values::shown(object);
        PyValueError::new_err(format!(
            "{name} is {shown}, which has a lone surrogate and is no text: give text without it"
        ))
    })
}

/// What `object`, the argument `name`, iterates over.
///
/// # Errors
///
/// `TypeError` naming the argument if it cannot be iterated over; `what` describes its elements.
pub(crate) fn items<'py>(
    name: &str,
    object: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<Bound<'py, PyIterator>> {
    object.try_iter().map_err(|why| {
        if !why.is_instance_of::<PyTypeError>(object.py()) {
            return why;
        }
        let class = class_name(object);
        PyTypeError::new_err(format!("{name} has the type {class}: give an iterable of {what}"))
    })
}

/// The name of the class of `object`. What `tupelo.aio` has by the same names says so.
pub(crate) fn class_name(object: &Bound<'_, PyAny>) -> String {
    let class = object.get_type();
    let name = class.name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let is_awaited =
        class.module().is_ok_and(|module| module.to_string().starts_with("tupelo.aio"));
    if is_awaited { format!("tupelo.aio.{name}") } else { name }
}
