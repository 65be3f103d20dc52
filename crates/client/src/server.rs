//! Which server, and how each side makes sure of the other.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tupelo_protocol::Endpoint;

/// How long a connection that was lost is made again, unless the caller says otherwise.
pub const RECONNECT: Duration = Duration::from_secs(60);

/// A server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Server {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// For those that speak TLS.
    pub trust: Trust,
    /// By which the server knows what this program may do, if it asks for one.
    pub token: Option<String>,
    /// How long a connection that was lost is made again; zero: not at all.
    pub reconnect: Duration,
}

impl fmt::Debug for Server {
    /// Without the token, which is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server")
            .field(&self.endpoint)
            .field(&self.trust)
            .field(&self.reconnect)
            .finish()
    }
}

/// The files of TLS, in PEM format. Read when a connection is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trust {
    /// Certificates of those who may sign the server's; `None`: those that the system trusts.
    pub ca: Option<PathBuf>,
    /// The certificate of this program, for servers that ask for one, and its key.
    pub own: Option<(PathBuf, PathBuf)>,
}
