//! A network that fails: a proxy between clients and a server which delays what it passes on, in parts, and breaks
//! connections as a network does that has lost them: by a reset, so that neither side hears that the other has gone.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;

/// Bytes of a part that is passed on at a time.
const PART_BYTES_MAX: usize = 512;
/// Longest delay of a part.
const DELAY_US_MAX: u64 = 2000;
/// How often a connection looks whether it is to break.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// A proxy, until the test ends.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// One part of so many is the last one of its connection; 0: none.
    breaks_one_of: AtomicU64,
    breaks: AtomicU64,
    /// Connections with a lower number are to break.
    breaks_below: AtomicU64,
    connections: AtomicU64,
    refuses: AtomicBool,
}

impl Proxy {
    /// One in front of the server at `port`.
    pub(crate) fn new(port: u16, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.refuses.load(Ordering::Relaxed) {
                    continue;
                }
                let sides = [client.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap()];
                let number = shared.connections.fetch_add(1, Ordering::Relaxed);
                let (state, seed) = (Arc::clone(&shared), seed.wrapping_add(number));
                thread::spawn(move || pass_on(&state, number, seed, sides));
            }
        });
        Self { port: own, state }
    }

    /// Breaks a connection after each so many parts, on average; 0: none.
    pub(crate) fn break_one_of(&self, parts: u64) {
        self.state.breaks_one_of.store(parts, Ordering::Relaxed);
    }

    /// Breaks all connections that there are.
    pub(crate) fn break_all(&self) {
        let all = self.state.connections.load(Ordering::Relaxed);
        self.state.breaks_below.store(all, Ordering::Relaxed);
    }

    /// Lets no more connections through, and breaks those that there are.
    pub(crate) fn refuse(&self) {
        self.state.refuses.store(true, Ordering::Relaxed);
        self.break_all();
    }

    /// How many connections it has broken.
    pub(crate) fn breaks(&self) -> u64 {
        self.state.breaks.load(Ordering::Relaxed)
    }
}

/// Passes on what comes from either side, until one has gone or the connection breaks.
fn pass_on(state: &State, number: u64, seed: u64, mut sides: [TcpStream; 2]) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut buffer = [0; PART_BYTES_MAX];
    let broke = 'open: loop {
        if number < state.breaks_below.load(Ordering::Relaxed) {
            break true;
        }
        let ready = {
            let mut polled = sides.each_ref().map(|side| PollFd::new(side, PollFlags::IN));
            poll(&mut polled, Some(&LOOK)).unwrap();
            polled.map(|polled| !polled.revents().is_empty())
        };
        for from in 0..sides.len() {
            if !ready[from] {
                continue;
            }
            let most = random.usize(1..=PART_BYTES_MAX);
            let bytes = match sides[from].read(&mut buffer[..most]) {
                Ok(bytes @ 1..) => bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                _ => break 'open false,
            };
            thread::sleep(Duration::from_micros(random.u64(..DELAY_US_MAX)));
            let one_of = state.breaks_one_of.load(Ordering::Relaxed);
            if one_of > 0 && random.u64(..one_of) == 0 {
                break 'open true;
            }
            if sides[1 - from].write_all(&buffer[..bytes]).is_err() {
                break 'open false;
            }
        }
    };
    if broke {
        state.breaks.fetch_add(1, Ordering::Relaxed);
        for side in &sides {
            set_socket_linger(side, Some(Duration::ZERO)).unwrap();
        }
    }
}
