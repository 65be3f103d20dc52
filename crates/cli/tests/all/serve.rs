//! `tupelo serve`: a server and its clients, as processes that are killed.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{TestSpace, command, run};
use rustix::process::{Pid, Signal, kill_process};
use tupelo::{ConnectOptions, Error, Kind, Order, Space, TupleView, fields, template};
use tupelo_crashtest::{fork, kill_this_process};

/// Far beyond what any of these waits needs.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// A server of shared spaces, and the space that its clients use.
struct Server {
    process: Child,
    socket: PathBuf,
    space: TestSpace,
}

impl Server {
    fn start(test: &str) -> Self {
        let space = TestSpace::new(test);
        let name = format!("tupelo-{}-{test}.sock", std::process::id());
        let socket = std::env::temp_dir().join(name);
        Self { process: Self::process(&socket), socket, space }
    }

    /// Returns when clients can connect.
    fn process(socket: &std::path::Path) -> Child {
        let words = ["serve", "--engine", "shm", "--socket", socket.to_str().unwrap()];
        let mut process = command(&words).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("serving unix:///"), "{line:?}");
        process
    }

    /// The space by way of the server.
    fn url(&self) -> String {
        let name = self.space.url.trim_start_matches("shm://");
        format!("unix://{}?space={name}", self.socket.display())
    }

    fn connect(&self) -> Space {
        connect(&self.url())
    }

    /// The same space without the server.
    fn beside(&self) -> Space {
        connect(&self.space.url)
    }

    fn signal(&mut self, signal: Signal) -> ExitStatus {
        let pid = Pid::from_raw(self.process.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
        self.process.wait().unwrap()
    }

    fn start_again(&mut self) {
        self.process = Self::process(&self.socket);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn connect(url: &str) -> Space {
    let options = ConnectOptions { size_bytes: 16 << 20, ..ConnectOptions::default() };
    Space::connect(url, &options).unwrap()
}

fn text(tuple: TupleView<'_>) -> Result<String, Error> {
    Ok(tuple.to_tuple()?.to_string())
}

fn take(space: &Space) -> Result<String, Error> {
    space.take(&[template!["job", Kind::Int]], Order::Fifo, Some(FORGOTTEN), text)
}

/// Looks again and again until so many callers wait in the space.
fn wait_for_waiters(space: &Space, count: u64) {
    let begin = std::time::Instant::now();
    while space.stat().unwrap().waiters != count {
        assert!(begin.elapsed() < FORGOTTEN, "never {count} waiters");
        thread::yield_now();
    }
}

/// How many callers wait in a space that nobody uses but the server: its notifier is none.
const IDLE: u64 = 0;

#[test]
fn it_serves_the_command_line_until_sigterm_and_takes_its_socket_away() {
    let mut server = Server::start("serve-sigterm");
    let url = server.url();
    assert_eq!(run(&["put", &url, "job", "7"]).code, 0);
    let taken = run(&["take", &url, "job", ":int", "--try"]);
    assert_eq!((taken.code, taken.out.as_str()), (0, "(\"job\", 7)\n"), "{taken:?}");
    assert_eq!(run(&["take", &url, "job", ":int", "--try"]).code, 3);
    let waited = run(&["take", &url, "job", ":int", "--timeout", "10ms"]);
    assert_eq!(waited.code, 3, "{waited:?}");
    assert!(waited.err.contains("TUP-003"), "{waited:?}");
    let figures = run(&["stat", &url]);
    assert!(figures.code == 0 && figures.out.contains("(str, int)"), "{figures:?}");
    let why = run(&["explain", &url, "job", ":int"]);
    assert_eq!((why.code, why.out.as_str()), (0, "the space is empty\n"), "{why:?}");
    let status = server.signal(Signal::TERM);
    assert_eq!(status.code(), Some(0));
    assert!(!server.socket.exists());
    let lost = run(&["take", &url, "job", ":int", "--try"]);
    assert_eq!(lost.code, 1);
    assert!(lost.err.contains("TUP-002") && lost.err.contains("no such socket"), "{lost:?}");
}

/// A server that is given a listening socket as systemd does it: as its descriptor 3, under its own number.
fn activated(listener: impl Into<std::os::fd::OwnedFd>, words: &str, name: &str) -> Child {
    let program = env!("CARGO_BIN_EXE_tupelo");
    let script = format!("LISTEN_PID=$$ exec '{program}' serve {words} 3<&0 </dev/null");
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", &script]).env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", name);
    shell.stdin(listener.into()).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn it_serves_at_sockets_that_somebody_else_listens_at_for_it() {
    let path = std::env::temp_dir().join(format!("tupelo-{}-activated.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let url = format!("unix://{}?space=jobs", path.display());
    // It connects before there is a server, and waits for its answer.
    let put = thread::spawn({
        let url = url.clone();
        move || run(&["put", &url, "job", "7"])
    });
    let mut server = activated(listener, "", "tupelo.socket");
    assert_eq!(put.join().unwrap().code, 0);
    assert_eq!(run(&["take", &url, "job", ":int", "--try"]).out, "(\"job\", 7)\n");
    let pid = Pid::from_raw(server.id().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(path.exists(), "the socket is not the server's");
    std::fs::remove_file(&path).unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = activated(listener, "", "http");
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, format!("serving http://{address}/v1/spaces/NAME\n"), "and nowhere else");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_socket_at_which_nobody_listens_is_refused() {
    let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut server = activated(one, "2>/dev/null", "");
    assert_eq!(server.wait().unwrap().code(), Some(1));
}

#[test]
fn two_servers_do_not_share_a_socket_and_one_that_was_left_behind_is_replaced() {
    let mut server = Server::start("serve-socket");
    let path = server.socket.to_str().unwrap().to_owned();
    let second = run(&["serve", "--socket", &path]);
    assert_eq!(second.code, 1);
    assert!(second.err.contains("a server listens there"), "{second:?}");
    server.signal(Signal::KILL);
    assert!(server.socket.exists(), "nobody took it away");
    server.start_again();
    assert_eq!(run(&["put", &server.url(), "job", "7"]).code, 0);
    server.signal(Signal::TERM);
    std::fs::write(&server.socket, "a file").unwrap();
    let refused = run(&["serve", "--socket", &path]);
    assert!(refused.err.contains("it is no socket"), "{refused:?}");
}

#[test]
fn a_client_that_is_killed_in_a_blocked_take_takes_nothing_c3_l5() {
    let server = Server::start("serve-blocked");
    let (url, beside) = (server.url(), server.beside());
    connect(&url).put(&fields!["other"]).unwrap();
    for number in 0..5 {
        let client = fork(|| drop(take(&connect(&url))));
        wait_for_waiters(&beside, IDLE + 1);
        client.kill();
        // At once: whether the server has noticed or not, it comes to somebody who lives.
        beside.put(&fields!["job", number]).unwrap();
        assert_eq!(take(&beside), Ok(format!(r#"("job", {number})"#)));
    }
    wait_for_waiters(&beside, IDLE);
}

#[test]
fn a_client_that_is_killed_before_it_has_acknowledged_gives_the_tuple_back_c3_t5() {
    let server = Server::start("serve-unacknowledged");
    let (url, beside) = (server.url(), server.beside());
    for number in 0..5 {
        beside.put(&fields!["job", number]).unwrap();
    }
    // Found at once, and waited for.
    for word in ["job", "late"] {
        let client = fork(|| {
            let killed = |_: TupleView<'_>| -> Result<(), Error> { kill_this_process() };
            let template = [template![word, Kind::Int]];
            let _ = connect(&url).take(&template, Order::Fifo, Some(FORGOTTEN), killed);
        });
        if word == "late" {
            wait_for_waiters(&beside, IDLE + 1);
            beside.put(&fields!["late", 1]).unwrap();
        }
        client.wait();
    }
    let late = [template!["late", Kind::Int]];
    let late = beside.take(&late, Order::Fifo, Some(FORGOTTEN), text);
    assert_eq!(late.unwrap(), r#"("late", 1)"#);
    // The oldest is back at its place.
    assert_eq!(
        beside.take(&[template!["job", 0]], Order::Fifo, Some(FORGOTTEN), text),
        Ok(r#"("job", 0)"#.to_owned())
    );
    assert_eq!(take(&beside), Ok(r#"("job", 1)"#.to_owned()));
}

#[test]
fn a_tuple_whose_take_has_returned_is_gone_also_if_the_client_is_killed_at_once() {
    let server = Server::start("serve-acknowledged");
    let (url, beside) = (server.url(), server.beside());
    for number in 0..20 {
        beside.put(&fields!["job", number]).unwrap();
        let client = fork(|| {
            take(&connect(&url)).unwrap();
            kill_this_process();
        });
        client.wait();
        wait_for_waiters(&beside, IDLE);
        let begin = std::time::Instant::now();
        let job = [template!["job", Kind::Int]];
        while beside.present(&job).unwrap() {
            assert_eq!(beside.count(&job), Ok(0), "it is never back");
            assert!(begin.elapsed() < FORGOTTEN);
        }
    }
}

#[test]
fn the_death_of_a_client_is_noticed_also_if_its_child_has_the_socket_l5() {
    let server = Server::start("serve-forked");
    let (url, beside) = (server.url(), server.beside());
    connect(&url).put(&fields!["other"]).unwrap();
    let client = fork(|| {
        let space = connect(&url);
        space.put(&fields!["connected"]).unwrap();
        let child = fork(|| thread::sleep(FORGOTTEN));
        space.put(&fields!["child", child.pid()]).unwrap();
        drop(take(&space));
    });
    wait_for_waiters(&beside, IDLE + 1);
    client.kill();
    wait_for_waiters(&beside, IDLE);
    let child = beside.try_take(&[template!["child", Kind::Int]], Order::Fifo, text).unwrap();
    let pid: String = child.unwrap().chars().filter(char::is_ascii_digit).collect();
    kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn the_child_of_a_fork_has_a_connection_of_its_own() {
    let server = Server::start("serve-child");
    let space = server.connect();
    space.put(&fields!["job", 1]).unwrap();
    let children: Vec<_> = (0..3)
        .map(|_| {
            fork(|| {
                for _ in 0..50 {
                    space.put(&fields!["job", 2]).unwrap();
                    take(&space).unwrap();
                }
            })
        })
        .collect();
    for _ in 0..50 {
        space.put(&fields!["job", 3]).unwrap();
        take(&space).unwrap();
    }
    for child in children {
        assert_eq!(child.wait(), tupelo_crashtest::Exit::Done);
    }
    assert_eq!(space.count(&[template!["job", Kind::Int]]), Ok(1));
}

#[test]
fn a_killed_server_ends_calls_with_connection_lost_and_the_next_one_is_found() {
    let mut server = Server::start("serve-killed");
    // Else the calls would wait for the next server.
    let space = connect(&format!("{}&reconnect_s=0", server.url()));
    let beside = server.beside();
    space.put(&fields!["kept", 1]).unwrap();
    let waiting = space.clone();
    let blocked = thread::spawn(move || take(&waiting));
    wait_for_waiters(&beside, IDLE + 1);
    server.signal(Signal::KILL);
    let lost = blocked.join().unwrap().unwrap_err();
    assert!(matches!(lost, Error::ConnectionLost { .. }), "{lost}");
    assert_eq!(lost.code(), "TUP-002");
    assert!(lost.to_string().contains("was lost"), "{lost}");
    let refused = space.put(&fields!["job", 1]).unwrap_err();
    assert!(refused.to_string().contains("nobody listens there any more"), "{refused}");
    server.start_again();
    // The same handle, and the same space.
    space.put(&fields!["job", 2]).unwrap();
    assert_eq!(take(&space), Ok(r#"("job", 2)"#.to_owned()));
    assert_eq!(space.count(&[template!["kept", Kind::Int]]), Ok(1));
}

#[test]
fn what_a_visitor_refuses_is_back_at_its_place_v3() {
    let server = Server::start("serve-refused");
    let (space, jobs) = (server.connect(), [template!["job", Kind::Int]]);
    for number in 1..=3 {
        space.put(&fields!["job", number]).unwrap();
    }
    let refuse = |_: TupleView<'_>| -> Result<(), Error> {
        Err(Error::NotEncodable { problem: "no".into() })
    };
    let refused = space.try_take(&jobs, Order::Fifo, refuse).unwrap_err();
    assert_eq!(refused.code(), "TUP-004");
    assert!(space.take(&jobs, Order::Fifo, Some(FORGOTTEN), refuse).is_err());
    assert!(space.take_all(&jobs, None, refuse).is_err());
    let all = space.take_all(&jobs, None, text).unwrap();
    assert_eq!(all, [r#"("job", 1)"#, r#"("job", 2)"#, r#"("job", 3)"#]);
}

#[test]
fn a_server_lists_its_spaces_and_top_watches_all_of_them() {
    let server = Server::start("serve-list");
    assert_eq!(run(&["put", &server.url(), "job", "7"]).code, 0);
    let alone = format!("unix://{}", server.socket.display());
    let listed = run(&["ls", &alone]);
    assert_eq!(listed.code, 0, "{listed:?}");
    // Beside the spaces of other tests, which are in shared memory, too.
    assert!(listed.out.lines().any(|line| line.starts_with(&server.url())), "{listed:?}");
    let objects = run(&["ls", &alone, "--json"]).objects();
    let ours = objects.iter().find(|object| object["url"] == server.url().as_str()).unwrap();
    assert_eq!(ours["tuples"], 1, "{ours}");
    let watched = run(&["top", &alone, "--count", "1", "--json"]);
    let shapes: Vec<_> = watched.objects();
    let ours = shapes.iter().find(|object| object["url"] == server.url().as_str()).unwrap();
    assert_eq!((&ours["shape"], &ours["count"]), (&serde_json::json!(["str", "int"]), &1.into()));
}

#[test]
fn a_file_says_what_the_options_say_and_the_environment_comes_before_it() {
    let folder = std::env::temp_dir().join(format!("tupelo-config-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("tupelo.toml");
    let text =
        "socket = 'a.sock'\ncreate = false\nspaces = ['configured']\naudit = 'audit.jsonl'\n";
    std::fs::write(&file, text).unwrap();
    let mut command = command(&["serve", "--config", file.to_str().unwrap()]);
    let mut process = command.env("TUPELO_SPACES", "one,two").spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let alone = format!("unix://{}", folder.join("a.sock").display());
    assert_eq!(line, format!("serving {alone}?space=one\n"));
    let listed = run(&["ls", &alone]);
    assert!(listed.out.contains("space=one") && listed.out.contains("space=two"), "{listed:?}");
    assert!(!listed.out.contains("configured"), "{listed:?}");
    let refused = run(&["put", &format!("{alone}?space=three"), "job", "7"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(folder.join("audit.jsonl").exists());
    std::fs::write(&file, "sokcet = 'a.sock'\n").unwrap();
    let refused = run(&["serve", "--config", file.to_str().unwrap()]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("did you mean \"socket\"?"), "{refused:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}
