//! Sessions that outlive a connection that breaks, until their client is there again or their lease ends.
//!
//! A connection that is closed ends its session at once (rule L5). The system closes the connections of a program that ends.
//! It resets them if the program had not read all that came. A connection that falls silent says nothing of its client.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use tokio::sync::Notify;
use tokio::time::sleep;
use tupelo_protocol::{Hello, SessionState, SessionTerms};

use crate::Shared;
use crate::rights::Principal;
use crate::session::{Place, Session};

/// Longest lease that a client gets.
const LEASE_MAX: Duration = Duration::from_secs(300);
/// Longest time for which a session outlives a connection that was reset: by a network, or because the program has ended before
/// it has read all. Then others wait for what it has.
const RESET_LEASE_MAX: Duration = Duration::from_secs(3);
/// How long a client may have a tuple without a word: as long as the lease of its session, within these limits.
const SILENCE_MIN: Duration = Duration::from_secs(1);
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Sessions between two connections (rule B2). One more ends at once.
const BETWEEN_MAX: usize = 4096;

/// Whose session: the name of the client's token, and the client's number.
type Name = (String, u64);

/// The sessions that may outlive their connections.
pub(crate) struct Sessions {
    number: u64,
    by_name: RefCell<HashMap<Name, Entry>>,
    between: Cell<usize>,
}

struct Entry {
    session: Rc<Session>,
    seat: Rc<Seat>,
}

/// A connection's hold on its session.
pub(crate) struct Seat {
    /// `None` for a session that ends with its connection.
    name: Option<(Name, Duration)>,
    /// Whether another connection has the session: nothing more is done for this one.
    is_ousted: Cell<bool>,
    /// Told of that.
    ousted: Notify,
}

impl Seat {
    fn oust(&self) {
        self.is_ousted.set(true);
        self.ousted.notify_one();
    }

    pub(crate) fn is_ousted(&self) -> bool {
        self.is_ousted.get()
    }

    /// How long the client may have a tuple without a word.
    pub(crate) fn silence_max(&self) -> Duration {
        let lease = self.name.as_ref().map_or(SILENCE_MAX, |(_, lease)| *lease);
        lease.clamp(SILENCE_MIN, SILENCE_MAX)
    }

    /// Returns when another connection has the session.
    pub(crate) async fn ousted(&self) {
        self.ousted.notified().await;
    }
}

impl Sessions {
    /// None yet, of a server that has a new number.
    pub(crate) fn new() -> io::Result<Self> {
        let mut bytes = [0; 8];
        getrandom(&mut bytes, GetRandomFlags::empty())?;
        let number = u64::from_be_bytes(bytes) >> 1;
        Ok(Self { number, by_name: RefCell::default(), between: Cell::new(0) })
    }

    /// The session of a client that has said hello: the one that it had, or a new one; and what is said of it.
    pub(crate) fn begin(
        &self,
        shared: &Rc<Shared>,
        principal: Rc<Principal>,
        hello: &Hello,
    ) -> (Rc<Session>, Rc<Seat>, Option<SessionState>) {
        let name = (principal.name().to_owned(), hello.client);
        let terms = hello.session;
        let is_again = terms.is_some_and(|terms| terms.resumes);
        let before = self.by_name.borrow_mut().remove(&name);
        if let Some(Entry { session, seat }) = &before {
            seat.oust();
            self.leave(session);
        }
        let known = before.filter(|before| is_again && may_as_before(&before.session, &principal));
        let resumed = known.is_some();
        let session = if let Some(Entry { session, .. }) = known {
            session.go_on();
            session
        } else {
            let session = Session::new(shared, principal, Some(hello.client));
            session.is_new_client.set(true);
            session
        };
        let name = terms.map(|SessionTerms { lease, .. }| (name, lease.min(LEASE_MAX)));
        let seat = Rc::new(Seat { name, is_ousted: Cell::new(false), ousted: Notify::new() });
        if let Some((name, _)) = &seat.name {
            session.outlives.set(true);
            let entry = Entry { session: Rc::clone(&session), seat: Rc::clone(&seat) };
            self.by_name.borrow_mut().insert(name.clone(), entry);
        }
        let state = terms.map(|_| SessionState { server: self.number, resumed });
        (session, seat, state)
    }

    /// The connection was closed: so its session ends, unless another connection has it.
    pub(crate) fn end(&self, seat: &Rc<Seat>) {
        let Some((name, _)) = &seat.name else { return };
        let mut by_name = self.by_name.borrow_mut();
        let is_there = by_name.get(name).is_some_and(|entry| Rc::ptr_eq(&entry.seat, seat));
        let ended = if is_there { by_name.remove(name) } else { None };
        drop(by_name);
        if let Some(entry) = ended {
            self.leave(&entry.session);
        }
    }

    /// The connection broke: its session goes on for as long as its lease, unless another connection has it. If the other side
    /// has reset it, for no longer than [`RESET_LEASE_MAX`].
    pub(crate) fn wait(shared: &Rc<Shared>, seat: &Rc<Seat>, was_reset: bool) {
        let sessions = &shared.sessions;
        let Some((name, lease)) = &seat.name else { return };
        let session = {
            let by_name = sessions.by_name.borrow();
            let entry = by_name.get(name).filter(|entry| Rc::ptr_eq(&entry.seat, seat));
            let Some(entry) = entry else { return };
            Rc::clone(&entry.session)
        };
        if sessions.between.get() >= BETWEEN_MAX {
            return sessions.end(seat);
        }
        session.place.set(Place::Between);
        sessions.between.set(sessions.between.get() + 1);
        let lease = if was_reset { (*lease).min(RESET_LEASE_MAX) } else { *lease };
        let (shared, seat) = (Rc::downgrade(shared), Rc::clone(seat));
        let session = Rc::downgrade(&session);
        tokio::task::spawn_local(async move {
            sleep(lease).await;
            let (Some(shared), Some(session)) = (shared.upgrade(), session.upgrade()) else {
                return;
            };
            let is_there = shared.sessions.has(&seat);
            if is_there {
                shared.sessions.end(&seat);
                session.place.set(if was_reset { Place::Later } else { Place::Over });
            }
        });
    }

    /// Whether this is the last connection that the session had.
    fn has(&self, seat: &Rc<Seat>) -> bool {
        let Some((name, _)) = &seat.name else { return false };
        self.by_name.borrow().get(name).is_some_and(|entry| Rc::ptr_eq(&entry.seat, seat))
    }

    /// A session is not between two connections any more.
    fn leave(&self, session: &Session) {
        if session.place.get() == Place::Between {
            self.between.set(self.between.get().saturating_sub(1));
        }
    }

    /// Ends all: the server does.
    pub(crate) fn end_all(&self) {
        drop(self.by_name.take());
    }
}

/// Whether a client may do what it may have begun: its rules may have been changed since.
fn may_as_before(session: &Session, principal: &Rc<Principal>) -> bool {
    Rc::ptr_eq(&session.principal, principal) || *session.principal == **principal
}
