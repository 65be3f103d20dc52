//! `tupelo token`: what it writes and prints, and a server that asks for them.

use std::fs;
use std::path::PathBuf;

use crate::serve_tls::Server;
use crate::support::{command, run};

/// A file of tokens that is removed with the test.
struct Tokens(PathBuf);

impl Tokens {
    fn new(test: &str) -> Self {
        let name = format!("tupelo-{}-{test}.toml", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Tokens {
    fn drop(&mut self) {
        // The system cleans its folder of temporary files.
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_token_that_was_added_is_what_a_client_needs() {
    let tokens = Tokens::new("token-add");
    let added = run(&["token", "add", "ci", "--tokens", tokens.path(), "--role", "writer"]);
    assert_eq!(added.code, 0, "{added:?}");
    let server = Server::start(&["--listen", "tcp://127.0.0.1:0", "--tokens", tokens.path()], 1);
    let url = server.url("jobs");
    let refused = run(&["put", &url, "job", "7"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains("TUP-006") && refused.err.contains("TUPELO_TOKEN"), "{refused:?}");
    let put = |token: &str| {
        let ran = command(&["put", &url, "job", "7"]).env("TUPELO_TOKEN", token).output().unwrap();
        ran.status.code()
    };
    assert_eq!(put(added.out.trim()), Some(0));
    assert_eq!(put("tupelo_ci_00"), Some(4));
}

#[test]
fn tokens_are_listed_and_removed() {
    let tokens = Tokens::new("token-list");
    let file = ["--tokens", tokens.path()];
    let with = |words: &[&str]| run(&[&["token"], words, &file[..]].concat());
    let rule = "jobs : put, take (\"job\", _)";
    assert_eq!(with(&["add", "ci", "--rule", rule, "--rule", "* : read"]).code, 0);
    assert_eq!(with(&["list"]).out, format!("ci\t{rule}; * : read\n"));
    assert_eq!(with(&["remove", "ci"]).code, 0);
    assert_eq!(with(&["list"]).out, "");
    assert!(with(&["remove", "ci"]).err.contains("no token \"ci\""));
    let wrong = with(&["add", "ci", "--rule", "jobs : get"]);
    assert!(wrong.err.contains("put, take, read and admin"), "{wrong:?}");
    assert!(with(&["add", "ci"]).err.contains("--rule"));
    assert!(with(&["add", "ci", "--role", "king"]).err.contains("reader, writer or admin"));
}
