//! What keyed requests were answered (rule C3), so that it outlives the memory of the space, too.
//!
//! A turn of the journal adds one row with all answers that came with it, in the same transaction as the tuples. The newest
//! [`ANSWERS_RESTORED_MAX`] are kept: so many are known in a memory that is filled again.

use rusqlite::Row as SqlRow;
use tupelo_engine::{ANSWERS_RESTORED_MAX, RequestKey};

use crate::error::Error;
use crate::storage::signed;
use crate::tables::Tables;

/// Bytes of an answer: the key, whose it is, and the answer itself, the most significant byte first.
const ENTRY_BYTES: usize = 32;

/// Adds answers, in their order, and forgets those that are too old.
///
/// # Errors
///
/// What SQLite says.
pub(crate) fn add(tables: &Tables<'_, '_>, answered: &[RequestKey]) -> Result<(), Error> {
    if answered.is_empty() {
        return Ok(());
    }
    let newest = &answered[answered.len().saturating_sub(ANSWERS_RESTORED_MAX)..];
    let (writing, table) = (tables.writing(), &tables.names().answered);
    let newest_before = format!("SELECT coalesce(max(last), 0) FROM {table}");
    let before = writing.query_one(&newest_before, (), |row| row.get::<_, i64>(0))?;
    let last = before.saturating_add(signed(newest.len() as u64));
    let bytes: Vec<u8> = newest.iter().flat_map(bytes_of).collect();
    writing.execute(&format!("INSERT INTO {table} VALUES (?1, ?2)"), (last, bytes))?;
    let oldest = last.saturating_sub(signed(ANSWERS_RESTORED_MAX as u64));
    writing.execute(&format!("DELETE FROM {table} WHERE last <= ?1"), (oldest,))
}

/// All answers of the file, in their order.
///
/// # Errors
///
/// What SQLite says; [`Error::Corrupted`] for what makes no sense.
pub(crate) fn all(tables: &Tables<'_, '_>) -> Result<Vec<RequestKey>, Error> {
    let read = |row: &SqlRow<'_>| row.get::<_, Vec<u8>>(0);
    let sql = format!("SELECT entries FROM {} ORDER BY last", tables.names().answered);
    let rows = tables.writing().query(&sql, read)?;
    let mut all = Vec::new();
    for row in rows {
        let (entries, rest) = row.as_chunks::<ENTRY_BYTES>();
        if !rest.is_empty() {
            let path = tables.path().to_owned();
            let problem = format!("the answers to requests have {} bytes too many", rest.len());
            return Err(Error::Corrupted { path, problem });
        }
        all.extend(entries.iter().map(answer_of));
    }
    Ok(all)
}

fn bytes_of(RequestKey { key, who, answer }: &RequestKey) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..16].copy_from_slice(&key.to_be_bytes());
    bytes[16..24].copy_from_slice(&who.to_be_bytes());
    bytes[24..].copy_from_slice(&answer.to_be_bytes());
    bytes
}

fn answer_of(bytes: &[u8; ENTRY_BYTES]) -> RequestKey {
    let all = |part: &[u8]| part.iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
    #[expect(clippy::cast_possible_truncation, reason = "of eight bytes")]
    let half = |part: &[u8]| all(part) as u64;
    RequestKey { key: all(&bytes[..16]), who: half(&bytes[16..24]), answer: half(&bytes[24..]) }
}
