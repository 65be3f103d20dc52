//! `tupelo compact`: gives the room of a file that nothing uses back to the disk.

use serde_json::json;

use super::connect_existing;
use super::whole_file::whole_file;
use crate::arguments::Compact;
use crate::failure::Failure;
use crate::format;
use crate::output::Output;
use crate::words;

pub(crate) fn run(
    options: Compact,
    url: Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    let url = words::space(options.space, url)?;
    let (before, after) = match whole_file(&url)? {
        Some(_) => tupelo::compact_file(&url)?,
        None => connect_existing(&url)?.compact()?,
    };
    if output.json {
        return output.object(&json!({ "url": url, "bytes_before": before, "bytes": after }));
    }
    output.line(format!("{url}: {} before, {} now", format::bytes(before), format::bytes(after)))
}
