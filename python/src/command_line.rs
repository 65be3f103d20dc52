//! The command line, for the console script of the wheel.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Run the command line `words`, the program's own name first, and return its exit code.
#[pyfunction]
pub(crate) fn command_line(py: Python<'_>, words: Vec<OsString>) -> i32 {
    py.detach(|| tupelo_cli::main(words))
}
