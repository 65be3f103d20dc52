//! Which cells are free.

use tupelo_shm::{Section, Span, View};

use super::{FREE, FREE_NEXT, OWNED, OWNER, RECORD, SCOPE, SIGNAL, STATE, WAKES, cell};
use crate::Engine;
use crate::error::Error;
use crate::layout::{self, CELL_BYTES, PAGE, WAITERS_COUNT_MAX, WAITERS_MAX, head};

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

impl Engine {
    /// Gets a cell for this process.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] if the space has its maximum of waiters.
    pub(crate) fn claim_cell(&self) -> Result<u32, Error> {
        let mut section = Section::enter(&self.memory, head::CELLS_SCOPE)?;
        let line = line(&section);
        let free = line.load(FIRST_FREE);
        let number = if free == 0 {
            self.add_cell(&mut section)?
        } else {
            let after = cell(section.view(), free).load(FREE_NEXT);
            section.set(line, FIRST_FREE, after);
            free
        };
        let cell = cell(section.view(), number);
        // A free cell means nothing but its link: no log (R2).
        cell.init(RECORD, 0);
        cell.init(SIGNAL, super::signal::AWAKE);
        cell.init(WAKES, 0);
        cell.init(SCOPE, 0);
        let owner = section.thread().participant() + 1;
        section.set(cell, OWNER, owner);
        section.set(cell, STATE, OWNED);
        section.commit()?;
        Ok(number)
    }

    fn add_cell(&self, section: &mut Section<'_>) -> Result<u32, Error> {
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
            // The first cell of a page: the page may not be there yet.
            self.memory.mapping().commit(offset..offset + PAGE)?;
        }
        section.set(line, USED, used + 1);
        Ok(used + 1)
    }

    /// Gives a cell back that is linked nowhere and holds no record.
    pub(crate) fn free_cell(&self, number: u32) -> Result<(), Error> {
        let mut section = Section::enter(&self.memory, head::CELLS_SCOPE)?;
        let line = line(&section);
        let cell = cell(section.view(), number);
        cell.init(FREE_NEXT, line.load(FIRST_FREE));
        section.set(cell, OWNER, 0);
        section.set(cell, STATE, FREE);
        section.set(line, FIRST_FREE, number);
        section.commit()?;
        Ok(())
    }
}

const _: () = assert!(PAGE.is_multiple_of(CELL_BYTES));
