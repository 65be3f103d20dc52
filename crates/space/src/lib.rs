//! Tupelo: a shared bag of tuples for programs that work together.
//!
//! Put a tuple into a space, and any process on this machine can read or take it. A template describes the tuple. A
//! space opens by URL: `shm://name` is shared memory, without a daemon; `file:///path/name.tupelo` is the same, and kept
//! in a file; `mem://name` is for the threads of one process.
//!
//! ```
//! use std::time::Duration;
//! use tupelo::{ConnectOptions, Error, Kind, Order, Space, fields, template};
//!
//! let space = Space::connect("mem://squares", &ConnectOptions::default())?;
//! space.put(&fields!["square", 7])?;
//! let template = [template!["square", Kind::Int]];
//! let squared = space.take(&template, Order::Fifo, Some(Duration::from_secs(1)), |tuple| {
//!     Ok::<_, Error>(tuple.to_tuple()?)
//! })?;
//! assert_eq!(squared.to_string(), r#"("square", 7)"#);
//! # Ok::<(), Error>(())
//! ```
//!
//! What every operation promises is in `docs/semantics.md`, rule by rule.
#![forbid(unsafe_code)]

mod announced;
mod claim;
mod connect;
mod dump;
mod durable;
mod elsewhere;
mod error;
mod explain;
mod fault;
mod files;
mod forks;
mod keys;
mod lease;
mod lease_renewer;
mod notifier;
mod opened;
mod operations;
mod remote;
mod resumed;
mod room;
mod search;
mod search_waiter;
mod stat;
mod subscribe;
mod transaction;
mod url;
mod wait;

pub use claim::Claim;
pub use connect::{ConnectOptions, LimitsAsked, Space, SpaceEntry, adopt, orphans, remove, spaces};
pub use dump::Dumped;
pub use durable::{Durability, flush};
pub use error::Error;
pub use explain::{Difference, Explanation, Nearest};
pub use files::{compact_file, copy_file, examine_file, file_of, files_in, spaces_in};
pub use lease::Lease;
pub use lease_renewer::KeepAlive;
pub use notifier::Notifier;
pub use operations::Scan;
pub use remote::{ServerSpace, names_to_tuples, spaces_of};
pub use resumed::KEEP_MAX;
pub use search::{Found, SEARCHED_MAX, Search, Visits};
pub use search_waiter::SearchWaiter;
pub use stat::{ProcessStat, ShapeStat, Stat};
pub use subscribe::Subscription;
pub use transaction::{Inside, Transaction};
pub use tupelo_engine::in_steps;
pub use tupelo_engine::{
    Attempt, Blocked, ClaimStat, ClaimTerms, DeadLetterRecord, EVENT_BYTES_MAX, EVENTS_MAX, Event,
    EventKind, JournalStat, LeaseTerms, NameStat, Order, RequestKey, SHAPES_MAX, ShapeNames,
    SubscribeTerms, SubscriptionStat, TransactionStat, WAITERS_MAX, WhenFull, keyed, keyed_take,
    represents,
};
pub use tupelo_journal::{Examination, FileEntry, SpaceOfFile};
pub use tupelo_shm::surroundings::{Surroundings, surround};
pub use tupelo_shm::{Announcement, Orphan};
pub use tupelo_tuple::*;
pub use url::{SCHEMES, file_url, shell_word};
pub use wait::{Outcome, Waiter, Want, Watch};
