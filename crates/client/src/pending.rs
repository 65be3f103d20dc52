//! A call that waits at the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tupelo_protocol::{AtEnd, Fault, Operation, Pending, PickedUp, Reply, Request, Visitor};
use tupelo_shm::process::fork_generation;

use crate::connection::Connection;
use crate::space::{Session, interrupted, show, unexpected};
use crate::surroundings::{is_interrupted, slice};

/// A place in line at the server, or a watch.
#[derive(Debug)]
pub(crate) struct Waiting {
    session: Arc<Session>,
    id: u64,
    is_watch: bool,
    /// When it was begun, as forks are counted: a child's copy of it is not the child's.
    fork_generation: u32,
    /// Whether the server has nothing to do with it any more.
    has_ended: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The answer with a tuple, until it is picked up.
    found: Option<Vec<u8>>,
    /// Whether the server waits to be asked to look again: it has told a watch once.
    was_told: bool,
}

/// What an answer means to who waits.
enum Told {
    Something,
    Nothing,
    Waits,
}

impl Waiting {
    pub(crate) fn begin(session: Arc<Session>, operation: &Operation<'_>) -> Result<Self, Fault> {
        let (id, key) = session.connection.begin()?;
        let key = operation.changes().then_some(key);
        let waiting = Self {
            id,
            is_watch: matches!(operation, Operation::Watch { .. }),
            fork_generation: fork_generation(),
            has_ended: AtomicBool::new(false),
            state: Mutex::default(),
            session,
        };
        let Session { connection, space, .. } = &*waiting.session;
        connection.send(&Request::Do { id, space: *space, key, operation: *operation })?;
        Ok(waiting)
    }

    fn connection(&self) -> &Connection {
        &self.session.connection
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an answer until `deadline`, looking for Ctrl-C, and notes it.
    fn told(&self, state: &mut State, deadline: Option<Instant>) -> Result<Option<Told>, Fault> {
        loop {
            let slice_end = slice().map(|slice| Instant::now() + slice);
            let until = [deadline, slice_end].into_iter().flatten().min();
            if let Some(answer) = self.connection().answer(self.id, until)? {
                return self.note(state, answer).map(Some);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(None);
            }
            if is_interrupted() {
                return Err(interrupted());
            }
        }
    }

    fn note(&self, state: &mut State, answer: Vec<u8>) -> Result<Told, Fault> {
        match Reply::read(&answer)? {
            Reply::Found { .. } => {
                state.found = Some(answer);
                Ok(Told::Something)
            }
            Reply::Happened { .. } => {
                state.was_told = true;
                Ok(Told::Something)
            }
            Reply::Waits { .. } => Ok(Told::Waits),
            Reply::Nothing { .. } => {
                self.has_ended.store(true, Ordering::Relaxed);
                Ok(Told::Nothing)
            }
            Reply::Refused { fault, .. } => {
                self.has_ended.store(true, Ordering::Relaxed);
                Err(fault)
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Asks the server, and waits until it has said whether there is something.
    fn ask(&self, state: &mut State, request: &Request<'_>) -> Result<bool, Fault> {
        self.connection().send(request)?;
        Ok(matches!(self.told(state, None)?, Some(Told::Something)))
    }
}

impl Pending for Waiting {
    fn ready(&self, timeout: Option<Duration>, at_end: AtEnd) -> Result<bool, Fault> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.state();
        if state.found.is_some() {
            return Ok(true);
        }
        if self.has_ended.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if std::mem::take(&mut state.was_told) {
            self.connection().send(&Request::Look { id: self.id })?;
        }
        loop {
            match self.told(&mut state, deadline)? {
                Some(Told::Something) => return Ok(true),
                Some(Told::Nothing) => return Ok(false),
                // To an earlier look.
                Some(Told::Waits) => {}
                None => break,
            }
        }
        match at_end {
            AtEnd::Nothing => Ok(false),
            AtEnd::Look => self.ask(&mut state, &Request::Look { id: self.id }),
            AtEnd::End if self.is_watch => self.ask(&mut state, &Request::Look { id: self.id }),
            AtEnd::End => self.ask(&mut state, &Request::End { id: self.id }),
        }
    }

    fn pick_up(self: Box<Self>, visit: Visitor<'_>) -> Result<PickedUp, Fault> {
        let mut state = self.state();
        if state.found.is_none() && !self.has_ended.load(Ordering::Relaxed) {
            self.told(&mut state, Some(Instant::now()))?;
        }
        let found = state.found.take();
        drop(state);
        let Some(found) = found else { return Ok(PickedUp::Waits(self)) };
        let Reply::Found { held, tuples, .. } = Reply::read(&found)? else {
            unreachable!("only such an answer is kept")
        };
        self.has_ended.store(true, Ordering::Relaxed);
        let is_whole = show(self.connection(), (self.id, held), tuples, visit)?;
        Ok(if is_whole { PickedUp::Seen } else { PickedUp::BrokenOff })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.fork_generation != fork_generation() {
            return;
        }
        if !self.has_ended.load(Ordering::Relaxed) {
            // A connection that is lost has given it up already.
            let _ = self.connection().send(&Request::Cancel { id: self.id });
        }
        self.connection().forget(self.id);
    }
}
