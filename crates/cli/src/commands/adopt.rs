//! `tupelo adopt`: takes over a space of another pid namespace.

use serde_json::json;

use super::connect_existing;
use super::rm::confirm;
use crate::arguments::Adopt;
use crate::failure::Failure;
use crate::format;
use crate::output::Output;
use crate::words;

pub(crate) fn run(options: Adopt, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    let url = words::space(options.space, url)?;
    // One of this namespace is nobody else's: there is nothing to ask about.
    let is_here = connect_existing(&url).is_ok();
    if !is_here && !options.yes {
        confirm(&format!("have all processes ended that used {url} in another pid namespace?"))?;
    }
    tupelo::adopt(&url)?;
    let tuples = connect_existing(&url)?.stat()?.tuples;
    if output.json {
        return output.object(&json!({ "url": url, "adopted": !is_here, "tuples": tuples }));
    }
    let with = format::plural(tuples, "tuple", "tuples");
    output.line(if is_here {
        format!("{url} belongs to this pid namespace, with {with}")
    } else {
        format!("space adopted: {url}, with {with}")
    })
}
