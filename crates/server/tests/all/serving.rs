//! A server in a thread of the test's own process.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::authority::{Authority, Signed};
use tupelo_protocol::{FRAME_BYTES_MAX, Fault, Frames, Hello, Opened, Reply, Request, Welcome};
use tupelo_server::{Certificates, Endpoint, Engine, Host, Limits, Settings, serve};
use tupelo_tuple::WhenFull;

/// A server that serves until the test ends.
pub(crate) struct Served {
    /// Where it listens.
    pub(crate) endpoint: Endpoint,
    /// By whom its certificate is signed, if it has one.
    authority: Option<Authority>,
    /// A space that is this test's: those in memory belong to the process, as all of its servers do.
    pub(crate) space: String,
}

impl Served {
    /// A new one that is reached by URLs of `scheme`, and makes spaces for whoever asks.
    pub(crate) fn new(engine: Engine, scheme: &str) -> Self {
        let host = || Host { name: "127.0.0.1".into(), port: 0 };
        let settings = settings(engine);
        match scheme {
            "unix" => Self::with(settings),
            "tcp" => Self::with(Settings { endpoints: vec![Endpoint::Tcp(host())], ..settings }),
            "tls" => {
                let authority = Authority::new();
                let Signed { certificate, key } = authority.sign("server", "127.0.0.1");
                let certificates = Some(Certificates { certificate, key, client_ca: None });
                let endpoints = vec![Endpoint::Tls(host())];
                let mut served = Self::with(Settings { endpoints, certificates, ..settings });
                served.authority = Some(authority);
                served
            }
            _ => panic!("no server has {scheme}:// URLs"),
        }
    }

    /// One with other settings.
    pub(crate) fn with(settings: Settings) -> Self {
        let (started, starts) = channel();
        thread::spawn(move || {
            let tell = started.clone();
            let served = serve(&settings, |endpoints| tell.send(Ok(endpoints[0].clone())).unwrap());
            // Nobody listens any more if it served.
            let _ = started.send(served.map(|()| panic!("nobody has ended the server")));
        });
        let endpoint = starts.recv().unwrap().unwrap();
        // Those in shared memory are seen by other programs of this machine, too.
        let space = format!("raw-{}-{}", std::process::id(), count());
        Self { endpoint, authority: None, space }
    }

    /// The URL of its spaces, with `{}` for the name.
    pub(crate) fn urls(&self) -> String {
        match (&self.endpoint, &self.authority) {
            (Endpoint::Unix(_), _) => format!("{}&size=16M", self.endpoint.url("{}")),
            (_, Some(authority)) => {
                format!("{}?size=16M&ca={}", self.endpoint.url("{}"), authority.ca().display())
            }
            (_, None) => format!("{}?size=16M", self.endpoint.url("{}")),
        }
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.endpoint.host().unwrap().port
    }

    /// Its socket.
    fn socket(&self) -> &Path {
        match &self.endpoint {
            Endpoint::Unix(path) => path,
            other => panic!("{other} is no socket"),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Most are in private memory, and there is none with this name.
        let _ = tupelo::remove(&format!("shm://{}", self.space));
        // The thread ends with the process.
        if let Endpoint::Unix(path) = &self.endpoint {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Those of a server with a Unix socket of its own.
pub(crate) fn settings(engine: Engine) -> Settings {
    let name = format!("tupelo-served-{}-{}.sock", std::process::id(), count());
    Settings {
        endpoints: vec![Endpoint::Unix(std::env::temp_dir().join(name))],
        inherited: Vec::new(),
        certificates: None,
        insecure: false,
        tokens: None,
        audit: None,
        limits: Limits::default(),
        engine,
        creates: true,
        spaces: Vec::new(),
    }
}

/// A number that no other call gets.
fn count() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

/// A client that says what the test wants.
pub(crate) struct Raw {
    stream: UnixStream,
    frames: Frames,
}

impl Raw {
    /// One that has said nothing yet.
    pub(crate) fn connect(served: &Served) -> Self {
        let stream = UnixStream::connect(served.socket()).unwrap();
        // So that a server that never answers is a failure, and no hang.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { stream, frames: Frames::new(FRAME_BYTES_MAX) }
    }

    /// One that has shaken hands.
    pub(crate) fn greeted(served: &Served) -> Self {
        let (mut raw, mut hello) = (Self::connect(served), Vec::new());
        Hello { version_min: 1, version_max: 1, client: 5, token: None, session: None }
            .write(&mut hello)
            .unwrap();
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
