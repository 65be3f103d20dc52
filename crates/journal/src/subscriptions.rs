//! Subscriptions that outlive their subscribers (rule N1): who is to be told of what, and the events that wait.
//!
//! What is brought to the file is compared with the templates of all of them, in the order in which it happened. An event is in the
//! file in the same transaction as the tuple that it tells of.

use rusqlite::{OptionalExtension, Row as SqlRow};
use tupelo_tuple::encoding::{Decoded, Reader};
use tupelo_tuple::{Template, TupleView};

use crate::error::Error;
use crate::names::Names;
use crate::storage::{Storage, signed};
use crate::tables::Tables;

/// What a subscriber finds when it comes, perhaps again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribed {
    /// Its number in the file.
    pub id: i64,
    /// The number of the last event that it was done with.
    pub told: u64,
    /// Which subscriber it is: the next one of the name has another number.
    pub session: i64,
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
    pub(crate) fn of(tables: &Tables<'_, '_>) -> Result<Self, Error> {
        if !tables.has_subscriptions()? {
            return Ok(Self::default());
        }
        let table = &tables.names().subscription;
        let sql = format!("SELECT id, template, keep, last FROM {table}");
        let read = |row: &SqlRow<'_>| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get(2)?, row.get(3)?))
        };
        let rows = tables.writing().query(&sql, read)?;
        let listener = |(id, template, keep, last): (i64, Vec<u8>, i64, i64)| {
            let template = Template::decode(&template).map_err(|error| Error::Corrupted {
                path: tables.path().to_owned(),
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
        tables: &Tables<'_, '_>,
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
            let sql = format!("INSERT INTO {} VALUES (?1, ?2, ?3)", tables.names().event);
            tables.writing().execute(&sql, event)?;
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
        tables: &Tables<'_, '_>,
        image: &[u8],
    ) -> Result<(), Error> {
        // What does not decode was damaged on the disk; that is told when it is read.
        let Ok(decoded) = Decoded::read(&mut Reader::new(image)) else { return Ok(()) };
        self.tell(tables, &decoded.to_image().view(), image)
    }

    /// Notes how far each is, and drops what is too much.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn finish(&self, tables: &Tables<'_, '_>) -> Result<(), Error> {
        for Listener { id, keep, last, .. } in self.all.iter().filter(|one| one.is_told) {
            let table = &tables.names().subscription;
            let sql = format!("UPDATE {table} SET last = ?2 WHERE id = ?1");
            tables.writing().execute(&sql, (id, signed(*last)))?;
            drop_events(tables, *id, last.saturating_sub(*keep))?;
        }
        Ok(())
    }
}

fn drop_events(tables: &Tables<'_, '_>, id: i64, up_to: u64) -> Result<(), Error> {
    let table = &tables.names().event;
    let sql = format!("DELETE FROM {table} WHERE subscription = ?1 AND number <= ?2");
    tables.writing().execute(&sql, (id, signed(up_to)))
}

/// Begins a subscription, or finds one that has this name: whoever had it is told of nothing any more. `None` if that asks for something
/// else.
///
/// # Errors
///
/// What SQLite says.
pub(crate) fn subscribe(
    tables: &Tables<'_, '_>,
    name: &str,
    template: &[u8],
    keep: u64,
) -> Result<Option<Subscribed>, Error> {
    // One that asks for something else stays as it is.
    let (writing, table) = (tables.writing(), &tables.names().subscription);
    let begin = format!(
        "INSERT INTO {table} (name, template, keep, last, told, session)
        VALUES (?1, ?2, ?3, 0, 0, random())
        ON CONFLICT (name) DO UPDATE SET keep = excluded.keep, session = excluded.session
        WHERE template = excluded.template"
    );
    if writing.executed(&begin, (name, template, signed(keep)))? == 0 {
        return Ok(None);
    }
    let found = format!("SELECT id, told, session FROM {table} WHERE name = ?1");
    let subscribed = |row: &SqlRow<'_>| {
        Ok(Subscribed { id: row.get(0)?, told: number(row.get(1)?), session: row.get(2)? })
    };
    writing.query_one(&found, (name,), subscribed).map(Some)
}

/// Notes that a subscriber is done with all events up to this number.
///
/// # Errors
///
/// [`Error::SubscriptionOver`]; what SQLite says.
pub(crate) fn acknowledge(
    tables: &Tables<'_, '_>,
    subscribed: Subscribed,
    up_to: u64,
) -> Result<(), Error> {
    let Subscribed { id, session, .. } = subscribed;
    let table = &tables.names().subscription;
    let sql = format!("UPDATE {table} SET told = max(told, ?3) WHERE id = ?1 AND session = ?2");
    if tables.writing().executed(&sql, (id, session, signed(up_to)))? == 0 {
        return Err(Error::SubscriptionOver { path: tables.path().to_owned() });
    }
    drop_events(tables, id, up_to)
}

/// Ends a subscription. Returns whether there was one of this name.
///
/// # Errors
///
/// What SQLite says.
pub(crate) fn unsubscribe(tables: &Tables<'_, '_>, name: &str) -> Result<bool, Error> {
    let Names { subscription, event, .. } = tables.names();
    let ids = format!("SELECT id FROM {subscription} WHERE name = ?1");
    let events = format!("DELETE FROM {event} WHERE subscription IN ({ids})");
    tables.writing().execute(&events, (name,))?;
    let own = format!("DELETE FROM {subscription} WHERE name = ?1");
    Ok(tables.writing().executed(&own, (name,))? > 0)
}

/// The oldest events of a subscription after a number, `at_most` so many.
///
/// # Errors
///
/// [`Error::SubscriptionOver`]; what SQLite says.
pub(crate) fn events(
    storage: &Storage,
    (names, subscribed): (&Names, Subscribed),
    after: u64,
    at_most: usize,
) -> Result<Vec<KeptEvent>, Error> {
    let Subscribed { id, session, .. } = subscribed;
    let explained = |error: rusqlite::Error| Error::sqlite(storage.path(), "read events", &error);
    let Names { subscription, event, .. } = names;
    // In one statement: between two of them, another subscriber could come.
    let sql = format!(
        "SELECT number, image FROM {subscription} LEFT JOIN
            (SELECT number, image FROM {event} WHERE subscription = ?1 AND number > ?3
            ORDER BY number LIMIT ?4)
        WHERE id = ?1 AND session = ?2 ORDER BY number"
    );
    let mut statement = storage.connection().prepare_cached(&sql).map_err(explained)?;
    let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
    let event = |row: &SqlRow<'_>| {
        let found: Option<i64> = row.get(0)?;
        let event = |found| Ok(KeptEvent { number: number(found), image: row.get(1)? });
        found.map(event).transpose()
    };
    let rows =
        statement.query_map((id, session, signed(after), limit), event).map_err(explained)?;
    let rows: Vec<Option<KeptEvent>> = rows.collect::<Result<_, _>>().map_err(explained)?;
    if rows.is_empty() {
        return Err(Error::SubscriptionOver { path: storage.path().to_owned() });
    }
    Ok(rows.into_iter().flatten().collect())
}

/// How many events of a subscription wait after a number.
///
/// # Errors
///
/// What SQLite says.
pub(crate) fn waiting(
    storage: &Storage,
    (names, id): (&Names, i64),
    after: u64,
) -> Result<u64, Error> {
    let table = &names.event;
    let sql = format!("SELECT count(*) FROM {table} WHERE subscription = ?1 AND number > ?2");
    let counted = storage
        .connection()
        .query_row(&sql, (id, signed(after)), |row| row.get::<_, i64>(0))
        .optional();
    let explained = |error: rusqlite::Error| Error::sqlite(storage.path(), "count events", &error);
    Ok(counted.map_err(explained)?.map_or(0, number))
}

fn number(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}
