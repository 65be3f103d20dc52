//! One connection, shared by the threads of a process.
//!
//! Each request has a slot for its answer. Of the threads that wait for one, one *reads*: it sleeps on the socket, and
//! puts what comes into the slots, also those of others, whom it wakes. When its own answer is there, it passes the
//! reading on to another one that waits. So a single thread pays for no other, and no thread is needed while nobody
//! waits. (Rejected: a thread that reads for all, which costs two more switches per call, and is not there after a fork.)

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tupelo_protocol::{Fault, Frames, Key, REQUESTS_MAX, Reply, Request, Tls, code};

use crate::bell::Rung;
use crate::slot::Slot;
use crate::socket;
use crate::tls::failed;

/// What one look at the socket reads at most.
const READ_BYTES: usize = 64 << 10;

/// A connection behind its handshake.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    tls: Option<Mutex<Tls>>,
    /// What messages call the server.
    address: String,
    /// The first half of the keys of its requests.
    client: u64,
    next: AtomicU64,
    /// Locked while a frame is written, so that no two mix.
    writing: Mutex<()>,
    /// Locked by the thread that reads.
    reading: Mutex<Reading>,
    state: Mutex<State>,
}

/// What is there once hands are shaken.
pub(crate) struct Greeted {
    pub(crate) socket: OwnedFd,
    pub(crate) tls: Option<Tls>,
    /// What has come since.
    pub(crate) frames: Frames,
    /// The number of this client.
    pub(crate) client: u64,
}

/// What has come.
#[derive(Debug)]
struct Reading {
    frames: Frames,
    /// What is read at a time.
    buffer: Box<[u8]>,
}

#[derive(Debug, Default)]
struct State {
    /// The requests without their last answer, and what has come for them.
    slots: HashMap<u64, Slot>,
    /// Who sleeps until somebody else has read its answer, or it is its turn to read.
    sleepers: BTreeMap<u64, Arc<Condvar>>,
    has_reader: bool,
    lost: Option<Fault>,
}

impl Connection {
    /// A connection over `socket`, of which `frames` has what came behind the handshake.
    pub(crate) fn new(Greeted { socket, tls, frames, client }: Greeted, address: &str) -> Self {
        Self {
            socket,
            tls: tls.map(Mutex::new),
            address: address.to_owned(),
            client,
            next: AtomicU64::new(1),
            writing: Mutex::default(),
            reading: Mutex::new(Reading { frames, buffer: vec![0; READ_BYTES].into() }),
            state: Mutex::default(),
        }
    }

    /// Equal for one and the same connection.
    pub(crate) fn number(&self) -> u64 {
        self.client
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
        Ok((id, Key(u128::from(self.client) << 64 | u128::from(id))))
    }

    /// What comes for this request from now on goes nowhere.
    pub(crate) fn forget(&self, id: u64) {
        self.state().slots.remove(&id);
    }

    /// Sends a request.
    pub(crate) fn send(&self, request: &Request<'_>) -> Result<(), Fault> {
        let mut bytes = Vec::with_capacity(128);
        request.write(&mut bytes)?;
        let sent = {
            let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            self.sealed(&bytes).and_then(|bytes| self.write(&bytes))
        };
        sent.map_err(|error| self.lose(&error))
    }

    /// What is written for `bytes`. What is sealed first is written first.
    fn sealed<'b>(&self, bytes: &'b [u8]) -> io::Result<Cow<'b, [u8]>> {
        let Some(tls) = &self.tls else { return Ok(bytes.into()) };
        let mut tls = tls.lock().unwrap_or_else(PoisonError::into_inner);
        tls.seal(bytes).map(Cow::Owned)
    }

    /// Writes all of `bytes`. While the server takes nothing, it may be waiting for us to read: then that comes first.
    fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        loop {
            let sent = socket::write(&self.socket, bytes)?;
            bytes = &bytes[sent..];
            if bytes.is_empty() {
                return Ok(());
            }
            if socket::wait(&self.socket, None, true)? {
                self.read_unless_another_does()?;
            }
        }
    }

    /// Waits for an answer to the request until `deadline` (`None`: for ever); `None` if there is none by then.
    ///
    /// # Errors
    ///
    /// That the connection was lost.
    pub(crate) fn answer(
        &self,
        id: u64,
        deadline: Option<Instant>,
    ) -> Result<Option<Vec<u8>>, Fault> {
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
            if state.has_reader {
                if is_over {
                    return Ok(None);
                }
                state = sleep(state, id, deadline);
                continue;
            }
            state.has_reader = true;
            drop(state);
            // Also when the time is over: what has come by then has come in time.
            let came = self.read_for_all(deadline);
            state = self.state();
            state.has_reader = false;
            let came = match came {
                Ok(came) => came,
                Err(error) => {
                    drop(state);
                    self.lose(&error);
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
    fn read_for_all(&self, deadline: Option<Instant>) -> io::Result<bool> {
        if !socket::wait(&self.socket, deadline, false)? {
            return Ok(false);
        }
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.read(&mut reading)
    }

    /// Reads what is there, and puts it where it belongs. Returns whether something was.
    fn read(&self, Reading { frames, buffer }: &mut Reading) -> io::Result<bool> {
        let Some(bytes) = socket::read(&self.socket, buffer)? else { return Ok(false) };
        if bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it"));
        }
        match &self.tls {
            None => frames.add(&buffer[..bytes]),
            Some(tls) => {
                let mut tls = tls.lock().unwrap_or_else(PoisonError::into_inner);
                tls.open(&buffer[..bytes], frames).map_err(|error| {
                    io::Error::new(io::ErrorKind::InvalidData, failed(&self.address, &error))
                })?;
            }
        }
        let mut state = self.state();
        let malformed = |fault: Fault| io::Error::new(io::ErrorKind::InvalidData, fault);
        while let Some(frame) = frames.next_frame().map_err(malformed)? {
            match Reply::read(frame).map_err(malformed)? {
                Reply::Refused { id: None, fault } => {
                    return Err(io::Error::new(io::ErrorKind::ConnectionAborted, fault));
                }
                reply => {
                    let is_news = !matches!(reply, Reply::Waits { .. });
                    state.deliver(reply.id().unwrap_or_default(), frame, is_news);
                }
            }
        }
        Ok(true)
    }

    /// Notes that the connection can not be used any more, and tells everybody.
    fn lose(&self, error: &io::Error) -> Fault {
        let mut state = self.state();
        let lost = state.lost.get_or_insert_with(|| lost(&self.address, error)).clone();
        for sleeper in state.sleepers.values() {
            sleeper.notify_one();
        }
        state.slots.values().for_each(Slot::ring);
        lost
    }

    /// Has a bell told of answers to the request.
    pub(crate) fn ring_for(&self, id: u64, bell: Option<(Arc<Rung>, u32)>) {
        let mut state = self.state();
        if let Some(slot) = state.slots.get_mut(&id) {
            slot.ring_for(bell);
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
        let mut state = self.state();
        if let Some(slot) = state.slots.get_mut(&watch) {
            slot.put_happening(watch);
        }
        if let Some(sleeper) = state.sleepers.get(&watch) {
            sleeper.notify_one();
        }
    }

    /// Whether something has happened to what the request watches; asked once of each.
    pub(crate) fn take_happening(&self, id: u64) -> bool {
        self.state().slots.get_mut(&id).is_some_and(Slot::take_happening)
    }

    /// Whether there is an answer to the request that says more than that it waits.
    pub(crate) fn has_news(&self, id: u64) -> bool {
        self.state().slots.get(&id).is_some_and(Slot::has_news)
    }

    /// Reads what has come, without waiting for more. If another thread reads, that tells whom it concerns.
    pub(crate) fn read_now(&self) {
        if let Err(error) = self.read_unless_another_does() {
            self.lose(&error);
        }
    }

    /// Reads what has come, as the one that reads: what another one waits for at the socket must not be read behind its back,
    /// as nothing would wake it.
    fn read_unless_another_does(&self) -> io::Result<()> {
        let mut state = self.state();
        if std::mem::replace(&mut state.has_reader, true) {
            return Ok(());
        }
        drop(state);
        let came = {
            let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                match self.read(&mut reading) {
                    Ok(true) => {}
                    Ok(false) => break Ok(()),
                    Err(error) => break Err(error),
                }
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

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sleeps until the answer has been read, or it is this one's turn to read, or the time is over.
fn sleep(
    mut state: MutexGuard<'_, State>,
    id: u64,
    deadline: Option<Instant>,
) -> MutexGuard<'_, State> {
    let told = Arc::new(Condvar::new());
    state.sleepers.insert(id, Arc::clone(&told));
    let mut state = match deadline {
        None => told.wait(state).unwrap_or_else(PoisonError::into_inner),
        Some(deadline) => {
            let left = deadline.saturating_duration_since(Instant::now());
            told.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
        }
    };
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

impl State {
    /// Puts an answer into the slot of its request, if anybody still wants it.
    fn deliver(&mut self, id: u64, frame: &[u8], is_news: bool) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let also = slot.put(frame, is_news);
        if let Some(sleeper) = self.sleepers.get(&id) {
            sleeper.notify_one();
        }
        if let Some(also) = also
            && let Some(slot) = self.slots.get_mut(&also)
        {
            slot.put_happening(also);
            if let Some(sleeper) = self.sleepers.get(&also) {
                sleeper.notify_one();
            }
        }
    }

    /// Wakes one that sleeps, to read for the others.
    fn pass_reading_on(&self) {
        if !self.has_reader
            && let Some((_, sleeper)) = self.sleepers.first_key_value()
        {
            sleeper.notify_one();
        }
    }
}
