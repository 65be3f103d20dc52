//! What the commands are given that concern a space as a whole: `backup`, `dump`, `load`, `compact`, `adopt`.

use clap::Args;

use super::{HELP, word};

#[derive(Args)]
#[command(
    about = "Copy the file of a space while programs use it.",
    before_help = "\
Examples:
  tupelo backup file:///srv/jobs.tupelo /backup/jobs.tupelo    all its spaces, as they are at one moment
  tupelo dump shm://jobs > jobs.jsonl                          a space of any kind, as lines of JSON",
    help_template = HELP
)]
pub(crate) struct Backup {
    /// The space, if --url does not say; then the file that is made
    #[arg(value_names = ["URL", "FILE"], num_args = 1..=2, required = true, value_parser = word())]
    pub(crate) words: Vec<String>,
}

#[derive(Args)]
#[command(
    about = "Print what is in a space as lines of JSON, with what is left of each lease.",
    before_help = "\
Examples:
  tupelo dump shm://jobs > jobs.jsonl              a line for each tuple
  tupelo load tcp://hub:7667/jobs < jobs.jsonl     puts them into another space
  tupelo dump shm://jobs --dead > jobs.jsonl       dead letters, too",
    help_template = HELP
)]
pub(crate) struct Dump {
    /// The space
    #[arg(value_name = "URL", value_parser = word())]
    pub(crate) space: Option<String>,
    /// Dead letters, too; `load` puts them with all their attempts again
    #[arg(long)]
    pub(crate) dead: bool,
}

#[derive(Args)]
#[command(
    about = "Put the tuples that `dump` has printed, with what was left of their leases.",
    before_help = "\
Examples:
  tupelo load shm://copy < jobs.jsonl
  tupelo dump shm://jobs | tupelo load file:///srv/jobs.tupelo",
    help_template = HELP
)]
pub(crate) struct Load {
    /// The space, which is made if it does not exist
    #[arg(value_name = "URL", value_parser = word())]
    pub(crate) space: Option<String>,
}

#[derive(Args)]
#[command(
    about = "Take over a space of a container that was started again, with its tuples.",
    before_help = "\
Examples:
  tupelo adopt shm://jobs          no process of the old container may live: it counts as dead
  tupelo adopt shm://jobs --yes    without asking",
    help_template = HELP
)]
pub(crate) struct Adopt {
    /// The space
    #[arg(value_name = "URL", value_parser = word())]
    pub(crate) space: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Args)]
#[command(
    about = "Make the file of a space as small as what is in it.",
    before_help = "\
Examples:
  tupelo compact file:///srv/jobs.tupelo     calls that wait for the disk wait until it is done",
    help_template = HELP
)]
pub(crate) struct Compact {
    /// The space
    #[arg(value_name = "URL", value_parser = word())]
    pub(crate) space: Option<String>,
}
