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
//! A file may have several spaces, told apart by names. Each has its own tables, segment and journal.
//!
//! Not here: which calls wait for their changes. The facade decides that.
#![forbid(unsafe_code)]

mod answers;
mod batch;
mod error;
mod examine;
mod gate;
mod header;
mod journal;
mod layout;
mod memory;
mod names;
mod open;
mod removal;
mod slot;
mod storage;
mod subscriptions;
mod tables;
mod together;
mod turn;
mod whole;
mod writing;

pub use error::Error;
pub use examine::{Examination, FileEntry, SpaceOfFile, examine, files_in, save, spaces_in};
pub use journal::{Journal, JournalUse};
pub use memory::is_of_file;
pub use open::{OpenOptions, flush_all};
pub use removal::{remove, remove_space};
pub use subscriptions::{KeptEvent, Subscribed};
pub use whole::{compact, copy};
