//! One client: what it has open, what it waits for, and what is held for it (rules L5, T5, V3).

mod opened;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::{Rc, Weak};
use std::time::Duration;

use tokio::time::Instant;
use tupelo::{Claim, Waiter};
use tupelo_protocol::{Fault, Key, Operation, REQUESTS_MAX, Reply, Request};

use crate::Shared;
use crate::answers::{Answer, Answers};
use crate::asked::{self, Purpose};
use crate::hosted::Hosted;
use crate::kept::{Held, Kept, Pending};
use crate::keyed;
use crate::meters::Handed;
use crate::outbox::{About, Outbox};
use crate::quotas::{InUse, Usage};
use crate::rights::Principal;

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

/// A place in the wait queue in a space.
pub(crate) struct QueuedWait {
    pub(crate) hosted: Rc<Hosted>,
    number: u32,
    /// Always there, but for the moment in which something is picked up.
    waiter: Option<Waiter>,
    /// Since when.
    since: Instant,
    /// The key of a take that outlives this server, and whose it is.
    take: Option<(u128, u64)>,
    _in_use: InUse,
}

impl QueuedWait {
    fn new(
        hosted: &Rc<Hosted>,
        waiter: Waiter,
        (session, id): (&Session, u64),
    ) -> Result<Self, Fault> {
        let in_use = session.usage.begin_wait()?;
        let number = hosted.register(&waiter, session.weak(), id);
        let (hosted, waiter, since) = (Rc::clone(hosted), Some(waiter), Instant::now());
        Ok(Self { hosted, number, waiter, since, take: None, _in_use: in_use })
    }

    /// Runs a put for this place in the wait queue for room.
    pub(crate) fn with_grant<R>(&self, put: impl FnOnce() -> R) -> R {
        match &self.waiter {
            Some(waiter) => waiter.with_grant(put),
            None => put(),
        }
    }
}

impl Drop for QueuedWait {
    fn drop(&mut self) {
        self.hosted.unregister(self.number); // First: the number may be another's as soon as the waiter has gone.
    }
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

    /// The answers among which that to a request with this key is, or will be: also to one of an earlier session of the client.
    fn answers_of(&self, key: Key) -> Rc<RefCell<Answers>> {
        let client = u64::try_from(key.0 >> 64).ok().filter(|_| self.client.is_some());
        match client.filter(|client| Some(*client) != self.client) {
            None => Rc::clone(&self.answers),
            Some(client) => self.shared.clients.borrow_mut().of(self.principal.name(), client),
        }
    }

    /// Does what a frame asks for, and answers.
    ///
    /// # Errors
    ///
    /// A [`Fault`] for what is no request: nothing that follows means anything then.
    pub(crate) fn serve(&self, frame: &[u8]) -> Result<(), Fault> {
        let request = Request::read(frame)?;
        self.outbox.tells(self.told_by(&request));
        match request {
            Request::Open { id, opened } => match self.open(&opened) {
                Ok((space, hosted)) => {
                    let (when_full, keeper) = (hosted.space.when_full(), hosted.space.keeper());
                    self.reply(&Reply::Opened { id, space, when_full, keeper });
                }
                Err(fault) => self.refuse(id, fault),
            },
            Request::Remove { id, name } => match self.remove(name) {
                Ok(()) => self.reply(&Reply::Done { id, count: 1 }),
                Err(fault) => self.refuse(id, fault),
            },
            Request::Spaces { id } => {
                match asked::looks::spaces(&self.shared.spaces, &self.principal) {
                    Ok(answer) => self.answer(id, &answer),
                    Err(fault) => self.refuse(id, fault),
                }
            }
            Request::Ping { id } => self.reply(&Reply::Done { id, count: 1 }),
            Request::Do { id, on, key, operation } => {
                if self.place.get() == Place::Later && self.repeat(id) {
                    return Ok(());
                }
                self.require_new(id)?;
                let answers = key.map(|key| (key, self.answers_of(key)));
                let again =
                    answers.as_ref().and_then(|(key, known)| known.borrow().get(*key).cloned());
                if let Some(answer) = again {
                    self.answer(id, &answer);
                    return Ok(());
                }
                let counted = self.usage.count_request();
                let performed =
                    counted.and_then(|()| keyed::perform(self, (id, key), on, &operation));
                let answer = match performed {
                    Ok(None) => return Ok(()),
                    Ok(Some(answer)) => answer,
                    Err(fault) => Answer::Refused(fault),
                };
                self.answer(id, &answer);
                // What was refused has had no effect: sent again, it begins anew, and there may be room by then.
                if let Some((key, known)) = answers
                    && !matches!(answer, Answer::Refused(_))
                    && !matches!(operation, Operation::Taken { .. })
                {
                    known.borrow_mut().note(key, answer);
                }
            }
            Request::Acknowledge { id } => self.acknowledge(id),
            // Dropped: it is out of the wait queue, and what was held is back.
            Request::Cancel { id } => self.give_up(id),
            Request::End { id } => self.end(id),
            Request::Look { id } => self.look(id),
        }
        Ok(())
    }

    /// For who tells this session, as long as it is there.
    pub(crate) fn weak(&self) -> Weak<Self> {
        self.me.clone()
    }

    fn require_new(&self, id: u64) -> Result<(), Fault> {
        if self.requests.borrow().contains_key(&id) {
            return Err(Fault::protocol(format!(
                "there is a request with the number {id} already"
            )));
        }
        Ok(())
    }

    /// Refuses if the client has as many requests open as it may.
    pub(crate) fn require_room(&self) -> Result<(), Fault> {
        if self.requests.borrow().len() < REQUESTS_MAX {
            return Ok(());
        }
        Err(Fault::limit(
            format!(
                "no more than {REQUESTS_MAX} requests of one connection wait, are held, or have left something open"
            ),
            "end some, or use more connections",
        ))
    }

    /// What a request has left open.
    pub(crate) fn kept(&self, request: u64) -> Result<Rc<Kept>, Fault> {
        match self.requests.borrow().get(&request) {
            Some(Open::Keeps(kept, _)) => Ok(Rc::clone(kept)),
            _ => Err(Fault::misuse(
                format!("request {request} has left nothing open on this connection"),
                "it may have ended: begin another one",
            )),
        }
    }

    /// The place in the wait queue of a request that watches, or waits for room.
    pub(crate) fn watching(&self, request: u64) -> Option<Rc<QueuedWait>> {
        match self.requests.borrow().get(&request) {
            Some(Open::Watches { waiting, .. }) => Some(Rc::clone(waiting)),
            _ => None,
        }
    }

    /// Leaves something open, until the client lets it go. `answer` is what the request is answered.
    pub(crate) fn keep(&self, id: u64, kept: Kept, answer: Answer) {
        self.requests.borrow_mut().insert(id, Open::Keeps(Rc::new(kept), answer));
    }

    /// Answers a request again that came over an earlier connection of the session. False if there is no such one.
    fn repeat(&self, id: u64) -> bool {
        let requests = self.requests.borrow();
        let answer = match requests.get(&id) {
            None => return false,
            // It is answered when there is something.
            Some(Open::Waits(..) | Open::AwaitsEvents(_)) => return true,
            Some(Open::Watches { was_notified, .. }) => {
                let was_notified = *was_notified;
                drop(requests);
                if was_notified {
                    self.reply(&Reply::Happened { id });
                }
                return true;
            }
            Some(Open::Holds(_, tuples, _)) => {
                let tuples = Rc::clone(tuples);
                drop(requests);
                let tuples = tupelo_protocol::Tuples::of_encoding(&tuples);
                self.reply(&Reply::Found { id, held: true, tuples });
                return true;
            }
            Some(Open::Keeps(_, answer)) => answer.clone(),
        };
        drop(requests);
        self.answer(id, &answer);
        true
    }

    /// Forgets what a request has left open, if it was ended.
    pub(crate) fn forget_if_ended(&self, request: u64, kept: &Kept) {
        if kept.is_ended() {
            self.requests.borrow_mut().remove(&request);
        }
    }

    fn reply(&self, reply: &Reply<'_>) {
        if let Err(fault) = self.outbox.push(reply)
            && let Some(id) = reply.id()
        {
            // It is too large for a frame. What is held for it goes back.
            self.give_up(id);
            self.refuse(id, fault);
        }
    }

    fn refuse(&self, id: u64, fault: Fault) {
        self.shared.audit.note_refused(&self.principal, &fault);
        self.reply(&Reply::Refused { id: Some(id), fault });
    }

    fn answer(&self, id: u64, answer: &Answer) {
        match answer {
            Answer::Done(count) => self.reply(&Reply::Done { id, count: *count }),
            Answer::Nothing => self.reply(&Reply::Nothing { id }),
            Answer::Refused(fault) => self.refuse(id, fault.clone()),
            Answer::Found(tuples) => {
                let tuples = tupelo_protocol::Tuples::of_encoding(tuples);
                self.reply(&Reply::Found { id, held: false, tuples });
            }
        }
    }

    /// Gives tuples to the client, to be acknowledged.
    pub(crate) fn give(&self, id: u64, held: Held, tuples: &[u8], handed: Handed) {
        let kept = if self.outlives.get() { tuples.to_vec() } else { Vec::new() };
        self.requests.borrow_mut().insert(id, Open::Holds(held, Rc::new(kept), handed));
        self.held.borrow_mut().push_back((Instant::now(), id));
        let tuples = tupelo_protocol::Tuples::of_encoding(tuples);
        self.reply(&Reply::Found { id, held: true, tuples });
    }

    /// When that was handed over of which the client has said nothing for longest.
    pub(crate) fn held_since(&self) -> Option<Instant> {
        let (mut held, requests) = (self.held.borrow_mut(), self.requests.borrow());
        while let Some((since, id)) = held.front().copied() {
            if matches!(requests.get(&id), Some(Open::Holds(..))) {
                return Some(since);
            }
            held.pop_front();
        }
        None
    }

    /// Gives a claim to the client, which is open from then on.
    pub(crate) fn give_claim(&self, id: u64, claim: Claim, hosted: &Rc<Hosted>, tuples: &[u8]) {
        let answer = Answer::Found(Rc::new(tuples.to_vec()));
        let kept = Kept::Claim(claim, Rc::clone(hosted), self.pending.share());
        self.keep(id, kept, answer.clone());
        self.answer(id, &answer);
    }

    /// Lets a request wait for a tuple.
    pub(crate) fn wait(
        &self,
        id: u64,
        hosted: &Rc<Hosted>,
        waiter: Waiter,
        purpose: Purpose,
    ) -> Result<(), Fault> {
        let waiting = QueuedWait::new(hosted, waiter, (self, id))?;
        self.requests.borrow_mut().insert(id, Open::Waits(waiting, purpose));
        // It may have been served at once.
        self.serve_wait(id);
        Ok(())
    }

    /// Lets a request watch, or wait for room.
    pub(crate) fn watch(&self, id: u64, hosted: &Rc<Hosted>, waiter: Waiter) -> Result<(), Fault> {
        let waiting = Rc::new(QueuedWait::new(hosted, waiter, (self, id))?);
        let open = Open::Watches { waiting, was_notified: false, has_more: false };
        self.requests.borrow_mut().insert(id, open);
        Ok(())
    }

    /// Lets a request wait for events of a subscription.
    pub(crate) fn await_events(&self, id: u64, subscription: u64) {
        self.requests.borrow_mut().insert(id, Open::AwaitsEvents(subscription));
    }

    /// The subscription whose events a request waits for.
    fn subscription_of(&self, id: u64) -> Option<Rc<Kept>> {
        let requests = self.requests.borrow();
        let Some(Open::AwaitsEvents(subscription)) = requests.get(&id) else { return None };
        match requests.get(subscription) {
            Some(Open::Keeps(kept, _)) => Some(Rc::clone(kept)),
            _ => None,
        }
    }

    /// Answers the request that waits for events of a subscription, if there are some.
    fn send_events(&self, kept: &Kept) {
        let Kept::Subscription(subscription) = kept else { return };
        if let Some((id, answer)) = subscription.serve(self) {
            self.requests.borrow_mut().remove(&id);
            self.answer(id, &answer);
        }
    }

    /// Whether this request watches.
    pub(crate) fn watches(&self, id: u64) -> bool {
        matches!(self.requests.borrow().get(&id), Some(Open::Watches { .. }))
    }

    /// Something may have happened to a request that waits.
    pub(crate) fn serve_wait(&self, id: u64) {
        if self.place.get() == Place::Between {
            return;
        }
        let mut requests = self.requests.borrow_mut();
        match requests.get_mut(&id) {
            Some(Open::Waits(line, purpose)) => {
                let Some(waiter) = line.waiter.take() else { return };
                self.outbox.tells(About::One(Rc::clone(&line.hosted)));
                let (purpose, take) = (purpose.clone(), line.take);
                drop(requests);
                let pick_up = || self.pick_up(id, &purpose, waiter);
                match take {
                    Some(take) => tupelo::keyed_take(take, pick_up),
                    None => pick_up(),
                }
            }
            Some(Open::Watches { was_notified, has_more, waiting }) => {
                self.outbox.tells(About::One(Rc::clone(&waiting.hosted)));
                if std::mem::replace(was_notified, true) {
                    *has_more = true;
                } else {
                    drop(requests);
                    self.reply(&Reply::Happened { id });
                }
            }
            Some(Open::Keeps(kept, _)) => {
                let kept = Rc::clone(kept);
                drop(requests);
                self.outbox.tells(About::Any);
                self.send_events(&kept);
            }
            _ => {}
        }
    }

    /// Picks up what a waiter was handed, or leaves it in the wait queue.
    fn pick_up(&self, id: u64, purpose: &Purpose, waiter: Waiter) {
        let picked_up = asked::pick_up(self, purpose, waiter);
        let open = self.requests.borrow_mut().remove(&id);
        let Some(Open::Waits(mut line, purpose)) = open else { return };
        match picked_up {
            Ok(asked::PickedUp::Waits(waiter)) => {
                line.waiter = Some(waiter);
                self.requests.borrow_mut().insert(id, Open::Waits(line, purpose));
            }
            Ok(asked::PickedUp::Held(held, tuples)) => {
                let handed = Handed::new(&line.hosted, (&tuples, 0), line.since.elapsed());
                drop(line);
                self.give(id, held, &tuples, handed);
            }
            Ok(asked::PickedUp::Claimed(claim, tuples)) => {
                let hosted = Rc::clone(&line.hosted);
                Handed::new(&hosted, (&tuples, 1), line.since.elapsed());
                drop(line);
                self.give_claim(id, claim, &hosted, &tuples);
            }
            Ok(asked::PickedUp::Read(tuples)) => {
                self.answer(id, &Answer::Found(Rc::new(tuples)));
            }
            Err(fault) => self.refuse(id, fault),
        }
    }

    fn acknowledge(&self, id: u64) {
        let open = self.requests.borrow_mut().remove(&id);
        match open {
            Some(Open::Holds(held, _, handed)) => {
                handed.arrived();
                // One that was lost meanwhile is somebody else's: there is nobody to tell, as the client has its tuple.
                let _ = held.done();
            }
            Some(open) => {
                self.requests.borrow_mut().insert(id, open);
            }
            None => {}
        }
    }

    /// Gives back what a request holds, and lets go of what it has left open.
    pub(crate) fn give_up(&self, id: u64) {
        if let Some(kept) = self.subscription_of(id)
            && let Kept::Subscription(subscription) = &*kept
        {
            subscription.end_wait();
        }
        let open = self.requests.borrow_mut().remove(&id);
        match open {
            Some(Open::Holds(held, ..)) => held.give_back(),
            Some(Open::Keeps(kept, _)) => self.let_go(&kept),
            _ => {}
        }
    }

    /// Lets go of what a request has left open, and answers who waits for it.
    fn let_go(&self, kept: &Kept) {
        kept.let_go();
        if let Kept::Subscription(subscription) = kept
            && let Some(waits) = subscription.waits()
        {
            self.requests.borrow_mut().remove(&waits);
            self.reply(&Reply::Nothing { id: waits });
        }
    }

    /// Has a request that waits look now, and answers it if there is something. Returns whether it still waits.
    fn look_now(&self, id: u64, is_last: bool) -> bool {
        if let Some(kept) = self.subscription_of(id) {
            self.send_events(&kept);
            return self.subscription_of(id).is_some();
        }
        let requests = self.requests.borrow();
        let Some(Open::Waits(QueuedWait { waiter: Some(waiter), .. }, _)) = requests.get(&id)
        else {
            return false;
        };
        let now = Some(Duration::ZERO);
        let looked = if is_last { waiter.last_wait(now) } else { waiter.wait(now) };
        drop(requests);
        match looked {
            Ok(false) => {}
            Ok(true) => self.serve_wait(id),
            Err(error) => {
                self.give_up(id);
                self.refuse(id, Fault::from(error));
            }
        }
        matches!(self.requests.borrow().get(&id), Some(Open::Waits(..)))
    }

    /// Ends a wait. One that was answered meanwhile has had its last answer.
    fn end(&self, id: u64) {
        if self.look_now(id, true) || self.watches(id) {
            self.give_up(id);
            self.reply(&Reply::Nothing { id });
        }
    }

    fn look(&self, id: u64) {
        if self.look_now(id, false) {
            self.reply(&Reply::Waits { id });
            return;
        }
        let mut requests = self.requests.borrow_mut();
        if let Some(Open::Watches { was_notified, has_more, .. }) = requests.get_mut(&id) {
            *was_notified = std::mem::take(has_more);
            let happened = *was_notified;
            drop(requests);
            let reply = if happened { Reply::Happened { id } } else { Reply::Waits { id } };
            self.reply(&reply);
        }
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
