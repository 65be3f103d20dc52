//! A server in a thread of the test's own process.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tupelo_protocol::{FRAME_BYTES_MAX, Fault, Frames, Hello, Opened, Reply, Request, Welcome};
use tupelo_server::{Engine, Settings, serve};
use tupelo_tuple::WhenFull;

/// A server that serves until the test ends.
pub(crate) struct Served {
    /// Its socket.
    pub(crate) socket: PathBuf,
    /// A space that is this test's: those in memory belong to the process, as all of its servers do.
    pub(crate) space: String,
}

impl Served {
    /// A new one, which makes spaces for whoever asks.
    pub(crate) fn new(engine: Engine) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tupelo-served-{}-{count}.sock", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let settings =
            Settings { socket: socket.clone(), engine, creates: true, spaces: Vec::new() };
        let (started, starts) = channel();
        thread::spawn(move || {
            let tell = started.clone();
            let served = serve(&settings, || tell.send(Ok(())).unwrap());
            // Nobody listens any more if it served.
            let _ = started.send(served);
        });
        starts.recv().unwrap().unwrap();
        Self { socket, space: format!("raw-{count}") }
    }

    /// The URL of its spaces, up to the name.
    pub(crate) fn prefix(&self) -> String {
        format!("unix://{}?size=16M&space=", self.socket.display())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The thread ends with the process.
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// A client that says what the test wants.
pub(crate) struct Raw {
    stream: UnixStream,
    frames: Frames,
}

impl Raw {
    /// One that has said nothing yet.
    pub(crate) fn connect(served: &Served) -> Self {
        let stream = UnixStream::connect(&served.socket).unwrap();
        // So that a server that never answers is a failure, and no hang.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { stream, frames: Frames::new(FRAME_BYTES_MAX) }
    }

    /// One that has shaken hands.
    pub(crate) fn greeted(served: &Served) -> Self {
        let (mut raw, mut hello) = (Self::connect(served), Vec::new());
        Hello { version_min: 1, version_max: 1, client: 5 }.write(&mut hello).unwrap();
        raw.send(&hello);
        let welcome = raw.frame(|frame| Welcome::read(frame).unwrap()).unwrap();
        assert_eq!(welcome.version, 1);
        raw
    }

    /// One that has opened the space of the test; and the number of that.
    pub(crate) fn opened(served: &Served) -> (Self, u32) {
        let mut raw = Self::greeted(served);
        let opened = Opened {
            name: &served.space,
            create: true,
            fresh: false,
            size_bytes: Some(16 << 20),
            tuples_max: None,
            when_full: WhenFull::Error,
        };
        raw.request(&Request::Open { id: 0, opened });
        let space = raw.reply(|reply| match reply {
            Reply::Opened { space, .. } => *space,
            other => panic!("{other:?}"),
        });
        (raw, space.unwrap())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // A server that has closed already has said why.
        let _ = self.stream.write_all(bytes);
    }

    pub(crate) fn request(&mut self, request: &Request<'_>) {
        let mut bytes = Vec::new();
        request.write(&mut bytes).unwrap();
        self.send(&bytes);
    }

    /// What `look` makes of the next frame; `None` at the end.
    fn frame<R>(&mut self, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        loop {
            if let Some(frame) = self.frames.next_frame().unwrap() {
                return Some(look(frame));
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer).unwrap() {
                0 => return None,
                bytes => self.frames.add(&buffer[..bytes]),
            }
        }
    }

    /// What `look` makes of the next reply; `None` at the end.
    pub(crate) fn reply<R>(&mut self, look: impl FnOnce(&Reply<'_>) -> R) -> Option<R> {
        self.frame(|frame| look(&Reply::read(frame).unwrap()))
    }

    /// The refusal of the connection, which is all that comes, and behind which it is closed.
    pub(crate) fn farewell(&mut self) -> Fault {
        let fault = self.reply(|reply| match reply {
            Reply::Refused { id: None, fault } => fault.clone(),
            other => panic!("{other:?}"),
        });
        assert_eq!(self.reply(|reply| format!("{reply:?}")), None, "one frame, and a close");
        fault.unwrap()
    }
}
