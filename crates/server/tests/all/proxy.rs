//! A network that fails: a proxy between clients and a server which delays what it passes on, in parts.
//!
//! It breaks connections as a network does that has lost them: by a reset, so that neither side hears that the other has gone. Of
//! what was on its way then, some comes late: when the client has another connection already. Some connections it lets
//! fall silent, which nobody hears of at all. And it passes some puts on twice.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;
use tupelo_protocol::{FRAME_BYTES_MAX, Frames};

/// Bytes of a part that is passed on at a time.
const PART_BYTES_MAX: usize = 512;
/// Longest delay of a part.
const DELAY_US_MAX: u64 = 2000;
/// How often a connection looks whether it is to break.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// Longest delay of what was on its way when its connection broke.
const LATE_MS_MAX: u64 = 50;
/// For the server to read that.
const LATE_READ: Duration = Duration::from_millis(5);
/// One put of so many is passed on twice.
const DOUBLES_ONE_OF: u64 = 50;
/// The number of the frame of a put.
const PUT: u8 = 10;

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
    /// One of so many breaks is none: the connection falls silent; 0: none.
    silences_one_of: AtomicU64,
    silences: AtomicU64,
    doubles: AtomicU64,
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

    /// Lets one of so many connections fall silent that would break; 0: none.
    pub(crate) fn silence_one_of(&self, breaks: u64) {
        self.state.silences_one_of.store(breaks, Ordering::Relaxed);
    }

    /// How many connections have fallen silent, and how many puts were passed on twice.
    pub(crate) fn silences_and_doubles(&self) -> (u64, u64) {
        (self.state.silences.load(Ordering::Relaxed), self.state.doubles.load(Ordering::Relaxed))
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

/// How a connection ended.
enum End {
    /// A side has gone.
    Gone,
    /// The connection breaks, with this on its way to the server: what is lost of a connection is its end, and has no gaps.
    Broken(Vec<u8>),
    Silent,
}

/// Passes on what comes from either side, until one has gone or the connection breaks.
fn pass_on(state: &State, number: u64, seed: u64, mut sides: [TcpStream; 2]) {
    let mut random = fastrand::Rng::with_seed(seed);
    match pass_on_until_end(state, number, &mut random, &mut sides) {
        End::Gone => {}
        End::Silent => {
            state.silences.fetch_add(1, Ordering::Relaxed);
            // Open for both, until the test ends.
            std::mem::forget(sides);
        }
        End::Broken(mut late) => {
            state.breaks.fetch_add(1, Ordering::Relaxed);
            let [mut client, mut server] = sides;
            client.set_nonblocking(true).unwrap();
            let _ = client.read_to_end(&mut late);
            set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
            set_socket_linger(&server, Some(Duration::ZERO)).unwrap();
            drop(client);
            if random.bool() {
                thread::sleep(Duration::from_millis(random.u64(..LATE_MS_MAX)));
                let _ = server.write_all(&late);
                // Most of it is read by then: the reset takes back what was not.
                thread::sleep(LATE_READ);
            }
        }
    }
}

fn pass_on_until_end(
    state: &State,
    number: u64,
    random: &mut fastrand::Rng,
    sides: &mut [TcpStream; 2],
) -> End {
    let mut buffer = [0; PART_BYTES_MAX];
    let mut frames = Frames::new(FRAME_BYTES_MAX);
    loop {
        if number < state.breaks_below.load(Ordering::Relaxed) {
            return End::Broken(Vec::new());
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
                _ => return End::Gone,
            };
            thread::sleep(Duration::from_micros(random.u64(..DELAY_US_MAX)));
            let one_of = |number: &AtomicU64, random: &mut fastrand::Rng| {
                let number = number.load(Ordering::Relaxed);
                number > 0 && random.u64(..number) == 0
            };
            if one_of(&state.breaks_one_of, random) {
                let is_silent = one_of(&state.silences_one_of, random);
                let on_its_way = if from == 0 { buffer[..bytes].to_vec() } else { Vec::new() };
                return if is_silent { End::Silent } else { End::Broken(on_its_way) };
            }
            let mut written = sides[1 - from].write_all(&buffer[..bytes]);
            if from == 0 {
                frames.add(&buffer[..bytes]);
                let doubled = last_put(&mut frames).filter(|_| random.u64(..DOUBLES_ONE_OF) == 0);
                if let Some(doubled) = doubled {
                    state.doubles.fetch_add(1, Ordering::Relaxed);
                    written = written.and_then(|()| sides[1].write_all(&doubled));
                }
            }
            if written.is_err() {
                return End::Gone;
            }
        }
    }
}

/// The bytes of the put that has just come to its end, if nothing has come behind it.
fn last_put(frames: &mut Frames) -> Option<Vec<u8>> {
    let mut last = None;
    while let Some(content) = frames.next_frame().unwrap() {
        let is_put = content.get(1) == Some(&PUT);
        last = is_put.then(|| {
            let length = u32::try_from(content.len()).unwrap().to_be_bytes();
            [&length[..], content].concat()
        });
    }
    last.filter(|_| frames.is_at_end())
}
