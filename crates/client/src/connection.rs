//! One connection, shared by the threads of a process.
//!
//! Each request has a slot for its answer. Of the threads that wait for one, one *reads*: it sleeps on the socket, and
//! puts what comes into the slots, also those of others, whom it wakes. When its own answer is there, it passes the
//! reading on to another one that waits. So a single thread pays for no other, and no thread is needed while nobody
//! waits. (Rejected: a thread that reads for all, which costs two more switches per call, and is not there after a fork.)
//!
//! A connection outlives its socket: when that is lost, a thread makes another one (`reconnect.rs`), and what the server may
//! not have seen to is said again (`journal.rs`). Meanwhile those who wait go on waiting.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tupelo_protocol::{Fault, Key, REQUESTS_MAX, Reply, Request, code};

use crate::dial::Greeted;
use crate::journal::{self, Reopened};
use crate::notifier::RaisedCalls;
use crate::opened::OpenSpace;
use crate::reconnect;
use crate::server::Server;
use crate::slot::{Answer, Slot};
use crate::state::{State, Take};
use crate::wire::{Due, Wire, silent};

/// A connection behind its first handshake.
#[derive(Debug)]
pub(crate) struct Connection {
    me: Weak<Self>,
    pub(crate) server: Server,
    /// What messages call the server.
    pub(crate) address: String,
    number: u64,
    next: AtomicU64,
    state: Mutex<State>,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It was written.
    Written,
    /// It is said when there is a socket again.
    Later,
    /// The session that it was meant for is gone: it was not said.
    Stale,
}

impl Connection {
    /// A connection over the socket of `greeted`.
    pub(crate) fn new(greeted: Greeted, server: &Server) -> Arc<Self> {
        let address = server.endpoint.to_string();
        let (number, has_session) = (greeted.client, greeted.session);
        let server_number = has_session.map(|session| session.server);
        let state = State::new(greeted.into_wire(&address), number, server_number);
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            server: server.clone(),
            address,
            number,
            next: AtomicU64::new(1),
            state: Mutex::new(state),
        })
    }

    /// Equal for one and the same connection, whatever its socket.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The session that there is: what was left open in another one has ended.
    pub(crate) fn session(&self) -> u64 {
        self.state().session
    }

    /// The socket that there is, if there is one.
    pub(crate) fn wire(&self) -> Option<Arc<Wire>> {
        self.state().wire.clone()
    }

    /// Whether it can not be used any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.state().lost.is_some()
    }

    /// A number for a request, which has a slot for its answers from here on, until it is [forgotten](Self::forget).
    pub(crate) fn begin(&self) -> Result<(u64, Key), Fault> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        if let Some(lost) = &state.lost {
            return Err(lost.clone());
        }
        if state.slots.len() >= REQUESTS_MAX {
            return Err(Fault::limit(
                format!("no more than {REQUESTS_MAX} requests wait on one connection"),
                "end some, or use more processes",
            ));
        }
        state.slots.insert(id, Slot::default());
        Ok((id, Key(u128::from(state.session) << 64 | u128::from(id))))
    }

    /// What comes for this request from now on goes nowhere.
    pub(crate) fn forget(&self, id: u64) {
        self.state().slots.remove(&id);
    }

    /// Says something, in this session if one is named. It is said again, until the server has seen to it, as long as the session
    /// lasts.
    pub(crate) fn send(&self, request: &Request<'_>, session: Option<u64>) -> Result<Said, Fault> {
        let mut bytes = Vec::with_capacity(128);
        request.write(&mut bytes)?;
        let frame = Arc::new(bytes);
        loop {
            let wire = self.wire();
            let writing = wire.as_ref().map(|wire| wire.lock_writing());
            let mut state = self.state();
            if let Some(lost) = &state.lost {
                return Err(lost.clone());
            }
            if state.wire.as_ref().map(Arc::as_ptr) != wire.as_ref().map(Arc::as_ptr) {
                continue;
            }
            if session.is_some_and(|session| session != state.session) {
                return Ok(Said::Stale);
            }
            state.keep(request, &frame);
            drop(state);
            let Some(wire) = &wire else { return Ok(Said::Later) };
            let Err(error) = self.write(wire, &frame) else { return Ok(Said::Written) };
            drop(writing);
            self.lose(wire, &error)?;
            return Ok(Said::Later);
        }
    }

    /// Notices that the server has ended the connection, before what came on it is read to its end.
    pub(crate) fn look_for_end(&self) {
        if let Some(wire) = self.wire().filter(|wire| wire.is_closed()) {
            // Those who wait find out whether there will be another one.
            let _ = self.lose(&wire, &io::ErrorKind::ConnectionReset.into());
        }
    }

    /// What the server held for this request in an earlier session, and the space keeps; asked once.
    pub(crate) fn held_before(&self, id: u64) -> Option<Take> {
        self.state().held.remove(&id)
    }

    /// Whether it was said in this session, too, that what the request has taken has arrived.
    pub(crate) fn was_told_again(&self, id: u64) -> bool {
        self.state().told_again.remove(&id)
    }

    /// Waits until it is known whether there is a socket again.
    ///
    /// # Errors
    ///
    /// There will be none.
    pub(crate) fn settle(&self) -> Result<(), Fault> {
        let mut state = self.state();
        while state.wire.is_none() {
            if let Some(lost) = &state.lost {
                return Err(lost.clone());
            }
            let settled = Arc::clone(&state.settled);
            state = settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    fn write(&self, wire: &Arc<Wire>, bytes: &[u8]) -> io::Result<()> {
        wire.write(bytes, || self.read_unless_another_does(wire))
    }

    /// Waits for an answer to the request until `deadline` (`None`: for ever); `None` if there is none by then.
    ///
    /// # Errors
    ///
    /// That the connection was lost, and there will be no other.
    pub(crate) fn answer(
        &self,
        id: u64,
        deadline: Option<Instant>,
    ) -> Result<Option<Answer>, Fault> {
        let mut state = self.state();
        loop {
            if let Some(answer) = state.slots.get_mut(&id).and_then(Slot::take) {
                state.pass_reading_on();
                return Ok(Some(answer));
            }
            if let Some(lost) = &state.lost {
                return Err(lost.clone());
            }
            let is_over = deadline.is_some_and(|deadline| deadline <= Instant::now());
            let wire = state.wire.clone().filter(|_| !state.has_reader);
            let Some(wire) = wire else {
                if is_over {
                    return Ok(None);
                }
                state = sleep(state, id, deadline);
                continue;
            };
            state.has_reader = true;
            drop(state);
            // Also when the time is over: what has come by then has come in time.
            let came = self.read_for_all(&wire, deadline);
            state = self.state();
            state.has_reader = false;
            let came = match came {
                Ok(came) => came,
                Err(error) => {
                    drop(state);
                    // Those who wait find out whether there will be another one.
                    let _ = self.lose(&wire, &error);
                    state = self.state();
                    continue;
                }
            };
            if is_over && !came {
                state.pass_reading_on();
                return Ok(None);
            }
        }
    }

    /// Waits for something to come, and reads it. Returns whether something came.
    fn read_for_all(&self, wire: &Wire, deadline: Option<Instant>) -> io::Result<bool> {
        if wire.wait(deadline)? {
            return self.read(wire);
        }
        match wire.due() {
            Due::Nothing => {}
            Due::Ping => self.ping(wire)?,
            Due::End => return Err(silent()),
        }
        Ok(false)
    }

    /// Asks the server whether it is there. Nobody waits for the answer: anything that comes is one.
    fn ping(&self, wire: &Wire) -> io::Result<()> {
        let Some(_writing) = wire.try_lock_writing() else { return Ok(()) };
        let mut bytes = Vec::new();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        Request::Ping { id }.write(&mut bytes).map_err(io::Error::other)?;
        wire.write(&bytes, || Ok(()))
    }

    /// Reads what is there, and puts it where it belongs. Returns whether something was.
    fn read(&self, wire: &Wire) -> io::Result<bool> {
        wire.read(|frame| match Reply::read(frame)? {
            Reply::Refused { id: None, fault } => Err(fault),
            reply => {
                self.state().deliver_from(wire, &reply, frame);
                Ok(())
            }
        })
    }

    /// Notes that this socket can not be used any more, and has another one made.
    ///
    /// # Errors
    ///
    /// Why, if there will be no other one: everybody is told.
    fn lose(&self, wire: &Arc<Wire>, error: &io::Error) -> Result<(), Fault> {
        let mut state = self.state();
        if let Some(lost) = &state.lost {
            return Err(lost.clone());
        }
        if !state.wire.as_ref().is_some_and(|there| Arc::ptr_eq(there, wire)) {
            // Another thread has noticed it already.
            return Ok(());
        }
        let fault = lost(&self.address, error);
        state.wire = None;
        // A server that has refused would do so again.
        let is_refusal = error.get_ref().and_then(|e| e.downcast_ref::<Fault>()).is_some();
        if is_refusal || state.server.is_none() || self.server.reconnect.is_zero() {
            state.lose(&fault);
            return Err(fault);
        }
        state.ring_all();
        drop(state);
        let begun = reconnect::begin(&self.me, Arc::clone(wire), fault.clone());
        begun.map_err(|_| {
            self.state().lose(&fault);
            fault
        })
    }

    /// Gives the connection up: there is no other socket to be had.
    pub(crate) fn give_up(&self, fault: &Fault) {
        self.state().lose(fault);
    }

    /// Goes on over another socket, in the session that there was if the server has it, or else in a new one.
    pub(crate) fn go_on(&self, greeted: Greeted) {
        let (session, server) = (greeted.client, greeted.session);
        let resumed = server.is_some_and(|server| server.resumed);
        let wire = Arc::new(greeted.into_wire(&self.address));
        let spaces = self.state().open_spaces();
        let numbers = if resumed {
            Ok(HashMap::new())
        } else {
            spaces.iter().try_fold(HashMap::new(), |mut numbers, space| {
                let (before, now) = self.open_again(&wire, space)?;
                numbers.insert(before, now);
                Ok(numbers)
            })
        };
        let numbers = match numbers {
            Ok(numbers) => numbers,
            Err(error) => return self.lose_new(wire, &error),
        };
        // Held until all is said again: what is new comes behind it.
        let writing = wire.lock_writing();
        let frames = {
            let mut state = self.state();
            let frames = if resumed {
                journal::unanswered(state.slots.values(), state.told.iter())
            } else {
                let gone = journal::gone(&self.address);
                // Also one that has become open meanwhile, in the session that is gone.
                for space in state.open_spaces() {
                    space.go_on(session, &numbers, &gone);
                }
                let is_same_server = state.server == server.map(|server| server.server);
                (state.session, state.server) = (session, server.map(|server| server.server));
                state.begin_anew(&numbers, is_same_server, &gone)
            };
            for sent in state.slots.values_mut().filter_map(|slot| slot.sent.as_mut()) {
                sent.was_written = true;
            }
            state.go_on_over(&wire);
            state.settled.notify_all();
            state.ring_all();
            frames
        };
        let written = frames.iter().try_for_each(|frame| self.write(&wire, frame));
        drop(writing);
        if let Err(error) = written {
            let _ = self.lose(&wire, &error);
        }
        self.state().pass_reading_on();
    }

    /// A socket that was made, and did not last until it was used: another one is to be made.
    fn lose_new(&self, wire: Arc<Wire>, error: &io::Error) {
        let fault = lost(&self.address, error);
        if reconnect::begin(&self.me, wire, fault.clone()).is_err() {
            self.give_up(&fault);
        }
    }

    /// Opens a space over a socket that nobody else uses yet. Returns the number that it had, and the one that it has.
    fn open_again(
        &self,
        wire: &Wire,
        space: &OpenSpace,
    ) -> io::Result<(u32, Result<Reopened, Fault>)> {
        let before = space.number().map_or(u32::MAX, |(_, number)| number);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut bytes = Vec::new();
        space.request(id).write(&mut bytes).map_err(io::Error::other)?;
        wire.write(&bytes, || Ok(()))?;
        let mut opened = None;
        while opened.is_none() {
            wire.wait(None)?;
            if matches!(wire.due(), Due::End) {
                return Err(silent());
            }
            wire.read(|frame| {
                match Reply::read(frame)? {
                    Reply::Opened { space: number, keeper, .. } => {
                        opened = Some(Ok(space.reopened(number, keeper)));
                    }
                    Reply::Refused { id: Some(_), fault } => opened = Some(Err(fault)),
                    Reply::Refused { id: None, fault } => return Err(fault),
                    _ => {}
                }
                Ok(())
            })?;
        }
        Ok((before, opened.unwrap_or_else(|| Ok(space.reopened(u32::MAX, None)))))
    }

    /// Has a space opened again in each new session. False if the session has changed since it was opened.
    pub(crate) fn keep_open(&self, space: &Arc<OpenSpace>, session: u64) -> bool {
        let mut state = self.state();
        if state.session != session {
            return false;
        }
        state.spaces.retain(|space| space.strong_count() > 0);
        state.spaces.push(Arc::downgrade(space));
        true
    }

    /// Has a notifier told of answers to the request.
    pub(crate) fn ring_for(&self, id: u64, notifier: Option<(Arc<RaisedCalls>, u32)>) {
        let mut state = self.state();
        if let Some(slot) = state.slots.get_mut(&id) {
            slot.ring_for(notifier);
        }
        if state.lost.is_some() {
            state.slots.get(&id).into_iter().for_each(Slot::ring);
        }
    }

    /// Has a watch told, too, of answers to the request.
    pub(crate) fn wake(&self, id: u64, watch: u64) {
        if let Some(slot) = self.state().slots.get_mut(&id) {
            slot.wake(watch);
        }
    }

    /// Tells a watch that something may have happened.
    pub(crate) fn rouse(&self, watch: u64) {
        self.state().rouse(watch);
    }

    /// Whether something has happened to what the request watches; asked once of each.
    pub(crate) fn take_happening(&self, id: u64) -> bool {
        self.state().slots.get_mut(&id).is_some_and(Slot::take_happening)
    }

    /// Whether there is an answer to the request that says more than that it waits.
    pub(crate) fn has_news(&self, id: u64) -> bool {
        self.state().slots.get(&id).is_some_and(Slot::has_news)
    }

    /// As [`Connection::read_now`], for an owner of calls that wait, who comes by at least once a second.
    ///
    /// A server that says nothing is asked whether it is there, and lost if it does not answer.
    pub(crate) fn tend(&self) {
        self.read_now();
        let Some(wire) = self.wire() else { return };
        wire.note_that_somebody_waits();
        let tended = match wire.due() {
            // Who comes by waits for nothing. A server that takes nothing is given up like one that says nothing.
            Due::Ping if wire.has_room() => self.ping(&wire),
            Due::Ping | Due::Nothing => Ok(()),
            Due::End => Err(silent()),
        };
        if let Err(error) = tended {
            // Those who wait find out whether there will be another one.
            let _ = self.lose(&wire, &error);
        }
    }

    /// Reads what has come, without waiting for more. If another thread reads, that tells whom it concerns.
    pub(crate) fn read_now(&self) {
        let Some(wire) = self.wire() else { return };
        if let Err(error) = self.read_unless_another_does(&wire) {
            // Those who wait find out whether there will be another one.
            let _ = self.lose(&wire, &error);
        }
    }

    /// Reads what has come, as the one that reads: what another one waits for at the socket must not be read behind its back,
    /// as nothing would wake it.
    fn read_unless_another_does(&self, wire: &Wire) -> io::Result<()> {
        let mut state = self.state();
        if std::mem::replace(&mut state.has_reader, true) {
            return Ok(());
        }
        drop(state);
        let came = loop {
            match self.read(wire) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let mut state = self.state();
        state.has_reader = false;
        state.pass_reading_on();
        came
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Longest sleep of a thread that another one is to wake: it looks then whether that still reads.
const SLEEP: Duration = Duration::from_secs(1);

/// Sleeps until the answer has been read, or it is this one's grant to read, or the time is over.
fn sleep(
    mut state: MutexGuard<'_, State>,
    id: u64,
    deadline: Option<Instant>,
) -> MutexGuard<'_, State> {
    let told = Arc::new(Condvar::new());
    state.sleepers.insert(id, Arc::clone(&told));
    let left =
        deadline.map_or(SLEEP, |deadline| deadline.saturating_duration_since(Instant::now()));
    let mut state =
        told.wait_timeout(state, left.min(SLEEP)).unwrap_or_else(PoisonError::into_inner).0;
    state.sleepers.remove(&id);
    state
}

/// What is said of a connection that was lost; what the server itself has said comes first.
fn lost(address: &str, error: &io::Error) -> Fault {
    let said = error.get_ref().and_then(|error| error.downcast_ref::<Fault>());
    if let Some(said) = said {
        return said.clone();
    }
    let message = format!("the connection to the server at {address} was lost ({error})");
    Fault::new(
        code::CONNECTION_LOST,
        message,
        Some("is the server running? the next call connects again"),
    )
}
