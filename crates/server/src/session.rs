//! One client: what it has open, what it waits for, and what is held for it (rules L5, T5, V3).

mod dispatch;
mod held;
mod opened;
mod waits;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::{Rc, Weak};

use tokio::time::Instant;

use crate::Shared;
use crate::answers::{Answer, Answers};
use crate::asked::Purpose;
use crate::hosted::Hosted;
use crate::kept::{Held, Kept, Pending};
use crate::meters::Handed;
use crate::outbox::Outbox;
use crate::quotas::Usage;
use crate::rights::Principal;
pub(crate) use waits::QueuedWait;

/// A client, from the handshake to the end of its connection, or of the session that outlives that. Dropped, it gives everything
/// back.
pub(crate) struct Session {
    shared: Rc<Shared>,
    me: Weak<Self>,
    pub(crate) outbox: Outbox,
    answers: Rc<RefCell<Answers>>,
    pub(crate) principal: Rc<Principal>,
    pub(crate) usage: Rc<Usage>,
    spaces: RefCell<Vec<Rc<Hosted>>>,
    /// The client's number, if it has one.
    pub(crate) client: Option<u64>,
    /// Whether the client has made that number for this server.
    pub(crate) is_new_client: Cell<bool>,
    /// The requests without their last answer, or whose answer is held, and those that have left something open.
    requests: RefCell<HashMap<u64, Open>>,
    /// What is put and not there yet.
    pub(crate) pending: Pending,
    /// What is held, by when it was handed over; some of it is not held any more.
    held: RefCell<VecDeque<(Instant, u64)>>,
    /// Whether it may outlive its connection, so that the last answers of each kind are kept.
    pub(crate) outlives: Cell<bool>,
    /// Whether its answers wait for the disk in the outbox; else whoever takes them out waits.
    pub(crate) holds_back: Cell<bool>,
    pub(crate) place: Cell<Place>,
}

/// Where a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the connection that it has begun with.
    First,
    /// Between two connections: nothing is handed over.
    Between,
    /// On a later one: requests may come again that came over an earlier one.
    Later,
    /// It has ended between two connections, which nobody has subscription of: what was handed over counts as delivered.
    Over,
}

/// A request that the client is not done with.
pub(crate) enum Open {
    /// It waits for a tuple, to do this with it.
    Waits(QueuedWait, Purpose),
    /// It watches, or waits for room. It is told once, and again when it has looked.
    Watches { waiting: Rc<QueuedWait>, was_notified: bool, has_more: bool },
    /// It was answered, and what it has found is held until that is acknowledged.
    Holds(Held, Rc<Vec<u8>>, Handed),
    /// It was answered so, and has left this open.
    Keeps(Rc<Kept>, Answer),
    /// It waits for events of the subscription that this request has left open.
    AwaitsEvents(u64),
}

impl Session {
    /// One for a client, by its own number, which finds the answers to what it asked before; or for one that has none.
    pub(crate) fn new(
        shared: &Rc<Shared>,
        principal: Rc<Principal>,
        client: Option<u64>,
    ) -> Rc<Self> {
        let known = |client| shared.clients.borrow_mut().of(principal.name(), client);
        let answers = client.map(known).unwrap_or_default();
        let usage = shared.quotas.of(principal.name());
        Rc::new_cyclic(|me| Self {
            shared: Rc::clone(shared),
            me: me.clone(),
            outbox: Outbox::default(),
            answers,
            principal,
            usage,
            spaces: RefCell::default(),
            client,
            is_new_client: Cell::new(false),
            requests: RefCell::default(),
            pending: Pending::default(),
            held: RefCell::default(),
            outlives: Cell::new(false),
            holds_back: Cell::new(false),
            place: Cell::new(Place::First),
        })
    }

    /// Goes on over another connection: what the client has no answer to, it asks again.
    pub(crate) fn go_on(&self) {
        self.place.set(Place::Later);
        self.outbox.forget();
        let waits: Vec<u64> = self.requests.borrow().keys().copied().collect();
        // What came for them meanwhile was left where it was.
        for id in waits {
            self.serve_wait(id);
        }
        self.outbox.forget();
    }

    /// For who tells this session, as long as it is there.
    pub(crate) fn weak(&self) -> Weak<Self> {
        self.me.clone()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let is_over = self.place.get() == Place::Over;
        let mut requests = self.requests.take();
        // First: what is given back is not for those who wait here.
        requests.retain(|_, open| matches!(open, Open::Holds(..) | Open::Keeps(..)));
        for open in requests.values() {
            match open {
                // The client may have it, and have said so to nobody (rules T1, C3).
                Open::Holds(held, ..) if is_over => drop(held.done()),
                Open::Holds(held, ..) => held.give_back(),
                Open::Keeps(kept, _) => kept.end(),
                Open::Waits(..) | Open::Watches { .. } | Open::AwaitsEvents(_) => {}
            }
        }
    }
}
