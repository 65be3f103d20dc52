//! The one transaction that writes to the file of a space. All that one turn of the journal brings, and the position
//! after it, are in the file together or not at all.

use std::path::Path;

use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row as SqlRow, Transaction};
use tupelo_engine::{Attempt, Attempts, Kept, KeptTerms};
use tupelo_tuple::Value;

use crate::error::Error;
use crate::layout;
use crate::storage::{self, Header, signed};

/// Pages that nothing uses and that stay in the file in any case: 8 MiB of them.
const FREE_PAGES_KEPT: i64 = 2_048;
/// Pages that go back to the disk in one turn: to move those behind them takes time.
const PAGES_GIVEN_BACK_MAX: i64 = 1_024;

/// A tuple as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// What is known of it.
    pub(crate) kept: Kept,
    /// Its canonical bytes (rule V4).
    pub(crate) image: Vec<u8>,
}

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

    /// What the file says about itself; `None` if nothing is in it yet.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn header(&self) -> Result<Option<Header>, Error> {
        storage::header(&self.transaction, self.path)
    }

    /// Fills a new file.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn create(&self, header: &Header) -> Result<(), Error> {
        self.explained("fill the file", storage::create(&self.transaction, header))
    }

    /// Notes that the memory is another one from now on, whose journal begins at its beginning.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn begin_generation(&self, header: &Header) -> Result<(), Error> {
        let limits = header.limits;
        let values = (
            signed(header.generation),
            signed(header.position),
            signed(limits.size_bytes),
            limits.tuples_max.map(signed),
            limits.when_full.number(),
        );
        let sql = "UPDATE space SET generation = ?1, position = ?2, size_bytes = ?3, tuples_max = ?4, when_full = ?5";
        self.explained("note the generation", self.transaction.execute(sql, values)).map(drop)
    }

    /// Removes all tuples, and all subscriptions. What requests were answered stays: each was answered once, also before.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        for table in ["tuple", "subscription", "event"] {
            self.execute(&format!("DELETE FROM {table}"), ())?;
        }
        Ok(())
    }

    /// The version of its tables.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn layout(&self) -> Result<i64, Error> {
        let found = self.transaction.pragma_query_value(None, "user_version", |row| row.get(0));
        self.explained("read the file", found)
    }

    /// Whether the file may have subscriptions.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn has_subscriptions(&self) -> Result<bool, Error> {
        Ok(self.layout()? >= layout::VERSION_SUBSCRIPTIONS)
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

    /// The canonical bytes of a tuple; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn image_of(&self, id: u64) -> Result<Option<Vec<u8>>, Error> {
        let found =
            self.transaction.prepare_cached("SELECT image FROM tuple WHERE id = ?1").and_then(
                |mut statement| statement.query_row((signed(id),), |row| row.get(0)).optional(),
            );
        self.explained("read a tuple", found)
    }

    /// Shows each tuple to `visit`, by their ids.
    ///
    /// # Errors
    ///
    /// What SQLite says, and what `visit` says; [`Error::Corrupted`] for what makes no sense.
    pub(crate) fn rows(
        &self,
        mut visit: impl FnMut(&Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let sql = format!("SELECT {TUPLE_COLUMNS} FROM tuple ORDER BY id");
        let mut statement = self.explained("read the tuples", self.transaction.prepare(&sql))?;
        let mut rows = self.explained("read the tuples", statement.query(()))?;
        while let Some(row) = self.explained("read the tuples", rows.next())? {
            visit(&self.explained("read a tuple", stored_row(row))?)?;
        }
        Ok(())
    }

    /// Adds a tuple, or puts it in the place of the one that has its id.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn insert(&self, row: &Row) -> Result<(), Error> {
        let Row { kept: Kept { id, terms, attempts }, image } = row;
        let reasons = self.reasons(attempts)?;
        self.execute(
            "INSERT OR REPLACE INTO tuple VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (
                signed(*id),
                image,
                terms.hidden_until_ns.map(signed),
                terms.ends_at_ns.map(signed),
                attempts.failed,
                attempts.is_dead,
                reasons,
            ),
        )
    }

    /// Removes a tuple, if it is there.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn remove(&self, id: u64) -> Result<(), Error> {
        self.execute("DELETE FROM tuple WHERE id = ?1", (signed(id),))
    }

    /// Gives a tuple another id and other terms.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn rename(&self, id: u64, new_id: u64, terms: KeptTerms) -> Result<(), Error> {
        let sql = "UPDATE OR REPLACE tuple SET id = ?2, hidden_until_ns = ?3, ends_at_ns = ?4 WHERE id = ?1";
        let (hidden_until_ns, ends_at_ns) = (terms.hidden_until_ns, terms.ends_at_ns);
        let ends = (hidden_until_ns.map(signed), ends_at_ns.map(signed));
        self.execute(sql, (signed(id), signed(new_id), ends.0, ends.1))
    }

    /// Changes from when and until when a tuple is there.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn set_terms(&self, id: u64, terms: KeptTerms) -> Result<(), Error> {
        self.rename(id, id, terms)
    }

    /// Changes what became of the attempts at a tuple.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn set_attempts(&self, id: u64, attempts: &Attempts) -> Result<(), Error> {
        let sql = "UPDATE tuple SET failed = ?2, is_dead = ?3, reasons = ?4 WHERE id = ?1";
        let reasons = self.reasons(attempts)?;
        self.execute(sql, (signed(id), attempts.failed, attempts.is_dead, reasons))
    }

    /// The reasons as the file has them: a list of pairs, in the encoding of a value.
    fn reasons(&self, attempts: &Attempts) -> Result<Vec<u8>, Error> {
        let pair = |attempt: &Attempt| {
            let number = Value::Int(attempt.number.into());
            Value::List(vec![number, Value::Str(attempt.reason.clone())])
        };
        let list = Value::List(attempts.reasons.iter().map(pair).collect());
        list.encode().map_err(|error| Error::Storage {
            path: self.path.to_owned(),
            problem: format!("the reasons of an attempt cannot be encoded: {error}"),
        })
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

    /// As [`Writing::commit`], with everything in it up to this position of the journal, and no id from `next_id` on.
    ///
    /// # Errors
    ///
    /// As [`Writing::commit`].
    pub(crate) fn commit_up_to(self, position: u64, next_id: u64) -> Result<(), Error> {
        let sql = "UPDATE space SET position = ?1, next_id = max(next_id, ?2)";
        self.execute(sql, (signed(position), signed(next_id)))?;
        self.give_pages_back()?;
        self.commit()
    }

    /// Gives pages that nothing uses back to the disk, some at a time, if there are more than twice as many as those in use.
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

    fn explained<R>(&self, action: &str, result: rusqlite::Result<R>) -> Result<R, Error> {
        result.map_err(|error| Error::sqlite(self.path, action, &error))
    }
}

/// The columns of a tuple, as [`stored_row`] reads them.
pub(crate) const TUPLE_COLUMNS: &str =
    "id, image, hidden_until_ns, ends_at_ns, failed, is_dead, reasons";

/// The tuple of a row with [`TUPLE_COLUMNS`].
///
/// # Errors
///
/// What SQLite says; that of a value of another kind for reasons that do not decode.
pub(crate) fn stored_row(row: &SqlRow<'_>) -> rusqlite::Result<Row> {
    let nanoseconds = |column: usize| {
        let stored: Option<i64> = row.get(column)?;
        // What lies before 1970 is over.
        Ok::<_, rusqlite::Error>(stored.map(|stored| u64::try_from(stored).unwrap_or(0)))
    };
    let id: i64 = row.get(0)?;
    let terms = KeptTerms { hidden_until_ns: nanoseconds(2)?, ends_at_ns: nanoseconds(3)? };
    let reasons = reasons_of(row.get_ref(6)?.as_blob()?).ok_or_else(|| {
        let problem = format!("the reasons of tuple {id} do not decode");
        rusqlite::Error::FromSqlConversionFailure(6, Type::Blob, problem.into())
    })?;
    let attempts = Attempts { failed: row.get(4)?, is_dead: row.get(5)?, reasons };
    let kept = Kept { id: id.cast_unsigned(), terms, attempts };
    Ok(Row { kept, image: row.get(1)? })
}

fn reasons_of(bytes: &[u8]) -> Option<Vec<Attempt>> {
    let Ok(Value::List(pairs)) = Value::decode(bytes) else { return None };
    let attempt = |pair: Value| match pair {
        Value::List(pair) => match <[Value; 2]>::try_from(pair).ok()? {
            [Value::Int(number), Value::Str(reason)] => {
                Some(Attempt { number: number.try_into().ok()?, reason })
            }
            _ => None,
        },
        _ => None,
    };
    pairs.into_iter().map(attempt).collect()
}
