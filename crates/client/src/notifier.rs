//! One owner of many calls that wait: an event loop, or a thread that serves thousands of them.
//!
//! The owner waits for one descriptor, an epoll, which is readable when a connection has something to read, and when another
//! thread has read something for it. So there is no thread per call, and none that reads for all.

use std::any::Any;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use tupelo_protocol::{Fault, Notifier, Pending, Request, code};

use crate::connection::Connection;
use crate::pending::Waiting;
use crate::wire::Wire;

/// The owner of calls that wait at one or several servers.
#[derive(Debug)]
pub(crate) struct RemoteNotifier {
    /// Readable when there is something to look at.
    epoll: OwnedFd,
    raised: Arc<RaisedCalls>,
    state: Mutex<State>,
}

/// The calls that a notifier was told of.
#[derive(Debug)]
pub(crate) struct RaisedCalls {
    /// Readable once it was told of one while its owner listened.
    event: OwnedFd,
    numbers: Mutex<Vec<u32>>,
    listens: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// `None` for those that are told of at once.
    members: HashMap<u32, Option<Member>>,
    /// The numbers of the calls, by their connection and request.
    by_request: HashMap<(u64, u64), u32>,
    /// With the sockets of those that the epoll has.
    connections: Vec<(Arc<Connection>, Option<Arc<Wire>>)>,
    next: u32,
}

/// A call that waits.
#[derive(Clone, Debug)]
struct Member {
    connection: Arc<Connection>,
    id: u64,
    is_watch: bool,
}

impl RaisedCalls {
    /// Tells the owner that something may have come for the call with this number.
    pub(crate) fn ring(&self, number: u32) {
        self.numbers().push(number);
        if self.listens.swap(false, Ordering::SeqCst) {
            // Full of wakes already if it is refused.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    fn numbers(&self) -> MutexGuard<'_, Vec<u32>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RemoteNotifier {
    /// A notifier that has nothing to tell of yet.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if the system has no more descriptors.
    pub(crate) fn new() -> Result<Self, Fault> {
        let make = || {
            let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let epoll = epoll::create(CreateFlags::CLOEXEC)?;
            epoll::add(&epoll, &event, EventData::new_u64(0), EventFlags::IN)?;
            Ok::<_, Errno>((event, epoll))
        };
        let (event, epoll) = make().map_err(|error| {
            let message = format!("there can be no descriptor to wait by: {error}");
            Fault::new(code::SYSTEM, message, Some("`tupelo doctor` looks at the limits"))
        })?;
        let (numbers, listens) = (Mutex::default(), AtomicBool::new(false));
        let raised = Arc::new(RaisedCalls { event, numbers, listens });
        Ok(Self { epoll, raised, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what has come on the connections of those who wait, and sees to it that their servers are there.
    fn read(&self) {
        let connections: Vec<Arc<Connection>> = {
            let state = self.state();
            state.connections.iter().map(|(connection, _)| Arc::clone(connection)).collect()
        };
        for connection in connections {
            connection.tend();
        }
        let mut state = self.state();
        let State { connections, .. } = &mut *state;
        connections.retain_mut(|(connection, watched)| {
            let is_lost = connection.is_lost();
            if is_lost {
                self.unwatch(watched);
            }
            !is_lost
        });
    }

    /// Lets the descriptor be readable for the connections of those who wait, or not.
    fn watch_connections(&self, watches: bool) {
        for (connection, watched) in &mut self.state().connections {
            // Another one, or none, if it was lost: then the owner is told when there is one again.
            let wire = connection.wire().filter(|_| watches);
            if wire.as_ref().map(Arc::as_ptr) == watched.as_ref().map(Arc::as_ptr) {
                continue;
            }
            self.unwatch(watched);
            if let Some(wire) = wire {
                let added =
                    epoll::add(&self.epoll, wire.as_fd(), EventData::new_u64(1), EventFlags::IN);
                // One that the system refuses is looked at when the owner looks around.
                *watched = added.is_ok().then_some(wire);
            }
        }
    }

    /// Lets the descriptor not be readable for this socket.
    fn unwatch(&self, watched: &mut Option<Arc<Wire>>) {
        if let Some(wire) = watched.take() {
            // One that is not there needs not be removed.
            let _ = epoll::delete(&self.epoll, wire.as_fd());
        }
    }

    /// The calls that it was told of, each once; a watch is told that somebody looks.
    fn rung_for(&self) -> Vec<u32> {
        let mut numbers = std::mem::take(&mut *self.raised.numbers());
        numbers.sort_unstable();
        numbers.dedup();
        let state = self.state();
        numbers.retain(|number| state.members.contains_key(number));
        let watches = numbers.iter().filter_map(|number| state.members.get(number)?.as_ref());
        let watches: Vec<Member> = watches.filter(|member| member.is_watch).cloned().collect();
        drop(state);
        for Member { connection, id, .. } in watches {
            // Before the owner looks, so that what happens from then on is told again.
            if connection.take_happening(id) {
                let _ = connection.send(&Request::Look { id }, None);
            }
        }
        numbers
    }

    fn clear_event(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.raised.event, &mut count);
    }
}

impl Notifier for RemoteNotifier {
    fn add(&self, pending: Option<&dyn Pending>) -> Option<u32> {
        let waiting = match pending {
            Some(pending) => Some((pending as &dyn Any).downcast_ref::<Waiting>()?),
            None => None,
        };
        let mut state = self.state();
        state.next = state.next.wrapping_add(1);
        let number = state.next;
        let Some(waiting) = waiting else {
            state.members.insert(number, None);
            drop(state);
            self.raised.ring(number);
            return Some(number);
        };
        let (connection, id, is_watch) = waiting.at();
        let request = (connection.number(), id);
        // Whoever adds a call again means the same one.
        if let Some(&known) = state.by_request.get(&request) {
            return Some(known);
        }
        state.by_request.insert(request, number);
        if !state.connections.iter().any(|(known, _)| Arc::ptr_eq(known, connection)) {
            state.connections.push((Arc::clone(connection), None));
        }
        let member = Member { connection: Arc::clone(connection), id, is_watch };
        state.members.insert(number, Some(member));
        drop(state);
        if waiting.has_something() {
            self.raised.ring(number);
        }
        connection.ring_for(id, Some((Arc::clone(&self.raised), number)));
        Some(number)
    }

    fn remove(&self, number: u32) {
        let mut state = self.state();
        let member = state.members.remove(&number).flatten();
        if let Some(Member { connection, id, .. }) = member {
            state.by_request.remove(&(connection.number(), id));
            drop(state);
            connection.ring_for(id, None);
        }
    }

    fn drain(&self) -> Vec<u32> {
        self.clear_event();
        self.read();
        self.rung_for()
    }

    fn listen(&self) -> bool {
        self.watch_connections(true);
        self.raised.listens.store(true, Ordering::SeqCst);
        let is_quiet = self.raised.numbers().is_empty();
        if !is_quiet {
            self.raised.listens.store(false, Ordering::SeqCst);
        }
        is_quiet
    }

    fn sleep(&self, slice: Duration) {
        let end = Instant::now() + slice;
        loop {
            self.read();
            if !self.listen() {
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !is_readable(&self.epoll, left) {
                self.raised.listens.store(false, Ordering::SeqCst);
                return;
            }
            self.clear_event();
        }
    }

    fn rest(&self) {
        self.raised.listens.store(false, Ordering::SeqCst);
        self.watch_connections(false);
        self.clear_event();
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Waits until there is something to look at, or so long; false if there is nothing, or a signal came.
fn is_readable(epoll: &OwnedFd, left: Duration) -> bool {
    let left = Timespec::try_from(left).ok();
    let mut polled = [PollFd::new(epoll, PollFlags::IN)];
    matches!(poll(&mut polled, left.as_ref()), Ok(ready) if ready > 0)
}
