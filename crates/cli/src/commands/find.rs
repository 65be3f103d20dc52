//! `tupelo read` and `tupelo take`: they differ in whether the tuple stays.

use std::time::Duration;

use tupelo::{ClaimTerms, Order, Space, TemplateRef, Tuple, Waiter, Want};

use super::{connect, connect_existing, exec};
use crate::arguments::{Find, Take};
use crate::failure::Failure;
use crate::json;
use crate::output::Output;
use crate::words;

/// How long a command waits before it says so.
const SILENCE: Duration = Duration::from_secs(1);
/// How long a claim runs that is not renewed, if the user does not say.
const TTL: Duration = Duration::from_secs(30);

/// How a match is waited for.
#[derive(Clone, Copy)]
pub(crate) struct Patience<'o> {
    pub(super) order: Order,
    /// Not at all.
    pub(super) now: bool,
    /// In all: what the user gave.
    timeout: Option<Duration>,
    /// Where it says what it waits for.
    output: &'o Output,
}

pub(crate) fn run(
    want: Want,
    options: Find,
    url: Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    let (url, asked) = options.sought.asked(url)?;
    if options.all {
        let space = connect_existing(&url)?;
        let found = asked.with(|template| match want {
            Want::Read => space.read_all(template, options.limit, words::owned),
            Want::Take => space.take_all(template, options.limit, words::owned),
        })?;
        return found.iter().try_for_each(|tuple| print(tuple, output));
    }
    let (order, timeout) = (options.order.unwrap_or_default(), options.timeout);
    let found = if options.now {
        let space = connect_existing(&url)?;
        asked.with(|template| look(&space, want, template, order))?
    } else {
        let space = connect(&url)?;
        let patience = Patience { order, now: false, timeout, output };
        Some(asked.with(|template| find(&space, (want, template), patience))?)
    };
    print(&found.ok_or(Failure::NoMatch)?, output)
}

/// `take`, with `--exec` or without.
pub(crate) fn take(options: Take, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let Take { find, exec, ttl, max_attempts } = options;
    let Some(command_line) = exec else { return run(Want::Take, find, url, output) };
    let (url, asked) = find.sought.asked(url)?;
    let space = if find.now { connect_existing(&url)? } else { connect(&url)? };
    let terms = ClaimTerms { ttl: ttl.unwrap_or(TTL), attempts_max: max_attempts };
    let (order, timeout) = (find.order.unwrap_or_default(), find.timeout);
    let patience = Patience { order, now: find.now, timeout, output };
    let done =
        asked.with(|template| exec::run(&space, template, (&terms, patience), &command_line))?;
    done.ok_or(Failure::NoMatch)
}

/// The match that is there now.
fn look(
    space: &Space,
    want: Want,
    template: &[TemplateRef<'_>],
    order: Order,
) -> Result<Option<Tuple>, Failure> {
    match want {
        Want::Read => space.try_read(template, order, words::owned),
        Want::Take => space.try_take(template, order, words::owned),
    }
}

/// A match, as soon as there is one.
fn find(
    space: &Space,
    (want, template): (Want, &[TemplateRef<'_>]),
    patience: Patience<'_>,
) -> Result<Tuple, Failure> {
    if let Some(found) = look(space, want, template, patience.order)? {
        return Ok(found);
    }
    let waiter = space.waiter(template, want)?;
    let verb = if want == Want::Take { "take" } else { "read" };
    await_match(space, (verb, template), &waiter, (patience, Duration::ZERO))?;
    waiter.finish(words::owned)
}

/// Waits for a match, by somebody who has waited for `elapsed` already. Who watches is told after a while that it waits, and for what.
pub(super) fn await_match(
    space: &Space,
    (verb, template): (&'static str, &[TemplateRef<'_>]),
    waiter: &Waiter,
    (Patience { timeout, output, .. }, elapsed): (Patience<'_>, Duration),
) -> Result<(), Failure> {
    let left = timeout.map(|timeout| timeout.saturating_sub(elapsed));
    let silence = left.map_or(SILENCE, |left| left.min(SILENCE));
    if waiter.wait(Some(silence))? {
        return Ok(());
    }
    let left = left.map(|left| left.saturating_sub(silence));
    if left != Some(Duration::ZERO) {
        let explanation = space.explain(template)?;
        output.note(format_args!(
            "waiting for {} in {}; Ctrl-C gives up\n{explanation}",
            explanation.template(),
            space.url()
        ));
    }
    if waiter.wait(left)? {
        return Ok(());
    }
    Err(space.timeout(verb, template, timeout.unwrap_or_default()).into())
}

/// One line: the tuple in the text notation, or as a JSON object.
fn print(tuple: &Tuple, output: &mut Output) -> Result<(), Failure> {
    if output.json { output.object(&json::line(tuple)) } else { output.line(tuple) }
}
