//! What a connection has to remember: the requests that wait, who sleeps, and what may have to be said again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Weak};

use tupelo_protocol::{Fault, Reply, Request};

use crate::journal::{self, Fate, Frame};
use crate::opened::OpenSpace;
use crate::slot::{Sent, Slot};
use crate::wire::Wire;

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct State {
    /// `None` while there is none.
    pub(crate) wire: Option<Arc<Wire>>,
    /// The client's number in the session that there is, or was last.
    pub(crate) session: u64,
    /// The number of the server, if it has sessions.
    pub(crate) server: Option<u64>,
    /// How many frames were said that may have to be said again.
    pub(crate) sequence: u64,
    /// The requests that somebody is not done with, and what has come for them.
    pub(crate) slots: HashMap<u64, Slot>,
    /// What was said for good, and may not have arrived: with its place among all that was said.
    pub(crate) told: VecDeque<(u64, Frame)>,
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
        Self {
            wire: Some(Arc::new(wire)),
            session,
            server,
            sequence: 0,
            slots: HashMap::new(),
            told: VecDeque::new(),
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
            Request::Acknowledge { .. } | Request::Cancel { .. } => {
                self.told.push_back((sequence, frame));
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
                        has_last_answer: false,
                        needs_session: false,
                    });
                }
            }
        }
    }

    /// Puts an answer into the slot of its request, if anybody still wants it.
    pub(crate) fn deliver(&mut self, reply: &Reply<'_>, frame: &[u8]) {
        let id = reply.id().unwrap_or_default();
        let session = self.session;
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let sequence = slot.sent.as_ref().map_or(0, |sent| sent.sequence);
        let also = slot.put(reply, frame, session);
        // The server does what is said in its order: so all that was said before has arrived.
        while self.told.front().is_some_and(|(told, _)| *told < sequence) {
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
        // What was held is back, and what was given up has ended.
        self.told.clear();
        let needs = |slot: &Slot| {
            slot.sent.as_ref().is_some_and(|sent| !sent.has_last_answer || sent.needs_session)
        };
        let mut ids: Vec<(u64, u64)> = (self.slots.iter().filter(|(_, slot)| needs(slot)))
            .map(|(id, slot)| (slot.sent.as_ref().map_or(0, |sent| sent.sequence), *id))
            .collect();
        ids.sort_unstable();
        let mut again = Vec::new();
        for (_, id) in ids {
            let Some(slot) = self.slots.get_mut(&id) else { continue };
            slot.begin_anew();
            let (asked, sent) = (slot.asked.clone(), slot.sent.as_mut());
            let Some(sent) = sent else { continue };
            match journal::fate(sent, numbers, is_same_server, gone) {
                Ok(Fate::Again(frame)) => {
                    sent.frame = Arc::clone(&frame);
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
