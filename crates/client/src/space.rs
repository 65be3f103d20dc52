//! A space of a server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tupelo_protocol::{
    Fault, Found, Kept, Key, LeftOpen, Notifier, Operation, Pending, Remote, Reply, Request,
    SpaceId, Target, Tuples, Visitor, code,
};
use tupelo_shm::fork_local::ForkLocal;
use tupelo_shm::surroundings::{is_interrupted, outside, slice};
use tupelo_tuple::{Tuple, WhenFull};

use crate::connection::{Connection, Said};
use crate::connections;
use crate::grant;
use crate::journal::gone;
use crate::kept;
use crate::notifier::RemoteNotifier;
use crate::opened::OpenSpace;
use crate::pending::Waiting;
use crate::server::Server;
use crate::slot::Answer;
use crate::time_limit;

/// A space of a server.
#[derive(Debug)]
pub struct RemoteSpace {
    server: Server,
    options: OpenOptions,
    /// That of this process: the child of a fork opens its own.
    session: ForkLocal<Arc<Session>>,
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
    space: Arc<OpenSpace>,
    when_full: WhenFull,
}

/// What an operation is done to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum On {
    /// The space, by the number that it has in the session that there is.
    Space,
    /// What a request has left open in a session: it ends with that.
    Kept { session: u64, target: Target },
}

/// A request that was answered by tuples.
pub(crate) struct Answered {
    pub(crate) id: u64,
    /// The session in which it was.
    pub(crate) session: u64,
    /// Whether the server holds them until it knows that they have arrived.
    pub(crate) held: bool,
    /// When the call began.
    pub(crate) begin: Instant,
}

/// How old a call is that looks whether the server is still there before it is done with a tuple.
pub(crate) const LATE: Duration = Duration::from_millis(500);

/// What a call came to.
pub(crate) struct Done {
    pub(crate) found: Found,
    /// The request, and the session in which it was answered.
    pub(crate) id: u64,
    pub(crate) session: u64,
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
        let (when_full, own) = (session.when_full, ForkLocal::new());
        *own.lock(|_| None).content_mut() = Some(Arc::new(session));
        Ok(Self { server, options, session: own, when_full })
    }

    /// The session of this process, with a connection that is not known to be lost.
    fn session(&self) -> Result<Arc<Session>, Fault> {
        let known = self.session.lock(|_| None).content_mut().clone();
        let is_open = |session: &Arc<Session>| {
            !session.connection.is_lost() && session.space.number().is_ok()
        };
        if let Some(session) = known.filter(is_open) {
            return Ok(session);
        }
        let session = Arc::new(Session::open(&self.server, &self.options)?);
        *self.session.lock(|_| None).content_mut() = Some(Arc::clone(&session));
        Ok(session)
    }
}

/// Removes a space of `server`. Programs that have it open are told at their next call, and within 100 ms where they wait.
///
/// # Errors
///
/// A [`Fault`]: there is no server, or it refuses.
pub fn remove(server: &Server, name: &str) -> Result<(), Fault> {
    ask(
        server,
        |id| Request::Remove { id, name },
        |reply| match reply {
            Reply::Done { .. } => Ok(()),
            other => Err(unexpected(&other)),
        },
    )
}

/// The spaces of `server` in which this program may do something.
///
/// Each is a tuple of its name, its tuples and their bytes. The figures are nil where the program may not see them, or
/// where the server has not opened the space.
///
/// # Errors
///
/// A [`Fault`]: there is no server, or it refuses.
pub fn spaces(server: &Server) -> Result<Vec<Tuple>, Fault> {
    ask(
        server,
        |id| Request::Spaces { id },
        |reply| match reply {
            Reply::Found { tuples, .. } => {
                tuples.read_each()?.map(|tuple| Ok(tuple?.as_ref().to_tuple()?)).collect()
            }
            other => Err(unexpected(&other)),
        },
    )
}

/// Has a server do something that is about no space that is open.
fn ask<'r, R>(
    server: &Server,
    request: impl FnOnce(u64) -> Request<'r>,
    read: impl FnOnce(Reply<'_>) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let connection = outside(|| connections::to(server))?;
    let (id, _) = connection.begin()?;
    let request = request(id);
    let answer = exchange(&connection, id, || connection.send(&request, None).map(drop));
    connection.forget(id);
    match Reply::read(&answer?.frame)? {
        Reply::Refused { fault, .. } => Err(fault),
        reply => read(reply),
    }
}

impl Session {
    fn open(server: &Server, options: &OpenOptions) -> Result<Self, Fault> {
        let connection = outside(|| connections::to(server))?;
        let mut options = options.clone();
        loop {
            let (id, _) = connection.begin()?;
            let open = Request::Open { id, opened: options.opened() };
            let answer = exchange(&connection, id, || connection.send(&open, None).map(drop));
            connection.forget(id);
            let Answer { frame, session } = answer?;
            let (opened, when_full) = match Reply::read(&frame)? {
                Reply::Opened { space, when_full, keeper, .. } => ((space, keeper), when_full),
                Reply::Refused { fault, .. } => return Err(fault),
                other => return Err(unexpected(&other)),
            };
            let space = Arc::new(OpenSpace::new(&options, session, opened));
            if connection.keep_open(&space, session) {
                return Ok(Self { connection, space, when_full });
            }
            // The server was started again just now: the space is there, and the number is another one.
            options.fresh = false;
        }
    }

    /// Says what is to be done, in the session that there is.
    ///
    /// # Errors
    ///
    /// What it is done to has ended, or there is no connection.
    pub(crate) fn say(
        &self,
        on: On,
        (id, key): (u64, Option<Key>),
        operation: &Operation<'_>,
    ) -> Result<(), Fault> {
        loop {
            let (session, on_target) = match on {
                On::Space => self.space.target()?,
                On::Kept { session, target } => (session, target),
            };
            let (on_target, operation) = grant::taken(&self.connection, on_target, operation);
            let request = Request::Do { id, on: on_target, key, operation };
            match (self.connection.send(&request, Some(session))?, on) {
                (Said::Stale, On::Kept { .. }) => return Err(gone(&self.connection.address)),
                // The space has another number by now.
                (Said::Stale, On::Space) => {}
                _ => return Ok(()),
            }
        }
    }
}

/// Has `say` send a request that is answered at once, and waits for that: without the lock of an interpreter, and looking
/// for Ctrl-C.
fn exchange(
    connection: &Connection,
    id: u64,
    say: impl FnOnce() -> Result<(), Fault> + Send,
) -> Result<Answer, Fault> {
    let end = time_limit::end();
    let deadline = || {
        let slice_end = slice().map(|slice| Instant::now() + slice);
        [slice_end, end].into_iter().flatten().min()
    };
    let mut answer = outside(|| {
        say()?;
        connection.answer(id, deadline())
    });
    loop {
        if let Some(answer) = answer? {
            return Ok(answer);
        }
        if is_interrupted() {
            return Err(interrupted());
        }
        if end.is_some_and(|end| end <= Instant::now()) {
            let message =
                format!("the server at {} has not answered within a second", connection.address);
            return Err(
                Fault::new(code::CONNECTION_LOST, message, None).with_flags(Fault::INTERRUPTED)
            );
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
        let number = self.session().and_then(|session| session.space.number());
        // Of one that can not be reached: no other is the same.
        number.map_or(SpaceId { client: 0, space: 0 }, |(client, space)| SpaceId { client, space })
    }

    fn call(&self, operation: &Operation<'_>, visit: Visitor<'_>) -> Result<Found, Fault> {
        let session = self.session()?;
        call(&session, On::Space, operation, visit).map(|done| done.found)
    }

    fn open(&self, operation: &Operation<'_>, visit: Visitor<'_>) -> Result<LeftOpen, Fault> {
        let session = self.session()?;
        let Done { found, id, session: number } = call(&session, On::Space, operation, visit)?;
        Ok((
            found,
            match found {
                Found::Count(_) | Found::Tuples => {
                    Some(Box::new(kept::LeftOpen::new(session, id, number)) as Box<dyn Kept>)
                }
                Found::BrokenOff => {
                    // A connection that is lost has ended it already.
                    let _ = session.connection.send(&Request::Cancel { id }, Some(number));
                    None
                }
                Found::Nothing => None,
            },
        ))
    }

    fn notifier(&self) -> Result<Box<dyn Notifier>, Fault> {
        Ok(Box::new(RemoteNotifier::new()?))
    }

    fn wait(&self, operation: &Operation<'_>) -> Result<Box<dyn Pending>, Fault> {
        let session = self.session()?;
        Ok(Box::new(Waiting::begin(session, On::Space, operation)?))
    }
}

/// Does an operation that does not wait.
pub(crate) fn call(
    session: &Session,
    on: On,
    operation: &Operation<'_>,
    visit: Visitor<'_>,
) -> Result<Done, Fault> {
    let (connection, begin) = (&*session.connection, Instant::now());
    let (id, key) = connection.begin()?;
    let key = operation.changes().then_some(key);
    let answer = exchange(connection, id, || session.say(on, (id, key), operation));
    if answer.as_ref().is_err_and(|fault| fault.has(Fault::INTERRUPTED)) {
        // What it takes goes back. Lost connections are found out by the next call.
        let _ = connection.send(&Request::Cancel { id }, None);
    }
    connection.forget(id);
    let Answer { frame, session: number } = match answer {
        Ok(answer) => answer,
        // It was not said: what it was to be done to has ended.
        Err(fault) if fault.has(Fault::SESSION_ENDED) => return Err(fault),
        Err(fault) => return Err(uncertain(fault, operation)),
    };
    let found = match Reply::read(&frame)? {
        Reply::Done { count, .. } => Found::Count(count),
        Reply::Nothing { .. } => Found::Nothing,
        Reply::Refused { fault, .. } => return Err(fault),
        Reply::Found { held, tuples, .. } => {
            let answered = Answered { id, session: number, held, begin };
            let is_whole = show(connection, &answered, tuples, visit)?;
            if is_whole { Found::Tuples } else { Found::BrokenOff }
        }
        other => return Err(unexpected(&other)),
    };
    Ok(Done { found, id, session: number })
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
    answered: &Answered,
    tuples: Tuples<'_>,
    visit: Visitor<'_>,
) -> Result<bool, Fault> {
    let seen = see(tuples, visit);
    let Answered { id, session, held, .. } = *answered;
    match seen {
        Ok(true) if held => acknowledge(connection, answered)?,
        _ if held => {
            // With a session that is gone, it has gone back, unless the space keeps it.
            let said = connection.send(&Request::Cancel { id }, Some(session));
            if matches!(said, Ok(Said::Stale)) {
                give_back(connection, id);
            }
        }
        _ => {}
    }
    seen
}

/// Says that what was answered has arrived. If there is no connection at the moment, waits until it is known whether it can be
/// said: who was not told gives a tuple back that the caller would have, too.
fn acknowledge(connection: &Connection, answered: &Answered) -> Result<(), Fault> {
    let Answered { id, session, begin, .. } = *answered;
    let looked = Instant::now();
    if begin.elapsed() >= LATE {
        // As the server may have meanwhile, if this process was stopped.
        connection.look_for_end();
    }
    let said = connection.send(&Request::Acknowledge { id }, Some(session))?;
    let is_said = match said {
        Said::Written if looked.elapsed() < LATE => true,
        Said::Written | Said::Later => {
            // This process may have been stopped since that look, and the server has read no word of it then.
            connection.look_for_end();
            outside(|| connection.settle())?;
            connection.session() == session || connection.was_told_again(id)
        }
        Said::Stale => false,
    };
    if is_said {
        return Ok(());
    }
    // It may have been asked for again in the session that there is now.
    let _ = connection.send(&Request::Cancel { id }, None);
    give_back(connection, id);
    let message = format!(
        "the connection to the server at {} was lost before it knew that the tuple had arrived: it is back",
        connection.address
    );
    Err(Fault::new(code::CONNECTION_LOST, message, Some("try again")))
}

/// Gives back what was taken in an earlier session, if the space keeps it.
fn give_back(connection: &Connection, id: u64) {
    let Some(take) = connection.held_before(id) else { return };
    let Ok((own, _)) = connection.begin() else { return };
    let _ = connection.send(&take.request(own, false), None);
    connection.forget(own);
}

fn see(tuples: Tuples<'_>, visit: Visitor<'_>) -> Result<bool, Fault> {
    for tuple in tuples.read_each()? {
        if visit(tuple?.to_image().view()).is_break() {
            return Ok(false);
        }
    }
    Ok(true)
}
