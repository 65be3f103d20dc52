//! Taking a waiter out of the wait queue, with what it was handed before.

use tupelo_shm::Section;

use crate::base::error::Error;
use crate::base::want::Want;
use crate::journal;
use crate::recovery::held::{self, Held};
use crate::recovery::{handed, provide};
use crate::store::Store;
use crate::waiters::deliver::Delivery;
use crate::waiters::events::Happening;
use crate::waiters::{LINKED, RECORD, SCOPE, STATE, WANT, chain, grants, node, wake};

/// What became of a wait node that has left its chain.
pub(crate) struct Left {
    /// The lock of what it waited for; 0 if there was none.
    pub(crate) scope: u32,
    /// Whether it was handed something before.
    pub(crate) has_record: bool,
    /// Whose turn it is to put now, if it waited for room.
    pub(crate) next: Option<u32>,
}

/// Takes a wait node out of the wait queue, with what it was handed before.
pub(crate) fn leave_chain(store: &Store, number: u32) -> Result<Left, Error> {
    let scope = node(&store.memory.view(), number).load(SCOPE);
    if scope == 0 {
        return Ok(Left { scope, has_record: false, next: None });
    }
    // Locked whatever the state says: a put may be handing over at this very moment, or may have
    // died over it.
    let mut section = Section::enter(&store.memory, scope)?;
    let own = node(section.view(), number);
    let is_for_room = own.load(WANT) == Want::Room.number();
    if own.load(STATE) == LINKED {
        chain::unfile(&mut section, number);
    }
    section.commit()?;
    let has_record = own.load(RECORD) != 0;
    let next = if is_for_room { grants::grant(section.view()) } else { None };
    Ok(Left { scope, has_record, next })
}

/// Takes a wait node out of the wait queue, and puts back what it was handed.
pub(crate) fn withdraw(store: &Store, number: u32, want: Want) -> Result<(), Error> {
    let Left { scope, mut has_record, next } = leave_chain(store, number)?;
    if let Some(next) = next {
        wake::notify(store, next);
    }
    while has_record {
        provide::retry(store, || give_up_handed(store, number, want))?.wake(store);
        // Somebody may have been taking it back at the same time, and die over it.
        let section = Section::enter(&store.memory, scope)?;
        has_record = node(section.view(), number).load(RECORD) != 0;
    }
    Ok(())
}

/// Puts back, or frees, what a wait node was handed.
pub(crate) fn give_up_handed(store: &Store, number: u32, want: Want) -> Result<Delivery, Error> {
    let Some(held) = handed::lock_handed(store, number, false)? else {
        return Ok(Delivery::default());
    };
    let Held { mut section, partition, reference, kinds } = held;
    let node = node(section.view(), number);
    section.set(node, RECORD, 0);
    let delivery = if want == Want::Read {
        held::free_held(store, &mut section, partition, reference, kinds.as_slice(), false)?
    } else {
        let back = (reference, Happening::Unpublished);
        held::give_back(store, &mut section, partition, back, kinds.as_slice())?
    };
    journal::commit(store, &mut section)?;
    Ok(delivery)
}
