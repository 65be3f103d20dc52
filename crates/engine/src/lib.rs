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
#![cfg_attr(
    not(any(test, feature = "full-check")),
    allow(
        dead_code,
        reason = "what only the full check asks; with it the compiler looks for unused code as ever"
    )
)]

mod base;
mod face;
mod index;
mod inspect;
mod journal;
mod operations;
mod protocols;
mod recovery;
mod store;
#[cfg(test)]
mod testing;
mod time;
mod waiters;

pub use base::abortion::Abortion;
pub use base::error::{Error, Fullness, InPieces, ManyShapes, Need};
pub use base::layout::{SHAPES_MAX, WAITERS_MAX};
pub use base::refusable::represents;
pub use base::steps::in_steps;
pub use base::terms::LeaseTerms;
pub use base::visitor::visitor_once;
pub use base::want::Want;
pub use face::CreateOptions;
pub use inspect::blocked::Blocked;
#[cfg(any(test, feature = "full-check"))]
pub use inspect::check::{Report, ShapeReport};
pub use inspect::holdings::{HeldBy, Holding};
pub use inspect::names::{NAME_BYTES_MAX, NameStat, ShapeNames};
pub use inspect::stat::{ClaimStat, ShapeStat, Stat, SubscriptionStat, TransactionStat};
pub use journal::drain::Drain;
pub use operations::scan::Scan;
pub use operations::wait::notifier::Notifier;
pub use operations::wait::{Outcome, Waiter};
pub use protocols::claim::dead::DeadLetterRecord;
pub use protocols::claim::{Attempt, Claim, ClaimRenewal, ClaimTerms, Handle};
pub use protocols::lease::Lease;
pub use protocols::subscription::{EVENT_BYTES_MAX, EVENTS_MAX, Event, Subscription};
pub use protocols::transaction::{End as TransactionEnd, Transaction};
pub use recovery::full::Limits;
pub use store::Engine;
pub use store::change::{Attempts, Change, JournalStat, Kept, KeptTerms};
pub use store::keys::{ANSWERS_RESTORED_MAX, RequestKey, keyed, keyed_take};
pub use tupelo_tuple::{Order, WhenFull};
pub use waiters::events::{EventKind, SubscribeTerms};
