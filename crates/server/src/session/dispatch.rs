//! What a frame asks for, and the way of its answer.

use std::cell::RefCell;
use std::rc::Rc;

use tupelo_protocol::{Fault, Key, Operation, REQUESTS_MAX, Reply, Request};

use super::{Place, Session};
use crate::answers::{Answer, Answers};
use crate::{asked, keyed};

impl Session {
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

    /// The answers among which that to a request with this key is, or will be: also to one of an earlier session of the client.
    fn answers_of(&self, key: Key) -> Rc<RefCell<Answers>> {
        let client = u64::try_from(key.0 >> 64).ok().filter(|_| self.client.is_some());
        match client.filter(|client| Some(*client) != self.client) {
            None => Rc::clone(&self.answers),
            Some(client) => self.shared.clients.borrow_mut().of(self.principal.name(), client),
        }
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

    pub(super) fn reply(&self, reply: &Reply<'_>) {
        if let Err(fault) = self.outbox.push(reply)
            && let Some(id) = reply.id()
        {
            // It is too large for a frame. What is held for it goes back.
            self.give_up(id);
            self.refuse(id, fault);
        }
    }

    pub(super) fn refuse(&self, id: u64, fault: Fault) {
        self.shared.audit.note_refused(&self.principal, &fault);
        self.reply(&Reply::Refused { id: Some(id), fault });
    }

    pub(super) fn answer(&self, id: u64, answer: &Answer) {
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
}
