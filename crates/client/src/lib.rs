//! Spaces of a server, from a program's side.
//!
//! One connection per process and server, which all threads share: requests are many in flight, answers come in any
//! order (`connection.rs`). No thread of its own: of those who wait for an answer one reads for all. The child of a fork
//! makes a connection of its own.
//!
//! Not here: what a verb is made of (`crates/space`), and what the frames look like (`crates/protocol`).
#![forbid(unsafe_code)]

mod bell;
mod connection;
mod connections;
mod dial;
mod kept;
mod pending;
mod server;
mod slot;
mod socket;
mod space;
mod surroundings;
mod tcp;
mod tls;
mod turn;

pub use server::{Server, Trust};
pub use space::{OpenOptions, RemoteSpace, remove};
pub use surroundings::{Surroundings, alone, outside, surround};
pub use tcp::watch_peer;
pub use tls::certificates;
