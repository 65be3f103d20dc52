//! A look at the file of a space that may be damaged, and a new file of what can still be read.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tupelo_tuple::encoding::{Decoded, Reader};

use crate::error::Error;
use crate::open;
use crate::storage::{self, Header, Storage, signed};
use crate::writing::{Row, TUPLE_COLUMNS, stored_row};

/// Mistakes in a file that are told; there may be thousands.
const PROBLEMS_MAX: usize = 8;
/// Syncs that are measured.
const SYNCS: usize = 5;
const PAGE: [u8; 4096] = [0; 4096];

/// What was found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// Its bytes, with its log.
    pub bytes: u64,
    /// Tuples that can be read.
    pub tuples: u64,
    /// Places where tuples, as many as there are in a row, can not be read.
    pub gaps: u64,
    /// What is wrong with the file, as SQLite says; the first of it.
    pub problems: Vec<String>,
    /// How long the disk takes for one sync of a page: the median of some. `None` if nothing can be written to the directory.
    pub sync_time: Option<Duration>,
}

/// What is in the file of a space, damaged or not.
///
/// # Errors
///
/// [`Error::NotFound`], [`Error::AccessDenied`], [`Error::Newer`]; [`Error::Corrupted`] if nothing of it can be read: its first page is
/// gone, or it is no file of a space.
pub fn examine(path: &Path) -> Result<Examination, Error> {
    let storage = Storage::open(path)?;
    let mut tuples = 0;
    let gaps = each_readable(storage.connection(), |_| {
        tuples += 1;
        Ok(())
    })?;
    Ok(examination(&storage, tuples, gaps))
}

/// Writes what can be read of a damaged file into a new one, which must not exist. The old one stays as it is.
///
/// # Errors
///
/// As [`examine`], and what the system says about the new file, which may be there in part then.
pub fn save(path: &Path, to: &Path) -> Result<Examination, Error> {
    let storage = Storage::open(path)?;
    // That of a file whose only row is damaged is lost: then it is as that of a new space.
    let header = storage.header().ok().flatten();
    let limits = header.as_ref().map(|header| header.limits).unwrap_or_default();
    // Another space: it does not know what requests were answered in the old one.
    let id = open::new_header(limits)?.id;
    let header = header.map_or_else(|| open::new_header(limits), Ok)?;
    let header = Header { id, ..header };
    if to.exists() {
        let problem = "cannot create the file: it exists already".to_owned();
        return Err(Error::Storage { path: to.to_owned(), problem });
    }
    let mut new = Storage::open_or_create(to)?;
    let writing = new.write()?;
    writing.create(&header)?;
    let (mut tuples, mut next_id) = (0, header.next_id);
    let gaps = each_readable(storage.connection(), |row| {
        tuples += 1;
        next_id = next_id.max(row.kept.id + 1);
        writing.insert(row)
    })?;
    writing.commit_up_to(header.position, next_id)?;
    Ok(examination(&storage, tuples, gaps))
}

fn examination(storage: &Storage, tuples: u64, gaps: u64) -> Examination {
    let problems = problems(storage.connection());
    let sync_time = storage.path().parent().and_then(|directory| sync_time(directory).ok());
    Examination { bytes: storage.bytes(), tuples, gaps, problems, sync_time }
}

/// How long the disk of a directory takes for one sync of a page: the median of some.
fn sync_time(directory: &Path) -> io::Result<Duration> {
    let path = directory.join(format!(".tupelo-sync-{}", std::process::id()));
    let file = File::create_new(&path)?;
    let measured = (0..SYNCS).map(|_| {
        let begun = Instant::now();
        file.write_all_at(&PAGE, 0)?;
        file.sync_data()?;
        Ok(begun.elapsed())
    });
    let measured: io::Result<Vec<Duration>> = measured.collect();
    fs::remove_file(&path)?;
    let mut times = measured?;
    times.sort();
    Ok(times[SYNCS / 2])
}

/// A file of a space in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// The file.
    pub path: PathBuf,
    /// Its bytes, with its log.
    pub bytes: u64,
    /// When something was written to it, or to its log.
    pub modified: std::time::SystemTime,
}

/// The files of spaces in a directory, by their names. None is opened.
///
/// # Errors
///
/// [`Error::NotFound`], [`Error::AccessDenied`], and what else the system says about the directory.
pub fn files_in(directory: &Path) -> Result<Vec<FileEntry>, Error> {
    let told = |error: std::io::Error| Error::io(directory, "read the directory", &error);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if storage::is_of_space(&path) {
            // Removed since then, it is not listed.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            let Ok(mut modified) = metadata.modified() else { continue };
            let log = fs::metadata(storage::log_of(&path)).and_then(|log| log.modified());
            modified = modified.max(log.unwrap_or(modified));
            found.push(FileEntry { bytes: storage::bytes_of(&path), path, modified });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// What SQLite finds wrong.
fn problems(connection: &Connection) -> Vec<String> {
    let sql = format!("PRAGMA integrity_check({PROBLEMS_MAX})");
    let found = connection.prepare(&sql).and_then(|mut statement| {
        statement.query_map((), |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()
    });
    match found {
        Ok(lines) => lines.into_iter().filter(|line| line != "ok").collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// Shows `visit` each tuple that can be read. Returns the number of places where some can not.
fn each_readable(
    connection: &Connection,
    mut visit: impl FnMut(&Row) -> Result<(), Error>,
) -> Result<u64, Error> {
    let (mut next_id, mut gaps) = (0, 0);
    loop {
        // How far it is readable.
        let read = each_from(connection, next_id, |row| {
            next_id = row.kept.id + 1;
            if !decodes(row) {
                gaps += 1;
                return Ok(());
            }
            visit(row)
        });
        match read {
            Ok(()) => return Ok(gaps),
            Err(Stopped::ByVisitor(error)) => return Err(error),
            Err(Stopped::ByDamage) => gaps += 1,
        }
        let Some(readable) = readable_behind(connection, next_id) else { return Ok(gaps) };
        next_id = readable;
    }
}

enum Stopped {
    ByDamage,
    ByVisitor(Error),
}

/// Shows `visit` the rows from an id on, until one can not be read.
fn each_from(
    connection: &Connection,
    id: u64,
    mut visit: impl FnMut(&Row) -> Result<(), Error>,
) -> Result<(), Stopped> {
    let damaged = |_: rusqlite::Error| Stopped::ByDamage;
    let sql = format!("SELECT {TUPLE_COLUMNS} FROM tuple WHERE id >= ?1 ORDER BY id");
    let mut statement = connection.prepare_cached(&sql).map_err(damaged)?;
    let mut rows = statement.query((signed(id),)).map_err(damaged)?;
    while let Some(row) = rows.next().map_err(damaged)? {
        let row = stored_row(row).map_err(damaged)?;
        visit(&row).map_err(Stopped::ByVisitor)?;
    }
    Ok(())
}

/// The least id above `id`, as far as can be found, from which on something can be read; `None` if nothing can.
fn readable_behind(connection: &Connection, id: u64) -> Option<u64> {
    let is_readable = |from: u64| {
        let mut seen = false;
        let read = each_from(connection, from, |_| {
            seen = true;
            // One is enough.
            Err(Error::NotFound { path: PathBuf::new() })
        });
        seen || read.is_ok()
    };
    let mut step = 1_u64;
    // In growing steps to some place that is readable, and back to the first of those between.
    while !is_readable(id + step) {
        step = step.checked_mul(2).filter(|step| id + step < 1 << 62)?;
    }
    let (mut damaged, mut readable) = (id + step / 2, id + step);
    while readable - damaged > 1 {
        let middle = damaged + (readable - damaged) / 2;
        if is_readable(middle) {
            readable = middle;
        } else {
            damaged = middle;
        }
    }
    Some(readable)
}

fn decodes(row: &Row) -> bool {
    let mut reader = Reader::new(&row.image);
    Decoded::read(&mut reader).is_ok_and(|_| reader.finish().is_ok())
}
