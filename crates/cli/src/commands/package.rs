//! `tupelo demo`, `bench`, `record`, `check`: programs of the Python package, run by the Python beside
//! this program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::arguments::Passed;
use crate::failure::Failure;

/// `module` is part of the package; `program` is how this program was called: an environment's Python
/// lies beside its `tupelo`.
pub(crate) fn run(module: &str, options: Passed, program: Option<&Path>) -> Result<(), Failure> {
    let python = python_beside(program).unwrap_or_else(|| PathBuf::from("python3"));
    let installed = Command::new(&python)
        .args(["-c", &format!("import tupelo.{module}")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !installed.is_ok_and(|status| status.success()) {
        return Err(Failure::Other(format!(
            "`tupelo {module}` is a Python program, and {} has no package tupelo\n  \
             Install it with `pip install tupelo`; in a checkout, `make build` does it.",
            python.display()
        )));
    }
    let module = format!("tupelo.{module}");
    let status = Command::new(&python).args(["-m", &module]).args(options.words).status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => Ok(()),
        // `record` passes on the code of the program that it ran.
        Ok(Some(code)) => Err(Failure::Told(code)),
        Ok(None) => Err(Failure::Told(1)),
        Err(error) => Err(Failure::Other(format!("cannot run {}: {error}", python.display()))),
    }
}

fn python_beside(program: Option<&Path>) -> Option<PathBuf> {
    let python = program?.parent()?.join("python3");
    // `tupelo` found on the path comes without a folder: then the `python3` on the path it is.
    (python.components().count() > 1 && python.exists()).then_some(python)
}
