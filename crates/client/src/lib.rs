//! Spaces of a server, from a program's side.
//!
//! One connection per process and server, which all threads share: requests are many in flight, answers come in any
//! order (`connection.rs`). No thread of its own: of those who wait for an answer one reads for all. The child of a fork
//! makes a connection of its own. A connection that is lost is made again, and what the server may not have seen to is said
//! again (`journal.rs`).
//!
//! Not here: what a verb is made of (`crates/space`), and what the frames look like (`crates/protocol`).
#![forbid(unsafe_code)]

mod connection;
mod connections;
mod dial;
mod grant;
mod journal;
mod kept;
mod notifier;
mod opened;
mod pending;
mod reconnect;
mod server;
mod slot;
mod socket;
mod space;
mod state;
mod tcp;
mod time_limit;
mod tls;
mod wire;

pub use server::{RECONNECT, Server, Trust};
pub use space::{OpenOptions, RemoteSpace, remove, spaces};
pub use tcp::watch_peer;
pub use time_limit::briefly;
pub use tls::certificates;
