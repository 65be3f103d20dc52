//! Where the answers to a request go.

use std::sync::Arc;

use tupelo_protocol::Reply;

use crate::bell::Rung;

/// The place of a request's answers.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The newest that nobody has taken, which says all.
    answer: Option<Vec<u8>>,
    /// Whether that says more than that the request waits.
    is_news: bool,
    /// Who is told of an answer, and by which number.
    bell: Option<(Arc<Rung>, u32)>,
    /// The request that is told, too: a watch.
    wakes: Option<u64>,
}

impl Slot {
    /// The newest answer, once.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        self.answer.take()
    }

    /// Whether something has happened to what the request watches; asked once of each.
    pub(crate) fn take_happening(&mut self) -> bool {
        let happened = self.answer.as_deref().map(Reply::read);
        let happened = matches!(happened, Some(Ok(Reply::Happened { .. })));
        if happened {
            self.answer = None;
        }
        happened
    }

    /// Puts an answer in. Returns the request that is told, too, if it is news.
    pub(crate) fn put(&mut self, frame: &[u8], is_news: bool) -> Option<u64> {
        if !is_news && self.has_news() {
            // That something has happened before it was looked at is still to be told.
            return None;
        }
        (self.answer, self.is_news) = (Some(frame.to_vec()), is_news);
        if !is_news {
            return None;
        }
        self.ring();
        self.wakes
    }

    /// Puts in that something has happened, unless an answer is there.
    pub(crate) fn put_happening(&mut self, id: u64) {
        if !self.has_news() {
            let mut frame = Vec::new();
            // A frame is its length, which nobody needs here, and its content.
            let happened = Reply::Happened { id };
            if happened.write(&mut frame).is_ok() {
                (self.answer, self.is_news) = (frame.get(4..).map(<[u8]>::to_vec), true);
            }
        }
        self.ring();
    }

    /// Whether there is an answer that nobody has taken, and that says more than that the request waits.
    pub(crate) fn has_news(&self) -> bool {
        self.is_news && self.answer.is_some()
    }

    /// Tells the bell, if there is one.
    pub(crate) fn ring(&self) {
        if let Some((rung, number)) = &self.bell {
            rung.ring(*number);
        }
    }

    /// Has this bell told from now on, and at once if there is an answer.
    pub(crate) fn ring_for(&mut self, bell: Option<(Arc<Rung>, u32)>) {
        self.bell = bell;
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

    fn frame(reply: &Reply<'_>) -> Vec<u8> {
        let mut frame = Vec::new();
        reply.write(&mut frame).unwrap();
        frame.split_off(4)
    }

    #[test]
    fn that_something_has_happened_is_not_forgotten_for_an_answer_that_it_waits() {
        let mut slot = Slot::default();
        slot.put(&frame(&Reply::Waits { id: 7 }), false);
        assert!(!slot.has_news() && !slot.take_happening());
        slot.put(&frame(&Reply::Happened { id: 7 }), true);
        slot.put(&frame(&Reply::Waits { id: 7 }), false);
        assert!(slot.has_news() && slot.take_happening());
        assert!(!slot.has_news());
        slot.put_happening(7);
        assert!(slot.has_news() && slot.take_happening());
    }
}
