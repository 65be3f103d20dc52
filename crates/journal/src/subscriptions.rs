//! Subscriptions that outlive their subscribers (rule N1): who is to be told of what, and the events that wait.
//!
//! What is brought to the file is compared with the templates of all of them, in the order in which it happened. An event is in the
//! file in the same transaction as the tuple that it tells of.

use rusqlite::{OptionalExtension, Row as SqlRow};
use tupelo_tuple::encoding::{Decoded, Reader};
use tupelo_tuple::{Template, TupleView};

use crate::error::Error;
use crate::storage::{Storage, signed};
use crate::writing::Writing;

/// What a subscriber finds when it comes, perhaps again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribed {
    /// Its number in the file.
    pub id: i64,
    /// The number of the last event that it was done with.
    pub told: u64,
}

/// An event that waits: its number, and the tuple that was put, in its canonical bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEvent {
    /// From 1 on, without gaps.
    pub number: u64,
    /// The tuple.
    pub image: Vec<u8>,
}

/// A subscription, while changes are brought to the file.
#[derive(Debug)]
struct Listener {
    id: i64,
    template: Template,
    keep: u64,
    last: u64,
    is_told: bool,
}

/// All subscriptions of a file, while changes are brought to it.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    all: Vec<Listener>,
}

impl Listeners {
    /// Those of the file.
    ///
    /// # Errors
    ///
    /// What SQLite says; [`Error::Corrupted`] for a template that does not decode.
    pub(crate) fn of(writing: &Writing<'_>) -> Result<Self, Error> {
        if !writing.has_subscriptions()? {
            return Ok(Self::default());
        }
        let sql = "SELECT id, template, keep, last FROM subscription";
        let read = |row: &SqlRow<'_>| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get(2)?, row.get(3)?))
        };
        let rows = writing.query(sql, read)?;
        let listener = |(id, template, keep, last): (i64, Vec<u8>, i64, i64)| {
            let template = Template::decode(&template).map_err(|error| Error::Corrupted {
                path: writing.path().to_owned(),
                problem: format!("the template of subscription {id} does not decode: {error}"),
            })?;
            Ok(Listener { id, template, keep: number(keep), last: number(last), is_told: false })
        };
        Ok(Self { all: rows.into_iter().map(listener).collect::<Result<_, Error>>()? })
    }

    /// Whether there is nobody to be told of anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A tuple is visible: whoever asks for such tuples has an event of it.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn tell(
        &mut self,
        writing: &Writing<'_>,
        tuple: &TupleView<'_>,
        image: &[u8],
    ) -> Result<(), Error> {
        for listener in &mut self.all {
            let matches = listener
                .template
                .with_refs(|templates| templates.iter().any(|one| one.matches(tuple)));
            if matches != Ok(true) {
                continue;
            }
            listener.last += 1;
            listener.is_told = true;
            let event = (listener.id, signed(listener.last), image);
            writing.execute("INSERT INTO event VALUES (?1, ?2, ?3)", event)?;
        }
        Ok(())
    }

    /// As [`Listeners::tell`], of a tuple in its canonical bytes.
    ///
    /// # Errors
    ///
    /// As [`Listeners::tell`].
    pub(crate) fn tell_of_image(
        &mut self,
        writing: &Writing<'_>,
        image: &[u8],
    ) -> Result<(), Error> {
        // What does not decode was damaged on the disk; that is told when it is read.
        let Ok(decoded) = Decoded::read(&mut Reader::new(image)) else { return Ok(()) };
        self.tell(writing, &decoded.to_image().view(), image)
    }

    /// Notes how far each is, and drops what is too much.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn finish(&self, writing: &Writing<'_>) -> Result<(), Error> {
        for Listener { id, keep, last, .. } in self.all.iter().filter(|one| one.is_told) {
            let sql = "UPDATE subscription SET last = ?2 WHERE id = ?1";
            writing.execute(sql, (id, signed(*last)))?;
            drop_events(writing, *id, last.saturating_sub(*keep))?;
        }
        Ok(())
    }
}

fn drop_events(writing: &Writing<'_>, id: i64, up_to: u64) -> Result<(), Error> {
    let sql = "DELETE FROM event WHERE subscription = ?1 AND number <= ?2";
    writing.execute(sql, (id, signed(up_to)))
}

/// Begins a subscription, or finds one that has this name. `None` if that asks for something else.
///
/// # Errors
///
/// What SQLite says.
pub(crate) fn subscribe(
    writing: &Writing<'_>,
    name: &str,
    template: &[u8],
    keep: u64,
) -> Result<Option<Subscribed>, Error> {
    // One that asks for something else stays as it is.
    let begin =
        "INSERT INTO subscription (name, template, keep, last, told) VALUES (?1, ?2, ?3, 0, 0)
        ON CONFLICT (name) DO UPDATE SET keep = excluded.keep WHERE template = excluded.template";
    if writing.executed(begin, (name, template, signed(keep)))? == 0 {
        return Ok(None);
    }
    let found = "SELECT id, told FROM subscription WHERE name = ?1";
    let subscribed =
        |row: &SqlRow<'_>| Ok(Subscribed { id: row.get(0)?, told: number(row.get(1)?) });
    writing.query_one(found, (name,), subscribed).map(Some)
}

/// Notes that a subscriber is done with all events up to this number.
///
/// # Errors
///
/// What SQLite says.
pub(crate) fn acknowledge(writing: &Writing<'_>, id: i64, up_to: u64) -> Result<(), Error> {
    let sql = "UPDATE subscription SET told = max(told, ?2) WHERE id = ?1";
    writing.execute(sql, (id, signed(up_to)))?;
    drop_events(writing, id, up_to)
}

/// Ends a subscription. Returns whether there was one of this name.
///
/// # Errors
///
/// What SQLite says.
pub(crate) fn unsubscribe(writing: &Writing<'_>, name: &str) -> Result<bool, Error> {
    let events =
        "DELETE FROM event WHERE subscription IN (SELECT id FROM subscription WHERE name = ?1)";
    writing.execute(events, (name,))?;
    Ok(writing.executed("DELETE FROM subscription WHERE name = ?1", (name,))? > 0)
}

/// The oldest events of a subscription after a number, `at_most` so many.
///
/// # Errors
///
/// What SQLite says.
pub(crate) fn events(
    storage: &Storage,
    id: i64,
    after: u64,
    at_most: usize,
) -> Result<Vec<KeptEvent>, Error> {
    let explained = |error: rusqlite::Error| Error::sqlite(storage.path(), "read events", &error);
    let sql = "SELECT number, image FROM event WHERE subscription = ?1 AND number > ?2
        ORDER BY number LIMIT ?3";
    let mut statement = storage.connection().prepare_cached(sql).map_err(explained)?;
    let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
    let event =
        |row: &SqlRow<'_>| Ok(KeptEvent { number: number(row.get(0)?), image: row.get(1)? });
    let rows = statement.query_map((id, signed(after), limit), event).map_err(explained)?;
    rows.collect::<Result<_, _>>().map_err(explained)
}

/// How many events of a subscription wait after a number.
///
/// # Errors
///
/// What SQLite says.
pub(crate) fn waiting(storage: &Storage, id: i64, after: u64) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM event WHERE subscription = ?1 AND number > ?2";
    let counted = storage
        .connection()
        .query_row(sql, (id, signed(after)), |row| row.get::<_, i64>(0))
        .optional();
    let explained = |error: rusqlite::Error| Error::sqlite(storage.path(), "count events", &error);
    Ok(counted.map_err(explained)?.map_or(0, number))
}

fn number(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}
