//! `tupelo serve --space NAME=file:///PATH`: what a server has told of is there after it was killed and its memory is gone.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Child;

use tupelo::{ConnectOptions, Space, fields};

use crate::support::{command, run};

/// A server of one space that is kept in a file, in a directory of its own.
struct Server {
    directory: PathBuf,
    process: Child,
}

impl Server {
    fn start(test: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("cli-serve-files-{}-{test}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let process = Self::process(&directory);
        Self { directory, process }
    }

    fn process(directory: &std::path::Path) -> Child {
        let space = format!("jobs=file://{}", directory.join("jobs.tupelo").display());
        let socket = directory.join("socket");
        let words = ["serve", "--space", &space, "--socket", socket.to_str().unwrap()];
        let mut process = command(&words).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("?space=jobs"), "{line:?}");
        process
    }

    fn url(&self) -> String {
        format!("unix://{}?space=jobs", self.directory.join("socket").display())
    }

    fn file_url(&self) -> String {
        format!("file://{}", self.directory.join("jobs.tupelo").display())
    }

    /// As the machine that loses its power: the server is gone, and its memory.
    fn start_again_without_memory(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        // A file with another number finds none of the memory.
        for name in ["jobs.tupelo", "jobs.tupelo-wal"] {
            let path = self.directory.join(name);
            let bytes = fs::read(&path).unwrap();
            fs::rename(&path, path.with_extension("old")).unwrap();
            fs::write(&path, bytes).unwrap();
        }
        self.process = Self::process(&self.directory);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = tupelo::remove(&self.file_url());
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn what_a_server_has_acknowledged_is_there_after_it_was_killed_and_its_memory_is_gone_c4() {
    let mut server = Server::start("killed");
    for number in ["1", "2", "3"] {
        assert_eq!(run(&["put", &server.url(), "job", number]).code, 0);
    }
    let done = run(&["take", &server.url(), "job", "2", "--exec", "true"]);
    assert_eq!(done.code, 0, "{done:?}");
    // On this machine it is the same space.
    assert_eq!(run(&["read", &server.file_url(), "job", "3"]).out, "(\"job\", 3)\n");
    server.start_again_without_memory();
    let left = run(&["read", &server.url(), "job", ":int", "--all"]);
    assert_eq!(left.out, "(\"job\", 1)\n(\"job\", 3)\n", "{left:?}");
}

#[test]
fn a_client_is_told_of_nothing_that_is_not_on_disk_c4() {
    let server = Server::start("told");
    let options = ConnectOptions::default();
    let far = Space::connect(&server.url(), &options).unwrap();
    let beside = Space::connect(&server.file_url(), &options).unwrap();
    for number in 0..50 {
        far.put(&fields!["job", number]).unwrap();
        let stat = beside.journal_stat().unwrap();
        assert_eq!(stat.drained, stat.appended, "job {number}");
    }
}

#[test]
fn a_client_can_not_throw_the_file_of_a_server_away() {
    let server = Server::start("thrown-away");
    run(&["put", &server.url(), "job", "1"]);
    let refused = run(&["rm", &server.url(), "--yes"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains("the server keeps jobs in a file, and it was to be removed"));
    assert_eq!(run(&["read", &server.url(), "job", ":int", "--try"]).out, "(\"job\", 1)\n");
}

#[test]
fn a_space_of_a_server_is_kept_in_a_file_or_where_the_others_are() {
    let refused = run(&["serve", "--space", "jobs=shm://jobs"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("as in jobs=file:///srv/jobs.tupelo"), "{refused:?}");
}
