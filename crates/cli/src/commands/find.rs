//! `tupelo read` and `tupelo take`: they differ in whether the tuple stays.

use tupelo::{Tuple, Want};

use super::{connect, connect_existing};
use crate::arguments::Find;
use crate::failure::Failure;
use crate::json;
use crate::output::Output;
use crate::words::{self, Asked};

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
        asked.with(|template| match want {
            Want::Read => space.try_read(template, order, words::owned),
            Want::Take => space.try_take(template, order, words::owned),
        })?
    } else {
        let space = connect(&url)?;
        let found = asked.with(|template| match want {
            Want::Read => space.read(template, order, options.timeout, words::owned),
            Want::Take => space.take(template, order, options.timeout, words::owned),
        })?;
        Some(found)
    };
    print(&found.ok_or(Failure::NoMatch)?, output)
}

/// One line: the tuple in the text notation, or as a JSON object.
fn print(tuple: &Tuple, output: &mut Output) -> Result<(), Failure> {
    if output.json {
        output.object(&serde_json::json!({ "tuple": json::from_tuple(tuple) }))
    } else {
        output.line(tuple)
    }
}
