//! `tupelo take --exec`: a tuple is claimed for as long as a command works on it.
//!
//! The command gets the tuple as a line of JSON on its standard input, as `read --json` prints it. If it ends well the
//! tuple is consumed. If it fails, or this program is killed, the tuple is back in the space. To run it many times, use
//! a worker.

use std::io::Write;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Instant;

use tupelo::{Claim, ClaimTerms, Outcome, Space, TemplateRef, Tuple};
use tupelo_shm::signals::keep_ends_of_children;

use super::find::{self, WaitOptions};
use crate::failure::Failure;
use crate::words;

/// Claims a match and runs `command_line` with it. `None`: there is none, and `wait` says not to wait.
pub(super) fn run(
    space: &Space,
    template: &[TemplateRef<'_>],
    (terms, wait): (&ClaimTerms, WaitOptions<'_>),
    command_line: &str,
) -> Result<Option<()>, Failure> {
    // Where they are forgotten a tuple would be back that was worked on.
    keep_ends_of_children();
    let claimed = claim(space, template, terms, wait)?;
    claimed.map(|(claim, tuple)| work(&claim, &tuple, terms, command_line)).transpose()
}

fn claim(
    space: &Space,
    template: &[TemplateRef<'_>],
    terms: &ClaimTerms,
    wait: WaitOptions<'_>,
) -> Result<Option<(Claim, Tuple)>, Failure> {
    if let Some(claimed) = space.try_claim(template, wait.order, terms, words::owned)? {
        return Ok(Some(claimed));
    }
    if wait.now {
        return Ok(None);
    }
    let begin = Instant::now();
    let mut waiter = space.claimant(template, terms)?;
    loop {
        find::await_match(space, ("take", template), &waiter, (wait, begin.elapsed()))?;
        match waiter.finish_claim(terms, words::owned)? {
            Outcome::Done(claimed) => return Ok(Some(claimed)),
            Outcome::Waits(again) => waiter = again,
        }
    }
}

/// Runs the command, and ends the claim as the command ends.
fn work(
    claim: &Claim,
    tuple: &Tuple,
    terms: &ClaimTerms,
    command_line: &str,
) -> Result<(), Failure> {
    let _kept = claim.keep_alive()?;
    let failed = match run_with_input(claim, tuple, command_line) {
        Ok(status) if status.success() => return Ok(claim.done()?),
        Ok(status) => format!("`{command_line}` ended with {status}"),
        Err(error) => format!("`{command_line}` can not be run: {error}"),
    };
    if let Err(error) = claim.abort(&failed) {
        return Err(Failure::from(error).within(|why| format!("{failed}\n  {why}")));
    }
    let is_dead = terms.attempts_max.is_some_and(|most| claim.attempt() >= most);
    let whereabouts = if is_dead {
        format!(
            "That was its last attempt, it is dead now: {tuple}\n  \
             `tupelo dead` lists those, `tupelo requeue` has them tried again"
        )
    } else {
        format!("The tuple is back: {tuple}")
    };
    Err(Failure::Other(format!("{failed}\n  {whereabouts}")))
}

/// Runs the command to its end.
fn run_with_input(claim: &Claim, tuple: &Tuple, command_line: &str) -> std::io::Result<ExitStatus> {
    let mut child = Command::new("sh")
        .args(["-c", command_line])
        .env("TUPELO_FENCE", claim.fence().to_string())
        .env("TUPELO_ATTEMPT", claim.attempt().to_string())
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        let line = format!("{}\n", tupelo_json::line(tuple));
        // By a thread of its own: a process that the command has left running may keep its input, and read nothing of
        // it. The status of a command that ends without reading it says whether that was right.
        let fed = thread::Builder::new().spawn(move || drop(input.write_all(line.as_bytes())));
        if let Err(error) = fed {
            // It would work on nothing, and its tuple be another's.
            child.kill().and_then(|()| child.wait())?;
            return Err(error);
        }
    }
    child.wait()
}
