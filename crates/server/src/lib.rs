//! A server: hosts spaces for other programs, behind a Unix socket. `docs/protocol.md` has what is said there.
//!
//! One thread serves all connections. Nobody waits in it: a call that waits is a waiter of the engine, and the bell of its
//! space tells the thread which of them have something (`hosted.rs`). What a client was given and has not acknowledged is
//! held for it; with its connection all of that ends: waits, and what was held is back (`session.rs`).
#![forbid(unsafe_code)]

mod answers;
mod asked;
mod connection;
mod descriptor;
mod hosted;
mod listener;
mod outbox;
mod process;
mod session;

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use answers::Clients;
use hosted::Spaces;

/// What a server is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where its socket is made. A file of a server that is gone is replaced.
    pub socket: PathBuf,
    /// Where its spaces are.
    pub engine: Engine,
    /// Whether a client may open a space that is not there yet.
    pub creates: bool,
    /// Spaces that are made at the start.
    pub spaces: Vec<String>,
}

/// Where the spaces of a server are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// In its private memory: they end with it.
    Mem,
    /// In shared memory: programs of this machine may use them at the same time, and they outlive the server.
    Shm,
}

impl Engine {
    /// As in a URL.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Mem => "mem",
            Self::Shm => "shm",
        }
    }
}

/// Why a server could not start, or ended.
#[derive(Debug)]
pub enum ServeError {
    /// The system refused something.
    System {
        /// What was tried.
        problem: String,
        /// What to type next.
        hint: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// A space could not be made.
    Space(tupelo::Error),
}

impl std::error::Error for ServeError {}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { problem, hint, error } => write!(f, "{problem} ({error})\n  {hint}"),
            Self::Space(error) => error.fmt(f),
        }
    }
}

impl From<tupelo::Error> for ServeError {
    fn from(error: tupelo::Error) -> Self {
        Self::Space(error)
    }
}

/// What the connections of one thread share.
struct Shared {
    spaces: Spaces,
    clients: RefCell<Clients>,
    /// What is read at a time. One for all: a connection that waits has none.
    buffer: RefCell<Box<[u8]>>,
}

/// What one look at a socket reads at most.
const READ_BYTES: usize = 64 << 10;

/// Serves until a signal ends it (`SIGTERM`, `SIGINT`): then no connection is accepted any more, those that are there are
/// closed, and the socket goes. Calls `started` once clients can connect.
///
/// # Errors
///
/// [`ServeError`]: nothing was served, or the socket failed.
pub fn serve(settings: &Settings, started: impl FnOnce()) -> Result<(), ServeError> {
    let system = |problem: &str| {
        let problem = problem.to_owned();
        move |error| ServeError::System {
            problem,
            hint: "`tupelo doctor` looks at the limits",
            error,
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(system("there can be no event loop"))?;
    let spaces = Spaces::new(settings.engine, settings.creates);
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let buffer = RefCell::new(vec![0; READ_BYTES].into());
        let shared = Rc::new(Shared { spaces, clients: RefCell::default(), buffer });
        for name in &settings.spaces {
            shared.spaces.make(name)?;
        }
        let stop = listener::Stop::new().map_err(system("no signals can be waited for"))?;
        let listener = listener::Listener::bind(&settings.socket)?;
        started();
        listener.accept_until(stop, &shared).await;
        Ok(())
    })
}
