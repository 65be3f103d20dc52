//! Runs the real binary, as a shell would.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Output, Stdio};

/// A space for one test, removed at the end.
pub(crate) struct TestSpace {
    pub(crate) url: String,
}

impl TestSpace {
    /// `test` names the test, so that tests that run at the same time do not meet.
    pub(crate) fn new(test: &str) -> Self {
        Self { url: format!("shm://cli-test-{}-{test}", std::process::id()) }
    }

    /// Makes it one in which a contradiction was found.
    pub(crate) fn damage(&self) {
        let name = format!(".{}.", self.url.trim_start_matches("shm://"));
        let files = fs::read_dir("/dev/shm").unwrap().map(|file| file.unwrap().path());
        let own = files.into_iter().find(|file| file.to_string_lossy().contains(&name)).unwrap();
        // Where the state is, and the number of this one.
        let file = File::options().write(true).open(own).unwrap();
        file.write_all_at(&2_u32.to_ne_bytes(), 12).unwrap();
    }
}

impl Drop for TestSpace {
    fn drop(&mut self) {
        // A test that never made it has nothing to remove.
        let _ = tupelo::remove(&self.url);
    }
}

/// What a run of `tupelo` printed and how it ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// The lines of standard output as JSON.
    pub(crate) fn objects(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The command line `tupelo WORDS…`, not started yet, in an environment of its own.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tupelo"));
    command.args(words).env_remove("TUPELO_URL").env_remove("NO_COLOR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs `tupelo WORDS…` to its end.
pub(crate) fn run(words: &[&str]) -> Run {
    Run::of(command(words).output().unwrap())
}

/// Runs `tupelo WORDS…` with something on its standard input.
pub(crate) fn run_with_input(words: &[&str], input: &str) -> Run {
    let mut child = command(words).stdin(Stdio::piped()).spawn().unwrap();
    // A program that refuses ends without reading: then the pipe is closed, and that is its right.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    finish(child)
}

/// Waits for a program that was started.
pub(crate) fn finish(child: Child) -> Run {
    Run::of(child.wait_with_output().unwrap())
}
