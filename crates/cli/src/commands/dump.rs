//! `tupelo dump`: what is in a space, as lines that `tupelo load` reads.

use std::time::Duration;

use serde_json::{Value, json};
use tupelo::Dumped;

use super::connect_existing;
use crate::arguments::Dump;
use crate::failure::Failure;
use crate::format;
use crate::output::Output;
use crate::words;

/// The keys of a line for what is left of a lease, and until the tuple is visible, in seconds.
pub(super) const LEASE: &str = "lease_s";
pub(super) const AFTER: &str = "after_s";

pub(crate) fn run(options: Dump, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let url = words::space(options.space, url)?;
    let mut dead = 0;
    for dumped in connect_existing(&url)?.dump()? {
        if dumped.is_dead && !options.dead {
            dead += 1;
        } else {
            output.object(&line(&dumped))?;
        }
    }
    if dead > 0 && !output.quiet {
        let dead = format::plural(dead, "dead letter is", "dead letters are");
        eprintln!("tupelo: {dead} left out; --dead prints them, too");
    }
    Ok(())
}

fn line(dumped: &Dumped) -> Value {
    let mut line = tupelo_json::line(&dumped.tuple);
    let mut add = |key: &str, time: Option<Duration>| {
        if let Some(time) = time {
            line[key] = json!(time.as_secs_f64());
        }
    };
    add(LEASE, dumped.terms.lease);
    add(AFTER, dumped.terms.after);
    line
}
