//! Spaces that are kept in a file.
//!
//! `file:///path/jobs.tupelo` is a space that outlives the machine. Memory answers every call: the space is a segment of
//! the same engine as `shm://`. What changes in it comes to the file behind that, an SQLite database with a row for each tuple; a
//! call that has to be on disk waits for it. There is no daemon: whoever needs its change on disk brings those of all others
//! there, too ([`Journal`]).
//!
//! The segment is only a copy of the file. If it is gone, by a restart of the machine or otherwise, whoever opens the space next
//! makes a new one and fills it ([`Journal::open`]); the one before, if some process still has it, comes to the file no more.
//!
//! Not here: what calls wait for their changes. That says the facade.
#![forbid(unsafe_code)]

mod batch;
mod error;
mod gate;
mod journal;
mod open;
mod slot;
mod storage;
mod writing;

pub use error::Error;
pub use journal::Journal;
pub use open::{OpenOptions, flush_all, is_of_file, remove};
