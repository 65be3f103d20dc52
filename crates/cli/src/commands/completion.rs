//! `tupelo completion SHELL`.

use clap::CommandFactory;

use crate::arguments::{Arguments, Completion};
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(options: &Completion, output: &mut Output) -> Result<(), Failure> {
    // Into memory first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "tupelo", &mut script);
    output.text(&String::from_utf8_lossy(&script))
}
