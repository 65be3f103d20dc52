//! The requests that wait: for a tuple, for a change, for room, for events (rules T1, T5).

use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;
use tupelo::Waiter;
use tupelo_protocol::{Fault, Reply};

use super::{Open, Place, Session};
use crate::answers::Answer;
use crate::asked::{self, Purpose};
use crate::hosted::Hosted;
use crate::kept::Kept;
use crate::meters::Handed;
use crate::outbox::About;
use crate::quotas::InUse;

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

    /// What a take that waits will have found outlives this server, by this key.
    pub(crate) fn set_take(&self, id: u64, request: (u128, u64)) {
        if let Some(Open::Waits(line, _)) = self.requests.borrow_mut().get_mut(&id) {
            line.take = Some(request);
        }
    }

    /// The place in the wait queue of a request that watches, or waits for room.
    pub(crate) fn watching(&self, request: u64) -> Option<Rc<QueuedWait>> {
        match self.requests.borrow().get(&request) {
            Some(Open::Watches { waiting, .. }) => Some(Rc::clone(waiting)),
            _ => None,
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

    /// The subscription whose events a request waits for.
    pub(super) fn subscription_of(&self, id: u64) -> Option<Rc<Kept>> {
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
    pub(super) fn end(&self, id: u64) {
        if self.look_now(id, true) || self.watches(id) {
            self.give_up(id);
            self.reply(&Reply::Nothing { id });
        }
    }

    pub(super) fn look(&self, id: u64) {
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
