//! `tupelo put`: one tuple from words, or one per line of standard input.

use std::io::{self, BufRead};
use std::time::Duration;

use tupelo::{LeaseTerms, Space, Tuple};

use super::connect;
use crate::arguments::Put;
use crate::failure::Failure;
use crate::format;
use crate::json;
use crate::output::Output;
use crate::words;

pub(crate) fn run(options: Put, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let (url, words) = words::space_and_fields(options.words, url)?;
    let space = connect(&url)?;
    let terms = LeaseTerms { lease: options.lease, after: options.after };
    if words != ["-"] {
        return put(&space, &words::tuple(&words)?, &terms, options.timeout);
    }
    let one = |tuple: &Tuple| put(&space, tuple, &terms, options.timeout);
    let count = put_lines(one, io::stdin().lock())?;
    if output.json {
        output.object(&serde_json::json!({ "put": count }))
    } else {
        output.line(format::plural(count, "tuple put", "tuples put"))
    }
}

fn put(
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
                // Whoever wants to renew or cancel it is a program.
                space.put_leased(tuple, terms).map(|_| ())
            }
        };
        if timeout.is_some() { space.when_room(timeout, put) } else { put(space) }
    });
    Ok(put.map_err(|error| Failure::Usage(error.to_string()))??)
}

/// Puts the tuple of each line as soon as it is read, so that the input may be a pipe that goes on.
fn put_lines(
    put: impl Fn(&Tuple) -> Result<(), Failure>,
    input: impl BufRead,
) -> Result<u64, Failure> {
    let mut count = 0;
    for (line, number) in input.lines().zip(1_u64..) {
        let stopped = |why: String| {
            let done = format::plural(count, "tuple", "tuples");
            Failure::Other(format!("line {number}: {why}\n  Put before it: {done}."))
        };
        let line = line.map_err(|error| stopped(format!("cannot read it: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let tuple = json::tuple(&line).map_err(stopped)?;
        put(&tuple)?;
        count += 1;
    }
    Ok(count)
}
