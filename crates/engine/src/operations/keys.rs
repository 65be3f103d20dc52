//! Keeping what keyed requests are answered, and looking it up. The answer itself is noted where a section commits ([`crate::journal`]).

use tupelo_shm::Section;

use crate::base::error::Error;
use crate::base::layout::{self, head};
use crate::recovery::provide;
use crate::store::Store;
use crate::store::keys::{self, Noted, RequestKey};

/// Gives this process a ring, with its memory.
pub(crate) fn begin(store: &Store) -> Result<(), Error> {
    let ring = provide::retry(store, || {
        let mut section = Section::enter(&store.memory, head::KEYS_SCOPE)?;
        let ring = keys::give_out(&mut section);
        section.finish()?;
        Ok(ring)
    })?;
    provide_ring(store, ring)?;
    store.keys.begin(ring);
    Ok(())
}

fn provide_ring(store: &Store, ring: u32) -> Result<(), Error> {
    let from = layout::KEYS + ring as usize * keys::RING_BYTES;
    Ok(store.memory.mapping().commit(from..from + keys::RING_BYTES)?)
}

/// As [`crate::Engine::restore_keys`] says.
pub(crate) fn restore(store: &Store, answered: &[RequestKey]) -> Result<(), Error> {
    // The first ring is the next that is given out: the oldest answers are the next to go.
    for (ring, answered) in (1..keys::RINGS).rev().zip(answered.rchunks(keys::KEPT_OF_RING)) {
        provide_ring(store, ring)?;
        keys::restore(&store.memory.view(), ring, answered);
    }
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
