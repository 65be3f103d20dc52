//! What a request has left open at the server: a lease, a claim, a transaction.

use std::sync::Arc;

use tupelo_protocol::{Fault, Found, Kept, Operation, Pending, Request, Target, Visitor};
use tupelo_shm::process::fork_generation;

use crate::pending::Waiting;
use crate::space::{On, Session, call};

/// What a request of this process has left open.
#[derive(Debug)]
pub(crate) struct LeftOpen {
    session: Arc<Session>,
    /// The request.
    id: u64,
    /// That in which it was left open: it ends with it.
    session_number: u64,
    /// When it was begun, as forks are counted: a child's copy of it is not the child's.
    fork_generation: u32,
}

impl LeftOpen {
    pub(crate) fn new(session: Arc<Session>, id: u64, session_number: u64) -> Self {
        Self { session, id, session_number, fork_generation: fork_generation() }
    }

    fn is_own(&self) -> bool {
        self.fork_generation == fork_generation()
    }

    /// Refuses the child of a fork, whose connection is another one.
    fn require_own(&self) -> Result<(), Fault> {
        if self.is_own() {
            return Ok(());
        }
        let message = "this belongs to the connection of the process that this one was forked from";
        Err(Fault::misuse(message, "use it there, or begin another one here"))
    }

    fn target(&self, at: u32) -> On {
        On::Kept { session: self.session_number, target: Target::Kept { request: self.id, at } }
    }
}

impl Kept for LeftOpen {
    fn call(&self, at: u32, operation: &Operation<'_>, visit: Visitor<'_>) -> Result<Found, Fault> {
        self.require_own()?;
        call(&self.session, self.target(at), operation, visit).map(|done| done.found)
    }

    fn wait(&self, at: u32, operation: &Operation<'_>) -> Result<Box<dyn Pending>, Fault> {
        self.require_own()?;
        let waiting = Waiting::begin(Arc::clone(&self.session), self.target(at), operation)?;
        Ok(Box::new(waiting))
    }

    fn post(&self, operation: &Operation<'_>) {
        if !self.is_own() {
            return;
        }
        let connection = &self.session.connection;
        // A connection that is lost, and a session that is gone, have ended it already.
        if let Ok((id, key)) = connection.begin() {
            let key = operation.changes().then_some(key);
            let on = Target::Kept { request: self.id, at: 0 };
            let request = Request::Do { id, on, key, operation: *operation };
            let _ = connection.send(&request, Some(self.session_number));
            connection.forget(id);
        }
    }
}

impl Drop for LeftOpen {
    fn drop(&mut self) {
        if self.is_own() {
            let cancel = Request::Cancel { id: self.id };
            let _ = self.session.connection.send(&cancel, Some(self.session_number));
        }
    }
}
