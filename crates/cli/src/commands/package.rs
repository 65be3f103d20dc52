//! `tupelo demo`, `bench`, `worker`, `record`, `check`: programs of the Python package, run by the Python
//! beside this program, in its place: signals are theirs, and so is the exit code.

use std::convert::Infallible;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::arguments::Passed;
use crate::failure::Failure;

/// `module` is part of the package; `url` is the option of every command; `program` is how this program was
/// called: an environment's Python lies beside its `tupelo`.
///
/// # Errors
///
/// It can not be run. If it can, this does not return.
pub(crate) fn run(
    module: &str,
    url: Option<String>,
    options: Passed,
    program: Option<&Path>,
) -> Result<Infallible, Failure> {
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
    let mut command = Command::new(&python);
    command.args(["-m", &module]);
    if let Some(url) = url {
        command.args(["--url", &url]);
    }
    let error = command.args(options.words).exec();
    Err(Failure::Other(format!("cannot run {}: {error}", python.display())))
}

fn python_beside(program: Option<&Path>) -> Option<PathBuf> {
    let python = program?.parent()?.join("python3");
    // `tupelo` found on the path comes without a folder: then the `python3` on the path it is.
    (python.components().count() > 1 && python.exists()).then_some(python)
}
