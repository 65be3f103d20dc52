//! `tupelo backup`: copies the file of a space while programs use it.

use std::path::Path;

use serde_json::json;

use super::connect_existing;
use crate::arguments::Backup;
use crate::failure::Failure;
use crate::output::Output;
use crate::words;

pub(crate) fn run(
    options: Backup,
    url: Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    let (url, words) = words::space_and_words(options.words, url)?;
    let [file] = &words[..] else {
        return Err(Failure::Usage(format!(
            "which file is to be made of {url}?\n  \
             Name it behind the space, as in `tupelo backup {url} /backup/jobs.tupelo`."
        )));
    };
    connect_existing(&url)?.copy_file_to(Path::new(file))?;
    if output.json {
        output.object(&json!({ "url": url, "file": file }))
    } else {
        output.line(format!("{url} is copied to {file}"))
    }
}
