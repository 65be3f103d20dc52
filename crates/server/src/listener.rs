//! The socket that clients connect to, and the end of a server.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::{ServeError, Shared, connection};

/// How long connections that are open may take to end when the server does.
const DRAIN: Duration = Duration::from_secs(10);
/// How long nobody is accepted after the system has refused one: it has no more descriptors, say.
const PAUSE: Duration = Duration::from_millis(100);

/// What to do where there can be no socket.
const HINT: &str = "give a path in a folder of yours with --socket, of at most 107 bytes";

/// The signals that end a server.
pub(crate) struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    pub(crate) fn new() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn come(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// A socket with a name in the file system, which goes with it.
pub(crate) struct Listener {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Makes the socket, for this user alone. One that a server has left behind that is gone is replaced.
    pub(crate) fn bind(path: &Path) -> Result<Self, ServeError> {
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
            Ok(found) if is_socket(&found) => fs::remove_file(path).map_err(refused(HINT))?,
            Ok(_) => {
                let error = io::Error::new(io::ErrorKind::AlreadyExists, "a file is there");
                return Err(refused("it is no socket: give another path with --socket")(error));
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(refused(HINT))?;
        let own = fs::Permissions::from_mode(0o600);
        fs::set_permissions(path, own).map_err(refused(HINT))?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Serves whoever connects, until `stop` comes and what is open has ended.
    pub(crate) async fn accept_until(self, mut stop: Stop, shared: &Rc<Shared>) {
        let (ending, ended) = watch::channel(());
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.come() => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (shared, ended) = (Rc::clone(shared), ended.clone());
                    tokio::task::spawn_local(connection::serve(stream, shared, ended));
                }
                // Of this one connection, or for want of something: the others go on.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        drop(ended);
        let _ = ending.send(());
        // Each connection has a receiver for as long as it is open.
        let _ = tokio::time::timeout(DRAIN, ending.closed()).await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // If somebody else has removed it, all is well.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_socket(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_socket()
}
