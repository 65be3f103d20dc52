//! Spaces that are kept in a file.
//!
//! `file:///path/jobs.tupelo` is a space that outlives the machine. Memory answers every call: the space is a segment
//! of the same engine as `shm://`. Its changes are written to the file behind the segment, an SQLite database with a
//! row for each tuple. A call whose change must be on disk waits for that. There is no daemon: such a call writes the
//! changes of all others, too ([`Journal`]).
//!
//! The segment is only a copy of the file. If the segment is gone, by a restart of the machine or otherwise, the next
//! program that opens the space makes a new segment and fills it ([`Journal::open`]). If a process still has the old
//! segment, its changes are no longer written to the file.
//!
//! Not here: which calls wait for their changes. The facade decides that.
#![forbid(unsafe_code)]

mod answers;
mod batch;
mod error;
mod examine;
mod gate;
mod journal;
mod layout;
mod open;
mod slot;
mod storage;
mod subscriptions;
mod writing;

pub use error::Error;
pub use examine::{Examination, FileEntry, examine, files_in, save};
pub use journal::Journal;
pub use open::{OpenOptions, flush_all, is_of_file, remove};
pub use subscriptions::{KeptEvent, Subscribed};
