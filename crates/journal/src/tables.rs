//! The tables of one space, and what a turn of its journal writes to them.

use std::path::Path;

use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row as SqlRow};
use tupelo_engine::{Attempt, Attempts, Kept, KeptTerms};
use tupelo_tuple::Value;

use crate::error::Error;
use crate::header::Header;
use crate::layout;
use crate::names::Names;
use crate::storage::signed;
use crate::writing::Writing;

/// A tuple as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// What is known of it.
    pub(crate) kept: Kept,
    /// Its canonical bytes (rule V4).
    pub(crate) image: Vec<u8>,
}

/// The right to write to the tables of one space.
#[derive(Debug)]
pub(crate) struct Tables<'w, 's> {
    writing: &'w Writing<'s>,
    names: Names,
}

impl<'w, 's> Tables<'w, 's> {
    pub(crate) const fn new(writing: &'w Writing<'s>, names: Names) -> Self {
        Self { writing, names }
    }

    /// What they are called.
    pub(crate) const fn names(&self) -> &Names {
        &self.names
    }

    /// The transaction.
    pub(crate) const fn writing(&self) -> &'w Writing<'s> {
        self.writing
    }

    /// The file.
    pub(crate) const fn path(&self) -> &'s Path {
        self.writing.path()
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
            self.names.number,
        );
        let sql =
            "UPDATE space SET generation = ?1, position = ?2, size_bytes = ?3, tuples_max = ?4,
            when_full = ?5 WHERE rowid = ?6";
        self.writing.execute(sql, values)
    }

    /// Removes all tuples, and all subscriptions. What requests were answered stays: each was answered once, also before.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        let Names { tuple, subscription, event, .. } = &self.names;
        let clear = |table: &String| self.writing.execute(&format!("DELETE FROM {table}"), ());
        [tuple, subscription, event].into_iter().try_for_each(clear)
    }

    /// Whether the file may have subscriptions.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn has_subscriptions(&self) -> Result<bool, Error> {
        Ok(self.writing.layout()? >= layout::VERSION_SUBSCRIPTIONS)
    }

    /// The canonical bytes of a tuple; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn image_of(&self, id: u64) -> Result<Option<Vec<u8>>, Error> {
        let sql = format!("SELECT image FROM {} WHERE id = ?1", self.names.tuple);
        let found = self.writing.transaction().prepare_cached(&sql).and_then(|mut statement| {
            statement.query_row((signed(id),), |row| row.get(0)).optional()
        });
        self.writing.explained("read a tuple", found)
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
        let (sql, writing) = (each_tuple(&self.names, "ORDER BY id"), self.writing);
        let statement = writing.transaction().prepare(&sql);
        let mut statement = writing.explained("read the tuples", statement)?;
        let mut rows = writing.explained("read the tuples", statement.query(()))?;
        while let Some(row) = writing.explained("read the tuples", rows.next())? {
            visit(&writing.explained("read a tuple", stored_row(row))?)?;
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
        let table = &self.names.tuple;
        let sql = format!("INSERT OR REPLACE INTO {table} VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
        self.writing.execute(
            &sql,
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
        let sql = format!("DELETE FROM {} WHERE id = ?1", self.names.tuple);
        self.writing.execute(&sql, (signed(id),))
    }

    /// Gives a tuple another id and other terms.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn rename(&self, id: u64, new_id: u64, terms: KeptTerms) -> Result<(), Error> {
        let sql = format!(
            "UPDATE OR REPLACE {} SET id = ?2, hidden_until_ns = ?3, ends_at_ns = ?4 WHERE id = ?1",
            self.names.tuple
        );
        let (hidden_until_ns, ends_at_ns) = (terms.hidden_until_ns, terms.ends_at_ns);
        let ends = (hidden_until_ns.map(signed), ends_at_ns.map(signed));
        self.writing.execute(&sql, (signed(id), signed(new_id), ends.0, ends.1))
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
        let table = &self.names.tuple;
        let sql =
            format!("UPDATE {table} SET failed = ?2, is_dead = ?3, reasons = ?4 WHERE id = ?1");
        let reasons = self.reasons(attempts)?;
        self.writing.execute(&sql, (signed(id), attempts.failed, attempts.is_dead, reasons))
    }

    /// The reasons as the file has them: a list of pairs, in the encoding of a value.
    fn reasons(&self, attempts: &Attempts) -> Result<Vec<u8>, Error> {
        let pair = |attempt: &Attempt| {
            let number = Value::Int(attempt.number.into());
            Value::List(vec![number, Value::Str(attempt.reason.clone())])
        };
        let list = Value::List(attempts.reasons.iter().map(pair).collect());
        list.encode().map_err(|error| Error::Storage {
            path: self.path().to_owned(),
            problem: format!("the reasons of an attempt cannot be encoded: {error}"),
        })
    }

    /// Notes that everything up to this position of the journal is in the tables, and no id from `next_id` on.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn set_position(&self, position: u64, next_id: u64) -> Result<(), Error> {
        let sql = "UPDATE space SET position = ?2, next_id = max(next_id, ?3) WHERE rowid = ?1";
        self.writing.execute(sql, (self.names.number, signed(position), signed(next_id)))
    }
}

/// The statement that finds tuples, as [`stored_row`] reads them.
pub(crate) fn each_tuple(names: &Names, conditions: &str) -> String {
    let columns = "id, image, hidden_until_ns, ends_at_ns, failed, is_dead, reasons";
    format!("SELECT {columns} FROM {} {conditions}", names.tuple)
}

/// The tuple of a row that [`each_tuple`] finds.
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
