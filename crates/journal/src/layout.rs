//! The layout of the file, and how the file of an older build becomes one of this build.
//!
//! Before anything is changed, the older file is copied. What its memory has not brought to it yet comes to it. Then the
//! tables are changed and the generation is raised, in one transaction. So a program of the older build that still has the
//! space open can bring nothing to the file any more: it knows nothing of the new tables.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::error::Error;
use crate::journal::{LOOK, Memory, bring};
use crate::open::{OpenOptions, attached, is_of};
use crate::storage::{Header, Storage};

/// The version of the tables that this build makes. A file with a higher one is refused.
pub(crate) const VERSION: i64 = 3;
/// The first version with subscriptions.
pub(crate) const VERSION_SUBSCRIPTIONS: i64 = 2;

/// Subscriptions that outlive their subscribers: what they ask for, the number of the newest event, and the number of the last
/// event that the subscriber is done with. The events behind that, as far as they are kept.
pub(crate) const SUBSCRIPTIONS: &str = "
CREATE TABLE subscription (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    template BLOB NOT NULL,
    keep INTEGER NOT NULL,
    last INTEGER NOT NULL,
    told INTEGER NOT NULL
) STRICT;
CREATE TABLE event (
    subscription INTEGER NOT NULL,
    number INTEGER NOT NULL,
    image BLOB NOT NULL,
    PRIMARY KEY (subscription, number)
) STRICT, WITHOUT ROWID;
";

/// What keyed requests were answered: a row for each turn of the journal that brought some, by the number of its last one.
pub(crate) const ANSWERS: &str = "
CREATE TABLE answered (
    last INTEGER PRIMARY KEY,
    entries BLOB NOT NULL
) STRICT;
";

/// What makes a file of each layout one of the next, the first of them of layout 1.
const STEPS: [&str; 2] = [SUBSCRIPTIONS, ANSWERS];

/// How often somebody else who writes is waited for.
const TRIES: usize = 1_500;
/// Copies of one file that are looked for a free name.
const COPIES_MAX: u32 = 1_000;

/// Makes the file one of this build, if it is of an older one; a new file it leaves alone.
///
/// # Errors
///
/// What the system and SQLite say: the file is as it was.
pub(crate) fn upgrade(storage: &mut Storage, options: &OpenOptions) -> Result<(), Error> {
    let Some(header) = storage.header()? else { return Ok(()) };
    let found = storage.layout()?;
    if found >= VERSION {
        return Ok(());
    }
    settle_memory(storage, &header, options)?;
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
    let Some(header) = writing.header()? else { return Ok(()) };
    for step in &STEPS[usize::try_from(found - 1).unwrap_or(0)..] {
        writing.change_tables(step)?;
    }
    writing.set_layout(VERSION)?;
    let next = Header { generation: header.generation + 1, position: 0, ..header.clone() };
    writing.begin_generation(&next)?;
    writing.commit()?;
    // It may be gone already.
    let _ = options.directory.remove(&Memory::of(file, &header).name());
    Ok(())
}

/// Brings to the file what its memory has not brought there yet, if the memory is there and this build can read it.
fn settle_memory(
    storage: &mut Storage,
    header: &Header,
    options: &OpenOptions,
) -> Result<(), Error> {
    let memory = Memory::of(storage.file(), header);
    let Some(engine) = attached(storage.path(), memory, options)? else { return Ok(()) };
    if !is_of(&engine, memory, header) {
        return Ok(());
    }
    for _ in 0..TRIES {
        let (releases, appended) =
            (engine.releases(), engine.journal_stat().map_or(0, |stat| stat.appended));
        if let Some(drain) = engine.try_drain()? {
            let drained = bring(storage, memory, &drain, |_| Ok(false))?;
            return Ok(drain.release(drained)?);
        }
        engine.wait_drained(appended, releases, Instant::now() + LOOK);
    }
    let problem = "cannot upgrade the file: a program of an older version writes to it".to_owned();
    Err(Error::Storage { path: storage.path().to_owned(), problem })
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
