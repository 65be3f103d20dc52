//! First answers of requests that change something, so that a request which is sent twice happens once.
//!
//! Kept in memory: they end with the server, but for those that a space keeps, too (`keyed.rs`). What a take has found is not here: that is held, for its connection.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use tupelo_protocol::{Fault, Key};

/// Answers that are kept of each client, the newest.
const ANSWERS_MAX: usize = 1024;
/// Bytes of tuples in them.
const BYTES_MAX: usize = 1 << 20;
/// Clients of which answers are kept, the newest.
const CLIENTS_MAX: usize = 4096;

/// An answer that can be given again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done(u64),
    Nothing,
    Found(Rc<Vec<u8>>),
    Refused(Fault),
}

/// The answers of one client.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    by_key: HashMap<Key, Answer>,
    order: VecDeque<Key>,
    bytes: usize,
}

impl Answer {
    fn bytes(&self) -> usize {
        if let Self::Found(tuples) = self { tuples.len() } else { 0 }
    }
}

impl Answers {
    /// What a request with this key was answered.
    pub(crate) fn get(&self, key: Key) -> Option<&Answer> {
        self.by_key.get(&key)
    }

    /// Notes what a request with this key was answered.
    pub(crate) fn note(&mut self, key: Key, answer: Answer) {
        self.bytes += answer.bytes();
        match self.by_key.insert(key, answer) {
            None => self.order.push_back(key),
            Some(before) => self.bytes -= before.bytes(),
        }
        while self.order.len() > ANSWERS_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            self.bytes -= self.by_key.remove(&oldest).map_or(0, |oldest| oldest.bytes());
        }
    }
}

/// The answers of all clients, by the name of the client's token and the client's number: nobody has another one's.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    by_number: HashMap<(String, u64), Rc<RefCell<Answers>>>,
    order: VecDeque<(String, u64)>,
}

impl Clients {
    /// Those of a client, which may have been here before.
    pub(crate) fn of(&mut self, name: &str, client: u64) -> Rc<RefCell<Answers>> {
        let client = (name.to_owned(), client);
        if let Some(known) = self.by_number.get(&client) {
            return Rc::clone(known);
        }
        let answers = Rc::new(RefCell::default());
        self.by_number.insert(client.clone(), Rc::clone(&answers));
        self.order.push_back(client);
        if self.order.len() > CLIENTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_number.remove(&oldest);
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use tupelo_protocol::Key;

    use super::{ANSWERS_MAX, Answer, Answers, BYTES_MAX, CLIENTS_MAX, Clients};

    #[test]
    fn the_newest_answers_of_the_newest_clients_are_kept() {
        let mut answers = Answers::default();
        for number in 0..=ANSWERS_MAX as u64 {
            answers.note(Key(u128::from(number)), Answer::Done(number));
        }
        assert_eq!(answers.get(Key(0)), None);
        assert_eq!(answers.get(Key(1)), Some(&Answer::Done(1)));
        assert_eq!(answers.by_key.len(), ANSWERS_MAX);
        let half = Rc::new(vec![0; BYTES_MAX / 2]);
        for number in [7, 8, 9] {
            answers.note(Key(number << 64), Answer::Found(Rc::clone(&half)));
        }
        assert_eq!((answers.by_key.len(), answers.bytes), (2, BYTES_MAX));
        let mut clients = Clients::default();
        clients.of("", 0).borrow_mut().note(Key(7), Answer::Nothing);
        assert!(clients.of("", 0).borrow().get(Key(7)).is_some());
        assert!(clients.of("ci", 0).borrow().get(Key(7)).is_none());
        (1..=CLIENTS_MAX as u64).for_each(|client| drop(clients.of("", client)));
        assert!(clients.of("", 0).borrow().get(Key(7)).is_none());
    }
}
