//! `tupelo watch`: what happens to tuples, as it happens (rules N1, N2).

use std::time::{Duration, Instant};

use serde_json::json;
use tupelo::{Error, Event, EventKind, SubscribeTerms, Subscription, Tuple};

use super::connect;
use crate::arguments::Watch;
use crate::failure::Failure;
use crate::output::Output;
use crate::words;

pub(crate) fn run(options: Watch, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let (url, asked) = options.sought.asked(url)?;
    let space = connect(&url)?;
    let terms = SubscribeTerms::new(options.on.iter().copied(), options.buffer)
        .with_bytes(options.buffer_bytes);
    let subscription = asked.with(|template| match &options.resume {
        Some(name) => space.subscribe_resumed(template, &terms, (name, options.keep)),
        None => space.subscribe(template, &terms),
    })?;
    output.note(format_args!("watching {url}; Ctrl-C ends it"));
    let (end, mut left) = (options.timeout.map(|timeout| Instant::now() + timeout), options.count);
    while left != Some(0) {
        let timeout = end.map(|end| end.saturating_duration_since(Instant::now()));
        let shown = match next(&subscription, timeout) {
            // A tuple was larger than the buffer: the next event counts it as missed.
            Err(failure @ Failure::Space(Error::LimitExceeded { .. })) => {
                output.note(failure.message().unwrap_or_default());
                continue;
            }
            shown => shown?,
        };
        let Some(shown) = shown else { return Err(Failure::NoMatch) };
        shown.print(output)?;
        output.flush()?;
        // What was printed is not printed again by a later one that goes on.
        subscription.done();
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// An event, to be printed.
struct Shown {
    kind: EventKind,
    tuple: Tuple,
    sequence: u64,
    missed: u64,
}

fn next(subscription: &Subscription, timeout: Option<Duration>) -> Result<Option<Shown>, Failure> {
    subscription.next(timeout, |event: Event<'_>| {
        let (kind, tuple) = (event.kind, words::owned(event.tuple)?);
        Ok(Shown { kind, tuple, sequence: event.sequence, missed: event.missed })
    })
}

impl Shown {
    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let Self { kind, tuple, sequence, missed } = self;
        let name = kind.name();
        if output.json {
            let mut object = tupelo_json::line(tuple);
            object["event"] = json!(name);
            object["seq"] = json!(sequence);
            object["missed"] = json!(missed);
            return output.object(&object);
        }
        if *missed > 0 {
            output.line(format_args!("({missed} missed)"))?;
        }
        output.line(format_args!("{sequence:<5} {name:<6}  {tuple}"))
    }
}
