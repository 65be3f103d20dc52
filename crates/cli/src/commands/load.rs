//! `tupelo load`: puts what `tupelo dump` has printed.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tupelo::{Durability, LeaseTerms, Tuple};

use super::dump::{AFTER, LEASE};
use super::{connect, put};
use crate::arguments::Load;
use crate::failure::Failure;
use crate::format;
use crate::output::Output;
use crate::words;

pub(crate) fn run(options: Load, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let url = words::space(options.space, url)?;
    let space = connect(&url)?;
    // One sync of the disk for all: a line alone needs none.
    let soon = space.with_sync(Durability::None);
    let loaded = put::each_line(io::stdin().lock(), |line| {
        let (tuple, terms) = tuple(line).map_err(Failure::Other)?;
        put::put(&soon, &tuple, &terms, None)
    });
    space.flush()?;
    let count = loaded?;
    if output.json {
        output.object(&serde_json::json!({ "url": url, "loaded": count }))
    } else {
        output.line(format!("{} loaded into {url}", format::plural(count, "tuple", "tuples")))
    }
}

/// The tuple of a line, and what was left of its terms.
fn tuple(line: &str) -> Result<(Tuple, LeaseTerms), String> {
    let mut json = tupelo_json::parse(line)?;
    let terms = LeaseTerms { lease: time(&mut json, LEASE)?, after: time(&mut json, AFTER)? };
    Ok((tupelo_json::to_tuple(json)?, terms))
}

/// The time in seconds under a key, which is removed.
fn time(json: &mut Value, key: &str) -> Result<Option<Duration>, String> {
    let Some(seconds) = json.as_object_mut().and_then(|object| object.remove(key)) else {
        return Ok(None);
    };
    let time = seconds.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = time.filter(|time| !time.is_zero());
    time.map(Some).ok_or_else(|| format!("\"{key}\" is {seconds}, and no time in seconds above 0"))
}
