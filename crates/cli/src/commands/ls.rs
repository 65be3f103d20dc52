//! `tupelo ls`: the spaces of this user, of a server or of a file, or the tuples in one.

use std::path::{Path, absolute};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use tupelo::{ServerSpace, SpaceOfFile, file_url, shell_word};

use super::connect_existing;
use super::look::Look;
use crate::arguments::Ls;
use crate::failure::{Failure, list_of_files};
use crate::format;
use crate::output::Output;
use crate::words;

pub(crate) fn run(options: Ls, url: Option<String>, output: &mut Output) -> Result<(), Failure> {
    match options.space.or(url) {
        Some(word) if !words::is_space(&word) && Path::new(&word).is_dir() => {
            files(Path::new(&word), output)
        }
        Some(word) if !words::is_space(&word) && Path::new(&word).is_file() => {
            of_file(Path::new(&word), output)
        }
        Some(word) if words::is_meant_as_path(&word) => Err(no_file(&word)),
        Some(url) => match tupelo::spaces_of(&url)? {
            Some(spaces) => of_server(&url, &spaces, output),
            None => contents(&url, output),
        },
        None => spaces(output),
    }
}

/// A path at which there is nothing.
fn no_file(word: &str) -> Failure {
    let path = absolute(word).unwrap_or_else(|_| word.into());
    let directory = path.parent().filter(|directory| directory.is_dir());
    let way_out = directory.map_or_else(|| "Look at the path.".to_owned(), list_of_files);
    Failure::Usage(format!("there is no file {}\n  {way_out}", path.display()))
}

/// The files of spaces in a directory.
fn files(directory: &Path, output: &mut Output) -> Result<(), Failure> {
    let directory = absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let files = tupelo::files_in(&directory)?;
    if files.is_empty() && !output.json {
        let url = file_url(&directory.join("jobs.tupelo"), "");
        return output.line(format!(
            "no files of spaces here; `tupelo put {} hello world` makes one",
            shell_word(&url)
        ));
    }
    let shown = |path: &Path| {
        if output.json { file_url(path, "") } else { path.display().to_string() }
    };
    let entries = files.iter().map(|file| (shown(&file.path), file.bytes, file.modified));
    listed(["FILE", "BYTES", "CHANGED"], entries.collect(), output)
}

/// The spaces of a file.
fn of_file(file: &Path, output: &mut Output) -> Result<(), Failure> {
    let file = absolute(file).unwrap_or_else(|_| file.to_owned());
    let url = |name: &str| file_url(&file, name);
    let spaces = tupelo::spaces_in(&file)?;
    if output.json {
        return spaces.iter().try_for_each(|space| {
            output.object(&json!({ "url": url(&space.name), "tuples": space.tuples }))
        });
    }
    if spaces.is_empty() {
        return output.line(format!("{} has no spaces yet", file.display()));
    }
    let row = |space: &SpaceOfFile| vec![url(&space.name), format::count(space.tuples)];
    let rows: Vec<Vec<String>> = spaces.iter().map(row).collect();
    format::table(&["SPACE", "TUPLES ON DISK"], &rows).iter().try_for_each(|line| output.line(line))
}

fn spaces(output: &mut Output) -> Result<(), Failure> {
    let spaces = tupelo::spaces()?;
    if spaces.is_empty() && !output.json {
        return output.line("no spaces here; `tupelo put shm://NAME hello world` makes one");
    }
    let url = |name: &str| format!("shm://{name}");
    let entries = spaces.iter().map(|space| (url(&space.name), space.bytes, space.modified));
    listed(["SPACE", "MEMORY", "CHANGED"], entries.collect(), output)
}

/// A line for each space or file: what it is called, its bytes, and when it changed.
fn listed(
    heads: [&'static str; 3],
    entries: Vec<(String, u64, SystemTime)>,
    output: &mut Output,
) -> Result<(), Failure> {
    if output.json {
        return entries.into_iter().try_for_each(|(url, bytes, modified)| {
            let since_epoch = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            output.object(&json!({
                "url": url,
                "bytes": bytes,
                "modified": since_epoch.as_secs_f64(),
            }))
        });
    }
    #[expect(clippy::disallowed_methods, reason = "files have dates")]
    let now = SystemTime::now();
    let row = |(url, bytes, modified): (String, u64, SystemTime)| {
        let age = now.duration_since(modified).unwrap_or_default();
        vec![url, format::bytes(bytes), format!("{} ago", format::seconds(age))]
    };
    let rows: Vec<Vec<String>> = entries.into_iter().map(row).collect();
    format::table(&heads, &rows).iter().try_for_each(|line| output.line(line))
}

/// The spaces of a server.
fn of_server(url: &str, spaces: &[ServerSpace], output: &mut Output) -> Result<(), Failure> {
    if output.json {
        return spaces.iter().try_for_each(|ServerSpace { url, tuples, bytes }| {
            output.object(&json!({ "url": url, "tuples": tuples, "bytes": bytes }))
        });
    }
    if spaces.is_empty() {
        return output.line(format!("{url} has no spaces open"));
    }
    let row = |ServerSpace { url, tuples, bytes }: &ServerSpace| {
        let tuples = tuples.map_or_else(|| "-".to_owned(), format::count);
        vec![url.clone(), tuples, bytes.map_or_else(|| "-".to_owned(), format::bytes)]
    };
    let rows: Vec<Vec<String>> = spaces.iter().map(row).collect();
    format::table(&["SPACE", "TUPLES", "BYTES"], &rows)
        .iter()
        .try_for_each(|line| output.line(line))
}

fn contents(url: &str, output: &mut Output) -> Result<(), Failure> {
    let look = Look::at(&connect_existing(url)?)?;
    if output.json {
        return look
            .stat
            .shapes
            .iter()
            .try_for_each(|shape| output.object(&look.shape_json(shape)));
    }
    if look.stat.shapes.is_empty() {
        return output.line(format!("{url} is empty"));
    }
    let lines = look.table(Output::width());
    output.lines(lines)
}
