//! A server is killed between a change and its answer, and another one takes its spaces over (rules C1, C3, O2).

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::serving::settings;
use tupelo::{ConnectOptions, Error, Kind, Order, Space, TupleView, fields, template};
use tupelo_crashtest::{Child, fork, seed, thorough};
use tupelo_server::{Engine, ServedSpace, Settings, serve};

/// How often the server is killed.
const KILLS: i64 = 5;
const KILLS_THOROUGH: i64 = 100;
const LOOK: Duration = Duration::from_millis(1);

/// A server in a process of its own, and one after the other at the same place.
struct Server {
    settings: Settings,
    process: Option<Child>,
}

impl Server {
    fn new() -> Self {
        Self::with(settings(Engine::Shm))
    }

    fn with(settings: Settings) -> Self {
        let mut server = Self { settings, process: None };
        server.start();
        server
    }

    fn start(&mut self) {
        let settings = self.settings.clone();
        self.process = Some(fork(|| serve(&settings, |_| ()).unwrap()));
        while UnixStream::connect(self.socket()).is_err() {
            thread::sleep(LOOK);
        }
    }

    fn kill(&mut self) {
        self.process.take().unwrap().kill();
    }

    fn socket(&self) -> PathBuf {
        match &self.settings.endpoints[0] {
            tupelo_server::Endpoint::Unix(path) => path.clone(),
            other => panic!("{other} is no socket"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
        let _ = std::fs::remove_file(self.socket());
    }
}

/// A way to the server on which what is said gets lost when it is asked to.
struct Way {
    port: u16,
    loses: Arc<Loses>,
}

#[derive(Default)]
struct Loses {
    requests: AtomicBool,
    answers: AtomicBool,
}

impl Way {
    fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let loses = Arc::new(Loses::default());
        let shared = Arc::clone(&loses);
        thread::spawn(move || {
            for client in listener.incoming() {
                let loses = Arc::clone(&shared);
                lead(&client.unwrap(), &socket, &loses);
            }
        });
        Self { port, loses }
    }

    fn lose(&self, requests: bool, answers: bool) {
        self.loses.requests.store(requests, Ordering::Relaxed);
        self.loses.answers.store(answers, Ordering::Relaxed);
    }
}

/// Leads a client to the server that there is, if there is one, in two threads.
fn lead(client: &TcpStream, socket: &Path, loses: &Arc<Loses>) {
    let Ok(server) = UnixStream::connect(socket) else { return };
    let (mut from_client, mut to_client) =
        (client.try_clone().unwrap(), client.try_clone().unwrap());
    let (mut from_server, mut to_server) = (server.try_clone().unwrap(), server);
    let (up, down) = (Arc::clone(loses), Arc::clone(loses));
    thread::spawn(move || pass_on(&mut from_client, &mut to_server, &up.requests));
    thread::spawn(move || {
        pass_on(&mut from_server, &mut to_client, &down.answers);
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
}

fn pass_on(from: &mut impl Read, to: &mut impl Write, loses: &AtomicBool) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !loses.load(Ordering::Relaxed) && to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// What one client does while its server is killed, in its turn.
fn change(space: &Space, number: i64) -> Result<bool, Error> {
    match number % 3 {
        0 => space.put(&fields!["job", number]).map(|()| true),
        1 => space.put_if_absent(&fields!["job", number], &[template!["job", number]]),
        _ => space
            .put_all(&[&fields!["job", number], &fields!["beside", number]])
            .map(|count| count == 2),
    }
}

#[test]
fn a_put_happens_once_and_has_its_first_answer_though_the_server_is_killed_before_that_o2() {
    let mut server = Server::new();
    let way = Way::to(server.socket());
    let name = format!("killed-{}", std::process::id());
    let options = ConnectOptions::default();
    let url = format!("tcp://127.0.0.1:{}/{name}?size=16M&reconnect_s=60", way.port);
    let space = Space::connect(&url, &options).unwrap();
    let beside = Space::connect(&format!("shm://{name}"), &options).unwrap();
    let mut random = fastrand::Rng::with_seed(seed());
    let kills = if thorough() { KILLS_THOROUGH } else { KILLS };
    for number in 0..kills {
        let is_done = number < 3 || random.bool();
        way.lose(!is_done, is_done);
        let job = [template!["job", number]];
        let answer = thread::scope(|scope| {
            let call = scope.spawn(|| change(&space, number));
            if is_done {
                beside.read(&job, Order::Fifo, None, |_| Ok::<_, Error>(())).unwrap();
            }
            server.kill();
            assert_eq!(beside.count(&job), Ok(u64::from(is_done)));
            way.lose(false, false);
            server.start();
            call.join().unwrap()
        });
        assert_eq!(answer, Ok(true), "put {number}, {is_done}");
        assert_eq!(beside.count(&job), Ok(1), "put {number}, {is_done}");
    }
    let number = |tuple: TupleView<'_>| Ok::<_, Error>(tuple.to_tuple()?.to_string());
    let all = beside.take_all(&[template!["job", Kind::Int]], None, number).unwrap();
    assert_eq!(all.len(), usize::try_from(kills).unwrap());
    tupelo::remove(&format!("shm://{name}")).unwrap();
}

/// A space that a server keeps in a file, which is gone with it.
struct Kept {
    file: PathBuf,
}

impl Kept {
    fn new(name: &str) -> Self {
        let name = format!("tupelo-{name}-{}.tupelo", std::process::id());
        Self { file: std::env::temp_dir().join(name) }
    }

    fn url(&self) -> String {
        format!("file://{}?size=16M", self.file.display())
    }

    fn settings(&self) -> Settings {
        let spaces = vec![ServedSpace { name: "kept".into(), file_url: Some(self.url()) }];
        Settings { spaces, ..settings(Engine::Mem) }
    }

    /// As after a restart of the machine: the memory is gone.
    fn forget_memory(&self) {
        let file = std::fs::metadata(&self.file).unwrap();
        let number = format!("-{:x}-{:x}.", file.dev(), file.ino());
        for entry in std::fs::read_dir("/dev/shm").unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().contains(&number) {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // There is none if the test has failed early.
        let _ = tupelo::remove(&self.url());
    }
}

/// Kills a server of a file between each change and its answer, of which some happen and some do not.
fn kill_server_of_file(kept: &Kept, forgets_memory: bool) {
    let mut server = Server::with(kept.settings());
    let way = Way::to(server.socket());
    let options = ConnectOptions::default();
    let url = format!("tcp://127.0.0.1:{}/kept?reconnect_s=60", way.port);
    let space = Space::connect(&url, &options).unwrap();
    let mut random = fastrand::Rng::with_seed(seed());
    let kills = if thorough() { KILLS_THOROUGH } else { KILLS };
    for number in 0..kills {
        let is_done = number < 3 || random.bool();
        way.lose(!is_done, is_done);
        let job = [template!["job", number]];
        let beside = Space::connect(&kept.url(), &options).unwrap();
        let answer = thread::scope(|scope| {
            let call = scope.spawn(|| change(&space, number));
            if is_done {
                beside.read(&job, Order::Fifo, None, |_| Ok::<_, Error>(())).unwrap();
                beside.flush().unwrap();
            }
            server.kill();
            assert_eq!(beside.count(&job), Ok(u64::from(is_done)));
            drop(beside);
            if forgets_memory {
                kept.forget_memory();
            }
            way.lose(false, false);
            server.start();
            call.join().unwrap()
        });
        assert_eq!(answer, Ok(true), "put {number}, {is_done}");
        assert_eq!(space.count(&job), Ok(1), "put {number}, {is_done}");
    }
    let jobs = [template!["job", Kind::Int]];
    assert_eq!(space.count(&jobs), Ok(kills.unsigned_abs()));
}

#[test]
fn a_put_into_a_file_happens_once_though_the_server_is_killed_before_its_answer_c4_o2() {
    kill_server_of_file(&Kept::new("killed-file"), false);
}

#[test]
fn a_put_into_a_file_happens_once_though_the_memory_is_gone_with_the_server_c4_o2() {
    kill_server_of_file(&Kept::new("killed-memory"), true);
}

#[test]
fn a_swap_whose_answer_was_lost_with_the_server_is_not_done_again_c1() {
    let mut server = Server::new();
    let way = Way::to(server.socket());
    let name = format!("killed-swap-{}", std::process::id());
    let options = ConnectOptions::default();
    let url = format!("tcp://127.0.0.1:{}/{name}?size=16M&reconnect_s=60", way.port);
    let space = Space::connect(&url, &options).unwrap();
    let beside = Space::connect(&format!("shm://{name}"), &options).unwrap();
    beside.put(&fields!["count", 1]).unwrap();
    way.lose(false, true);
    let any = [template!["count", Kind::Int]];
    let answer = thread::scope(|scope| {
        let call =
            scope.spawn(|| space.try_swap(&any, &fields!["count", 2], |_| Ok::<_, Error>(())));
        let swapped = [template!["count", 2]];
        beside.read(&swapped, Order::Fifo, None, |_| Ok::<_, Error>(())).unwrap();
        server.kill();
        way.lose(false, false);
        server.start();
        call.join().unwrap()
    });
    let Err(Error::ConnectionLost { problem, may_have_happened: true, .. }) = answer else {
        panic!("{answer:?}")
    };
    assert!(problem.contains("the swap has happened"), "{problem}");
    assert_eq!(beside.count(&[template!["count", 2]]), Ok(1));
    tupelo::remove(&format!("shm://{name}")).unwrap();
}

#[test]
fn a_take_has_its_first_tuple_though_the_server_is_killed_before_that_was_told_c3() {
    let name = format!("killed-take-{}", std::process::id());
    kill_before_takes_are_told(Server::new(), &name, &format!("shm://{name}"));
    tupelo::remove(&format!("shm://{name}")).unwrap();
}

#[test]
fn a_take_from_a_file_has_its_first_tuple_though_the_server_is_killed_before_c3_c4() {
    let kept = Kept::new("killed-take-file");
    kill_before_takes_are_told(Server::with(kept.settings()), "kept", &kept.url());
}

fn kill_before_takes_are_told(mut server: Server, name: &str, beside: &str) {
    let way = Way::to(server.socket());
    let options = ConnectOptions::default();
    let url = format!("tcp://127.0.0.1:{}/{name}?size=16M&reconnect_s=60", way.port);
    let space = Space::connect(&url, &options).unwrap();
    let beside = Space::connect(beside, &options).unwrap();
    let jobs = [template!["job", Kind::Int]];
    let text = |tuple: TupleView<'_>| Ok::<_, Error>(tuple.to_tuple()?.to_string());
    for number in 0..if thorough() { KILLS_THOROUGH } else { KILLS } {
        // It is there already, or comes to a take that waits.
        let is_there = number % 2 == 0;
        if is_there {
            beside.put(&fields!["job", number]).unwrap();
        }
        way.lose(false, is_there);
        let answer = thread::scope(|scope| {
            let call = scope.spawn(|| space.take(&jobs, Order::Fifo, None, text));
            if !is_there {
                wait_until(|| beside.stat().unwrap().waiters == 1);
                way.lose(false, true);
                beside.put(&fields!["job", number]).unwrap();
            }
            wait_until(|| {
                beside.stat().unwrap().shapes.iter().any(|shape| !shape.claims.is_empty())
            });
            server.kill();
            // Behind it there is another one, which is not for this take.
            beside.put(&fields!["job", number + 1000]).unwrap();
            way.lose(false, false);
            server.start();
            call.join().unwrap()
        });
        assert_eq!(answer, Ok(format!("(\"job\", {number})")));
        assert_eq!(
            beside.take(&jobs, Order::Fifo, None, text),
            Ok(format!("(\"job\", {})", number + 1000))
        );
        wait_until(|| beside.stat().unwrap().shapes.iter().all(|shape| shape.claims.is_empty()));
        assert_eq!(beside.count(&jobs), Ok(0));
    }
}

#[test]
fn a_tuple_that_has_arrived_is_given_to_nobody_else_though_the_server_never_heard_of_it_t1() {
    let mut server = Server::new();
    let way = Way::to(server.socket());
    let name = format!("killed-acknowledged-{}", std::process::id());
    let options = ConnectOptions::default();
    let url = format!("tcp://127.0.0.1:{}/{name}?size=16M&reconnect_s=60", way.port);
    let space = Space::connect(&url, &options).unwrap();
    let beside = Space::connect(&format!("shm://{name}"), &options).unwrap();
    let jobs = [template!["job", Kind::Int]];
    let text = |tuple: TupleView<'_>| Ok::<_, Error>(tuple.to_tuple()?.to_string());
    for number in 0..if thorough() { KILLS_THOROUGH } else { KILLS } {
        let taken = thread::scope(|scope| {
            let call = scope.spawn(|| space.take(&jobs, Order::Fifo, None, text));
            wait_until(|| beside.stat().unwrap().waiters == 1);
            way.lose(true, false);
            beside.put(&fields!["job", number]).unwrap();
            call.join().unwrap()
        });
        assert_eq!(taken, Ok(format!("(\"job\", {number})")));
        server.kill();
        assert_eq!(beside.try_take(&jobs, Order::Fifo, text), Ok(None));
        way.lose(false, false);
        server.start();
        assert_eq!(space.count(&jobs), Ok(0));
        // The next server was told.
        wait_until(|| beside.stat().unwrap().shapes.iter().all(|shape| shape.claims.is_empty()));
        assert_eq!(beside.try_take(&jobs, Order::Fifo, text), Ok(None));
    }
    tupelo::remove(&format!("shm://{name}")).unwrap();
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::sleep(LOOK);
    }
}
