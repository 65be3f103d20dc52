//! Fields that an entry has in the space, and the class of this program has not: a newer version of it put them (M7).
//!
//! The instance carries them in an attribute, so that they are still there when it is put again. One of a class without
//! a place for attributes (a `NamedTuple`, a `Struct` of msgspec, a class with slots) carries nothing.

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use tupelo::Class;

/// Has `instance` carry these fields, if it can.
pub(crate) fn keep(
    instance: &Bound<'_, PyAny>,
    fields: &[(&str, Bound<'_, PyAny>)],
) -> PyResult<()> {
    let py = instance.py();
    let carried = PyDict::new(py);
    for (name, value) in fields {
        carried.set_item(name, value)?;
    }
    // By way of `object`, since the class may be frozen.
    let set = py.get_type::<PyAny>().getattr(intern!(py, "__setattr__"))?;
    match set.call1((instance, intern!(py, "__tupelo_carried__"), carried)) {
        Err(why)
            if !why.is_instance_of::<PyAttributeError>(py)
                && !why.is_instance_of::<PyTypeError>(py) =>
        {
            Err(why)
        }
        _ => Ok(()),
    }
}

/// What `instance` carries, if anything.
pub(crate) fn of<'py>(instance: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let carried = instance.getattr_opt(intern!(instance.py(), "__tupelo_carried__"))?;
    Ok(carried.and_then(|carried| carried.cast_into::<PyDict>().ok()))
}

/// The class with the fields of `names` and the carried ones, and the values of all in their order.
///
/// # Errors
///
/// `TypeError` for names beyond the limits.
pub(crate) fn together<'py>(
    names: &'static Class,
    values: Vec<Bound<'py, PyAny>>,
    others: &Bound<'py, PyDict>,
) -> PyResult<(&'static Class, Vec<Bound<'py, PyAny>>)> {
    let mut fields: Vec<(String, Bound<'py, PyAny>)> =
        names.fields().map(str::to_owned).zip(values).collect();
    for (name, value) in others.iter() {
        let name: String = name.extract()?;
        // The class may have been changed since.
        if names.index_of(&name).is_none() {
            fields.push((name, value));
        }
    }
    let class = Class::new(names.name(), names.bases(), fields.iter().map(|(name, _)| name));
    let class = class.map_err(|why| PyTypeError::new_err(why.to_string()))?;
    fields.sort_by_key(|(name, _)| class.index_of(name));
    Ok((class, fields.into_iter().map(|(_, value)| value).collect()))
}
