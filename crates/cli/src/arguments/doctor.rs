//! What `tupelo doctor` is given.

use std::path::PathBuf;

use clap::Args;

use super::{HELP, word};

#[derive(Args)]
#[command(
    about = "Check this machine and the spaces of this user; each line is ok, warn or fix.",
    before_help = "\
Examples:
  tupelo doctor                    the machine, and every space of this user
  tupelo doctor shm://jobs         the machine, and this space
  tupelo doctor file:///srv/jobs.tupelo                           also its file, and the disk
  tupelo doctor file:///srv/jobs.tupelo --save saved.tupelo       saves what can be read of a damaged file
  tupelo doctor --all              also the lines about what is well
  tupelo doctor --json             for programs",
    help_template = HELP
)]
pub(crate) struct Doctor {
    /// The only space to look into
    #[arg(value_name = "URL", value_parser = word())]
    pub(crate) space: Option<String>,
    /// Show what is well line by line, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Write what can be read of the file of the space into this new file; the old one stays as it is
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
}
