//! What a client was given and has not acknowledged, and what its requests have left open (rules L5, V3).

use std::rc::Rc;

use tokio::time::Instant;
use tupelo::Claim;
use tupelo_protocol::{Fault, Reply};

use super::{Open, Session};
use crate::answers::Answer;
use crate::hosted::Hosted;
use crate::kept::{Held, Kept};
use crate::meters::Handed;

impl Session {
    /// Gives tuples to the client, to be acknowledged.
    pub(crate) fn give(&self, id: u64, held: Held, tuples: &[u8], handed: Handed) {
        let kept = if self.outlives.get() { tuples.to_vec() } else { Vec::new() };
        self.requests.borrow_mut().insert(id, Open::Holds(held, Rc::new(kept), handed));
        self.held.borrow_mut().push_back((Instant::now(), id));
        let tuples = tupelo_protocol::Tuples::of_encoding(tuples);
        self.reply(&Reply::Found { id, held: true, tuples });
    }

    /// Gives a claim to the client, which is open from then on.
    pub(crate) fn give_claim(&self, id: u64, claim: Claim, hosted: &Rc<Hosted>, tuples: &[u8]) {
        let answer = Answer::Found(Rc::new(tuples.to_vec()));
        let kept = Kept::Claim(claim, Rc::clone(hosted), self.pending.share());
        self.keep(id, kept, answer.clone());
        self.answer(id, &answer);
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

    pub(super) fn acknowledge(&self, id: u64) {
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

    /// Leaves something open, until the client lets it go. `answer` is what the request is answered.
    pub(crate) fn keep(&self, id: u64, kept: Kept, answer: Answer) {
        self.requests.borrow_mut().insert(id, Open::Keeps(Rc::new(kept), answer));
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

    /// Forgets what a request has left open, if it was ended.
    pub(crate) fn forget_if_ended(&self, request: u64, kept: &Kept) {
        if kept.is_ended() {
            self.requests.borrow_mut().remove(&request);
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

    /// Answers a request again that came over an earlier connection of the session. False if there is no such one.
    pub(super) fn repeat(&self, id: u64) -> bool {
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
}
