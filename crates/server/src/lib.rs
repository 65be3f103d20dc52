//! A server: hosts spaces for other programs, behind Unix sockets and TCP ports, those with TLS or without.
//! `docs/protocol.md` has what is said there.
//!
//! One thread serves all connections. Nobody waits in it: a call that waits is a waiter of the engine, and the notifier
//! of its space tells the thread which of them have something (`hosted.rs`). What a client was given and has not
//! acknowledged is held for it. With its connection all of that ends: waits, and what it has left open. Held tuples are
//! back (`session.rs`).
#![forbid(unsafe_code)]

mod answers;
mod asked;
mod audit;
mod certificates;
mod connection;
mod descriptor;
mod hosted;
mod http;
mod inherited;
mod kept;
mod keyed;
mod listener;
mod meters;
mod outbox;
mod process;
mod queues;
mod quotas;
pub mod rights;
mod session;
mod sessions;
mod signals;
mod stream;

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use answers::Clients;
use audit::{Act, Audit};
pub use certificates::Certificates;
use certificates::Identity;
use hosted::Spaces;
pub use inherited::Inherited;
use listener::Listener;
use quotas::Quotas;
pub use quotas::{Limit, Limits};
use rights::Tokens;
use sessions::Sessions;
use signals::{Asked, Signals};
pub use tupelo_protocol::{Endpoint, Host, TCP_PORT};

/// What a server is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where it listens. The socket of a server that is gone is replaced. On port 0 it gets a port that is free.
    pub endpoints: Vec<Endpoint>,
    /// Sockets at which somebody else listens for it by now.
    pub inherited: Vec<Inherited>,
    /// Needed for endpoints with TLS.
    pub certificates: Option<Certificates>,
    /// Whether other machines may connect without being asked who they are. Otherwise an endpoint that they can reach
    /// has to be one with TLS, and clients have certificates or tokens.
    pub insecure: bool,
    /// The file of tokens. With it, a client has to have one, but for those on a Unix socket, who are this user.
    pub tokens: Option<PathBuf>,
    /// The file that gets a line for each request that is denied, and for each space that is made or removed.
    pub audit: Option<PathBuf>,
    /// What the programs of each token may have and do at a time.
    pub limits: Limits,
    /// Where its spaces are.
    pub engine: Engine,
    /// Whether a client may open a space that is not there yet.
    pub creates: bool,
    /// Spaces that are made at the start.
    pub spaces: Vec<ServedSpace>,
}

/// A space that a server makes at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedSpace {
    /// Its name, for clients.
    pub name: String,
    /// The URL of the file that it is kept in; `None`: it is where the others are.
    pub file_url: Option<String>,
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
    /// What was given can not be used.
    Unusable {
        /// What, and why.
        problem: String,
        /// What to type next.
        hint: &'static str,
    },
    /// A space could not be made.
    Space(tupelo::Error),
}

impl std::error::Error for ServeError {}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System { problem, hint, error } => write!(f, "{problem} ({error})\n  {hint}"),
            Self::Unusable { problem, hint } => write!(f, "{problem}\n  {hint}"),
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
    /// Who is let in, and with which rights; `None`: anybody, with all.
    tokens: RefCell<Option<Rc<Tokens>>>,
    audit: Audit,
    quotas: Quotas,
    spaces: Spaces,
    clients: RefCell<Clients>,
    sessions: Sessions,
    /// What clients over HTTP have open.
    http_open: http::Open,
    /// What is read at a time. One for all: a connection that waits has none.
    buffer: RefCell<Box<[u8]>>,
}

/// How long connections that are open may take to end when the server does.
const DRAIN: Duration = Duration::from_secs(10);
/// What one look at a socket reads at most.
const READ_BYTES: usize = 64 << 10;

/// Serves until a signal ends it (`SIGTERM`, `SIGINT`): then no connection is accepted any more, those that are there are
/// closed, and the sockets go. `SIGHUP` reads certificates and tokens again, and opens the audit log again. Calls `started` with the endpoints once clients can
/// connect.
///
/// # Errors
///
/// [`ServeError`]: nothing was served, or the socket failed.
pub fn serve(settings: &Settings, started: impl FnOnce(&[Endpoint])) -> Result<(), ServeError> {
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
    let spaces = Spaces::new(settings.engine, settings.creates, &settings.spaces);
    let identity = settings.certificates.as_ref().map(Identity::new).transpose()?.map(Rc::new);
    let tokens = settings.tokens.as_deref().map(Tokens::read).transpose()?;
    let has_tokens = tokens.is_some();
    let audit = Audit::open(settings.audit.as_deref())?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let buffer = RefCell::new(vec![0; READ_BYTES].into());
        let tokens = RefCell::new(tokens.map(Rc::new));
        let sessions = Sessions::new().map_err(system("there is no number made by chance"))?;
        let clients = RefCell::default();
        let http_open = http::Open::default();
        let quotas = Quotas::new(settings.limits);
        let shared =
            Rc::new(Shared { tokens, audit, quotas, spaces, clients, sessions, http_open, buffer });
        for space in &settings.spaces {
            shared.spaces.make(&space.name)?;
        }
        let signals = Signals::new().map_err(system("no signals can be waited for"))?;
        let safety = (has_tokens, settings.insecure);
        let bind = |endpoint| Listener::bind(endpoint, identity.as_ref(), safety);
        let take_over = |socket| Listener::take_over(socket, identity.as_ref(), safety);
        let own = settings.endpoints.iter().map(bind);
        let listeners: Vec<_> = own
            .chain(settings.inherited.iter().map(take_over))
            .collect::<Result<_, ServeError>>()?;
        let endpoints: Vec<_> = listeners.iter().map(Listener::endpoint).cloned().collect();
        started(&endpoints);
        let files = Files { identity, tokens: settings.tokens.clone() };
        accept_until_ended(listeners, signals, &files, &shared).await;
        Ok(())
    })
}

/// What is read again at `SIGHUP`.
struct Files {
    identity: Option<Rc<Identity>>,
    tokens: Option<PathBuf>,
}

impl Files {
    /// Reads them, for connections that are made from now on. If one can not be used, nothing changes.
    fn reload(&self, shared: &Shared) -> Result<(), ServeError> {
        let tokens = self.tokens.as_deref().map(Tokens::read).transpose()?;
        self.identity.as_deref().map(Identity::reload).transpose()?;
        *shared.tokens.borrow_mut() = tokens.map(Rc::new);
        Ok(())
    }
}

/// Serves whoever connects until a signal ends that, and what is open has ended.
async fn accept_until_ended(
    listeners: Vec<Listener>,
    mut signals: Signals,
    files: &Files,
    shared: &Rc<Shared>,
) {
    let (ending, ended) = watch::channel(());
    let mut accepting = JoinSet::new();
    for listener in listeners {
        let (shared, ended) = (Rc::clone(shared), ended.clone());
        accepting.spawn_local(async move { listener.accept_all(&shared, &ended).await });
    }
    drop(ended);
    while signals.next().await == Asked::Reload {
        match files.reload(shared) {
            Ok(()) => shared.audit.note_signal(Act::Reloaded),
            // Those who are served go on as before.
            Err(error) => {
                eprintln!("tupelo serve: certificates and tokens stay as they are: {error}");
            }
        }
        if let Err(error) = shared.audit.open_again() {
            eprintln!("tupelo serve: the audit log stays the file that it is: {error}");
        }
    }
    accepting.shutdown().await;
    let _ = ending.send(());
    // Each connection has a receiver for as long as it is open.
    let _ = tokio::time::timeout(DRAIN, ending.closed()).await;
    shared.sessions.end_all();
    shared.http_open.end_all();
}
