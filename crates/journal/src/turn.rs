//! One turn of the journal of a space: what stands in the ring of its memory comes to the file.

use tupelo_engine::{Change, Drain};

use crate::batch::Batch;
use crate::error::Error;
use crate::memory::Memory;
use crate::storage::Storage;
use crate::tables::Tables;

/// Writes something else in the transaction of a turn; returns whether it has.
pub(crate) type Also<'a> = &'a mut dyn FnMut(&Tables<'_, '_>) -> Result<bool, Error>;

/// What a turn has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Everything up to this position is in the file; the ring has it still.
    Brought(u64),
    /// Nothing is in the file: some of the ring is one step with what the spaces with these segments have ([`crate::together`]).
    Shared(Vec<u128>),
}

/// Writes everything that stands in the ring of a space to the file, and what `also` writes.
///
/// # Errors
///
/// [`Error::TakenOver`] if the space has another memory by now; what SQLite says.
pub(crate) fn bring(
    storage: &mut Storage,
    (name, memory): (&str, Memory),
    drain: &Drain<'_>,
    also: Also<'_>,
) -> Result<Turn, Error> {
    let writing = storage.write()?;
    let header = memory.require(writing.header(name)?, writing.path())?;
    let mut batch = Batch::new(writing.tables(&header))?;
    let (mut last, mut shared) = (header.position, Vec::new());
    drain.each(u64::MAX, |position, change| {
        // What was committed before the one who did it was killed.
        if position <= header.position {
            return Ok(());
        }
        last = position;
        if let Change::Shared { with } = change {
            shared.push(with);
        }
        if shared.is_empty() { batch.add(&change) } else { Ok(()) }
    })?;
    if !shared.is_empty() {
        return Ok(Turn::Shared(shared));
    }
    let has_more = also(batch.tables())?;
    if has_more || last > header.position {
        batch.finish(last)?;
        writing.commit_and_shrink()?;
    }
    Ok(Turn::Brought(last))
}
