//! What a program and a server of spaces say to each other: `docs/protocol.md`.
//!
//! Frames to bytes and back, with a limit on everything that comes from outside. No sockets, no clock, no threads: who
//! has those uses this (`crates/client`, `crates/server`). Also the seam to spaces that are not in this process's
//! memory: [`Remote`], which answers [`Operation`]s, whatever is behind it.
#![forbid(unsafe_code)]

mod endpoint;
mod fault;
mod frames;
mod handshake;
mod operation;
mod remote;
mod reply;
mod request;
mod tls;
mod wire;

pub use endpoint::{Endpoint, HTTP_PORT, Host, TCP_PORT, TLS_PORT};
pub use fault::{Fault, code};
pub use frames::{FRAME_BYTES_MAX, Frames, HANDSHAKE_BYTES_MAX, frame};
pub use handshake::{Hello, SessionState, SessionTerms, VERSION, Welcome};
pub use operation::{
    Action, Amount, Operation, PutTerms, Settlement, SpaceId, SpaceIds, Target, TemplateBytes,
    Term, Tuples, TuplesIter, Watched,
};
pub use remote::{
    AtEnd, Found, Kept, Notifier, Opened as LeftOpen, Pending, PickedUp, Remote, Visitor,
};
pub use reply::Reply;
pub use request::{Key, Opened, Request};
pub use rustls;
pub use tls::Tls;

/// Spaces that one connection may have open (rule B2).
pub const SPACES_MAX: usize = 1024;
/// Requests of one connection that may be without their last answer, or have left something open: calls that wait, takes
/// that are not acknowledged, leases, claims, transactions (rule B2).
pub const REQUESTS_MAX: usize = 65_536;
/// Bytes of the name of a space.
pub const NAME_BYTES_MAX: usize = 200;
