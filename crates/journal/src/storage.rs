//! The file of some spaces, mostly of one: an SQLite database with one row for each tuple.
//!
//! | table | what it has |
//! |---|---|
//! | `space` | for each space its name, id and generation, the position up to which its journal is in the file, its limits |
//! | `tuple` | what is in the space: the id, the canonical bytes, when it appears and ends, its attempts and why they failed |
//! | `subscription`, `event` | who is told of what over a restart, and the events that wait: [`layout`] |
//! | `answered` | what keyed requests were answered: [`crate::answers`] |
//!
//! The tables of a space with a name have its number behind theirs, as `tuple_2` ([`crate::names`]).
//!
//! The write-ahead log is synced at each commit (`synchronous=FULL`), so what was committed survives the loss of power. Writers of
//! several processes exclude each other by SQLite's own lock, which the system takes back from a process that is killed. Nothing
//! is waited for here, but for the lock while a space is opened.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::Error;
use crate::header::{self, Header};
use crate::layout;
use crate::writing::Writing;

/// What marks the file as one of ours: `Tupl`.
pub(crate) const APPLICATION_ID: i64 = 0x5475_706c;
/// How an SQLite database begins, how long that is, and where in it the mark stands.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";
const SQLITE_HEADER_BYTES: usize = 100;
const APPLICATION_ID_AT: usize = 68;
/// How long the opening of a space waits for whoever has the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// Statements that are kept prepared: those of [`Writing`].
const STATEMENTS: usize = 32;

/// How a connection works. In a new file, pages that nothing uses can be given back; the log is no longer than 8 MiB between two turns.
const SET_UP: &str = "
PRAGMA synchronous = FULL;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_size_limit = 8388608;
";

/// A connection to the file of a space. Belongs to the process that opened it, and to no child of a fork.
#[derive(Debug)]
pub(crate) struct Storage {
    connection: Connection,
    path: PathBuf,
    file: FileNumber,
}

/// Which file it is, whatever its path: the file system's number of it. A copy of a file has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileNumber {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl Storage {
    /// Opens the file, which has to exist. It may be empty still: then there is no space in it.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::AccessDenied`], [`Error::Newer`]; [`Error::Corrupted`] for what is no file of a space.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = own_file(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)
            .map_err(|error| Error::sqlite(path, "open the file", &error))?;
        let storage = Self { connection, path: path.to_owned(), file };
        // If SQLite may not open a file to write, it opens it to read, and each write would fail as long as it is open.
        if storage.connection.is_readonly("main").unwrap_or(false) {
            let (path, problem) = (storage.path, "cannot open the file to write".to_owned());
            return Err(Error::AccessDenied { path, problem });
        }
        storage.set_up()?;
        Ok(storage)
    }

    /// As [`Storage::open`], and makes an empty file if there is none.
    ///
    /// # Errors
    ///
    /// As [`Storage::open`].
    pub(crate) fn open_or_create(path: &Path) -> Result<Self, Error> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        match made {
            // The name is on disk before anything is said to be.
            Ok(file) => file.sync_all().and_then(|()| sync_directory_of(path)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let problem = "cannot create the file: its directory does not exist".to_owned();
                Error::Storage { path: path.to_owned(), problem }
            }
            _ => Error::io(path, "create the file", &error),
        })?;
        Self::open(path)
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Which file that is.
    pub(crate) const fn file(&self) -> FileNumber {
        self.file
    }

    /// What the file says about the space of this name; `None` if there is no such one yet.
    ///
    /// # Errors
    ///
    /// What SQLite says; [`Error::Corrupted`] for what makes no sense.
    pub(crate) fn header(&self, name: &str) -> Result<Option<Header>, Error> {
        self.reading(|| header::find(&self.connection, &self.path, name))
    }

    /// What it says about all its spaces, with their names.
    ///
    /// # Errors
    ///
    /// As [`Storage::header`].
    pub(crate) fn headers(&self) -> Result<Vec<(String, Header)>, Error> {
        self.reading(|| header::all(&self.connection, &self.path))
    }

    /// Reads one thing after the other, between which nobody changes the file.
    ///
    /// # Errors
    ///
    /// What SQLite says; that of `read`.
    pub(crate) fn reading<R>(&self, read: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
        if !self.connection.is_autocommit() {
            return read(); // within such a one
        }
        let transaction = self.connection.unchecked_transaction();
        let explained = |error: rusqlite::Error| Error::sqlite(&self.path, "read the file", &error);
        let _transaction = transaction.map_err(explained)?;
        read()
    }

    /// The right to write, as soon as nobody else has it.
    ///
    /// # Errors
    ///
    /// What SQLite says; [`Error::Storage`] if somebody has had it for half a minute.
    pub(crate) fn write(&mut self) -> Result<Writing<'_>, Error> {
        let Self { connection, path, .. } = self;
        match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
            Ok(transaction) => Ok(Writing::new(transaction, path)),
            Err(error) if is_busy(&error) => {
                let busy_timeout_s = BUSY_TIMEOUT.as_secs();
                let problem =
                    format!("another process has kept the file locked for {busy_timeout_s} s");
                Err(Error::Storage { path: path.clone(), problem })
            }
            Err(error) => Err(Error::sqlite(path, "lock the file", &error)),
        }
    }

    /// Writes what is in the file at one moment into another one, which must not exist. Others may write meanwhile.
    ///
    /// # Errors
    ///
    /// What SQLite and the system say; the other file may be there then, in part.
    pub(crate) fn copy_to(&self, path: &Path) -> Result<(), Error> {
        let explained = |error| Error::io(path, "create the file", &error);
        // Before SQLite does, so that it is its owner's alone.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        drop(made.map_err(explained)?);
        let name = path.to_str().ok_or_else(|| Error::Storage {
            path: path.to_owned(),
            problem: "the path is no text".to_owned(),
        })?;
        let copied = self.connection.execute("VACUUM INTO ?1", (name,));
        copied.map_err(|error| Error::sqlite(path, "write the copy", &error))?;
        let synced = fs::File::open(path).and_then(|file| file.sync_all());
        synced.and_then(|()| sync_directory_of(path)).map_err(explained)
    }

    /// Writes the file anew, without the room that nothing uses, and moves the log into it. Returns the bytes that both had before, and
    /// those that they have now.
    ///
    /// # Errors
    ///
    /// What SQLite says: what is in the file stays as it was.
    pub(crate) fn compact(&self) -> Result<(u64, u64), Error> {
        let before = self.bytes();
        self.connection
            .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")
            .map_err(|error| Error::sqlite(&self.path, "compact the file", &error))?;
        Ok((before, self.bytes()))
    }

    /// The bytes of the file and of its log.
    pub(crate) fn bytes(&self) -> u64 {
        bytes_of(&self.path)
    }

    /// The connection, for what changes nothing.
    pub(crate) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Closes it without moving the log into the main file: the caller is in a hurry.
    pub(crate) fn close_quickly(self) {
        // If it refuses, it closes more slowly.
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        drop(self.connection);
    }

    /// Looks whose file it is, before anything in it is changed, and how it is to be written.
    fn set_up(&self) -> Result<(), Error> {
        let Self { connection, path, .. } = self;
        let explained = |action: &'static str| {
            move |error: rusqlite::Error| Error::sqlite(path, action, &error)
        };
        connection.busy_timeout(BUSY_TIMEOUT).map_err(explained("set a time limit"))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Somebody else may fill a new file meanwhile: it is new, or it is ours.
        self.reading(|| self.require_known())?;
        connection.execute_batch(SET_UP).map_err(explained("set up the connection"))?;
        self.begin_log()
    }

    /// Refuses a file that is not of this kind, or of a newer one.
    fn require_known(&self) -> Result<(), Error> {
        let (application, found) = (self.number("application_id")?, self.layout()?);
        if application == APPLICATION_ID {
            let (path, known) = (self.path.clone(), layout::VERSION);
            return if found > known { Err(Error::Newer { path, found, known }) } else { Ok(()) };
        }
        if application == 0 && found == 0 && self.number("schema_version")? == 0 {
            return Ok(());
        }
        let problem = "the file is an SQLite database, and not that of a space".to_owned();
        Err(Error::Corrupted { path: self.path.clone(), problem })
    }

    /// The version of its tables; 0 of a new file.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn layout(&self) -> Result<i64, Error> {
        layout::version(&self.connection, &self.path)
    }

    fn number(&self, pragma: &str) -> Result<i64, Error> {
        let found = self.connection.pragma_query_value(None, pragma, |row| row.get(0));
        found.map_err(|error| Error::sqlite(&self.path, "read the file", &error))
    }

    /// Lets commits go to a write-ahead log. Who is not alone in a new file is refused without a wait, and tries again.
    fn begin_log(&self) -> Result<(), Error> {
        let mut tries_left = 1_000;
        loop {
            let set = self.connection.pragma_update_and_check(None, "journal_mode", "wal", |row| {
                row.get::<_, String>(0)
            });
            match set {
                Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
                Err(error) if is_busy(&error) && tries_left > 0 => {
                    tries_left -= 1;
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => return Err(Error::sqlite(&self.path, "begin a log", &error)),
                Ok(_) => {
                    let problem = "the file system does not have what SQLite's log needs: shared \
                                   memory between processes, as local file systems have";
                    let (path, problem) = (self.path.clone(), problem.to_owned());
                    return Err(Error::Storage { path, problem });
                }
            }
        }
    }
}

/// The log beside a file.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// The bytes of a file and of its log.
pub(crate) fn bytes_of(path: &Path) -> u64 {
    let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    length(path) + length(&log_of(path))
}

/// Whether this may be the file of a space, by its first bytes. A new one whose log was never moved into it is told by its name.
pub(crate) fn is_of_space(path: &Path) -> bool {
    let mut begin = [0; SQLITE_HEADER_BYTES];
    let read = fs::File::open(path).and_then(|file| file.read_exact_at(&mut begin, 0));
    if read.is_err() || !begin.starts_with(SQLITE_MAGIC) {
        return false;
    }
    let id = begin[APPLICATION_ID_AT..].first_chunk().map_or(0, |id| i32::from_be_bytes(*id));
    let is_named = path.extension().is_some_and(|extension| extension == "tupelo");
    i64::from(id) == APPLICATION_ID || id == 0 && is_named
}

/// A number as SQLite has it. Ours have 63 bits.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Refuses what is no file, or is another user's: its memory would be another, and of two memories each would undo what the
/// other does.
fn own_file(path: &Path) -> Result<FileNumber, Error> {
    let metadata = fs::metadata(path).map_err(|error| Error::io(path, "open the file", &error))?;
    if !metadata.is_file() {
        let problem = "this is not a regular file".to_owned();
        return Err(Error::Storage { path: path.to_owned(), problem });
    }
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner == user {
        return Ok(FileNumber { device: metadata.dev(), inode: metadata.ino() });
    }
    let problem = format!("the file belongs to user {owner}, and this program runs as user {user}");
    Err(Error::AccessDenied { path: path.to_owned(), problem })
}

/// Refuses to go on with a file that is not at its path any more: nobody would find what is written to it.
pub(crate) fn require_there(path: &Path, file: FileNumber) -> Result<(), Error> {
    let found = fs::metadata(path).map(|found| (found.dev(), found.ino()));
    if found.is_ok_and(|found| found == (file.device, file.inode)) {
        return Ok(());
    }
    Err(Error::Replaced { path: path.to_owned() })
}

/// Has the names in the directory of `path` written to the disk.
fn sync_directory_of(path: &Path) -> std::io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}
