//! One sleeper for many waiters: an event loop, or a thread that serves thousands of calls (rule T5, T6).
//!
//! A *notifier* is a wait node of its own. The wait nodes of its waiters name it. So what happens to one of them raises
//! the notifier's signal instead, and a bit that says which one it was. Its owner sleeps on the signal, as any blocked
//! caller, or *listens*. Who listens waits for its socket to be readable, together with all else that an event loop
//! waits for. Whoever raises the signal then sends a byte there. The system forgets the name of the socket with the
//! process (an abstract address). Any user of the machine may bind such a name, or send to it. So the name is a random
//! number, which nobody can bind before its owner. Bytes of strangers only let the owner look in vain, and at each look it
//! reads a few of them at most.
//!
//! The bits are hints, like signals: one may be meant for a wait node's last owner. None is lost but with a process that
//! is killed between its commit and its signal, so the owner also [looks around](Notifier::look) from time to time. So it
//! does if the program has closed the socket, which it does not know: what has the number then is not touched. Nor does
//! a byte arrive from another network namespace: that owner looks a slice later.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tupelo_shm::process::fork_generation;
use tupelo_shm::{Kept, random_word};

use crate::Engine;
use crate::base::error::Error;
use crate::base::layout::{self, PAGE};
use crate::base::signal;
use crate::base::want::Want;
use crate::operations::wait::Waiter;
use crate::recovery::{node_memory, sweep};
use crate::store;
use crate::waiters::wake::{IS_NOTIFIER, address, notify, place_of, raised};
use crate::waiters::{
    RECORD, SIGNAL, SLICE, TICKET, WAKES, WANT, hand_off, node, nodes, timer_leader,
};

/// What a notifier's wait node says that it wants: nothing that is put.
const NOTHING: u32 = 4;
/// How many names are tried: that a random one is in use happens at most where somebody has seen it.
const NAMES_TRIED_MAX: u32 = 8;
/// How many messages a look reads from the socket.
const BYTES_READ_MAX: u32 = 64;
const TAKE: u32 = Want::Take.number();
const READ: u32 = Want::Read.number();
/// One owner of many waiters.
pub struct Notifier {
    engine: Arc<Engine>,
    number: u32,
    socket: Kept<UnixDatagram>,
    /// Wait nodes of the waiters that it tells of: by the word with their bits, those bits.
    members: Mutex<BTreeMap<u32, u32>>,
    /// When it was made, as forks are counted: a child's copy of it is not the child's.
    fork_generation: u32,
}

impl std::fmt::Debug for Notifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifier").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The wait nodes of some bits of a word.
fn numbers(word: u32, bits: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 32 + bit + 1)
}

/// As [`crate::Engine::notifier`] says.
pub(crate) fn notifier(engine: &Arc<Engine>) -> Result<Notifier, Error> {
    let view = engine.memory.view();
    let bits = layout::raised(0)..layout::raised(0) + layout::RAISED_BYTES;
    debug_assert!(bits.start.is_multiple_of(PAGE));
    engine.memory.mapping().commit_few(bits)?;
    let (socket, id) = bound()?;
    let number = node_memory::claim_node(engine)?;
    let node = node(&view, number);
    node.init(WANT, NOTHING);
    node.init64(TICKET, id);
    let (engine, members, socket) = (Arc::clone(engine), Mutex::default(), Kept::new(socket));
    Ok(Notifier { engine, number, socket, members, fork_generation: fork_generation() })
}

/// A socket, and the number that is its name.
fn bound() -> Result<(UnixDatagram, u64), Error> {
    let refused = |error: std::io::Error| Error::System(error.to_string().into());
    let mut left = NAMES_TRIED_MAX;
    loop {
        let id = random_word()?;
        left -= 1;
        match UnixDatagram::bind_addr(&address(id)?) {
            Ok(socket) => {
                socket.set_nonblocking(true).map_err(refused)?;
                return Ok((socket, id));
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse && left > 0 => {}
            Err(error) => return Err(refused(error)),
        }
    }
}

impl Notifier {
    /// Lets this notifier tell of what happens to `waiter`. Returns the number under which it does.
    pub fn add(&self, waiter: &Waiter) -> u32 {
        let number = waiter.number();
        let (word, bit) = place_of(number);
        *self.members().entry(word).or_default() |= bit;
        let view = self.engine.memory.view();
        node(&view, number).init(WAKES, self.number | IS_NOTIFIER);
        // Pairs with the fence in `notify`.
        fence(Ordering::SeqCst);
        // What it was told of itself is the notifier's to tell from here on, once.
        if waiter.is_ready() | waiter.acknowledge() {
            notify(&self.engine, number);
        }
        number
    }

    /// Forgets the waiter with this number.
    pub fn remove(&self, number: u32) {
        let (word, bit) = place_of(number);
        let mut members = self.members();
        if let Some(bits) = members.get_mut(&word) {
            *bits &= !bit;
            if *bits == 0 {
                members.remove(&word);
            }
        }
    }

    /// The waiters that something may have happened to since the last call. Ends [listening](Notifier::listen).
    pub fn drain(&self) -> Vec<u32> {
        self.attend();
        let mut bytes = [0; 64];
        if let Some(socket) = self.socket.get() {
            // As a rule there is one. What a stranger sends without end must not hold up the owner.
            for _ in 0..BYTES_READ_MAX {
                if socket.recv(&mut bytes).is_err() {
                    break;
                }
            }
        }
        self.collect()
    }

    /// Ends [listening](Notifier::listen), as the owner is awake: who has something for one of its waiters meanwhile spares
    /// the system calls that wake it. Then it [collects](Notifier::collect), and listens again.
    pub fn attend(&self) {
        signal::acknowledge(node(&self.engine.memory.view(), self.number).word(SIGNAL));
    }

    /// As [`Notifier::drain`], of an owner that attends: without a system call.
    pub fn collect(&self) -> Vec<u32> {
        self.attend();
        let view = self.engine.memory.view();
        let mut ready = Vec::new();
        for (&place, &own) in &*self.members() {
            let word = raised(&view, place);
            if word.load(Ordering::Relaxed) & own != 0 {
                let bits = word.fetch_and(!own, Ordering::Acquire) & own;
                ready.extend(numbers(place, bits));
            }
        }
        ready
    }

    /// Says that the owner is about to wait for its [file descriptor](Notifier::as_fd). Returns false if something has
    /// happened already: then drain, and listen again.
    #[must_use]
    pub fn listen(&self) -> bool {
        signal::listen(node(&self.engine.memory.view(), self.number).word(SIGNAL))
    }

    /// Sleeps until the notifier has something to tell, a slice at most. For owners that are threads.
    pub fn sleep(&self, slice: Duration) {
        signal::sleep(node(&self.engine.memory.view(), self.number).word(SIGNAL), slice);
    }

    /// How long the owner may wait before it [looks around](Notifier::look).
    pub fn next_look(&self) -> Duration {
        timer_leader::sleep_until_due(&self.engine, self.number, SLICE)
    }

    /// Says that the owner does not wait any more, until it listens or sleeps again: somebody else then keeps the
    /// time. Without it, others would notice what is due a slice later.
    pub fn rest(&self) {
        timer_leader::resign(&self.engine, self.number);
    }

    /// Lets happen what is due in the space, cleans up after the dead if it is time, and returns the waiters that have
    /// something. It does so whether or not the notifier was told of them. Watches are always among them: what they
    /// watch for may have happened.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn look(&self) -> Result<Vec<u32>, Error> {
        store::require_sound(&self.engine)?;
        timer_leader::run_due_timers(&self.engine, self.number)?;
        sweep::sweep_if_due(&self.engine)?;
        Ok(self.concerned())
    }

    /// As [`Notifier::look`], for an owner of whose waiters one has waited long enough. What the dead held comes to
    /// those in the wait queue first, also if somebody has swept just now (rule L5). The owner need not listen anew: if it is to
    /// keep the time, the notifier is told.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn last_look(&self) -> Result<Vec<u32>, Error> {
        store::require_sound(&self.engine)?;
        let kept = timer_leader::run_due_timers(&self.engine, self.number);
        // Its owner does not ask when to look next: that was before this look.
        self.rest();
        kept?;
        sweep::recall(&self.engine)?;
        Ok(self.concerned())
    }

    /// The waiters that have something, and all watches.
    fn concerned(&self) -> Vec<u32> {
        let view = self.engine.memory.view();
        let concerned = |number: &u32| {
            let node = node(&view, *number);
            let is_watch = !matches!(node.load(WANT), TAKE | READ);
            is_watch || node.load(RECORD) != 0 || hand_off::has_lost(node)
        };
        let members = self.members();
        let all = members.iter().flat_map(|(&word, &bits)| numbers(word, bits));
        all.filter(concerned).collect()
    }

    fn members(&self) -> MutexGuard<'_, BTreeMap<u32, u32>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Notifier {
    /// Readable when something was told to the notifier while the owner listened.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        if self.fork_generation != fork_generation() {
            return;
        }
        timer_leader::resign(&self.engine, self.number);
        // A failure means that the space is damaged or stalled; the wait node is free when this process ends.
        let _ = nodes::free_node(&self.engine, self.number);
    }
}

const _: () = assert!(NOTHING > Want::Removal.number() && NOTHING < Want::Room.number());
