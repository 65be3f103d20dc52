//! A space of a server.

use std::sync::Arc;
use std::time::Instant;

use tupelo_protocol::{
    Bell, Fault, Found, Kept, LeftOpen, Opened, Operation, Pending, Remote, Reply,
};
use tupelo_protocol::{Request, SpaceId, Target, Tuples, Visitor, code};
use tupelo_shm::own::Own;
use tupelo_tuple::WhenFull;

use crate::bell::RemoteBell;
use crate::connection::Connection;
use crate::connections;
use crate::kept;
use crate::pending::Waiting;
use crate::server::Server;
use crate::surroundings::{is_interrupted, outside, slice};
use crate::turn;

/// A space of a server.
#[derive(Debug)]
pub struct RemoteSpace {
    server: Server,
    options: OpenOptions,
    /// That of this process: the child of a fork opens its own.
    session: Own<Arc<Session>>,
    when_full: WhenFull,
}

/// Which space, and what a new one may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Its name.
    pub name: String,
    /// Create it if there is none.
    pub create: bool,
    /// Begin with an empty one.
    pub fresh: bool,
    /// The most memory of a new one, in bytes; `None`: as the server likes.
    pub size_bytes: Option<u64>,
    /// The most tuples of a new one.
    pub tuples_max: Option<u64>,
    /// What becomes of a put for which a new one has no room.
    pub when_full: WhenFull,
}

/// An open space on a connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Arc<Connection>,
    pub(crate) space: u32,
    when_full: WhenFull,
}

impl RemoteSpace {
    /// Opens a space of `server`.
    ///
    /// # Errors
    ///
    /// A [`Fault`]: there is no server, or it refuses.
    pub fn open(server: Server, mut options: OpenOptions) -> Result<Self, Fault> {
        let session = Session::open(&server, &options)?;
        // Whoever connects again, after a fork or a lost connection, means the one that is there.
        options.fresh = false;
        let (when_full, own) = (session.when_full, Own::new());
        *own.lock(|_| None).content_mut() = Some(Arc::new(session));
        Ok(Self { server, options, session: own, when_full })
    }

    /// The session of this process, with a connection that is not known to be lost.
    fn session(&self) -> Result<Arc<Session>, Fault> {
        let known = self.session.lock(|_| None).content_mut().clone();
        if let Some(session) = known.filter(|session| !session.connection.is_lost()) {
            return Ok(session);
        }
        let session = Arc::new(Session::open(&self.server, &self.options)?);
        *self.session.lock(|_| None).content_mut() = Some(Arc::clone(&session));
        Ok(session)
    }
}

/// Removes a space of `server`. Programs that have it open keep it.
///
/// # Errors
///
/// A [`Fault`]: there is no server, or it refuses.
pub fn remove(server: &Server, name: &str) -> Result<(), Fault> {
    let connection = outside(|| connections::to(server))?;
    let (id, _) = connection.begin()?;
    let answer = exchange(&connection, &Request::Remove { id, name });
    connection.forget(id);
    match Reply::read(&answer?)? {
        Reply::Done { .. } => Ok(()),
        Reply::Refused { fault, .. } => Err(fault),
        other => Err(unexpected(&other)),
    }
}

impl Session {
    fn open(server: &Server, options: &OpenOptions) -> Result<Self, Fault> {
        let connection = outside(|| connections::to(server))?;
        let OpenOptions { name, create, fresh, size_bytes, tuples_max, when_full } = options;
        let opened = Opened {
            name,
            create: *create,
            fresh: *fresh,
            size_bytes: *size_bytes,
            tuples_max: *tuples_max,
            when_full: *when_full,
        };
        let (id, _) = connection.begin()?;
        let answer = exchange(&connection, &Request::Open { id, opened });
        connection.forget(id);
        match Reply::read(&answer?)? {
            Reply::Opened { space, when_full, .. } => Ok(Self { connection, space, when_full }),
            Reply::Refused { fault, .. } => Err(fault),
            other => Err(unexpected(&other)),
        }
    }
}

/// Sends a request that is answered at once, and waits for that: without the lock of an interpreter, and looking for Ctrl-C.
fn exchange(connection: &Connection, request: &Request<'_>) -> Result<Vec<u8>, Fault> {
    let id = request.id();
    let deadline = || slice().map(|slice| Instant::now() + slice);
    let mut answer = outside(|| {
        connection.send(request)?;
        connection.answer(id, deadline())
    });
    loop {
        if let Some(answer) = answer? {
            return Ok(answer);
        }
        if is_interrupted() {
            return Err(interrupted());
        }
        answer = outside(|| connection.answer(id, deadline()));
    }
}

/// The call was interrupted where it was made.
pub(crate) fn interrupted() -> Fault {
    let message = "the call was interrupted while it waited for the server";
    Fault::new(code::CONNECTION_LOST, message, None).with_flags(Fault::INTERRUPTED)
}

/// An answer that is none to what was asked.
pub(crate) fn unexpected(reply: &Reply<'_>) -> Fault {
    Fault::protocol(format!("the server answered what was not asked: {reply:?}"))
}

impl Remote for RemoteSpace {
    fn when_full(&self) -> WhenFull {
        self.when_full
    }

    fn identity(&self) -> SpaceId {
        self.session().map_or(SpaceId { client: 0, space: 0 }, |session| SpaceId {
            client: session.connection.number(),
            space: session.space,
        })
    }

    fn call(&self, operation: &Operation<'_>, visit: Visitor<'_>) -> Result<Found, Fault> {
        let session = self.session()?;
        call(&session, Target::Space(session.space), operation, visit).map(|(found, _)| found)
    }

    fn open(&self, operation: &Operation<'_>, visit: Visitor<'_>) -> Result<LeftOpen, Fault> {
        let session = self.session()?;
        let (found, id) = call(&session, Target::Space(session.space), operation, visit)?;
        Ok((
            found,
            match found {
                Found::Count(_) | Found::Tuples => {
                    Some(Box::new(kept::LeftOpen::new(session, id)) as Box<dyn Kept>)
                }
                Found::BrokenOff => {
                    // A connection that is lost has ended it already.
                    let _ = session.connection.send(&Request::Cancel { id });
                    None
                }
                Found::Nothing => None,
            },
        ))
    }

    fn bell(&self) -> Result<Box<dyn Bell>, Fault> {
        Ok(Box::new(RemoteBell::new()?))
    }

    fn wait(&self, operation: &Operation<'_>) -> Result<Box<dyn Pending>, Fault> {
        let session = self.session()?;
        let on = Target::Space(session.space);
        Ok(Box::new(Waiting::begin(session, on, operation)?))
    }
}

/// Does an operation that does not wait. Returns what it came to, and its request.
pub(crate) fn call(
    session: &Session,
    on: Target,
    operation: &Operation<'_>,
    visit: Visitor<'_>,
) -> Result<(Found, u64), Fault> {
    let connection = &*session.connection;
    let (id, key) = connection.begin()?;
    let key = operation.changes().then_some(key);
    let (on, operation) = turn::taken(connection, on, operation);
    let answer = exchange(connection, &Request::Do { id, on, key, operation });
    if answer.as_ref().is_err_and(|fault| fault.has(Fault::INTERRUPTED)) {
        // What it takes goes back. Lost connections are found out by the next call.
        let _ = connection.send(&Request::Cancel { id });
    }
    connection.forget(id);
    let answer = answer.map_err(|fault| uncertain(fault, &operation))?;
    let found = match Reply::read(&answer)? {
        Reply::Done { count, .. } => Found::Count(count),
        Reply::Nothing { .. } => Found::Nothing,
        Reply::Refused { fault, .. } => return Err(fault),
        Reply::Found { held, tuples, .. } => {
            let is_whole = show(connection, (id, held), tuples, visit)?;
            if is_whole { Found::Tuples } else { Found::BrokenOff }
        }
        other => return Err(unexpected(&other)),
    };
    Ok((found, id))
}

/// A connection that was lost while something was to change: nobody knows whether it has.
fn uncertain(fault: Fault, operation: &Operation<'_>) -> Fault {
    if fault.code == code::CONNECTION_LOST && operation.changes() {
        return fault.with_flags(Fault::MAY_HAVE_HAPPENED);
    }
    fault
}

/// Shows tuples to `visit`, and says to the server whether they have arrived, if it holds them. Returns whether all were
/// seen.
///
/// # Errors
///
/// What was sent is no tuple, or the connection was lost before the server knew: what it held goes back.
pub(crate) fn show(
    connection: &Connection,
    (id, held): (u64, bool),
    tuples: Tuples<'_>,
    visit: Visitor<'_>,
) -> Result<bool, Fault> {
    let seen = see(tuples, visit);
    if held {
        let request = match seen {
            Ok(true) => Request::Acknowledge { id },
            _ => Request::Cancel { id },
        };
        let told = connection.send(&request);
        // Who was not told gives a tuple back that the caller would have, too.
        if seen == Ok(true) {
            told?;
        }
    }
    seen
}

fn see(tuples: Tuples<'_>, visit: Visitor<'_>) -> Result<bool, Fault> {
    for tuple in tuples.read_each()? {
        if visit(tuple?.to_image().view()).is_break() {
            return Ok(false);
        }
    }
    Ok(true)
}
