//! What can be typed: the commands, their options and their help, examples first.
#![allow(rustdoc::broken_intra_doc_links, reason = "what documents an option is its help")]

mod copies;
mod doctor;
mod serve;
mod token;

use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{StringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use tupelo::{EventKind, FieldName, Order};

use crate::negative;
pub(crate) use copies::{Adopt, Backup, Compact, Dump, Load};
pub(crate) use doctor::Doctor;
pub(crate) use serve::{Serve, endpoint, engine, space};
pub(crate) use token::{Token, TokenAdd, TokenCommand};

/// Examples come before usage and options: that is what help is opened for.
const HELP: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}\n";

#[derive(Parser)]
#[command(
    name = "tupelo",
    version,
    about = "A shared bag of tuples for programs that work together.",
    before_help = "\
Examples:
  tupelo put shm://jobs job 7 cat.png       put the tuple (\"job\", 7, \"cat.png\")
  tupelo take shm://jobs job :int _         take the oldest job, or wait for one
  tupelo ls                                 the spaces of this user
  tupelo watch shm://jobs job ...           print the events of jobs as they happen
  tupelo top shm://jobs                     watch a space live
  tupelo serve --socket tupelo.sock         serve spaces to other programs
  tupelo doctor                             find out why a space is slow or stuck
  tupelo demo password                      a million tuples, four workers",
    help_template = HELP,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// The space, instead of the first word. By default `$TUPELO_URL`, but ls, top and doctor then look at all
    /// spaces
    #[arg(long, short, global = true, value_name = "URL", value_parser = word())]
    pub(crate) url: Option<String>,
    /// Print one JSON object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no results, only set the exit code
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Print without colors; `$NO_COLOR` does the same
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Put(Put),
    #[command(about = "Copy a tuple that matches; wait until there is one.")]
    Read(Find),
    #[command(about = "Remove and print a tuple that matches; wait until there is one.")]
    Take(Take),
    Ls(Ls),
    Stat(Stat),
    Watch(Watch),
    Top(Top),
    Dead(Dead),
    Requeue(Requeue),
    Rm(Rm),
    Adopt(Adopt),
    Backup(Backup),
    Dump(Dump),
    Load(Load),
    Compact(Compact),
    Serve(Serve),
    Token(Token),
    Doctor(Doctor),
    #[command(
        about = "Show a space at work, with real processes and checked results.",
        before_help = "\
Examples:
  tupelo demo password                   a million passwords, four workers, a hundred searches
  tupelo demo password --kill 3          three workers are killed while they search
  tupelo demo sort numbers.txt           sort a file of your own
  tupelo demo --help                     all of them, with their options",
        help_template = HELP,
        disable_help_flag = true
    )]
    Demo(Passed),
    #[command(
        about = "Measure this machine's spaces beside other systems.",
        before_help = "\
Examples:
  tupelo bench mem --quick               a minute or two; to see what there is
  tupelo bench peers                     which other systems are installed
  tupelo bench --help                    all experiments and options",
        help_template = HELP,
        disable_help_flag = true
    )]
    Bench(Passed),
    #[command(
        about = "Run worker processes that compute a Python function for other programs.",
        before_help = "\
Examples:
  tupelo worker film:render              the function render of film.py, as its @worker says
  tupelo worker film:render -n 4         in four processes
  tupelo worker --help                   all options",
        help_template = HELP,
        disable_help_flag = true
    )]
    Worker(Passed),
    #[command(
        about = "Run a Python program and record its use of spaces.",
        before_help = "\
Examples:
  tupelo record --out run.jsonl -- python3 program.py
  tupelo check run.jsonl",
        help_template = HELP,
        disable_help_flag = true
    )]
    Record(Passed),
    #[command(
        about = "List the tuples that a recorded run never took, and the templates that never matched.",
        before_help = "Examples:\n  tupelo check run.jsonl\n  tupelo check run.jsonl --json",
        help_template = HELP,
        disable_help_flag = true
    )]
    Check(Passed),
    Explain(Explain),
    Completion(Completion),
}

const WORDS: &str = "\
Words: 7 is an int, 3.5 a float, true a bool, null; anything else is text, and s:7 makes any word text.
In a template also: _ is anything, :int a type, :int|:str two, 3..9 a range, '> 3', glob:img/*, and
... at the end any further fields. Words that begin with a dash and are no number come after --.";

#[derive(Args)]
#[command(
    about = "Put a tuple into a space. Create the space if it does not exist.",
    before_help = "\
Examples:
  tupelo put shm://jobs job 7 cat.png                the tuple (\"job\", 7, \"cat.png\")
  tupelo put shm://jobs s:7 -3.5 true null           text, float, bool and null
  cat rows.jsonl | tupelo put shm://jobs -           one tuple per line, as [\"job\", 7, \"cat.png\"]
  tupelo put shm://hosts host node-a --lease 1min    disappears by itself
  tupelo put shm://jobs job 7 cat.png --after 30s    appears later",
    after_help = WORDS,
    help_template = HELP
)]
pub(crate) struct Put {
    /// The space, then a word per field; `-` reads JSON lines from standard input
    #[arg(value_names = ["URL", "FIELD"], allow_negative_numbers = true, value_parser = word())]
    pub(crate) words: Vec<String>,
    /// How long the tuple stays, as in 5s, 200ms, 2min; by default for ever
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = positive)]
    pub(crate) lease: Option<Duration>,
    /// The delay until the tuple is visible; its lease counts from then
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) after: Option<Duration>,
    /// Wait at most this long for room if the space is full; by default as the space was created
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

/// Which tuples a command is about.
#[derive(Args)]
pub(crate) struct Sought {
    /// The space, then a pattern per field
    #[arg(value_names = ["URL", "PATTERN"], allow_negative_numbers = true, value_parser = word())]
    pub(crate) words: Vec<String>,
    /// Only tuples that meet this condition, in CEL, as in 'f[1] % 2 == 0', or 'priority > 3' for an entry
    #[arg(long = "where", value_name = "CONDITION", value_parser = word())]
    pub(crate) condition: Option<String>,
}

/// `take`, which can also claim.
#[derive(Args)]
pub(crate) struct Take {
    #[command(flatten)]
    pub(crate) find: Find,
    /// Run this shell command with the tuple as JSON on its standard input; the tuple goes back unless
    /// the command ends with 0
    #[arg(long, value_name = "COMMAND", conflicts_with = "all", value_parser = word())]
    pub(crate) exec: Option<String>,
    /// With --exec, the tuple goes back if this program is stopped for so long [default: 30s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = positive, requires = "exec")]
    pub(crate) ttl: Option<Duration>,
    /// With --exec, after so many failures the tuple goes to the dead letters
    #[arg(long, value_name = "COUNT", value_parser = at_least_one::<u32>, requires = "exec")]
    pub(crate) max_attempts: Option<u32>,
}

#[derive(Args)]
#[command(
    before_help = "\
Examples:
  tupelo take shm://jobs job :int _              the oldest job; waits if there is none
  tupelo read shm://jobs job 7 _ --timeout 2s    waits two seconds at most (exit code 3)
  tupelo take shm://jobs job :int _ --try        does not wait (exit code 3 if there is none)
  tupelo take shm://jobs job :int _ --exec ./render.sh
                                                 removed when the command has succeeded
  tupelo read shm://jobs job ... --all --json    all matches, as JSON lines
  tupelo take shm://jobs job :int _ --where 'f[1] % 2 == 0'
                                                 one with a condition over the whole tuple",
    after_help = WORDS,
    help_template = HELP
)]
pub(crate) struct Find {
    #[command(flatten)]
    pub(crate) sought: Sought,
    /// Do not wait; exit with 3 if nothing matches
    #[arg(long = "try", conflicts_with_all = ["all", "timeout"])]
    pub(crate) now: bool,
    /// All matches of this moment, perhaps none; do not wait
    #[arg(long, conflicts_with_all = ["timeout", "order"])]
    pub(crate) all: bool,
    /// With --all, at most this many
    #[arg(long, value_name = "COUNT", requires = "all", value_parser = number::<usize>)]
    pub(crate) limit: Option<usize>,
    /// Wait at most this long, as in 5s, 200ms, 2min; exit with 3 after it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Which of several matches: fifo (the oldest), lifo, random, any, max:FIELD, min:FIELD (its number from 0, or the
    /// name of a field of entries)
    #[arg(long, value_name = "ORDER", value_parser = order)]
    pub(crate) order: Option<Order>,
}

#[derive(Args)]
#[command(
    about = "Print the events of matching tuples as they happen.",
    before_help = "\
Examples:
  tupelo watch shm://jobs job :int _                   a line for each job that is put
  tupelo watch shm://jobs ... --on put,take,expire     every put, take and expiry
  tupelo watch shm://jobs job ... --json               one JSON object per event
  tupelo watch shm://jobs done ... --count 10          ends after ten",
    after_help = WORDS,
    help_template = HELP
)]
pub(crate) struct Watch {
    #[command(flatten)]
    pub(crate) sought: Sought,
    /// Events to print: put, take (for good), expire (gone, no caller has it), return (back from a claim)
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', value_parser = event, default_value = "put")]
    pub(crate) on: Vec<EventKind>,
    /// End after this many events
    #[arg(long, value_name = "COUNT", value_parser = at_least_one::<u64>)]
    pub(crate) count: Option<u64>,
    /// End after this long, as in 5s, 200ms, 2min; exit with 3
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// How many events may wait until the oldest are dropped
    #[arg(long, value_name = "COUNT", default_value_t = 1024, value_parser = at_least_one::<usize>)]
    pub(crate) buffer: usize,
    /// Bytes of memory for waiting events [default: 256 for each]
    #[arg(long, value_name = "BYTES", value_parser = number::<usize>)]
    pub(crate) buffer_bytes: Option<usize>,
    /// Go on with the events of this name, which wait in the file of the space while nobody watches
    #[arg(long, value_name = "NAME")]
    pub(crate) resume: Option<String>,
    /// How many of them wait at most
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = at_least_one::<u64>)]
    pub(crate) keep: u64,
}

#[derive(Args)]
#[command(
    about = "List the spaces of this user, of a server or of a file, or the shapes of tuples in one of them.",
    before_help = "\
Examples:
  tupelo ls                        every space, its size and when it last changed
  tupelo ls shm://jobs             the shapes in it, with counts
  tupelo ls shm://jobs --json      the same for programs
  tupelo ls /srv                   the files of spaces in a directory
  tupelo ls /srv/shop.tupelo       the spaces in this file
  tupelo ls tcp://hub:7667         the spaces of this server",
    help_template = HELP
)]
pub(crate) struct Ls {
    /// The space to look into, or the server, or a directory, or a file of spaces
    #[arg(value_name = "URL, DIRECTORY or FILE", value_parser = word())]
    pub(crate) space: Option<String>,
}

#[derive(Args)]
#[command(
    about = "Show one page about a space: tuples, memory, processes, shapes, indexes.",
    before_help = "Examples:\n  tupelo stat shm://jobs\n  tupelo stat shm://jobs --json",
    help_template = HELP
)]
pub(crate) struct Stat {
    /// The space to look into
    #[arg(value_name = "URL", value_parser = word())]
    pub(crate) space: Option<String>,
}

#[derive(Args)]
#[command(
    about = "Watch spaces live: counts, rates and waiters per shape; q or Ctrl-C ends it.",
    before_help = "\
Examples:
  tupelo top shm://jobs                        redraws every second
  tupelo top                                   all spaces of this user
  tupelo top tcp://hub:7667                    all spaces of this server
  tupelo top shm://jobs --interval 5s --json   one object per shape and interval",
    help_template = HELP
)]
pub(crate) struct Top {
    /// The spaces to watch, or servers; all spaces of this user if none is given
    #[arg(value_name = "URL", value_parser = word())]
    pub(crate) spaces: Vec<String>,
    /// Time between two looks
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration, default_value = "1s")]
    pub(crate) interval: Duration,
    /// End after this many looks
    #[arg(long, value_name = "COUNT", value_parser = at_least_one::<u64>)]
    pub(crate) count: Option<u64>,
}

#[derive(Args)]
#[command(
    about = "List the dead letters: tuples whose last attempt has failed, and why.",
    before_help = "\
Examples:
  tupelo dead shm://jobs                         all of them, with the last reason
  tupelo dead shm://jobs job :int _ --json       the jobs, with all reasons that were kept
  tupelo requeue shm://jobs job :int _           have them tried again
  tupelo read shm://film tupelo.dead ... --all   the failed tasks of a @worker, which are tuples of their own",
    after_help = WORDS,
    help_template = HELP
)]
pub(crate) struct Dead {
    #[command(flatten)]
    pub(crate) sought: Sought,
}

#[derive(Args)]
#[command(
    about = "Put dead letters back at their places, with no attempts counted.",
    before_help = "\
Examples:
  tupelo requeue shm://jobs job 7 _              that job
  tupelo requeue shm://jobs ...                  all dead letters
  tupelo dead shm://jobs                         list them, with the reasons",
    after_help = WORDS,
    help_template = HELP
)]
pub(crate) struct Requeue {
    #[command(flatten)]
    pub(crate) sought: Sought,
}

#[derive(Args)]
#[command(
    about = "Remove spaces, or the matching tuples of one. Asks first.",
    before_help = "\
Examples:
  tupelo rm shm://jobs                     the whole space
  tupelo rm shm://old shm://older          several
  tupelo rm file:///srv/jobs.tupelo        the file, with all its spaces
  tupelo rm shm://jobs job :int _ --yes    the jobs in it, without asking
  tupelo rm --idle 1h                      the spaces in which nothing has happened for so long",
    after_help = WORDS,
    help_template = HELP
)]
pub(crate) struct Rm {
    #[command(flatten)]
    pub(crate) sought: Sought,
    /// The spaces of this user that have not changed for so long, and that no process uses
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) idle: Option<Duration>,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Args)]
#[command(
    about = "Explain an error, or why a template matches nothing.",
    before_help = "\
Examples:
  tupelo explain TUP-003                 the page of an error
  tupelo explain                         the list of errors
  tupelo explain shm://jobs job :str     the shapes of the space, and the field that differs",
    after_help = WORDS,
    help_template = HELP
)]
pub(crate) struct Explain {
    /// A code, or a space and a pattern per field
    #[arg(value_names = ["CODE or URL", "PATTERN"], allow_negative_numbers = true, value_parser = word())]
    pub(crate) words: Vec<String>,
    /// Only tuples that meet this condition, in CEL, as in 'f[1] % 2 == 0', or 'priority > 3' for an entry
    #[arg(long = "where", value_name = "CONDITION", value_parser = word())]
    pub(crate) condition: Option<String>,
}

/// Words for a program of the Python package, its `--help` included.
#[derive(Args)]
pub(crate) struct Passed {
    /// Passed on to the Python package
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}

#[derive(Args)]
#[command(
    about = "Print a script that teaches a shell to complete `tupelo`.",
    before_help = "\
Examples:
  mkdir -p ~/.local/share/bash-completion/completions
  tupelo completion bash > ~/.local/share/bash-completion/completions/tupelo
  mkdir -p ~/.zfunc
  tupelo completion zsh > ~/.zfunc/_tupelo
  mkdir -p ~/.config/fish/completions
  tupelo completion fish > ~/.config/fish/completions/tupelo.fish",
    help_template = HELP
)]
pub(crate) struct Completion {
    /// bash, zsh, fish, powershell or elvish
    pub(crate) shell: Shell,
}

/// A text as it was typed: a negative number may have a mark.
fn word() -> impl TypedValueParser<Value = String> {
    StringValueParser::new().map(negative::unmarked)
}

/// A number of things that is not 0.
fn at_least_one<N>(text: &str) -> Result<N, String>
where
    N: FromStr<Err = ParseIntError> + PartialEq + From<u8>,
{
    match number(text)? {
        none if none == N::from(0) => Err("give 1 or more".to_owned()),
        some => Ok(some),
    }
}

/// A number of things, of which there may be none.
fn number<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N, String> {
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => "that is more than can be counted here".to_owned(),
        _ => "give a whole number, as in 10".to_owned(),
    })
}

/// As [`duration`], for a time that is longer than none.
fn positive(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("give more than 0".to_owned()),
        time => Ok(time),
    }
}

/// Longest time that can be asked for, as from Python. So a moment that lies so far ahead can be computed.
const SECONDS_MAX: f64 = 1e9;

/// The time that was typed: `5s`, `200ms`, `2min`, `1.5h`; a bare number is seconds.
///
/// # Errors
///
/// A wrong time, in words.
pub fn duration(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{unit:?} is no unit of time: us, ms, s, min or h")),
    };
    let number: f64 =
        number.trim().parse().map_err(|_| "write a time like 5s or 200ms".to_owned())?;
    let seconds = number * factor;
    if seconds > SECONDS_MAX {
        return Err(format!("a time is at most {SECONDS_MAX} s (31 years)"));
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| "a time is 0 or more".to_owned())
}

/// A kind of event.
fn event(text: &str) -> Result<EventKind, String> {
    let known = EventKind::ALL.into_iter().find(|kind| kind.name() == text);
    known.ok_or_else(|| "one of put, take, expire, return".to_owned())
}

/// `fifo`, `max:2` and the like.
fn order(text: &str) -> Result<Order, String> {
    // Of an entry by its name, of all other tuples by its number.
    let is_number = |field: &str| field.bytes().all(|digit| digit.is_ascii_digit());
    let number = |digits: &str| {
        digits.parse().map_err(|_| format!("{digits:?} is no field number, counted from 0"))
    };
    let named = |name: &str| FieldName::new(name).map_err(|error| error.to_string());
    match text.split_once(':').unwrap_or((text, "")) {
        ("fifo", "") => Ok(Order::Fifo),
        ("lifo", "") => Ok(Order::Lifo),
        ("random", "") => Ok(Order::Random),
        ("any", "") => Ok(Order::Any),
        ("max", digits) if is_number(digits) => Ok(Order::Max(number(digits)?)),
        ("min", digits) if is_number(digits) => Ok(Order::Min(number(digits)?)),
        ("max", name) => Ok(Order::MaxOf(named(name)?)),
        ("min", name) => Ok(Order::MinOf(named(name)?)),
        _ => Err("one of fifo, lifo, random, any, max:FIELD, min:FIELD".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_duration_has_a_unit_or_is_in_seconds() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
    }

    #[test]
    fn a_duration_that_makes_no_sense_says_what_would() {
        assert_eq!(duration("-1s"), Err("a time is 0 or more".to_owned()));
        let too_long = Err("a time is at most 1000000000 s (31 years)".to_owned());
        assert_eq!(duration("18446744073709551615s"), too_long);
        assert_eq!(duration("300000h"), too_long);
        assert_eq!(
            duration("soon"),
            Err("\"soon\" is no unit of time: us, ms, s, min or h".to_owned())
        );
        assert_eq!(duration("s"), Err("write a time like 5s or 200ms".to_owned()));
    }
}
