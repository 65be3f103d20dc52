//! The journal of a space: what it tells adds up to what is there (rule C4). So it does after everything that the tests of the verbs do,
//! which this program runs on journalled spaces; with the feature `checked`, only those of one thread.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

#[cfg(not(feature = "checked"))]
#[path = "../behaviour/by_age.rs"]
mod by_age;
#[path = "../one_thread/claims.rs"]
mod claims;
#[cfg(not(feature = "checked"))]
#[path = "../behaviour/conditions.rs"]
mod conditions;
#[path = "../one_thread/events.rs"]
mod events;
#[cfg(not(feature = "checked"))]
#[path = "../behaviour/handed.rs"]
mod handed;
mod journalled;
#[path = "../one_thread/leases.rs"]
mod leases;
#[cfg(not(feature = "checked"))]
#[path = "../behaviour/limited.rs"]
mod limited;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod random;
#[cfg(not(feature = "checked"))]
#[path = "../behaviour/refusable.rs"]
mod refusable;
#[path = "../support/mod.rs"]
mod support;
#[path = "../one_thread/transactions.rs"]
mod transactions;
#[path = "../one_thread/transactions_write_set.rs"]
mod transactions_write_set;

/// Spaces of this program have a journal.
const JOURNALLED: bool = true;
