//! Where the answers to a request go.

use std::sync::Arc;

use tupelo_protocol::Reply;

use crate::journal::{Frame, ends_with_session};
use crate::notifier::RaisedCalls;
use crate::state::Take;

/// A request that was said, until its caller is done with it.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Its place among all that was said.
    pub(crate) sequence: u64,
    pub(crate) frame: Frame,
    /// Whether the server may have read it.
    pub(crate) was_written: bool,
    /// Whether it needs not be said again in the same session.
    pub(crate) has_last_answer: bool,
    /// Whether what it was answered ends with the session.
    pub(crate) needs_session: bool,
    /// What another server knows it by, if it is a take.
    pub(crate) take: Option<Take>,
}

/// An answer, and the session in which it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) frame: Vec<u8>,
    /// The client's number in it.
    pub(crate) session: u64,
}

/// The place of a request's answers.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The request.
    pub(crate) sent: Option<Sent>,
    /// What was asked about it, and has no answer.
    pub(crate) asked: Option<Frame>,
    /// The newest that nobody has taken, which says all.
    answer: Option<Answer>,
    /// Whether that says more than that the request waits.
    is_news: bool,
    /// Who is told of an answer, and by which number.
    notifier: Option<(Arc<RaisedCalls>, u32)>,
    /// The request that is told, too: a watch.
    wakes: Option<u64>,
}

impl Slot {
    /// The newest answer, once.
    pub(crate) fn take(&mut self) -> Option<Answer> {
        self.answer.take()
    }

    /// Whether something has happened to what the request watches; asked once of each.
    pub(crate) fn take_happening(&mut self) -> bool {
        let happened = self.answer.as_ref().map(|answer| Reply::read(&answer.frame));
        let happened = matches!(happened, Some(Ok(Reply::Happened { .. })));
        if happened {
            self.answer = None;
        }
        happened
    }

    /// Puts an answer in that came in this session. Returns the request that is told, too, if it is news.
    pub(crate) fn put(&mut self, reply: &Reply<'_>, frame: &[u8], session: u64) -> Option<u64> {
        let is_news = !matches!(reply, Reply::Waits { .. });
        if !matches!(reply, Reply::Happened { .. }) {
            self.asked = None;
        }
        if !matches!(reply, Reply::Waits { .. } | Reply::Happened { .. })
            && let Some(sent) = &mut self.sent
        {
            sent.has_last_answer = true;
            sent.needs_session = ends_with_session(&sent.frame, reply);
        }
        self.put_frame(Answer { frame: frame.to_vec(), session }, is_news)
    }

    fn put_frame(&mut self, answer: Answer, is_news: bool) -> Option<u64> {
        if !is_news && self.has_news() {
            // That something has happened before it was looked at is still to be told.
            return None;
        }
        (self.answer, self.is_news) = (Some(answer), is_news);
        if !is_news {
            return None;
        }
        self.ring();
        self.wakes
    }

    /// Puts in that something has happened, unless an answer is there.
    pub(crate) fn put_happening(&mut self, id: u64) {
        // Nothing of it ends with a session.
        let session = 0;
        if !self.has_news() {
            let mut frame = Vec::new();
            // A frame is its length, which nobody needs here, and its content.
            let happened = Reply::Happened { id };
            if happened.write(&mut frame).is_ok() {
                let frame = frame.split_off(4);
                (self.answer, self.is_news) = (Some(Answer { frame, session }), true);
            }
        }
        self.ring();
    }

    /// Forgets an answer that has ended with its session: the request is said again.
    pub(crate) fn begin_anew(&mut self) {
        (self.answer, self.is_news) = (None, false);
        if let Some(sent) = &mut self.sent {
            (sent.has_last_answer, sent.needs_session) = (false, false);
        }
    }

    /// Whether there is an answer that nobody has taken, and that says more than that the request waits.
    pub(crate) fn has_news(&self) -> bool {
        self.is_news && self.answer.is_some()
    }

    /// Tells the notifier, if there is one.
    pub(crate) fn ring(&self) {
        if let Some((raised, number)) = &self.notifier {
            raised.ring(*number);
        }
    }

    /// Has this notifier told from now on, and at once if there is an answer.
    pub(crate) fn ring_for(&mut self, notifier: Option<(Arc<RaisedCalls>, u32)>) {
        self.notifier = notifier;
        if self.has_news() {
            self.ring();
        }
    }

    /// Has another request told, too.
    pub(crate) fn wake(&mut self, other: u64) {
        self.wakes = Some(other);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use tupelo_protocol::Reply;

    use super::Slot;

    fn put(slot: &mut Slot, reply: &Reply<'_>) {
        let mut frame = Vec::new();
        reply.write(&mut frame).unwrap();
        slot.put(reply, &frame.split_off(4), 1);
    }

    #[test]
    fn that_something_has_happened_is_not_forgotten_for_an_answer_that_it_waits() {
        let mut slot = Slot::default();
        put(&mut slot, &Reply::Waits { id: 7 });
        assert!(!slot.has_news() && !slot.take_happening());
        put(&mut slot, &Reply::Happened { id: 7 });
        put(&mut slot, &Reply::Waits { id: 7 });
        assert!(slot.has_news() && slot.take_happening());
        assert!(!slot.has_news());
        slot.put_happening(7);
        assert!(slot.has_news() && slot.take_happening());
    }
}
