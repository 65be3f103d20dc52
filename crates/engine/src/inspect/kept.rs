//! Every tuple that is in a space, wherever it is, with what a durable space keeps of it: what the journal has told adds up to
//! this.

use tupelo_shm::View;
use tupelo_tuple::TupleView;

use crate::base::error::Error;
use crate::inspect::lock_everything;
use crate::journal::record::kept;
use crate::store::change::Kept;
use crate::store::partition::{FIRST, Partition};
use crate::store::record::{self, ImageBuffer, NEXT, STATE};
use crate::store::registry;
use crate::store::{self, Store, in_flight};
use crate::time::list::{self, List};
use crate::time::wheel;
use crate::waiters::hand_off;

/// As [`crate::Engine::each_kept`] says.
pub(crate) fn each_kept<E: From<Error>>(
    store: &Store,
    mut visit: impl FnMut(Kept, TupleView<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let section = lock_everything(store)?;
    let view = section.view();
    for shape in 0..registry::count(view) {
        let kinds = registry::kinds_of(store, view, shape)
            .ok_or_else(|| store::damaged(store, "a partition of a shape that does not exist"))?;
        let mut all = tuples_of(store, view, shape)?;
        all.sort_unstable_by_key(|reference| {
            record::header(view, *reference).load64(record::SEQUENCE)
        });
        for reference in all {
            let mut buffer = ImageBuffer::new();
            let tuple = buffer.copy(view, reference, kinds.as_slice()).of_class(kinds.class());
            visit(kept(view, record::at(view, reference)), tuple)?;
        }
    }
    Ok(())
}

/// The records of all tuples of a shape.
fn tuples_of(store: &Store, view: &View<'_>, shape: u32) -> Result<Vec<u32>, Error> {
    let partition = Partition::of_shape(view, shape);
    let mut all = Vec::new();
    let mut next = partition.page().load(FIRST);
    for _ in 0..partition.steps_max(view) {
        if next == 0 {
            break;
        }
        all.push(next);
        next = record::header(view, next).load(NEXT);
    }
    let lists = [List::Claimed, List::Enlisted, List::Dead];
    let listed = lists.into_iter().flat_map(|list| list::records(view, partition, list));
    all.extend(listed.map(|(reference, _)| reference));
    all.extend(hand_off::handed(view, shape).map(|(_, reference)| reference));
    let armed = wheel::armed(view, partition);
    let armed =
        armed.map_err(|_| store::damaged(store, "a timer does not stand where it belongs"))?;
    let is_in = |reference: &u32, state: u32| {
        let header = record::header_of_shape(view, *reference, shape);
        header.is_some_and(|header| header.load(STATE) == state)
    };
    all.extend(armed.into_keys().filter(|reference| is_in(reference, record::DELAYED)));
    let slots = store.memory.slots();
    let in_hand = slots
        .into_iter()
        .flat_map(|slot| in_flight::words().map(move |word| in_flight::named(slot, word)));
    all.extend(in_hand.filter(|reference| *reference != 0 && is_in(reference, record::TAKEN)));
    Ok(all)
}
