//! The connections of this process, by the server: one each.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, Weak};

use tupelo_protocol::Fault;
use tupelo_shm::fork_local::{ForkLocal, Slot};

use crate::connection::Connection;
use crate::dial::dial;
use crate::server::Server;

type Connections = HashMap<Server, Weak<Connection>>;

/// Those of this process: the child of a fork makes its own.
static CONNECTIONS: ForkLocal<Connections> = ForkLocal::new();

/// Locked for a moment only, never while a connection is made.
fn connections() -> MutexGuard<'static, Slot<Connections>> {
    CONNECTIONS.lock(|_| None)
}

/// The connection of this process to `server`; made if there is none, or the one that there is
/// was lost.
///
/// # Errors
///
/// As [`dial`].
pub(crate) fn to(server: &Server) -> Result<Arc<Connection>, Fault> {
    let alive = |all: &Connections| {
        all.get(server).and_then(Weak::upgrade).filter(|connection| !connection.is_lost())
    };
    if let Some(connection) = alive(connections().content()) {
        return Ok(connection);
    }
    let made = Connection::new(dial(server)?, server);
    let mut connections = connections();
    let all = connections.content();
    // Of several who made one meanwhile, all get that of the first.
    if let Some(first) = alive(all) {
        return Ok(first);
    }
    all.retain(|_, connection| connection.strong_count() > 0);
    all.insert(server.clone(), Arc::downgrade(&made));
    Ok(made)
}
