//! Memory that several processes share, and that survives `kill -9` of any of them at any instruction.
//!
//! The mechanism below the engine: it knows bytes, offsets, locks and processes, and has never heard of
//! a tuple. In two halves:
//!
//! - the system: segments that are created whole ([`Segment`]), address ranges that grow in place ([`Mapping`]),
//!   processes ([`process`]), sleeping on a word ([`futex`]), time ([`clock`]), available memory ([`headroom`]);
//! - the memory: checked access by offset, robust locks, and an undo log that makes any change inside a lock happen
//!   whole or not at all (rule C1).
//!
//! And, for no better place, the [`signals`] of the program `tupelo`.
#![allow(
    unsafe_code,
    reason = "shared memory: every access, and the argument for it, is in this crate"
)]
#![allow(clippy::cast_ptr_alignment, reason = "what becomes a reference was checked for alignment")]
#![allow(
    clippy::inline_always,
    reason = "on the path of every operation a call costs a tenth of it"
)]

mod access;
mod addresses;
mod adoption;
mod announce;
mod at_fork;
mod buffer;
pub mod clock;
mod cohort;
mod context;
mod copy;
mod deaths;
mod error;
pub mod fork_local;
pub mod futex;
mod group;
pub mod headroom;
mod home;
pub mod inherited;
mod kept;
mod link;
mod liveness;
mod lock;
mod log;
mod mapping;
mod memory;
mod names;
mod orphans;
pub mod process;
mod publish;
mod removal;
mod section;
mod segment;
pub mod signals;
mod superblock;
pub mod surroundings;
mod sync;
mod table;
mod thread;

pub use access::{Fresh, GRANULE, Span, View, Word};
pub use announce::Announcement;
pub use at_fork::{AtFork, at_fork};
pub use buffer::CopyBuffer;
pub use error::{AddressLimit, Bytes, Error, Limit};
pub use group::{GROUP_MAX, commit_together};
pub use kept::Kept;
pub use log::{ENTRY_BYTES as LOG_ENTRY_BYTES, LOG_ENTRIES_MIN, log_run, set_log_run};
pub use mapping::Mapping;
pub use memory::Memory;
pub use names::{NAME_BYTES_MAX, check as check_name};
pub use orphans::Orphan;
pub use removal::{HowRemoved, Removal};
pub use section::{Note, Section, Store};
pub use segment::{CreateOptions, Directory, Segment, SegmentEntry};
pub use superblock::{
    IDENTITY_BYTES, Identity, LAYOUT_MAJOR, Layout, RESERVE_BYTES_MAX, State, random_word,
};
pub use table::{PARTICIPANTS_MAX, SLOT_BYTES, THREADS_MAX};
pub use thread::{ENGINE_WORDS, ENGINE_WORDS_COUNT, ParticipantInfo, Slot, Thread};
