//! Which cells are free, and the one that a process keeps at hand.

use tupelo_shm::{Section, Span, View, headroom};

use super::{
    Cell, FREE, FREE_NEXT, OWNED, OWNER, PATIENCE_MS, PICK_UP_MS, RECORD, RING, SCOPE, SIGNAL,
    STATE, WAKES, cell,
};
use crate::base::error::Error;
use crate::base::layout::{self, CELL_BYTES, PAGE, WAITERS_COUNT_MAX, WAITERS_MAX, head};
use crate::store::Store;

/// Words of the cells' line: cells ever used, first free one.
type CellsLine<'m> = Span<'m, 64>;
pub(crate) const USED: usize = 0;
pub(crate) const FIRST_FREE: usize = 4;

pub(crate) fn line<'m>(section: &Section<'m>) -> CellsLine<'m> {
    section.view().span(head::CELLS)
}

/// How many cells were ever used.
pub(crate) fn used(view: &View<'_>) -> u32 {
    let line: CellsLine<'_> = view.span(head::CELLS);
    line.load(USED).min(WAITERS_COUNT_MAX)
}

/// Whether who wants a cell needs a page more: there is none that is free, and the next is the first of its page. A hint, unless the
/// cells are locked.
fn lacks_page(view: &View<'_>) -> bool {
    let line: CellsLine<'_> = view.span(head::CELLS);
    line.load(FIRST_FREE) == 0 && layout::cell(line.load(USED)).is_multiple_of(PAGE)
}

/// The cell that is at hand, cleared for its next use.
pub(crate) fn spare_cell(store: &Store) -> Option<u32> {
    let number = store.spare_cell.take()?;
    clear(cell(&store.memory.view(), number));
    Some(number)
}

/// As [`crate::recovery::cell_memory::claim_cell`], of those that are free.
pub(crate) fn claim_free_cell(store: &Store) -> Result<u32, Error> {
    if lacks_page(&store.memory.view()) {
        // Before the lock: it reads files.
        headroom::refresh();
    }
    let mut section = Section::enter(&store.memory, head::CELLS_SCOPE)?;
    let line = line(&section);
    let free = line.load(FIRST_FREE);
    let number = if free == 0 {
        add_cell(store, &mut section)?
    } else {
        let after = cell(section.view(), free).load(FREE_NEXT);
        section.set(line, FIRST_FREE, after);
        free
    };
    let cell = cell(section.view(), number);
    // A free cell means nothing but its link: no log (R2).
    clear(cell);
    let owner = section.thread().participant() + 1;
    section.set(cell, OWNER, owner);
    section.set(cell, STATE, OWNED);
    section.commit()?;
    Ok(number)
}

fn add_cell(store: &Store, section: &mut Section<'_>) -> Result<u32, Error> {
    let line = line(section);
    let used = line.load(USED);
    if used as usize >= WAITERS_MAX {
        return Err(Error::LimitExceeded {
            what: "blocked callers in one space",
            limit: WAITERS_MAX,
        });
    }
    let offset = layout::cell(used);
    if offset.is_multiple_of(PAGE) {
        // The first cell of a page: the page may not be there yet. With the next one, for who comes when the system gives no
        // more memory.
        let mapping = store.memory.mapping();
        let with_next = mapping.commit(offset..offset + 2 * PAGE);
        with_next.or_else(|_| mapping.commit_few(offset..offset + PAGE))?;
    }
    section.set(line, USED, used + 1);
    Ok(used + 1)
}

/// Gives a cell of this process back, or keeps it for its next wait. It is linked nowhere and holds no record.
pub(crate) fn release_cell(store: &Store, number: u32) -> Result<(), Error> {
    if store.spare_cell.keep(number) { Ok(()) } else { free_cell(store, number) }
}

/// Gives a cell back that is linked nowhere and holds no record.
pub(crate) fn free_cell(store: &Store, number: u32) -> Result<(), Error> {
    let mut section = Section::enter(&store.memory, head::CELLS_SCOPE)?;
    let line = line(&section);
    let cell = cell(section.view(), number);
    cell.init(FREE_NEXT, line.load(FIRST_FREE));
    section.set(cell, OWNER, 0);
    section.set(cell, STATE, FREE);
    section.set(line, FIRST_FREE, number);
    section.commit()?;
    Ok(())
}

/// Forgets what a cell was last used for.
fn clear(cell: Cell<'_>) {
    cell.init(RECORD, 0);
    cell.init(SIGNAL, crate::base::signal::AWAKE);
    cell.init(WAKES, 0);
    cell.init(SCOPE, 0);
    cell.init(RING, 0);
    cell.init64(PATIENCE_MS, 0);
    cell.init64(PICK_UP_MS, 0);
}

/// Gives back the cell that the process keeps at hand.
pub(crate) fn free_spare(store: &Store) {
    if let Some(number) = store.spare_cell.take() {
        // A failure means that the space is damaged or stalled. The cell is free when this process ends.
        let _ = free_cell(store, number);
    }
}

const _: () = assert!(PAGE.is_multiple_of(CELL_BYTES));
