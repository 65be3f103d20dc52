//! What a connection has to remember: the requests that wait, who sleeps, and what may have to be said again.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ptr;
use std::sync::{Arc, Condvar, Weak};

use tupelo_protocol::{Action, Amount, Fault, Key, Operation, Reply, Request, Target};

use crate::journal::{self, Fate, Frame};
use crate::opened::OpenSpace;
use crate::slot::{Sent, Slot};
use crate::wire::Wire;

/// A take, as any server of its space knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Take {
    /// The number of the space in the session.
    pub(crate) space: u32,
    pub(crate) key: Key,
}

impl Take {
    /// The take of a request, if it is one whose tuple the server holds.
    fn of(request: &Request<'_>) -> Option<Self> {
        match request {
            Request::Do {
                on: Target::Space(space),
                key: Some(key),
                operation: Operation::Find { action: Action::Take, amount: Amount::One, .. },
                ..
            } => Some(Self { space: *space, key: *key }),
            _ => None,
        }
    }

    /// What says whether its tuple has arrived.
    pub(crate) fn request(self, id: u64, arrived: bool) -> Request<'static> {
        let (on, operation) = (Target::Space(self.space), Operation::Taken { arrived });
        Request::Do { id, on, key: Some(self.key), operation }
    }

    /// The same with the number that its space has in a new session.
    fn in_session(self, numbers: &journal::Numbers) -> Option<Self> {
        let now = numbers.get(&self.space)?.as_ref().ok()?;
        Some(Self { space: now.number, ..self })
    }

    fn said(self, id: u64, arrived: bool) -> Result<Frame, Fault> {
        let mut bytes = Vec::new();
        self.request(id, arrived).write(&mut bytes)?;
        Ok(Arc::new(bytes))
    }
}

/// What was said for good.
#[derive(Debug)]
pub(crate) struct Told {
    /// Its place among all that was said.
    pub(crate) sequence: u64,
    pub(crate) frame: Frame,
    /// Of which take of which request, and whether its tuple has arrived.
    take: Option<(u64, Take, bool)>,
}

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct State {
    /// `None` while there is none.
    pub(crate) wire: Option<Arc<Wire>>,
    /// The last one that there was: also while there is none, an answer over an earlier one is of an earlier session.
    pub(crate) last_wire: Weak<Wire>,
    /// The client's number in the session that there is, or was last.
    pub(crate) session: u64,
    /// The number of the server, if it has sessions.
    pub(crate) server: Option<u64>,
    /// How many frames were said that may have to be said again.
    pub(crate) sequence: u64,
    /// The requests that somebody is not done with, and what has come for them.
    pub(crate) slots: HashMap<u64, Slot>,
    /// What was said for good, and may not have arrived.
    pub(crate) told: VecDeque<Told>,
    /// What the server holds for this client, by the request: in this session nothing was said of it.
    pub(crate) held: HashMap<u64, Take>,
    /// The takes whose tuples were said to have arrived in an earlier session, and now in this one.
    pub(crate) told_again: HashSet<u64>,
    /// The spaces that are open.
    pub(crate) spaces: Vec<Weak<OpenSpace>>,
    /// Who sleeps until somebody else has read its answer, or it is its turn to read; nobody who was woken for that.
    pub(crate) sleepers: BTreeMap<u64, Arc<Condvar>>,
    /// Told when there is a socket again, or never will be.
    pub(crate) settled: Arc<Condvar>,
    pub(crate) has_reader: bool,
    pub(crate) lost: Option<Fault>,
}

impl State {
    /// That of a connection with a socket.
    pub(crate) fn new(wire: Wire, session: u64, server: Option<u64>) -> Self {
        let wire = Arc::new(wire);
        Self {
            last_wire: Arc::downgrade(&wire),
            wire: Some(wire),
            session,
            server,
            sequence: 0,
            slots: HashMap::new(),
            told: VecDeque::new(),
            held: HashMap::new(),
            told_again: HashSet::new(),
            spaces: Vec::new(),
            sleepers: BTreeMap::new(),
            settled: Arc::default(),
            has_reader: false,
            lost: None,
        }
    }

    /// Keeps a frame that is about to be said, as long as it may have to be said again.
    pub(crate) fn keep(&mut self, request: &Request<'_>, frame: &Frame) {
        self.sequence += 1;
        let (sequence, frame) = (self.sequence, Arc::clone(frame));
        match request {
            Request::Acknowledge { id } | Request::Cancel { id } => {
                let arrived = matches!(request, Request::Acknowledge { .. });
                let take = self.held.remove(id).map(|take| (*id, take, arrived));
                self.told.push_back(Told { sequence, frame, take });
            }
            Request::End { id } | Request::Look { id } => {
                if let Some(slot) = self.slots.get_mut(id) {
                    slot.asked = Some(frame);
                }
            }
            _ => {
                if let Some(slot) = self.slots.get_mut(&request.id()) {
                    slot.sent = Some(Sent {
                        sequence,
                        frame,
                        was_written: self.wire.is_some(),
                        take: Take::of(request),
                        has_last_answer: false,
                        needs_session: false,
                    });
                }
            }
        }
    }

    /// Notes that there is another socket.
    pub(crate) fn go_on_over(&mut self, wire: &Arc<Wire>) {
        self.last_wire = Arc::downgrade(wire);
        self.wire = Some(Arc::clone(wire));
    }

    /// Delivers what has come over a socket. A thread may read an earlier one to its end, as it has not noticed that there is
    /// another one. The answers of that are dropped: they are of an earlier session, or were asked for again.
    pub(crate) fn deliver_from(&mut self, wire: &Wire, reply: &Reply<'_>, frame: &[u8]) {
        if ptr::eq(self.last_wire.as_ptr(), wire) {
            self.deliver(reply, frame);
        }
    }

    /// Puts an answer into the slot of its request, if anybody still wants it.
    pub(crate) fn deliver(&mut self, reply: &Reply<'_>, frame: &[u8]) {
        let id = reply.id().unwrap_or_default();
        let session = self.session;
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let sequence = slot.sent.as_ref().map_or(0, |sent| sent.sequence);
        let also = slot.put(reply, frame, session);
        let take = slot.sent.as_ref().and_then(|sent| sent.take);
        if let (Reply::Found { held: true, .. }, Some(take)) = (reply, take) {
            self.held.insert(id, take);
        }
        // The server does what is said in its order: so all that was said before has arrived.
        while self.told.front().is_some_and(|told| told.sequence < sequence) {
            self.told.pop_front();
        }
        if let Some(sleeper) = self.sleepers.remove(&id) {
            sleeper.notify_one();
        }
        if let Some(also) = also {
            self.rouse(also);
        }
    }

    /// Tells a watch that something may have happened.
    pub(crate) fn rouse(&mut self, watch: u64) {
        if let Some(slot) = self.slots.get_mut(&watch) {
            slot.put_happening(watch);
        }
        if let Some(sleeper) = self.sleepers.get(&watch) {
            sleeper.notify_one();
        }
    }

    /// The session is gone, and another one has begun: what can be said again is, and the others are told. Returns what is to be
    /// said.
    pub(crate) fn begin_anew(
        &mut self,
        numbers: &journal::Numbers,
        is_same_server: bool,
        gone: &Fault,
    ) -> Vec<Frame> {
        // What was held is back, and what was given up has ended; unless the spaces keep that beyond the end of their server.
        let mut again = if is_same_server { Vec::new() } else { self.tell_again(numbers) };
        self.told.clear();
        if is_same_server {
            self.held.clear();
        }
        let needs = |slot: &Slot| {
            slot.sent.as_ref().is_some_and(|sent| !sent.has_last_answer || sent.needs_session)
        };
        let mut ids: Vec<(u64, u64)> = (self.slots.iter().filter(|(_, slot)| needs(slot)))
            .map(|(id, slot)| (slot.sent.as_ref().map_or(0, |sent| sent.sequence), *id))
            .collect();
        ids.sort_unstable();
        for (_, id) in ids {
            let Some(slot) = self.slots.get_mut(&id) else { continue };
            slot.begin_anew();
            let (asked, sent) = (slot.asked.clone(), slot.sent.as_mut());
            let Some(sent) = sent else { continue };
            match journal::fate(sent, numbers, is_same_server, gone) {
                Ok(Fate::Again(frame)) => {
                    sent.frame = Arc::clone(&frame);
                    sent.take = sent.take.and_then(|take| take.in_session(numbers));
                    again.push(frame);
                    again.extend(asked);
                    if journal::watches(&sent.frame) {
                        // What happened meanwhile, nobody has told.
                        self.rouse(id);
                    }
                }
                Ok(Fate::Fault(fault)) | Err(fault) => self.refuse(id, fault),
            }
        }
        again
    }

    /// What another server is to be told of takes of the session that is gone. What is held still is known by the new numbers of its
    /// spaces from here on.
    fn tell_again(&mut self, numbers: &journal::Numbers) -> Vec<Frame> {
        let known = |take: Take| {
            let now = numbers.get(&take.space)?.as_ref().ok()?;
            if now.knows_keys { take.in_session(numbers) } else { None }
        };
        let held = self.held.drain().filter_map(|(id, take)| Some((id, known(take)?)));
        self.held = held.collect();
        self.told_again.clear();
        let mut again = Vec::new();
        for (id, take, arrived) in self.told.iter().filter_map(|told| told.take) {
            let said = known(take).and_then(|take| take.said(id, arrived).ok());
            if let Some(frame) = said {
                again.push(frame);
                if arrived {
                    self.told_again.insert(id);
                }
            }
        }
        again
    }

    /// Answers a request here.
    pub(crate) fn refuse(&mut self, id: u64, fault: Fault) {
        let (refused, mut bytes) = (Reply::Refused { id: Some(id), fault }, Vec::new());
        // A frame of a few hundred bytes.
        if refused.write(&mut bytes).is_ok() {
            self.deliver(&refused, journal::content(&Arc::new(bytes)));
        }
    }

    pub(crate) fn open_spaces(&self) -> Vec<Arc<OpenSpace>> {
        self.spaces.iter().filter_map(Weak::upgrade).collect()
    }

    /// Tells everybody that the connection can not be used any more.
    pub(crate) fn lose(&mut self, fault: &Fault) {
        self.wire = None;
        self.lost.get_or_insert_with(|| fault.clone());
        self.settled.notify_all();
        self.ring_all();
    }

    /// Has everybody look what there is.
    pub(crate) fn ring_all(&self) {
        for sleeper in self.sleepers.values() {
            sleeper.notify_one();
        }
        self.slots.values().for_each(Slot::ring);
    }

    /// Wakes one that sleeps, to read for the others: none of those that were woken for their answers.
    pub(crate) fn pass_reading_on(&mut self) {
        if !self.has_reader
            && let Some((_, sleeper)) = self.sleepers.pop_first()
        {
            sleeper.notify_one();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use tupelo_protocol::{FRAME_BYTES_MAX, Frames, Reply};

    use super::State;
    use crate::slot::Slot;
    use crate::wire::Wire;

    fn wire() -> Wire {
        let (socket, _) = UnixStream::pair().unwrap();
        Wire::new(socket.into(), None, Frames::new(FRAME_BYTES_MAX), "here")
    }

    #[test]
    fn what_comes_over_an_earlier_socket_is_of_no_session_that_there_is() {
        let mut state = State::new(wire(), 1, None);
        let before = state.wire.take().unwrap();
        let (reply, mut frame) = (Reply::Nothing { id: 7 }, Vec::new());
        reply.write(&mut frame).unwrap();
        let comes_over = |state: &mut State, wire: &Arc<Wire>| {
            state.slots.insert(7, Slot::default());
            state.deliver_from(wire, &reply, &frame[4..]);
            state.slots[&7].has_news()
        };
        assert!(comes_over(&mut state, &before), "there is no other one yet");
        let now = Arc::new(wire());
        state.go_on_over(&now);
        for _ in 0..2 {
            assert!(!comes_over(&mut state, &before));
            assert!(comes_over(&mut state, &now));
            state.wire = None;
        }
    }
}
