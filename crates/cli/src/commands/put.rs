//! `tupelo put`: one tuple from words, or one per line of standard input.

use std::io::{self, BufRead};
use std::time::Duration;

use tupelo::{LeaseTerms, Space, Tuple};

use super::connect;
use crate::arguments::Put;
use crate::failure::{Failure, USAGE};
use crate::format;
use crate::output::Output;
use crate::words;

pub(crate) fn run(options: Put, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let (url, words) = words::space_and_fields(options.words, url)?;
    // Before there is a space: words that make no sense make none.
    let tuple = (words != ["-"]).then(|| words::tuple(&words)).transpose()?;
    let space = connect(&url)?;
    let terms = LeaseTerms { lease: options.lease, after: options.after };
    let one = |tuple: &Tuple| put(&space, tuple, &terms, options.timeout);
    if let Some(tuple) = tuple {
        return one(&tuple);
    }
    let count = each_line(io::stdin().lock(), |line| {
        one(&tupelo_json::tuple(line).map_err(Failure::Other)?)
    })?;
    if output.json {
        output.object(&serde_json::json!({ "put": count }))
    } else {
        output.line(format::plural(count, "tuple put", "tuples put"))
    }
}

/// Puts one tuple; waits for room if there is a `timeout`.
pub(super) fn put(
    space: &Space,
    tuple: &Tuple,
    terms: &LeaseTerms,
    timeout: Option<Duration>,
) -> Result<(), Failure> {
    let put = tuple.with_ref(|tuple| {
        let put = |space: &Space| {
            if *terms == LeaseTerms::default() {
                space.put(tuple)
            } else {
                // To renew or cancel it is a program's job.
                space.put_leased(tuple, terms).map(|_| ())
            }
        };
        if timeout.is_some() { space.when_room(timeout, put) } else { put(space) }
    });
    Ok(put.map_err(|error| Failure::Usage(error.to_string()))??)
}

/// Lets `put` have each line as soon as it is read, so that the input may be a pipe that goes on. Returns how many lines had
/// something on them.
pub(super) fn each_line(
    input: impl BufRead,
    put: impl Fn(&str) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut count = 0;
    for (line, number) in input.lines().zip(1_u64..) {
        let shown = |why: String| {
            let done = format::plural(count, "tuple", "tuples");
            format!("line {number}: {why}\n  Put before it: {done}.")
        };
        let stopped = |why: String| Failure::Other(shown(why));
        let line = line.map_err(|error| stopped(format!("cannot read it: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        put(&line).map_err(|failure| match failure.exit_code() {
            // A line is no word of the command line, and others may have been put before it.
            USAGE => stopped(failure.message().unwrap_or_default()),
            _ => failure.within(shown),
        })?;
        count += 1;
    }
    Ok(count)
}
