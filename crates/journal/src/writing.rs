//! The one transaction that writes to a file. All that one turn of the journal brings, and the position after it, are in the
//! file together or not at all.

use std::path::Path;

use rusqlite::{Row as SqlRow, Transaction};

use crate::error::Error;
use crate::header::{self, Header};
use crate::layout;
use crate::names::{DEFAULT_NUMBER, Names};
use crate::storage::{APPLICATION_ID, signed};
use crate::tables::Tables;

/// Spaces of a file (rule B2).
const SPACES_MAX: usize = 1_024;
/// Pages that nothing uses and that stay in the file in any case: 8 MiB of them.
const FREE_PAGES_KEPT: i64 = 2_048;
/// Pages that go back to the disk in one turn: to move those behind them takes time.
const PAGES_GIVEN_BACK_MAX: i64 = 1_024;

/// The right to write to the file. Dropped without a commit, it has changed nothing.
#[derive(Debug)]
pub(crate) struct Writing<'s> {
    transaction: Transaction<'s>,
    path: &'s Path,
}

impl<'s> Writing<'s> {
    pub(crate) fn new(transaction: Transaction<'s>, path: &'s Path) -> Self {
        Self { transaction, path }
    }

    /// What the file says about the space of this name; `None` if there is no such one yet.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn header(&self, name: &str) -> Result<Option<Header>, Error> {
        header::find(&self.transaction, self.path, name)
    }

    /// What it says about all its spaces, with their names.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn headers(&self) -> Result<Vec<(String, Header)>, Error> {
        header::all(&self.transaction, self.path)
    }

    /// The tables of a space that is in the file.
    pub(crate) fn tables(&self, header: &Header) -> Tables<'_, 's> {
        Tables::new(self, header.names())
    }

    /// Adds a space to the file, the first one to a new file. Returns the header with its number.
    ///
    /// # Errors
    ///
    /// What SQLite says; [`tupelo_engine::Error::LimitExceeded`] if the file has as many as it can have.
    pub(crate) fn create(&self, name: &str, header: &Header) -> Result<Header, Error> {
        if self.layout()? == 0 {
            self.change_tables(header::SCHEMA)?;
            let marked = self.transaction.pragma_update(None, "application_id", APPLICATION_ID);
            self.explained("fill the file", marked)?;
            self.set_layout(layout::VERSION)?;
        }
        let count = "SELECT count(*) FROM space";
        let count = self.query_one(count, (), |row| row.get::<_, i64>(0))?;
        if usize::try_from(count).is_ok_and(|count| count >= SPACES_MAX) {
            let what = "spaces in one file";
            return Err(tupelo_engine::Error::LimitExceeded { what, limit: SPACES_MAX }.into());
        }
        let number = if name.is_empty() { DEFAULT_NUMBER } else { self.next_number()? };
        self.change_tables(&Names::of(number).schema())?;
        let header = Header { number, ..header.clone() };
        let limits = header.limits;
        self.execute(
            "INSERT INTO space VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            (
                number,
                name,
                header.id.as_slice(),
                signed(header.generation),
                signed(header.position),
                signed(header.next_id),
                signed(limits.size_bytes),
                limits.tuples_max.map(signed),
                limits.when_full.number(),
            ),
        )?;
        Ok(header)
    }

    /// A number that no space of the file has.
    fn next_number(&self) -> Result<i64, Error> {
        let sql = "SELECT max(coalesce(max(number), 0), ?1) + 1 FROM space";
        self.query_one(sql, (DEFAULT_NUMBER,), |row| row.get(0))
    }

    /// Takes a space out of the file, with all that is in it.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn remove_space(&self, header: &Header) -> Result<(), Error> {
        for table in header.names().all() {
            self.change_tables(&format!("DROP TABLE {table}"))?;
        }
        self.execute("DELETE FROM space WHERE number = ?1", (header.number,))
    }

    /// The version of its tables.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn layout(&self) -> Result<i64, Error> {
        layout::version(&self.transaction, self.path)
    }

    /// Notes the version of its tables.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn set_layout(&self, version: i64) -> Result<(), Error> {
        let set = self.transaction.pragma_update(None, "user_version", version);
        self.explained("note the layout", set)
    }

    /// Adds tables, and changes those that are there.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn change_tables(&self, sql: &str) -> Result<(), Error> {
        self.explained("change the tables", self.transaction.execute_batch(sql))
    }

    /// The file.
    pub(crate) const fn path(&self) -> &'s Path {
        self.path
    }

    /// Puts it all on the disk.
    ///
    /// # Errors
    ///
    /// What SQLite says: nothing of it is in the file then.
    pub(crate) fn commit(self) -> Result<(), Error> {
        let Self { transaction, path } = self;
        transaction.commit().map_err(|error| Error::sqlite(path, "write to the disk", &error))
    }

    /// As [`Writing::commit`], and before that gives pages that nothing uses back to the disk, some at a time, if there are more than
    /// twice as many as those in use.
    ///
    /// # Errors
    ///
    /// As [`Writing::commit`].
    pub(crate) fn commit_and_shrink(self) -> Result<(), Error> {
        self.give_pages_back()?;
        self.commit()
    }

    fn give_pages_back(&self) -> Result<(), Error> {
        let count = |pragma: &str| {
            let count = self.transaction.pragma_query_value(None, pragma, |row| row.get(0));
            self.explained("count the pages of the file", count)
        };
        let (free, all): (i64, i64) = (count("freelist_count")?, count("page_count")?);
        let used = all - free;
        if free <= 2 * used + FREE_PAGES_KEPT {
            return Ok(());
        }
        let some = (free - used).min(PAGES_GIVEN_BACK_MAX);
        let given_back = self.transaction.pragma(None, "incremental_vacuum", some, |_| Ok(()));
        self.explained("give pages back to the disk", given_back)
    }

    /// The transaction, for statements whose rows are looked at one by one.
    pub(crate) const fn transaction(&self) -> &Transaction<'s> {
        &self.transaction
    }

    /// Runs a statement that writes.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn execute(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), Error> {
        self.executed(sql, values).map(drop)
    }

    /// As [`Writing::execute`]; returns how many rows were changed.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn executed(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<usize, Error> {
        let executed = self
            .transaction
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values));
        self.explained("write", executed)
    }

    /// All rows that a statement without values finds.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn query<R>(
        &self,
        sql: &str,
        read: impl FnMut(&SqlRow<'_>) -> rusqlite::Result<R>,
    ) -> Result<Vec<R>, Error> {
        let found = self
            .transaction
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_map((), read)?.collect());
        self.explained("read the file", found)
    }

    /// The row that a statement finds.
    ///
    /// # Errors
    ///
    /// What SQLite says, also if there is none.
    pub(crate) fn query_one<R>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnOnce(&SqlRow<'_>) -> rusqlite::Result<R>,
    ) -> Result<R, Error> {
        let found = self
            .transaction
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(values, read));
        self.explained("read the file", found)
    }

    /// An error as that of the file, which was asked to do `action`.
    ///
    /// # Errors
    ///
    /// That of `result`.
    pub(crate) fn explained<R>(
        &self,
        action: &str,
        result: rusqlite::Result<R>,
    ) -> Result<R, Error> {
        result.map_err(|error| Error::sqlite(self.path, action, &error))
    }
}
