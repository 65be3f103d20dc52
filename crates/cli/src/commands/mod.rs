//! The commands, one file each. A command takes its options, the `--url`, and where to print.

pub(crate) mod adopt;
pub(crate) mod backup;
pub(crate) mod compact;
pub(crate) mod completion;
pub(crate) mod dead;
pub(crate) mod doctor;
pub(crate) mod dump;
mod exec;
pub(crate) mod explain;
pub(crate) mod find;
mod journal;
pub(crate) mod load;
mod look;
pub(crate) mod ls;
pub(crate) mod package;
pub(crate) mod put;
pub(crate) mod rm;
mod rows;
pub(crate) mod serve;
mod shared_memory;
pub(crate) mod stat;
pub(crate) mod take;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod watch;
mod whole_file;

use tupelo::{ConnectOptions, ProcessStat, Space, Stat};

use crate::failure::Failure;

/// Connects to a space that has to exist: to look into nothing would make it.
fn connect_existing(url: &str) -> Result<Space, Failure> {
    let options = ConnectOptions { create: false, ..ConnectOptions::default() };
    Ok(Space::connect(require_shared(url)?, &options)?)
}

/// Connects to a space and makes it if need be: the command that puts, or the command that waits for it, may come
/// first.
fn connect(url: &str) -> Result<Space, Failure> {
    Ok(Space::connect(require_shared(url)?, &ConnectOptions::default())?)
}

/// Refuses a space that no other process can see: its tuples are gone with the command.
fn require_shared(url: &str) -> Result<&str, Failure> {
    let Some(name) = url.strip_prefix("mem://") else { return Ok(url) };
    Err(Failure::Usage(format!(
        "{url} is private to a process, and this one ends with the command\n  \
         Write shm://{name}, which all processes of this user share."
    )))
}

/// The processes that work in a space now; to look, as this one does, is not to work. Ended processes are in its list
/// too, until another process cleans up.
fn pids(stat: &Stat) -> Vec<u32> {
    let working = |process: &&ProcessStat| process.alive && process.pid != std::process::id();
    stat.processes.iter().filter(working).map(|process| process.pid).collect()
}
