//! Where clients connect: one endpoint of a server.

use std::fs;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::watch;
use tupelo_protocol::{Endpoint, Tls};

use crate::certificates::Identity;
use crate::inherited::Inherited;
use crate::stream::{Socket, Stream};
use crate::{ServeError, Shared, connection, http};

/// How long nobody is accepted after the system has refused one: it has no more descriptors, say.
const PAUSE: Duration = Duration::from_millis(100);

/// What to do where there can be no socket.
const SOCKET_HINT: &str = "give a path in a folder of yours with --socket, of at most 107 bytes";
/// What to do where there can be no port.
const PORT_HINT: &str =
    "give an address of this machine and a free port with --listen, as tcp://127.0.0.1:7667";
/// What to do where everybody could do everything.
const EXPOSED_HINT: &str = "listen on tls:// with --client-ca or --tokens, so that clients are known; or on 127.0.0.1; or say \
                            --insecure, and mean it";

/// A socket on which clients connect.
pub(crate) struct Listener {
    endpoint: Endpoint,
    bound: Bound,
    /// Whether the name of a Unix socket goes with it.
    is_own: bool,
}

/// What is spoken at a port.
enum Speaks {
    Frames,
    Tls(Rc<Identity>),
    Http,
}

impl Speaks {
    fn of(endpoint: &Endpoint, identity: Option<&Rc<Identity>>) -> Result<Self, ServeError> {
        Ok(match endpoint {
            Endpoint::Unix(_) | Endpoint::Tcp(_) => Self::Frames,
            Endpoint::Http(_) => Self::Http,
            Endpoint::Tls(_) => {
                Self::Tls(Rc::clone(identity.ok_or_else(|| ServeError::Unusable {
                    problem: format!("{endpoint} needs a certificate"),
                    hint: "give PEM files with --certificate and --key",
                })?))
            }
        })
    }
}

enum Bound {
    /// One with a name in the file system, which goes with it.
    Unix(UnixListener),
    Tcp(TcpListener),
    Tls(TcpListener, Rc<Identity>),
    Http(TcpListener),
}

impl Listener {
    /// Makes the socket. `identity` is for those with TLS. An address that other machines reach needs an identity that
    /// asks clients for theirs, or tokens, or `insecure`.
    pub(crate) fn bind(
        endpoint: &Endpoint,
        identity: Option<&Rc<Identity>>,
        safety: (bool, bool),
    ) -> Result<Self, ServeError> {
        if let Endpoint::Unix(path) = endpoint {
            return Ok(Self {
                endpoint: endpoint.clone(),
                bound: Bound::Unix(unix(path)?),
                is_own: true,
            });
        }
        let speaks = Speaks::of(endpoint, identity)?;
        let (listener, address) = tcp(endpoint)?;
        let endpoint = endpoint.on_port(address.port());
        Self::at_port(endpoint, (listener, address), speaks, safety)
    }

    /// Listens where somebody else has listened by now. The name of a Unix socket stays when the server ends.
    pub(crate) fn take_over(
        socket: &Inherited,
        identity: Option<&Rc<Identity>>,
        safety: (bool, bool),
    ) -> Result<Self, ServeError> {
        let endpoint = socket.endpoint.clone();
        let problem = || format!("the server can not listen at {endpoint}");
        let refused = |error| ServeError::System { problem: problem(), hint: PORT_HINT, error };
        let socket = socket.socket().map_err(refused)?;
        if let Endpoint::Unix(_) = endpoint {
            let listener = std::os::unix::net::UnixListener::from(socket);
            listener.set_nonblocking(true).map_err(refused)?;
            let bound = Bound::Unix(UnixListener::from_std(listener).map_err(refused)?);
            return Ok(Self { endpoint, bound, is_own: false });
        }
        let speaks = Speaks::of(&endpoint, identity)?;
        let listener = std::net::TcpListener::from(socket);
        let bound = from_std(listener).and_then(|listener| {
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        let bound = bound.map_err(refused)?;
        Self::at_port(endpoint, bound, speaks, safety)
    }

    fn at_port(
        endpoint: Endpoint,
        (listener, address): (TcpListener, SocketAddr),
        speaks: Speaks,
        (has_tokens, insecure): (bool, bool),
    ) -> Result<Self, ServeError> {
        let knows_clients = match &speaks {
            Speaks::Tls(identity) => has_tokens || identity.asks_clients(),
            Speaks::Frames | Speaks::Http => false,
        };
        require_safe(&endpoint, address, insecure || knows_clients)?;
        let bound = match speaks {
            Speaks::Frames => Bound::Tcp(listener),
            Speaks::Http => Bound::Http(listener),
            Speaks::Tls(identity) => Bound::Tls(listener, identity),
        };
        Ok(Self { endpoint, bound, is_own: true })
    }

    /// Where it listens, with the port that it got.
    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Serves whoever connects, for ever. A connection ends when `ended` says so.
    pub(crate) async fn accept_all(&self, shared: &Rc<Shared>, ended: &watch::Receiver<()>) {
        loop {
            // A failure is of this one connection, or for want of something: the others go on.
            if self.accept(shared, ended).await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Waits for a client, and begins to serve it.
    async fn accept(&self, shared: &Rc<Shared>, ended: &watch::Receiver<()>) -> io::Result<()> {
        let stream = match &self.bound {
            Bound::Unix(listener) => Stream::new(Socket::Unix(listener.accept().await?.0), None),
            Bound::Tcp(listener) => Stream::new(Socket::Tcp(accept_tcp(listener).await?), None),
            Bound::Tls(listener, identity) => {
                let socket = Socket::Tcp(accept_tcp(listener).await?);
                let tls = Tls::server(identity.config()).map_err(io::Error::other)?;
                Stream::new(socket, Some(tls))
            }
            Bound::Http(listener) => {
                let stream = accept_tcp(listener).await?;
                let host = stream.local_addr()?.ip();
                let served = http::serve(stream, host, Rc::clone(shared), ended.clone());
                tokio::task::spawn_local(served);
                return Ok(());
            }
        };
        tokio::task::spawn_local(connection::serve(stream, Rc::clone(shared), ended.clone()));
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Endpoint::Unix(path) = &self.endpoint
            && self.is_own
        {
            // If somebody else has removed it, all is well.
            let _ = fs::remove_file(path);
        }
    }
}

/// Makes a Unix socket, for this user alone. One that a server has left behind that is gone is replaced.
fn unix(path: &Path) -> Result<UnixListener, ServeError> {
    let refused = |hint| {
        let problem = format!("no socket can be made at {}", path.display());
        move |error| ServeError::System { problem, hint, error }
    };
    if UnixStream::connect(path).is_ok() {
        let hint = "end that one, or give another path with --socket";
        let error = io::Error::new(io::ErrorKind::AddrInUse, "a server listens there");
        return Err(refused(hint)(error));
    }
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {
            fs::remove_file(path).map_err(refused(SOCKET_HINT))?;
        }
        Ok(_) => {
            let error = io::Error::new(io::ErrorKind::AlreadyExists, "a file is there");
            return Err(refused("it is no socket: give another path with --socket")(error));
        }
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(refused(SOCKET_HINT))?;
    let own = fs::Permissions::from_mode(0o600);
    fs::set_permissions(path, own).map_err(refused(SOCKET_HINT))?;
    Ok(listener)
}

/// Listens on the first address of the host that is one of this machine's.
fn tcp(endpoint: &Endpoint) -> Result<(TcpListener, SocketAddr), ServeError> {
    let refused = |error| ServeError::System {
        problem: format!("nobody can listen at {endpoint}"),
        hint: PORT_HINT,
        error,
    };
    let (name, port) = endpoint.host().map_or(("", 0), |host| (host.name.as_str(), host.port));
    let addresses = (name, port).to_socket_addrs().map_err(refused)?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in addresses {
        let bound = listen(address).and_then(|listener| {
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        match bound {
            Ok(bound) => return Ok(bound),
            Err(error) => last = error,
        }
    }
    Err(refused(last))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    from_std(std::net::TcpListener::bind(address)?)
}

fn from_std(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

async fn accept_tcp(listener: &TcpListener) -> io::Result<TcpStream> {
    let (stream, _) = listener.accept().await?;
    tupelo_client::watch_peer(&stream)?;
    Ok(stream)
}

/// Refuses to let other machines do what they like, unless `is_safe`.
fn require_safe(endpoint: &Endpoint, address: SocketAddr, is_safe: bool) -> Result<(), ServeError> {
    if is_safe || address.ip().is_loopback() {
        return Ok(());
    }
    let problem = format!("at {endpoint} every machine that reaches this one could use all spaces");
    Err(ServeError::Unusable { problem, hint: EXPOSED_HINT })
}
