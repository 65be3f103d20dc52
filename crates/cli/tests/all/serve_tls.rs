//! `tupelo serve` for other machines: the lines that it prints, and new certificates without a restart.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::authority::Authority;
use crate::support::{command, run};
use rustix::process::{Pid, Signal, kill_process};
use tupelo::{ConnectOptions, Order, Space, fields, template};

/// Far beyond what any of these waits needs.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// A server that is ended with the test.
pub(crate) struct Server {
    process: Child,
    /// What it printed when clients could connect.
    urls: Vec<String>,
}

impl Server {
    pub(crate) fn start(options: &[&str], lines: usize) -> Self {
        let words: Vec<_> = ["serve"].iter().chain(options).copied().collect();
        let mut process = command(&words).spawn().unwrap();
        let printed = BufReader::new(process.stdout.take().unwrap()).lines().take(lines);
        let urls = printed.map(|line| line.unwrap().trim_start_matches("serving ").to_owned());
        Self { urls: urls.collect(), process }
    }

    /// The URL of a space at the first of its endpoints.
    pub(crate) fn url(&self, space: &str) -> String {
        self.urls[0].replace("NAME", space)
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.process.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn it_prints_the_url_of_each_endpoint_with_the_port_that_it_got() {
    let tcp = ["--listen", "tcp://127.0.0.1:0"];
    let server = Server::start(&[tcp, tcp, ["--space", "jobs"]].concat(), 2);
    let [one, other] = &server.urls[..] else { panic!("{:?}", server.urls) };
    assert!(one.starts_with("tcp://127.0.0.1:") && one.ends_with("/jobs"), "{one}");
    assert_ne!(one, other);
    assert_eq!(run(&["put", one, "job", "7"]).code, 0);
    // The spaces of a server are the same at each of its endpoints.
    assert_eq!(run(&["take", other, "job", ":int"]).out, "(\"job\", 7)\n");
}

#[test]
fn hang_up_has_new_clients_see_new_certificates_and_ends_no_connection() {
    let (old, new) = (Authority::new(), Authority::new());
    let signed = old.sign("server", "127.0.0.1");
    let (certificate, key) = (signed.certificate.to_str().unwrap(), signed.key.to_str().unwrap());
    let server = Server::start(
        &["--listen", "tls://127.0.0.1:0", "--certificate", certificate, "--key", key],
        1,
    );
    let url = |authority: &Authority| {
        format!("{}?ca={}", server.urls[0].replace("NAME", "jobs"), authority.ca().display())
    };
    let before = Space::connect(&url(&old), &ConnectOptions::default()).unwrap();
    before.put(&fields!["job", 7]).unwrap();

    // What can not be used changes nothing.
    fs::write(&signed.certificate, "no certificate").unwrap();
    server.signal(Signal::HUP);
    assert_eq!(run(&["read", &url(&old), "job", "7"]).code, 0);

    let fresh = new.sign("server", "127.0.0.1");
    fs::copy(&fresh.certificate, &signed.certificate).unwrap();
    fs::copy(&fresh.key, &signed.key).unwrap();
    server.signal(Signal::HUP);
    let begin = Instant::now();
    while run(&["read", &url(&new), "job", "7"]).code != 0 {
        assert!(begin.elapsed() < FORGOTTEN, "the new certificate is never used");
    }
    let refused = run(&["read", &url(&old), "job", "7"]);
    assert!(refused.err.contains("is not trusted"), "{refused:?}");
    let found =
        before.try_read(&[template!["job", 7]], Order::Fifo, |_| Ok::<_, tupelo::Error>(()));
    assert_eq!(found, Ok(Some(())));
}

#[test]
fn what_can_not_be_served_is_refused_with_what_to_type() {
    for (options, says) in [
        (&["--listen", "ftp://127.0.0.1:80"][..], "http://HOST:PORT"),
        (&["--listen", "tcp://127.0.0.1:x"], "up to 65535"),
        (&["--listen", "tls://127.0.0.1:0"], "--certificate and --key"),
        (&["--listen", "tcp://0.0.0.0:0"], "--insecure"),
        (&["--certificate", "hub.pem"], "--key"),
    ] {
        let words: Vec<_> = ["serve"].iter().chain(options).copied().collect();
        let refused = run(&words);
        assert_ne!(refused.code, 0, "{options:?}");
        assert!(refused.err.contains(says), "{options:?}: {refused:?}");
    }
}
