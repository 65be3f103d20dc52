//! One client: what it has open, what it waits for, and what is held for it (rules L5, T5, V3).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use tupelo::{Claim, Error, Transaction, Waiter};
use tupelo_protocol::{Fault, Opened, REQUESTS_MAX, Reply, Request, SPACES_MAX};

use crate::Shared;
use crate::answers::{Answer, Answers};
use crate::asked;
use crate::hosted::Hosted;
use crate::outbox::Outbox;
use crate::rights::{Principal, Right};

/// A client, from the handshake to the end of its connection. Dropped, it gives everything back.
pub(crate) struct Session {
    shared: Rc<Shared>,
    me: Weak<Self>,
    pub(crate) outbox: Outbox,
    answers: Rc<RefCell<Answers>>,
    principal: Rc<Principal>,
    spaces: RefCell<Vec<Rc<Hosted>>>,
    /// The requests without their last answer, or whose answer is held.
    requests: RefCell<HashMap<u64, Open>>,
}

/// A request that the client is not done with.
pub(crate) enum Open {
    /// It waits for a tuple.
    Waits(InLine),
    /// It watches. It is told once, and again when it has looked.
    Watches { _line: InLine, was_told: bool, has_more: bool },
    /// It was answered, and what it has found is held until that is acknowledged.
    Holds(Held),
}

/// A place in line in a space.
pub(crate) struct InLine {
    hosted: Rc<Hosted>,
    number: u32,
    /// Always there, but for the moment in which something is picked up.
    waiter: Option<Waiter>,
}

/// Tuples that a client was given, and may give back.
pub(crate) enum Held {
    /// One.
    One(Claim),
    /// Those of one moment.
    Many(Transaction),
}

impl Held {
    /// They are the client's.
    fn done(&self) -> Result<(), Error> {
        match self {
            Self::One(claim) => claim.done(),
            Self::Many(transaction) => transaction.commit(),
        }
    }

    /// They go back as they were.
    fn give_back(&self) {
        // What can not be given back is back already, or the space says why at the next call.
        let _ = match self {
            Self::One(claim) => claim.give_back(),
            Self::Many(transaction) => transaction.abort(),
        };
    }
}

impl InLine {
    fn new(hosted: &Rc<Hosted>, waiter: Waiter, session: Weak<Session>, id: u64) -> Self {
        let number = hosted.register(&waiter, session, id);
        Self { hosted: Rc::clone(hosted), number, waiter: Some(waiter) }
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        // First: the number may be another's as soon as the waiter has gone.
        self.hosted.unregister(self.number);
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
        Rc::new_cyclic(|me| Self {
            shared: Rc::clone(shared),
            me: me.clone(),
            outbox: Outbox::default(),
            answers,
            principal,
            spaces: RefCell::default(),
            requests: RefCell::default(),
        })
    }

    /// Does what a frame asks for, and answers.
    ///
    /// # Errors
    ///
    /// A [`Fault`] for what is no request: nothing that follows means anything then.
    pub(crate) fn serve(&self, frame: &[u8]) -> Result<(), Fault> {
        match Request::read(frame)? {
            Request::Open { id, opened } => match self.open(&opened) {
                Ok((space, hosted)) => {
                    let when_full = hosted.space.when_full();
                    self.reply(&Reply::Opened { id, space, when_full });
                }
                Err(fault) => self.refuse(id, fault),
            },
            Request::Remove { id, name } => match self.remove(name) {
                Ok(()) => self.reply(&Reply::Done { id, count: 1 }),
                Err(fault) => self.refuse(id, fault),
            },
            Request::Do { id, space, key, operation } => {
                self.require_new(id)?;
                let again = key.and_then(|key| self.answers.borrow().get(key).cloned());
                if let Some(answer) = again {
                    self.answer(id, &answer);
                    return Ok(());
                }
                let result = self.space(space).and_then(|hosted| {
                    let narrowed = self.principal.narrow(&hosted.name, operation)?;
                    asked::perform(self, &hosted, id, &narrowed.operation())
                });
                let answer = match result {
                    Ok(None) => return Ok(()),
                    Ok(Some(answer)) => answer,
                    Err(fault) => Answer::Refused(fault),
                };
                self.answer(id, &answer);
                if let Some(key) = key {
                    self.answers.borrow_mut().note(key, answer);
                }
            }
            Request::Acknowledge { id } => self.acknowledge(id),
            // Dropped: it is out of line, and what was held is back.
            Request::Cancel { id } => self.give_up(id),
            Request::End { id } => self.end(id),
            Request::Look { id } => self.look(id),
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        self.principal.require(Right::Admin, name)?;
        Ok(self.shared.spaces.remove(name)?)
    }

    fn open(&self, opened: &Opened<'_>) -> Result<(u32, Rc<Hosted>), Fault> {
        let mut opened = *opened;
        self.principal.require_any(opened.name)?;
        if opened.fresh {
            self.principal.require(Right::Admin, opened.name)?;
        }
        let may_make = |right| self.principal.has(right, opened.name);
        opened.create &= may_make(Right::Put) || may_make(Right::Admin);
        let hosted = self.shared.spaces.open(&opened)?;
        let mut spaces = self.spaces.borrow_mut();
        let known = spaces.iter().position(|known| Rc::ptr_eq(known, &hosted));
        let number = known.unwrap_or(spaces.len());
        if number == spaces.len() {
            if number >= SPACES_MAX {
                return Err(Fault::limit(
                    format!("no more than {SPACES_MAX} spaces on one connection"),
                    "use fewer spaces, or more processes",
                ));
            }
            spaces.push(Rc::clone(&hosted));
        }
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Ok((number, hosted))
    }

    fn space(&self, number: u32) -> Result<Rc<Hosted>, Fault> {
        let space = self.spaces.borrow().get(number as usize).cloned();
        space
            .ok_or_else(|| Fault::protocol(format!("no space was opened with the number {number}")))
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
            format!("no more than {REQUESTS_MAX} requests of one connection wait or are held"),
            "end some, or use more connections",
        ))
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
    pub(crate) fn give(&self, id: u64, held: Held, tuples: &[u8]) {
        self.requests.borrow_mut().insert(id, Open::Holds(held));
        let tuples = tupelo_protocol::Tuples::of_encoding(tuples);
        self.reply(&Reply::Found { id, held: true, tuples });
    }

    /// Lets a request wait, for a tuple or as a watch.
    pub(crate) fn wait(&self, id: u64, hosted: &Rc<Hosted>, waiter: Waiter, watches: bool) {
        let line = InLine::new(hosted, waiter, self.me.clone(), id);
        let open = if watches {
            Open::Watches { _line: line, was_told: false, has_more: false }
        } else {
            Open::Waits(line)
        };
        self.requests.borrow_mut().insert(id, open);
        if !watches {
            // It may have been served at once.
            self.serve_wait(id);
        }
    }

    /// Whether this request watches.
    pub(crate) fn watches(&self, id: u64) -> bool {
        matches!(self.requests.borrow().get(&id), Some(Open::Watches { .. }))
    }

    /// Something may have happened to a request that waits.
    pub(crate) fn serve_wait(&self, id: u64) {
        let mut requests = self.requests.borrow_mut();
        match requests.get_mut(&id) {
            Some(Open::Waits(line)) => {
                let Some(waiter) = line.waiter.take() else { return };
                drop(requests);
                self.pick_up(id, waiter);
            }
            Some(Open::Watches { was_told, has_more, .. }) => {
                if std::mem::replace(was_told, true) {
                    *has_more = true;
                } else {
                    drop(requests);
                    self.reply(&Reply::Happened { id });
                }
            }
            _ => {}
        }
    }

    /// Picks up what a waiter was handed, or leaves it in line.
    fn pick_up(&self, id: u64, waiter: Waiter) {
        let picked_up = asked::pick_up(waiter);
        let open = self.requests.borrow_mut().remove(&id);
        let Some(Open::Waits(mut line)) = open else { return };
        match picked_up {
            Ok(asked::PickedUp::Waits(waiter)) => {
                line.waiter = Some(waiter);
                self.requests.borrow_mut().insert(id, Open::Waits(line));
            }
            Ok(asked::PickedUp::Taken(claim, tuples)) => {
                drop(line);
                self.give(id, Held::One(claim), &tuples);
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
            Some(Open::Holds(held)) => {
                // One that was lost meanwhile is somebody else's: there is nobody to tell, as the client has its tuple.
                let _ = held.done();
            }
            Some(open) => {
                self.requests.borrow_mut().insert(id, open);
            }
            None => {}
        }
    }

    fn give_up(&self, id: u64) {
        let open = self.requests.borrow_mut().remove(&id);
        if let Some(Open::Holds(held)) = open {
            held.give_back();
        }
    }

    /// Has a request that waits look now, and answers it if there is something. Returns whether it still waits.
    fn look_now(&self, id: u64, is_last: bool) -> bool {
        let requests = self.requests.borrow();
        let Some(Open::Waits(InLine { waiter: Some(waiter), .. })) = requests.get(&id) else {
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
        matches!(self.requests.borrow().get(&id), Some(Open::Waits(_)))
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
        if let Some(Open::Watches { was_told, has_more, .. }) = requests.get_mut(&id) {
            *was_told = std::mem::take(has_more);
            let happened = *was_told;
            drop(requests);
            let reply = if happened { Reply::Happened { id } } else { Reply::Waits { id } };
            self.reply(&reply);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for (_, open) in self.requests.borrow_mut().drain() {
            if let Open::Holds(held) = open {
                held.give_back();
            }
        }
    }
}
