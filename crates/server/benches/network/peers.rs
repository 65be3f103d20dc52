//! The two servers, as processes, and what a client of either does.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tupelo_server::{Endpoint, Engine, Host, Limits, Settings};

/// The space of the benchmark.
pub(crate) const SPACE: &str = "bench";

/// A process that ends with this one.
pub(crate) struct Process(pub(crate) Child);

/// A server on a port of this machine.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) port: u16,
}

/// A client that says what the benchmark wants, and reads the answers later.
pub(crate) trait Client {
    /// One on a connection of its own.
    fn connect(server: &Server) -> Self;
    /// Adds a put to what is sent next.
    fn put(&mut self);
    /// Adds a take of something that is there.
    fn take(&mut self);
    /// Adds a take that waits for something.
    fn take_waiting(&mut self);
    /// Adds a question that is answered at once.
    fn ping(&mut self);
    /// Sends all of it.
    fn send(&mut self);
    /// Reads so many answers, and sees to it that none is an error.
    fn read(&mut self, answers: u32);
}

impl Server {
    /// One of spaces in its memory: this program again.
    pub(crate) fn tupelo() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.args(["--role", "serve"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process: Process(child), port: line.trim().parse().unwrap() }
    }

    /// Redis that writes nothing to a disk; `None` if it is not installed.
    pub(crate) fn redis() -> Option<Self> {
        // Free by the time that Redis listens, unless another program is quicker: then this one stops.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--dir", "/tmp"]);
        let child = command.stdout(Stdio::null()).spawn().ok()?;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::yield_now();
        }
        Some(Self { process: Process(child), port })
    }
}

/// Serves spaces in memory, and prints the port, until it is killed.
pub(crate) fn serve() {
    let settings = Settings {
        inherited: Vec::new(),
        endpoints: vec![Endpoint::Tcp(Host { name: "127.0.0.1".into(), port: 0 })],
        certificates: None,
        insecure: false,
        tokens: None,
        audit: None,
        limits: Limits::default(),
        engine: Engine::Mem,
        creates: true,
        spaces: Vec::new(),
    };
    tupelo_server::serve(&settings, |endpoints| {
        println!("{}", endpoints[0].host().unwrap().port);
        std::io::stdout().flush().unwrap();
    })
    .unwrap();
}
