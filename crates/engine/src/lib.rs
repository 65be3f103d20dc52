//! The tuple store over one memory: shapes, learned indexes, waiters, recovery.
//!
//! One engine serves `mem://` and `shm://`: all it knows of the difference is which memory it was given.
//! Every operation is a critical section of [`tupelo_shm::Section`] and so happens whole or not at all,
//! whoever is killed when.
#![forbid(unsafe_code)]
#![allow(
    clippy::inline_always,
    reason = "on the path of every operation a call costs a tenth of it"
)]

mod arena;
mod at_match;
mod base;
mod blocked;
mod blocks;
mod bulk;
mod check;
mod claim;
mod classes;
#[cfg(test)]
mod contradictions;
mod engine;
mod error;
mod events;
mod exchange;
mod extension;
mod find;
mod fit;
mod flight;
mod full;
mod held;
mod holdings;
mod index;
mod judged;
mod layout;
mod lease;
mod links;
mod passage;
mod provide;
mod put;
mod quota;
mod read;
mod record;
mod refusable;
mod registry;
mod scan;
mod shrink;
mod sighting;
mod sink;
mod stat;
mod step;
mod stripe;
mod sweep;
mod sync;
mod take;
mod take_many;
mod targets;
#[cfg(test)]
mod testing;
mod timers;
mod transaction;
mod transfer;
mod waiters;

pub use blocked::Blocked;
pub use check::{Report, ShapeReport};
pub use claim::dead::Obituary;
pub use claim::{Attempt, Claim, ClaimRenewal, ClaimTerms, Handle};
pub use engine::{CreateOptions, Engine};
pub use error::{Error, Fullness, Need};
pub use events::subscription::{EVENT_BYTES_MAX, EVENTS_MAX, Event, Subscription};
pub use events::{EventKind, SubscribeTerms};
pub use full::Limits;
pub use holdings::{HeldBy, Holding};
pub use layout::{SHAPES_MAX, WAITERS_MAX};
pub use lease::{Lease, LeaseTerms};
pub use refusable::represents;
pub use scan::Scan;
pub use sink::sink_once;
pub use stat::{ClaimStat, ShapeStat, Stat, SubscriptionStat, TransactionStat};
pub use transaction::{Abortion, End as TransactionEnd, Transaction};
pub use tupelo_tuple::{Order, WhenFull};
pub use waiters::Want;
pub use waiters::bell::Bell;
pub use waiters::wait::{Outcome, Waiter};
