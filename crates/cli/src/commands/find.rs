//! `tupelo read` and `tupelo take`: they differ in whether the tuple stays.

use std::time::Duration;

use tupelo::{Order, Space, TemplateRef, Tuple, Want};

use super::{connect, connect_existing};
use crate::arguments::Find;
use crate::failure::Failure;
use crate::json;
use crate::output::Output;
use crate::words::{self, Asked};

/// How long a command waits before it says so.
const SILENCE: Duration = Duration::from_secs(1);

pub(crate) fn run(
    want: Want,
    options: Find,
    url: Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    let (url, words) = words::space_and_fields(options.words, url)?;
    let asked = Asked::parse(&words)?;
    if options.all {
        let space = connect_existing(&url)?;
        let found = asked.with(|template| match want {
            Want::Read => space.read_all(template, options.limit, words::owned),
            Want::Take => space.take_all(template, options.limit, words::owned),
        })?;
        return found.iter().try_for_each(|tuple| print(tuple, output));
    }
    let order = options.order.unwrap_or_default();
    let found = if options.now {
        let space = connect_existing(&url)?;
        asked.with(|template| look(&space, want, template, order))?
    } else {
        let space = connect(&url)?;
        Some(
            asked
                .with(|template| wait(&space, (want, template), order, options.timeout, output))?,
        )
    };
    print(&found.ok_or(Failure::NoMatch)?, output)
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

/// A match, as soon as there is one. Who watches is told after a while that it waits, and for what.
fn wait(
    space: &Space,
    (want, template): (Want, &[TemplateRef<'_>]),
    order: Order,
    timeout: Option<Duration>,
    output: &Output,
) -> Result<Tuple, Failure> {
    if let Some(found) = look(space, want, template, order)? {
        return Ok(found);
    }
    let waiter = space.waiter(template, want)?;
    let silence = timeout.map_or(SILENCE, |timeout| timeout.min(SILENCE));
    if !waiter.wait(Some(silence))? {
        let left = timeout.map(|timeout| timeout.saturating_sub(silence));
        if left != Some(Duration::ZERO) {
            let explanation = space.explain(template)?;
            output.note(format_args!(
                "waiting for {} in {}; Ctrl-C gives up\n{explanation}",
                explanation.template(),
                space.url()
            ));
        }
        if !waiter.wait(left)? {
            let verb = if want == Want::Take { "take" } else { "read" };
            return Err(space.timeout(verb, template, timeout.unwrap_or_default()).into());
        }
    }
    waiter.finish(words::owned)
}

/// One line: the tuple in the text notation, or as a JSON object.
fn print(tuple: &Tuple, output: &mut Output) -> Result<(), Failure> {
    if output.json { output.object(&json::line(tuple)) } else { output.line(tuple) }
}
