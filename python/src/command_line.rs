//! The command line, for the console script of the wheel.

use std::ffi::OsString;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Run the command line `words`, the program's own name first, and return its exit code.
#[pyfunction]
pub(crate) fn command_line(py: Python<'_>, words: Vec<OsString>) -> i32 {
    py.detach(|| tupelo_cli::main(words))
}

/// The time that was typed, as every command of the command line reads it, in seconds.
#[pyfunction]
#[pyo3(signature = (text, /))]
pub(crate) fn typed_s(text: &str) -> PyResult<f64> {
    let time = tupelo_cli::duration(text).map_err(PyValueError::new_err)?;
    Ok(time.as_secs_f64())
}
