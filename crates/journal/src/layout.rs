//! The layout of the file, and how the file of an older build becomes one of this build.
//!
//! Before anything is changed, the older file is copied. What its memory has not brought to it yet comes to it. Then the
//! tables are changed and the generation is raised, in one transaction. So a program of the older build that still has the
//! space open can bring nothing to the file any more: it knows nothing of the new tables.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::Error;
use crate::header;
use crate::memory::{Memory, begin_next};
use crate::names::{DEFAULT_NUMBER, Names};
use crate::open::OpenOptions;
use crate::storage::Storage;
use crate::together::settle;

/// The version of the tables that this build makes. A file with a higher one is refused.
pub(crate) const VERSION: i64 = 4;
/// The first version with subscriptions, and the first with several spaces.
pub(crate) const VERSION_SUBSCRIPTIONS: i64 = 2;
pub(crate) const VERSION_SPACES: i64 = 4;

/// What makes a file of each layout one of the next, the first of them of layout 1. Before layout 4 a file had one space.
fn steps() -> [String; 3] {
    let names = Names::of(DEFAULT_NUMBER);
    let to_spaces = [names.sessions_schema(), header::from_one_space()].concat();
    [names.subscriptions_schema(), names.answers_schema(), to_spaces]
}

/// The version of the tables of a file; 0 of a new one.
///
/// # Errors
///
/// What SQLite says.
pub(crate) fn version(connection: &Connection, path: &Path) -> Result<i64, Error> {
    let found = connection.pragma_query_value(None, "user_version", |row| row.get(0));
    found.map_err(|error| Error::sqlite(path, "read the file", &error))
}

/// Copies of one file that are looked for a free name.
const COPIES_MAX: u32 = 1_000;

/// Makes the file one of this build, if it is of an older one; a new file it leaves alone.
///
/// # Errors
///
/// What the system and SQLite say: the file is as it was.
pub(crate) fn upgrade(storage: &mut Storage, options: &OpenOptions) -> Result<(), Error> {
    let found = storage.layout()?;
    if found == 0 || found >= VERSION {
        return Ok(());
    }
    for (name, header) in storage.headers()? {
        settle(storage, (&name, &header), &options.directory)?;
    }
    let copy = free_name(storage.path(), found)?;
    storage.copy_to(&copy)?;
    let file = storage.file();
    let writing = storage.write()?;
    // Somebody else may have done it since.
    if writing.layout()? != found {
        drop(writing);
        // That it is left would be no harm.
        let _ = std::fs::remove_file(copy);
        return Ok(());
    }
    for step in &steps()[usize::try_from(found - 1).unwrap_or(0)..] {
        writing.change_tables(step)?;
    }
    writing.set_layout(VERSION)?;
    let headers = writing.headers()?;
    for (_, header) in &headers {
        begin_next(&writing, (file, header), &options.directory)?;
    }
    writing.commit()?;
    for (_, header) in &headers {
        // It may be gone already.
        let _ = options.directory.remove(&Memory::of(file, header).name());
    }
    Ok(())
}

/// A name for a copy of the file as it was: `jobs.tupelo.layout-1`.
fn free_name(path: &Path, layout: i64) -> Result<PathBuf, Error> {
    let name = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".layout-{layout}"));
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    (1..=COPIES_MAX).map(name).find(|name| !name.exists()).ok_or_else(|| Error::Storage {
        path: path.to_owned(),
        problem: "cannot copy the file before it is upgraded: there are too many copies".to_owned(),
    })
}
