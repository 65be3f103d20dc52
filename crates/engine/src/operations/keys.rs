//! Keeping what keyed requests are answered, and looking it up. The answer itself is noted where a section commits ([`crate::journal`]).

use tupelo_shm::Section;

use crate::base::error::Error;
use crate::base::layout::{self, head};
use crate::recovery::provide;
use crate::store::Store;
use crate::store::keys::{self, Noted};

/// Gives this process a ring, with its memory.
pub(crate) fn begin(store: &mut Store) -> Result<(), Error> {
    let ring = provide::retry(store, || {
        let mut section = Section::enter(&store.memory, head::KEYS_SCOPE)?;
        let ring = keys::give_out(&mut section);
        section.finish()?;
        Ok(ring)
    })?;
    let from = layout::KEYS + ring as usize * keys::RING_BYTES;
    store.memory.mapping().commit(from..from + keys::RING_BYTES)?;
    store.keys.begin(ring);
    (store.is_plain, store.notes_puts) = (false, true);
    Ok(())
}

/// What a request came to.
pub(crate) fn noted(store: &Store, request: (u128, u64)) -> Result<Option<Noted>, Error> {
    let section = Section::enter(&store.memory, head::KEYS_SCOPE)?;
    let noted = keys::noted(section.view(), request);
    section.finish()?;
    Ok(noted)
}

/// What a put was answered.
pub(crate) fn answer_to(store: &Store, request: (u128, u64)) -> Result<Option<u64>, Error> {
    Ok(match noted(store, request)? {
        Some(Noted::Put(answer)) => Some(answer),
        _ => None,
    })
}
