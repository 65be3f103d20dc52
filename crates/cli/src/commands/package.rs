//! `tupelo demo`, `bench`, `worker`, `record`, `check`: programs of Python packages, run by the Python
//! beside this program, in its place: signals are theirs, and so is the exit code.

use std::convert::Infallible;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tupelo_shm::signals::keep_ends_of_children;

use crate::arguments::{Common, Passed};
use crate::failure::Failure;

/// A program in Python: its command here, its module, its package, and the way to install that.
pub(crate) struct Packaged {
    verb: &'static str,
    module: &'static str,
    package: &'static str,
    install: &'static str,
}

impl Packaged {
    pub(crate) const DEMO: Self = Self::of_tupelo("demo", "tupelo.demo");
    pub(crate) const WORKER: Self = Self::of_tupelo("worker", "tupelo.worker");
    pub(crate) const RECORD: Self = Self::of_tupelo("record", "tupelo.record");
    pub(crate) const CHECK: Self = Self::of_tupelo("check", "tupelo.check");
    /// The evaluation suite is a distribution of its own, which needs the package `tupelo`.
    pub(crate) const BENCH: Self = Self {
        verb: "bench",
        module: "tupelo_bench",
        package: "tupelo_bench",
        install: "`pip install . ./bench`",
    };

    const fn of_tupelo(verb: &'static str, module: &'static str) -> Self {
        Self { verb, module, package: "tupelo", install: "`pip install .`" }
    }
}

/// `common` are the options of every command, which stand before the words that are passed on. The name `program` is
/// how this program was called: an environment's Python lies beside its `tupelo`.
///
/// # Errors
///
/// It cannot be run. If it can, this does not return.
pub(crate) fn run(
    packaged: &Packaged,
    common: &Common,
    options: Passed,
    program: Option<&Path>,
) -> Result<Infallible, Failure> {
    let Packaged { verb, module, package, install } = packaged;
    // Here whether a Python has the package is known by how it ends, and the program waits for its own children.
    keep_ends_of_children();
    let pythons = pythons(program);
    let Some(python) = pythons.iter().find(|python| has_module(python, module)) else {
        let names: Vec<_> = pythons.iter().map(|python| python.display().to_string()).collect();
        return Err(Failure::Other(format!(
            "`tupelo {verb}` is a Python program, and {} has no package {package}\n  \
             Install it with {install} in a checkout of Tupelo \
             (`make build` does it, into .venv).",
            names.join(", or "),
        )));
    };
    let mut command = Command::new(python);
    command.args(["-m", module]).args(given(common)).args(options.words);
    let error = command.exec();
    Err(Failure::Other(format!("cannot run {}: {error}", python.display())))
}

/// The options of every command, as they were given: the program has them, or refuses them.
fn given(common: &Common) -> Vec<String> {
    let url = common.url.iter().map(|url| format!("--url={url}"));
    let flags =
        [(common.json, "--json"), (common.quiet, "--quiet"), (common.no_color, "--no-color")];
    let flags = flags.into_iter().filter(|(is_given, _)| *is_given);
    url.chain(flags.map(|(_, flag)| flag.to_owned())).collect()
}

/// Whether this Python can run the program.
fn has_module(python: &Path, module: &str) -> bool {
    let status = Command::new(python)
        .args(["-c", &format!("import {module}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// The Pythons that may have the package, the likeliest first. The first is beside this program as it was called. If
/// that is a link, the second is beside the link's target. Tools such as `pipx` and `uv tool` link to a program in an
/// environment of its own, from a folder that may have another Python. There is always one.
fn pythons(program: Option<&Path>) -> Vec<PathBuf> {
    // `tupelo` found on the path comes without a folder: then the `python3` on the path it is.
    let program = program.filter(|program| program.components().count() > 1);
    let linked = program.and_then(|program| fs::canonicalize(program).ok());
    let beside = [program, linked.as_deref()].into_iter().flatten();
    // Not resolved itself: the Python of an environment is a link, and knows the environment by its own place.
    let beside = beside.filter_map(|program| Some(program.parent()?.join("python3")));
    let mut pythons: Vec<PathBuf> = beside.filter(|python| python.exists()).collect();
    pythons.dedup();
    if pythons.is_empty() {
        pythons.push(PathBuf::from("python3"));
    }
    pythons
}
