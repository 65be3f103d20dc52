//! `tupelo backup`: copies the file of a space while programs use it.

use std::path::{Path, absolute};

use serde_json::json;
use tupelo::{file_url, shell_word};

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
             Name it behind the space, as in `tupelo backup {} /backup/jobs.tupelo`.",
            shell_word(&url)
        )));
    };
    let Some((_, space)) = tupelo::file_of(&url)? else {
        // The refusal says what there is for a space of its kind.
        return Ok(connect_existing(&url)?.copy_file_to(Path::new(file))?);
    };
    tupelo::copy_file(&url, Path::new(file))?;
    if output.json {
        return output.object(&json!({ "url": url, "file": file }));
    }
    let copied = format!("{url} is copied to {file}");
    output.line(match space {
        None => copied,
        // The copy has the name, too.
        Some(space) => {
            let new = absolute(file).unwrap_or_else(|_| file.into());
            format!("{copied}; open it as {}", shell_word(&file_url(&new, &space)))
        }
    })
}
