//! One request of a client that comes over HTTP, through a session as all clients have one.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tupelo_protocol::{
    FRAME_BYTES_MAX, Fault, Frames, Key, Opened, Operation, Reply, Request, Target,
};

use crate::Shared;
use crate::rights::Principal;
use crate::session::Session;

/// Bytes of the length in front of a frame.
const LENGTH_BYTES: usize = 4;
/// The numbers of the first two requests that a client over HTTP makes.
const OPEN: u64 = 0;
const ASK: u64 = 1;

/// A client with a space that it has open. Dropped, it gives back what it has not acknowledged.
pub(super) struct Exchange {
    session: Rc<Session>,
    frames: RefCell<Frames>,
    space: u32,
    /// The number of the last request.
    last: Cell<u64>,
}

impl Exchange {
    /// Opens a space. `key` is what the client's retries have in common, if it has one.
    pub(super) fn open(
        (shared, principal): (&Rc<Shared>, &Rc<Principal>),
        opened: Opened<'_>,
        key: Option<Key>,
    ) -> Result<Self, Fault> {
        // The answers to earlier requests are found by the number of their client, which is in the key.
        let client = key.and_then(|key| u64::try_from(key.0 >> 64).ok());
        // Its answers are held back by whoever answers the request.
        let session = Session::new(shared, Rc::clone(principal), client);
        let frames = RefCell::new(Frames::new(FRAME_BYTES_MAX));
        let mut exchange = Self { session, frames, space: 0, last: Cell::new(ASK) };
        exchange.send(&Request::Open { id: OPEN, opened })?;
        exchange.space = exchange
            .answered(|reply| match reply {
                Reply::Opened { space, .. } => Ok(space),
                other => Err(refusal(&other)),
            })?
            .unwrap_or_else(|| Err(unanswered()))?;
        Ok(exchange)
    }

    /// Has an operation done, and shows its last answer to `show`. One that waits ends when `timeout` is over (`None`:
    /// never), or the server ends. Returns the request too, if its tuples are held until it acknowledges them.
    pub(super) async fn ask<R>(
        &self,
        asked: (&Operation<'_>, Option<Key>),
        timeout: Option<Duration>,
        ended: watch::Receiver<()>,
        show: impl FnMut(&Reply<'_>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        self.say((ASK, Target::Space(self.space)), asked)?;
        self.receive(ASK, timeout, ended, show).await
    }

    /// As [`ask`](Self::ask), of what that has left open, and without an end.
    pub(super) async fn ask_of_kept<R>(
        &self,
        operation: &Operation<'_>,
        ended: watch::Receiver<()>,
        show: impl FnMut(&Reply<'_>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let id = self.say_to_kept(operation)?;
        self.receive(id, None, ended, show).await
    }

    /// As [`ask_of_kept`](Self::ask_of_kept), for what is answered at once.
    pub(super) fn ask_now(&self, operation: &Operation<'_>) -> Result<(), Fault> {
        self.ask_kept_now(operation, |_| Ok(()))
    }

    /// The same, and shows the answer, which has arrived with that.
    pub(super) fn ask_kept_now<R>(
        &self,
        operation: &Operation<'_>,
        show: impl FnOnce(&Reply<'_>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let id = self.say_to_kept(operation)?;
        let mut is_held = false;
        let shown = self.answered(|reply| match reply {
            Reply::Refused { fault, .. } => Err(fault),
            reply => {
                is_held = matches!(reply, Reply::Found { held: true, .. });
                show(&reply)
            }
        })?;
        let shown = shown.unwrap_or_else(|| Err(unanswered()));
        if is_held {
            let end =
                if shown.is_ok() { Request::Acknowledge { id } } else { Request::Cancel { id } };
            self.send(&end)?;
        }
        shown
    }

    fn say_to_kept(&self, operation: &Operation<'_>) -> Result<u64, Fault> {
        let id = self.last.get() + 1;
        self.last.set(id);
        self.say((id, Target::Kept { request: ASK, at: 0 }), (operation, None))?;
        Ok(id)
    }

    fn say(
        &self,
        (id, on): (u64, Target),
        (operation, key): (&Operation<'_>, Option<Key>),
    ) -> Result<(), Fault> {
        // Without a key of the client's: nobody sends this one again.
        let key = operation.changes().then(|| key.unwrap_or(Key(u128::from(id))));
        self.send(&Request::Do { id, on, key, operation: *operation })
    }

    async fn receive<R>(
        &self,
        id: u64,
        timeout: Option<Duration>,
        mut ended: watch::Receiver<()>,
        mut show: impl FnMut(&Reply<'_>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let mut deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let answered = self.answered(|reply| match reply {
                Reply::Refused { .. } => Err(refusal(&reply)),
                reply => show(&reply),
            })?;
            if let Some(answered) = answered {
                return answered;
            }
            let over = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.session.outbox.filled.notified() => continue,
                () = over => {}
                _ = ended.changed() => {}
            }
            // Its last answer is due at once.
            deadline = None;
            self.send(&Request::End { id })?;
        }
    }

    /// Begins a subscription or a scan, of which is asked from then on.
    pub(super) fn leave_open(&self, operation: &Operation<'_>) -> Result<(), Fault> {
        self.say((ASK, Target::Space(self.space)), (operation, None))?;
        self.answered(|reply| match reply {
            Reply::Refused { fault, .. } => Err(fault),
            _ => Ok(()),
        })?
        .unwrap_or_else(|| Err(unanswered()))
    }

    /// What was answered is not wanted: it is back as if it had not been asked for.
    pub(super) fn give_up(&self) {
        // A request that makes sense is not refused.
        let _ = self.send(&Request::Cancel { id: ASK });
    }

    /// What was answered has arrived.
    pub(super) fn acknowledge(&self) {
        // A request that makes sense is not refused; one that was not held is none.
        let _ = self.send(&Request::Acknowledge { id: ASK });
    }

    fn send(&self, request: &Request<'_>) -> Result<(), Fault> {
        let mut frame = Vec::with_capacity(128);
        request.write(&mut frame)?;
        self.session.serve(&frame[LENGTH_BYTES..])
    }

    /// What `show` makes of the next answer, if there is one.
    fn answered<R>(
        &self,
        show: impl FnOnce(Reply<'_>) -> Result<R, Fault>,
    ) -> Result<Option<Result<R, Fault>>, Fault> {
        let mut frames = self.frames.borrow_mut();
        frames.add(&self.session.outbox.take());
        let Some(frame) = frames.next_frame()? else { return Ok(None) };
        Ok(Some(show(Reply::read(frame)?)))
    }
}

/// The fault of a refusal; or that it is none.
fn refusal(reply: &Reply<'_>) -> Fault {
    match reply {
        Reply::Refused { fault, .. } => fault.clone(),
        other => Fault::protocol(format!("the session answered what was not asked: {other:?}")),
    }
}

/// An operation that does not wait, and has no answer.
fn unanswered() -> Fault {
    Fault::protocol("the session has not answered")
}
