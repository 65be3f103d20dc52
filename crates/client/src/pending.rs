//! A call that waits at the server.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tupelo_protocol::{AtEnd, Fault, Operation, Pending, PickedUp, Reply, Request, Visitor};
use tupelo_shm::process::fork_generation;
use tupelo_shm::surroundings::{is_interrupted, outside, slice};

use crate::connection::{Connection, Said};
use crate::grant;
use crate::kept::LeftOpen;
use crate::slot::Answer;
use crate::space::{Answered, LATE, On, Session, interrupted, show, unexpected};

/// How long the server may take to say what there is at the end of a wait. One that says nothing, or is not there, does not
/// hold a call up for longer: what it hands over later goes back.
const LAST_WORD: Duration = Duration::from_secs(4);

/// A place in the wait queue at the server, or a watch.
#[derive(Debug)]
pub(crate) struct Waiting {
    session: Arc<Session>,
    id: u64,
    is_watch: bool,
    /// Whether what it finds is left open: a claim.
    opens: bool,
    begin: Instant,
    /// When it was begun, as forks are counted: a child's copy of it is not the child's.
    fork_generation: u32,
    /// Whether the server has nothing to do with it any more.
    has_ended: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The answer with a tuple, until it is picked up.
    found: Option<Answer>,
    /// Whether it was asked at the first attempt to pick something up.
    has_looked: bool,
    /// Whether the server waits to be asked to look again: it has told a watch once.
    was_notified: bool,
}

/// What an answer means to who waits.
enum Progress {
    Something,
    Nothing,
    Waits,
}

impl Waiting {
    pub(crate) fn begin(
        session: Arc<Session>,
        on: On,
        operation: &Operation<'_>,
    ) -> Result<Self, Fault> {
        let (id, key) = session.connection.begin()?;
        let key = operation.changes().then_some(key);
        let waiting = Self {
            id,
            is_watch: matches!(operation, Operation::Watch { .. } | Operation::Room),
            opens: matches!(operation, Operation::Claim { .. }),
            begin: Instant::now(),
            fork_generation: fork_generation(),
            has_ended: AtomicBool::new(false),
            state: Mutex::default(),
            session,
        };
        outside(|| waiting.session.say(on, (id, key), operation))?;
        Ok(waiting)
    }

    /// Its connection, its request, and whether it watches.
    pub(crate) fn at(&self) -> (&Arc<Connection>, u64, bool) {
        (&self.session.connection, self.id, self.is_watch)
    }

    /// Whether something has come for it, or it has ended.
    pub(crate) fn has_something(&self) -> bool {
        let has_found = self.state.try_lock().is_ok_and(|state| state.found.is_some());
        has_found || self.has_ended.load(Ordering::Relaxed) || self.connection().has_news(self.id)
    }

    fn connection(&self) -> &Connection {
        &self.session.connection
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an answer until `deadline`, looking for Ctrl-C, and notes it.
    fn progress(
        &self,
        state: &mut State,
        deadline: Option<Instant>,
    ) -> Result<Option<Progress>, Fault> {
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

    fn note(&self, state: &mut State, answer: Answer) -> Result<Progress, Fault> {
        match Reply::read(&answer.frame)? {
            Reply::Found { .. } => {
                state.found = Some(answer);
                Ok(Progress::Something)
            }
            Reply::Happened { .. } => {
                state.was_notified = true;
                Ok(Progress::Something)
            }
            Reply::Waits { .. } => Ok(Progress::Waits),
            Reply::Nothing { .. } => {
                self.has_ended.store(true, Ordering::Relaxed);
                Ok(Progress::Nothing)
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
        if self.connection().send(request, None)? == Said::Later {
            // There is nobody who could answer.
            return Ok(false);
        }
        let deadline = Instant::now().checked_add(LAST_WORD);
        Ok(matches!(self.progress(state, deadline)?, Some(Progress::Something)))
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
        if std::mem::take(&mut state.was_notified) {
            self.connection().send(&Request::Look { id: self.id }, None)?;
        }
        loop {
            match self.progress(&mut state, deadline)? {
                Some(Progress::Something) => return Ok(true),
                Some(Progress::Nothing) => return Ok(false),
                // To an earlier look.
                Some(Progress::Waits) => {}
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

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    fn pick_up(self: Box<Self>, visit: Visitor<'_>) -> Result<PickedUp, Fault> {
        let mut state = self.state();
        if state.found.is_none() && !self.has_ended.load(Ordering::Relaxed) {
            let progress = self.progress(&mut state, Some(Instant::now()))?;
            // What was there when it joined the wait queue is picked up at once.
            if progress.is_none() && !std::mem::replace(&mut state.has_looked, true) {
                let state = &mut *state;
                outside(|| self.ask(state, &Request::Look { id: self.id }))?;
            }
        }
        let found = state.found.take();
        drop(state);
        let Some(found) = found else { return Ok(PickedUp::Waits(self)) };
        let Answer { frame, session } = &found;
        let Reply::Found { held, tuples, .. } = Reply::read(frame)? else {
            unreachable!("only such an answer is kept")
        };
        if held && self.begin.elapsed() >= LATE {
            // This process may have been stopped, and the server has given the tuple back meanwhile.
            self.connection().look_for_end();
            outside(|| self.connection().settle())?;
        }
        if (held || self.opens) && *session != self.connection().session() {
            // It is back, and was asked for again.
            return Ok(PickedUp::Waits(self));
        }
        let answered = Answered { id: self.id, session: *session, held, begin: self.begin };
        let seen = show(self.connection(), &answered, tuples, visit)?;
        self.has_ended.store(true, Ordering::Relaxed);
        if self.opens {
            // Let go when it is dropped, as here if not all was seen.
            let kept = Box::new(LeftOpen::new(Arc::clone(&self.session), self.id, *session));
            return Ok(if seen { PickedUp::Opened(kept) } else { PickedUp::BrokenOff });
        }
        Ok(if seen { PickedUp::Seen } else { PickedUp::BrokenOff })
    }

    fn with_grant(&self, act: &mut dyn FnMut()) {
        grant::run(self.connection(), self.id, act);
    }

    fn wakes(&self, watch: &dyn Pending) -> bool {
        let Some(watch) = (watch as &dyn Any).downcast_ref::<Self>() else { return false };
        let is_beside = Arc::ptr_eq(&self.session.connection, &watch.session.connection);
        if is_beside {
            self.connection().wake(self.id, watch.id);
            if self.has_something() {
                self.connection().rouse(watch.id);
            }
        }
        is_beside
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.fork_generation != fork_generation() {
            return;
        }
        if !self.has_ended.load(Ordering::Relaxed) {
            // A connection that is lost has given it up already.
            let _ = self.connection().send(&Request::Cancel { id: self.id }, None);
        }
        self.connection().forget(self.id);
    }
}
