//! A look at the file of a space that may be damaged, and a new file of what can still be read.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tupelo_tuple::encoding::{Decoded, Reader};

use crate::error::Error;
use crate::gate;
use crate::header::Header;
use crate::names::{DEFAULT_NUMBER, Names};
use crate::storage::{self, Storage, signed};
use crate::tables::{Row, each_tuple, stored_row};

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

/// What is in a file, damaged or not: in the space of this name, or in all of its spaces.
///
/// # Errors
///
/// [`Error::NotFound`], [`Error::AccessDenied`], [`Error::Newer`]; [`Error::Corrupted`] if nothing of it can be read: its first page is
/// gone, or it is no file of a space.
pub fn examine(path: &Path, only: Option<&str>) -> Result<Examination, Error> {
    let storage = Storage::open(path)?;
    let (mut tuples, mut gaps) = (0, 0);
    for Readable { names, .. } in readable(&storage, only)? {
        gaps += each_readable(storage.connection(), &names, |_| {
            tuples += 1;
            Ok(())
        })?;
    }
    Ok(examination(&storage, tuples, gaps))
}

/// Writes what can be read of a damaged file, or of one space of it, into a new one, which must not exist. The old one stays as it
/// is.
///
/// # Errors
///
/// As [`examine`], and what the system says about the new file, which may be there in part then.
pub fn save(path: &Path, only: Option<&str>, to: &Path) -> Result<Examination, Error> {
    let storage = Storage::open(path)?;
    let spaces = readable(&storage, only)?;
    if to.exists() {
        let problem = "cannot create the file: it exists already".to_owned();
        return Err(Error::Storage { path: to.to_owned(), problem });
    }
    let mut new = Storage::open_or_create(to)?;
    let writing = new.write()?;
    let (mut tuples, mut gaps) = (0, 0);
    for Readable { name, names, header } in spaces {
        let limits = header.as_ref().map(|header| header.limits).unwrap_or_default();
        // Another space: it does not know what requests were answered in the old one.
        let new = Header::new(limits)?;
        let header = header.map_or_else(|| new.clone(), |old| Header { id: new.id, ..old });
        let header = writing.create(&name, &header)?;
        let (tables, mut next_id) = (writing.tables(&header), header.next_id);
        gaps += each_readable(storage.connection(), &names, |row| {
            tuples += 1;
            next_id = next_id.max(row.kept.id + 1);
            tables.insert(row)
        })?;
        tables.set_position(header.position, next_id)?;
    }
    writing.commit()?;
    Ok(examination(&storage, tuples, gaps))
}

/// A space of a file that may be damaged.
struct Readable {
    name: String,
    names: Names,
    /// `None` if it can not be read. The new one is as that of a new space.
    header: Option<Header>,
}

impl Readable {
    fn of((name, header): (String, Header)) -> Self {
        Self { name, names: header.names(), header: Some(header) }
    }
}

/// The spaces of a file, or the one of this name. If the table of the spaces can not be read, they are found by their other tables, and
/// those whose names are lost are called by their numbers.
fn readable(storage: &Storage, only: Option<&str>) -> Result<Vec<Readable>, Error> {
    let (found, have_names) = match storage.headers() {
        Ok(headers) => (headers.into_iter().map(Readable::of).collect(), true),
        Err(_) => (by_tables(storage), false),
    };
    let Some(only) = only else { return Ok(found) };
    let found: Vec<Readable> = found.into_iter().filter(|space| space.name == only).collect();
    match (found.is_empty(), have_names) {
        (false, _) => Ok(found),
        (true, true) => Err(Error::NotFound { path: storage.path().to_owned() }),
        (true, false) => Err(Error::Corrupted {
            path: storage.path().to_owned(),
            problem: "the names of its spaces cannot be read: look at all of it, without ?space="
                .to_owned(),
        }),
    }
}

fn by_tables(storage: &Storage) -> Vec<Readable> {
    let sql = "SELECT name FROM sqlite_schema WHERE name = 'tuple' OR name GLOB 'tuple_*'";
    let found = storage.connection().prepare(sql).and_then(|mut statement| {
        statement.query_map((), |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()
    });
    let number = |table: &String| match table.strip_prefix("tuple_") {
        Some(text) => text.parse().ok(),
        None => Some(DEFAULT_NUMBER),
    };
    let numbers = match found {
        Ok(tables) => tables.iter().filter_map(number).collect(),
        // What the file has can not be read: then what is likely.
        Err(_) => vec![DEFAULT_NUMBER],
    };
    let space = |number: i64| {
        let is_default = number == DEFAULT_NUMBER;
        let name = if is_default { String::new() } else { format!("space-{number}") };
        Readable { name, names: Names::of(number), header: None }
    };
    numbers.into_iter().map(space).collect()
}

/// A space of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceOfFile {
    /// Its name; empty for the one that needs none.
    pub name: String,
    /// Tuples of it that are in the file. Its memory may be ahead.
    pub tuples: u64,
}

/// The spaces of a file, in the order in which they were made. None is opened.
///
/// # Errors
///
/// [`Error::NotFound`], [`Error::AccessDenied`], [`Error::Newer`], [`Error::Corrupted`].
pub fn spaces_in(path: &Path) -> Result<Vec<SpaceOfFile>, Error> {
    let _inside = gate::enter();
    let storage = Storage::open(path)?;
    let space = |(name, header): (String, Header)| {
        let sql = format!("SELECT count(*) FROM {}", header.names().tuple);
        let counted = storage.connection().query_row(&sql, (), |row| row.get::<_, i64>(0));
        let counted = counted.map_err(|error| Error::sqlite(path, "count the tuples", &error))?;
        Ok(SpaceOfFile { name, tuples: u64::try_from(counted).unwrap_or(0) })
    };
    storage.reading(|| storage.headers()?.into_iter().map(space).collect())
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
    names: &Names,
    mut visit: impl FnMut(&Row) -> Result<(), Error>,
) -> Result<u64, Error> {
    let (mut next_id, mut gaps) = (0, 0);
    loop {
        // How far it is readable.
        let read = each_from(connection, (names, next_id), |row| {
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
        let Some(readable) = readable_behind(connection, names, next_id) else { return Ok(gaps) };
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
    (names, id): (&Names, u64),
    mut visit: impl FnMut(&Row) -> Result<(), Error>,
) -> Result<(), Stopped> {
    let damaged = |_: rusqlite::Error| Stopped::ByDamage;
    let sql = each_tuple(names, "WHERE id >= ?1 ORDER BY id");
    let mut statement = connection.prepare_cached(&sql).map_err(damaged)?;
    let mut rows = statement.query((signed(id),)).map_err(damaged)?;
    while let Some(row) = rows.next().map_err(damaged)? {
        let row = stored_row(row).map_err(damaged)?;
        visit(&row).map_err(Stopped::ByVisitor)?;
    }
    Ok(())
}

/// The least id above `id`, as far as can be found, from which on something can be read; `None` if nothing can.
fn readable_behind(connection: &Connection, names: &Names, id: u64) -> Option<u64> {
    let is_readable = |from: u64| {
        let mut seen = false;
        let read = each_from(connection, (names, from), |_| {
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
