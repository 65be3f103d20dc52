//! What a file says about each of its spaces: a row of the table `space`.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Row as SqlRow};
use tupelo_engine::{Limits, WhenFull};

use crate::error::Error;
use crate::layout;
use crate::names::{DEFAULT_NUMBER, Names};

/// Random bytes of an id.
pub(crate) const ID_BYTES: usize = 16;

/// The table of the spaces of a file. The name of the space that a URL without `space=` means is empty.
pub(crate) const SCHEMA: &str = "
CREATE TABLE space (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    id BLOB NOT NULL,
    generation INTEGER NOT NULL,
    position INTEGER NOT NULL,
    next_id INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    tuples_max INTEGER,
    when_full INTEGER NOT NULL
) STRICT;
";

/// What makes that table of the one of older layouts, which had one row and no name. The number of a row is its `rowid` in both.
pub(crate) fn from_one_space() -> String {
    format!(
        "
ALTER TABLE space RENAME TO only_space;
{SCHEMA}
INSERT INTO space SELECT only, '', id, generation, position, next_id, size_bytes, tuples_max, when_full
    FROM only_space;
DROP TABLE only_space;
"
    )
}

const COLUMNS: &str = "rowid, id, generation, position, next_id, size_bytes, tuples_max, when_full";

/// What a file says about a space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Its number in the file; 0 before it is there.
    pub(crate) number: i64,
    /// Random, from when it was made.
    pub(crate) id: [u8; ID_BYTES],
    /// How often the memory of the space was filled from the file.
    pub(crate) generation: u64,
    /// Up to which position of this generation's journal the changes are in the file.
    pub(crate) position: u64,
    /// Larger than any id of a tuple that ever was in it.
    pub(crate) next_id: u64,
    /// What the space may hold.
    pub(crate) limits: Limits,
}

impl Header {
    /// That of a space which is in no file yet.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`]: the system gives no random bytes.
    pub(crate) fn new(limits: Limits) -> Result<Self, Error> {
        let mut id = [0; ID_BYTES];
        let filled = rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty());
        if filled != Ok(ID_BYTES) {
            return Err(tupelo_shm::Error::corrupted("the system gives no random bytes").into());
        }
        Ok(Self { number: 0, id, generation: 0, position: 0, next_id: 1, limits })
    }

    /// What its tables are called.
    pub(crate) fn names(&self) -> Names {
        Names::of(self.number)
    }
}

/// What the file says about the space of this name; `None` if there is no such one.
///
/// # Errors
///
/// What SQLite says; [`Error::Corrupted`] for what makes no sense.
pub(crate) fn find(
    connection: &Connection,
    path: &Path,
    name: &str,
) -> Result<Option<Header>, Error> {
    let version = layout::version(connection, path)?;
    // A file of an older layout has one space, and no name of it.
    let is_default = name.is_empty();
    if version == 0 || version < layout::VERSION_SPACES && !is_default {
        return Ok(None);
    }
    let found = if is_default {
        let query = format!("SELECT {COLUMNS} FROM space WHERE rowid = ?1");
        connection
            .prepare_cached(&query)
            .and_then(|mut one| one.query_row((DEFAULT_NUMBER,), read).optional())
    } else {
        let query = format!("SELECT {COLUMNS} FROM space WHERE name = ?1");
        connection
            .prepare_cached(&query)
            .and_then(|mut one| one.query_row((name,), read).optional())
    };
    let found = found.map_err(|error| Error::sqlite(path, "read the file", &error))?;
    found.map(|stored| stored.header(path)).transpose()
}

/// What the file says about all of its spaces, by their numbers, with their names.
///
/// # Errors
///
/// As [`find`].
pub(crate) fn all(connection: &Connection, path: &Path) -> Result<Vec<(String, Header)>, Error> {
    let version = layout::version(connection, path)?;
    if version == 0 {
        return Ok(Vec::new());
    }
    let name = if version < layout::VERSION_SPACES { "''" } else { "name" };
    let query = format!("SELECT {COLUMNS}, {name} FROM space ORDER BY rowid");
    let found = connection.prepare_cached(&query).and_then(|mut all| {
        let named = |row: &SqlRow<'_>| Ok((row.get::<_, String>(8)?, read(row)?));
        all.query_map((), named)?.collect::<Result<Vec<_>, _>>()
    });
    let found = found.map_err(|error| Error::sqlite(path, "read the file", &error))?;
    let header = |(name, stored): (String, Stored)| Ok((name, stored.header(path)?));
    found.into_iter().map(header).collect()
}

/// A row as SQLite has it.
struct Stored {
    number: i64,
    id: [u8; ID_BYTES],
    numbers: [i64; 4],
    tuples_max: Option<i64>,
    when_full: u32,
}

fn read(row: &SqlRow<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        number: row.get(0)?,
        id: row.get(1)?,
        numbers: [row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?],
        tuples_max: row.get(6)?,
        when_full: row.get(7)?,
    })
}

impl Stored {
    fn header(self, path: &Path) -> Result<Header, Error> {
        self.checked().map_err(|number| Error::Corrupted {
            path: path.to_owned(),
            problem: format!("the row of the space has the number {number}, which can not be"),
        })
    }

    /// An error is the number that can not be.
    fn checked(self) -> Result<Header, i64> {
        let number = |number: i64| u64::try_from(number).map_err(|_| number);
        let [generation, position, next_id, size_bytes] = self.numbers;
        let limits = Limits {
            size_bytes: number(size_bytes)?,
            tuples_max: self.tuples_max.map(number).transpose()?,
            when_full: WhenFull::of_number(self.when_full).ok_or(i64::from(self.when_full))?,
        };
        Ok(Header {
            number: self.number,
            id: self.id,
            generation: number(generation)?,
            position: number(position)?,
            next_id: number(next_id)?,
            limits,
        })
    }
}
