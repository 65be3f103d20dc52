//! `tupelo read`, and the code that it shares with `tupelo take`: how to wait for a match, and how to print it.

use std::time::{Duration, Instant};

use tupelo::{Order, Outcome, Space, TemplateRef, Tuple, Waiter, Want};

use super::{connect, connect_existing};
use crate::arguments::Find;
use crate::failure::Failure;
use crate::output::Output;
use crate::words;

/// How long a command waits before it says so.
const SILENCE: Duration = Duration::from_secs(1);

/// How a match is waited for.
#[derive(Clone, Copy)]
pub(super) struct WaitOptions<'o> {
    pub(super) order: Order,
    /// Not at all.
    pub(super) now: bool,
    /// For the whole call: the user's option.
    timeout: Option<Duration>,
    /// The stream for the note on its template.
    output: &'o Output,
}

impl<'o> WaitOptions<'o> {
    /// The options `--order`, `--try` and `--timeout`.
    pub(super) fn new(
        order: Option<Order>,
        (now, timeout): (bool, Option<Duration>),
        output: &'o Output,
    ) -> Self {
        Self { order: order.unwrap_or_default(), now, timeout, output }
    }
}

pub(crate) fn run(options: Find, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let (url, asked) = options.sought.asked(url)?;
    let Find { now, all, limit, timeout, order, .. } = options;
    let asked = asked.in_order(order)?;
    let space = if now || all { connect_existing(&url)? } else { connect(&url)? };
    if all {
        let found = asked.with(|template| space.read_all(template, limit, words::owned))?;
        return found.iter().try_for_each(|tuple| print(tuple, output));
    }
    let wait = WaitOptions::new(order, (now, timeout), output);
    let found = asked.with(|template| find(&space, template, wait))?;
    print(&found.ok_or(Failure::NoMatch)?, output)
}

/// A match, as soon as there is one. `None`: there is none, and `wait` says not to wait.
fn find(
    space: &Space,
    template: &[TemplateRef<'_>],
    wait: WaitOptions<'_>,
) -> Result<Option<Tuple>, Failure> {
    let found = space.try_read(template, wait.order, words::owned)?;
    if found.is_some() || wait.now {
        return Ok(found);
    }
    let begin = Instant::now();
    let mut waiter = space.waiter(template, Want::Read)?;
    loop {
        await_match(space, ("read", template), &waiter, (wait, begin.elapsed()))?;
        match waiter.finish_now(words::owned)? {
            Outcome::Done(tuple) => return Ok(Some(tuple)),
            // The announced tuple was not put after all.
            Outcome::Waits(again) => waiter = again,
        }
    }
}

/// Waits for a match, after a wait of `elapsed` already. A user at a terminal is told after a while that the command
/// waits, and for which template.
pub(super) fn await_match(
    space: &Space,
    (verb, template): (&'static str, &[TemplateRef<'_>]),
    waiter: &Waiter,
    (WaitOptions { timeout, output, .. }, elapsed): (WaitOptions<'_>, Duration),
) -> Result<(), Failure> {
    let left = timeout.map(|timeout| timeout.saturating_sub(elapsed));
    let silence = left.map_or(SILENCE, |left| left.min(SILENCE));
    // While there is time left, a process that was stopped while it cleaned up does not end the command (rule L5).
    let happened = match left {
        Some(left) if left <= SILENCE => waiter.last_wait(Some(left))?,
        _ => waiter.wait_part(SILENCE)?,
    };
    if happened {
        return Ok(());
    }
    let left = left.map(|left| left.saturating_sub(silence));
    // A courtesy: if it cannot be printed, the command waits all the same.
    if left != Some(Duration::ZERO)
        && output.is_watched()
        && let Ok(explanation) = space.explain(template)
    {
        output.note(format_args!(
            "waiting for {} in {}; Ctrl-C gives up\n{explanation}",
            explanation.template(),
            space.url()
        ));
    }
    if waiter.last_wait(left)? {
        return Ok(());
    }
    Err(space.timeout(verb, template, timeout.unwrap_or_default()).into())
}

/// One line: the tuple in the text notation, or as a JSON object.
pub(super) fn print(tuple: &Tuple, output: &mut Output) -> Result<(), Failure> {
    if output.json { output.object(&tupelo_json::line(tuple)) } else { output.line(tuple) }
}
