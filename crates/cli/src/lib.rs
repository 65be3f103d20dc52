//! The command line of Tupelo, as a library with a `main`.
//!
//! The binary `tupelo` and the wheel's console script both call [`main`]. A command is a file in `commands`. The
//! modules around them:
//!
//! - `arguments`: the syntax of the command line; `negative`: words that are negative numbers.
//! - `words`: shell words to fields and templates; `json`: values to JSON and back.
//! - `configuration`: what a server is told by a file and its environment.
//! - `output`: the output and its forms; `failure`: errors, and their exit codes.
//!
//! Exit codes: 0 done, 1 error, 2 wrong usage, 3 nothing matched, 4 denied, 5 there is no such
//! space.
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod configuration;
#[cfg(test)]
mod documented;
mod failure;
mod format;
mod negative;
mod notify;
mod output;
mod terminal;
mod words;

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{ColorChoice, CommandFactory, FromArgMatches};

pub use arguments::duration;
use arguments::{Arguments, Command, Common, Passed};
use commands::package::Packaged;
use failure::Failure;
use output::Output;

/// Runs the command line `words`, the program's own name first, and returns its exit code.
///
/// Writes to standard output and standard error, reads standard input, waits as long as the command waits. It ends no
/// process and changes no signal handler. The caller keeps an interrupt at its default, so that Ctrl-C ends a waiting
/// command. There are three exceptions:
///
/// - While `top` has the terminal, a signal that ends the process gives the terminal back first.
/// - `serve` ends by `SIGTERM` and `SIGINT` itself.
/// - If `SIGCHLD` is ignored, and the command needs the exit status of a child, `SIGCHLD` is at its default from then
///   on.
pub fn main(words: impl IntoIterator<Item = OsString>) -> i32 {
    let words: Vec<OsString> = words.into_iter().collect();
    let arguments = match parse(&words) {
        Ok(arguments) => arguments,
        Err(answer) => {
            // Help and version come this way too; a closed pipe is no reason to complain.
            let _ = answer.print();
            return answer.exit_code();
        }
    };
    let mut output = Output::new(&arguments.common);
    let result = run(arguments, words.first().map(Path::new), &mut output);
    match result.and_then(|()| output.flush()) {
        Ok(()) => 0,
        Err(failure) => {
            output.failure(&failure);
            failure.exit_code()
        }
    }
}

/// The parsed command line. An unknown option may be a negative number.
fn parse(words: &[OsString]) -> Result<Arguments, clap::Error> {
    let colorless = words.iter().any(|word| word == "--no-color");
    let choice = if colorless { ColorChoice::Never } else { ColorChoice::Auto };
    let read = |words: &[OsString]| {
        let matches = Arguments::command().color(choice).try_get_matches_from(words)?;
        Arguments::from_arg_matches(&matches)
    };
    read(words).or_else(|refused| match refused.kind() {
        ErrorKind::UnknownArgument => {
            read(&negative::marked(words)).map_err(negative::without_marks)
        }
        _ => Err(refused),
    })
}

fn package(
    packaged: &Packaged,
    common: &Common,
    options: Passed,
    program: Option<&Path>,
) -> Result<(), Failure> {
    match commands::package::run(packaged, common, options, program)? {}
}

fn run(arguments: Arguments, program: Option<&Path>, output: &mut Output) -> Result<(), Failure> {
    let Arguments { common, command } = arguments;
    let url = common.url.clone();
    match command {
        Command::Put(options) => commands::put::run(options, url, output),
        Command::Read(options) => commands::find::run(options, url, output),
        Command::Take(options) => commands::take::run(options, url, output),
        Command::Ls(options) => commands::ls::run(options, url, output),
        Command::Stat(options) => commands::stat::run(options, url, output),
        Command::Watch(options) => commands::watch::run(options, url, output),
        Command::Top(options) => commands::top::run(options, url, output),
        Command::Dead(options) => commands::dead::list(options, url, output),
        Command::Requeue(options) => commands::dead::requeue(options, url, output),
        Command::Backup(options) => commands::backup::run(options, url, output),
        Command::Dump(options) => commands::dump::run(options, url, output),
        Command::Load(options) => commands::load::run(options, url, output),
        Command::Compact(options) => commands::compact::run(options, url, output),
        Command::Serve(options) => commands::serve::run(options, output),
        Command::Token(options) => commands::token::run(options, output),
        Command::Adopt(options) => commands::adopt::run(options, url, output),
        Command::Rm(options) => commands::rm::run(options, url, output),
        Command::Doctor(options) => commands::doctor::run(options, url, output),
        Command::Demo(options) => package(&Packaged::DEMO, &common, options, program),
        Command::Bench(options) => package(&Packaged::BENCH, &common, options, program),
        Command::Worker(options) => package(&Packaged::WORKER, &common, options, program),
        Command::Record(options) => package(&Packaged::RECORD, &common, options, program),
        Command::Check(options) => package(&Packaged::CHECK, &common, options, program),
        Command::Explain(options) => commands::explain::run(options, url, output),
        Command::Completion(options) => commands::completion::run(&options, output),
    }
}
