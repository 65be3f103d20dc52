//! Values that travel with a task or a request, and are no fields: they are sent as objects.
//!
//! A function gets the very values that it was called with. A tuple refuses some values (a member of an enum, a
//! `datetime` without a zone). Others would come back as something else (an instance of a class derived from `int`).
//! Both are pickled, if the space allows that. Parts of lists, tuples, dicts and entries are looked at one by one.

use pyo3::prelude::*;

/// The object that is put in the place of such a value.
#[pyclass(frozen, name = "Sent", module = "tupelo._native")]
pub(crate) struct Sent {
    value: Py<PyAny>,
}

impl Sent {
    /// The value itself.
    pub(crate) fn value<'a, 'py>(&'a self, py: Python<'py>) -> &'a Bound<'py, PyAny> {
        self.value.bind(py)
    }
}

#[pymethods]
impl Sent {
    #[new]
    const fn new(value: Py<PyAny>) -> Self {
        Self { value }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.value.bind(py).repr()?.to_string())
    }
}
