//! The semantics of a tuple space, as slowly and as readably as possible: a list and a loop.
//!
//! This crate is the second telling of `docs/semantics.md`, in code that runs. It has no threads, no
//! clock (time passes when a caller says so) and no index; nothing in it is fast. Every engine is tested against it.
//!
//! # A tour in half an hour
//!
//! Read the files in this order; each is one family of rules.
//!
//! | file | what it says | rules |
//! |---|---|---|
//! | `space.rs` | a space is a list of tuples; a put | O1, O2, O5, V2 |
//! | `order.rs` | which of several matches an operation gets | T2 |
//! | `operations.rs` | take and read without waiting: one, several, how many | O4, O6, T1 |
//! | `conditional.rs` | look first, then change, in one step | O8, O9 |
//! | `waiting.rs` | calls that wait: the queue, and giving up | O3, T3-T6 |
//! | `transfer.rs` | from one space to another | O7 |
//! | `time.rs` | time passes, and things happen by themselves | L4, T6 |
//! | `leases.rs` | tuples that disappear, or appear | L1-L3 |
//! | `claims.rs` | a take that gives the tuple back unless it is confirmed | K1-K4 |
//! | `dead.rs` | what is given up after its last attempt | K5 |
//! | `transactions.rs` | operations that take effect together, or not at all | X1-X7 |
//! | `events.rs` | being told what happens | N1-N3 |
//! | `scan.rs` | reading through a space while it changes | O6 |
//! | `bounds.rs` | limits | B1, B2 |
//!
//! `tupelo-tuple` defines values and decides whether a template matches (V, M). It is pure and is tested by the cases
//! of `conformance/`.
//!
//! The rest turns the model into a judge:
//!
//! - `operation.rs` has operations and answers as data.
//! - `outcomes` lists every answer that the rules allow.
//! - `watcher.rs` follows an engine and objects.
//! - `history.rs` judges several callers at once.
//! - `conformance` runs the cases of `conformance/` against any subject that answers operations.
//! - `against.rs` and `random` do the same with random operations.
//!
//! # In a dozen lines
//!
//! ```
//! use tupelo_model::{Order, Reply, Space, template, tuple};
//!
//! let mut space = Space::new();
//! space.put(tuple("job, 1"))?;
//! space.put(tuple("job, 2"))?;
//!
//! // A template looks like the tuple it finds: values match themselves, `:int` any integer, `_` anything.
//! assert_eq!(space.try_read(&template("job, :int"), Order::Fifo), Some(tuple("job, 1")));
//! assert_eq!(space.try_take(&template("job, 2"), Order::Fifo), Some(tuple("job, 2")));
//!
//! // A call that finds nothing waits, and the next put that matches serves it.
//! let Reply::Later(ticket) = space.take(template("done, _"))? else { unreachable!() };
//! space.put(tuple("done, 7"))?;
//! assert_eq!(space.finish(ticket), tuple("done, 7"));
//! assert_eq!(space.count(&template("...")), 1);
//! # Ok::<(), tupelo_model::Refusal>(())
//! ```
#![forbid(unsafe_code)]

mod against;
mod bounds;
mod claims;
mod conditional;
pub mod conformance;
mod dead;
mod events;
mod history;
mod leases;
mod operation;
mod operations;
mod order;
mod outcomes;
pub mod random;
mod scan;
mod show;
mod space;
mod time;
mod transactions;
mod transfer;
mod waiting;
mod watcher;

pub use against::run_against_model;
pub use bounds::{ARITY_MAX, Limits, Refusal, WAITERS_MAX, WhenFull};
pub use claims::{ClaimTerms, Fence, Grant};
pub use dead::DeadLetterRecord;
pub use events::{Event, EventKind, SubscriptionTicket};
pub use history::{CALLS_MAX, Call, linearization};
pub use leases::{LeaseTerms, LeaseTicket};
pub use operation::{Answer, BRIEF_MS, Operation, PASS_MS, Place};
pub use order::Order;
pub use outcomes::{Outcome, State};
pub use scan::{ScanTicket, Scanned};
pub use space::{Space, Stored};
pub use transactions::TransactionTicket;
pub use tupelo_tuple::{Condition, Template, Tuple, Value};
pub use waiting::{Reply, Ticket, Want};
pub use watcher::{Disagreement, Watcher};

/// A tuple from its text notation, for examples and tests.
///
/// # Panics
///
/// If the text is no tuple.
pub fn tuple(text: &str) -> Tuple {
    text.parse().unwrap_or_else(|error: tupelo_tuple::ParseError| panic!("`{text}`: {error}"))
}

/// A template from its text notation, for examples and tests.
///
/// # Panics
///
/// If the text is no template.
pub fn template(text: &str) -> Template {
    text.parse().unwrap_or_else(|error: tupelo_tuple::ParseError| panic!("`{text}`: {error}"))
}
