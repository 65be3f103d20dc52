//! A space whose changes come to a file.
//!
//! Memory answers every call. What has changed stands in the journal of the segment, a ring of records, and comes from there to
//! the file in the order in which it happened. Whoever needs a change on disk takes the right to drain the ring, unless somebody
//! has it, writes all that stands there in one transaction, and lets all those know who wait for any of it (group commit). So
//! one process writes at a time, and the more wait, the more one sync of the disk is for. If it is killed, the next one goes
//! on behind what is in the file.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tupelo_engine::{Engine, JournalStat};

use crate::batch::Batch;
use crate::error::Error;
use crate::gate::{self, Inside};
use crate::slot::Slot;
use crate::storage::{FileNumber, ID_BYTES};

/// Longest wait for somebody else who drains, until the waiter looks whether that one was killed.
const LOOK: Duration = Duration::from_millis(20);
/// How long changes may be in memory alone if nobody waits until they are on disk.
const FLUSH_INTERVAL: Duration = Duration::from_millis(25);

/// Which memory of which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The id in the file, which a copy of it has, too.
    pub(crate) id: [u8; ID_BYTES],
    /// The number of the file, which no copy has.
    pub(crate) file: FileNumber,
    /// How often memory was filled from it.
    pub(crate) generation: u64,
}

/// The journal of a space: its memory, and the way to its file. One per process and file.
pub struct Journal {
    engine: Arc<Engine>,
    memory: Memory,
    slot: Arc<Slot>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Journal {
    pub(crate) fn new(inside: &Inside, engine: Engine, memory: Memory, slot: Slot) -> Arc<Self> {
        let slot = Arc::new(slot);
        gate::add(inside, &slot);
        Arc::new_cyclic(|journal: &Weak<Self>| {
            let journal = Weak::clone(journal);
            // Without the journal nobody is left who would use the engine.
            let drain =
                move |_bytes| journal.upgrade().map_or(Ok(()), |journal| journal.make_room());
            engine.set_drainer(drain);
            Self { engine: Arc::new(engine), memory, slot }
        })
    }

    /// The memory of the space.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.slot.path()
    }

    pub(crate) const fn memory(&self) -> Memory {
        self.memory
    }

    /// Waits until everything that this thread has changed in the space is on disk, and what stands before it.
    ///
    /// # Errors
    ///
    /// What the disk and SQLite say. The change is in effect in memory, and comes to the file if that becomes possible; another
    /// call tries again.
    pub fn settle(&self) -> Result<(), Error> {
        self.settle_up_to(self.engine.journal_position())
    }

    /// As [`Journal::settle`], for all that anybody has changed by now.
    ///
    /// # Errors
    ///
    /// As [`Journal::settle`].
    pub fn flush(&self) -> Result<(), Error> {
        self.settle_up_to(self.stat().appended)
    }

    fn settle_up_to(&self, position: u64) -> Result<(), Error> {
        while self.stat().drained < position {
            if !self.try_lead()? {
                self.engine.wait_drained(position, Instant::now() + LOOK);
            }
        }
        Ok(())
    }

    /// Whether all that this thread has changed is on disk already.
    pub fn is_settled(&self) -> bool {
        self.stat().drained >= self.engine.journal_position()
    }

    fn stat(&self) -> JournalStat {
        let nothing = JournalStat { appended: 0, drained: 0, bytes: 0 };
        self.engine.journal_stat().unwrap_or(nothing)
    }

    /// Brings what was changed to the file soon, without anybody waiting for it.
    pub fn settle_later(self: &Arc<Self>) {
        if self.is_flushed() || !self.slot.begin_flusher() {
            return;
        }
        let journal = Arc::clone(self);
        let flusher = thread::Builder::new().name("tupelo-flush".into());
        if flusher.spawn(move || journal.flush_until_done()).is_err() {
            // No thread is to be had: then somebody waits after all. What goes wrong is told to whoever needs it on disk.
            let _ = self.flush();
            self.slot.end_flusher();
        }
    }

    fn flush_until_done(&self) {
        loop {
            thread::sleep(FLUSH_INTERVAL);
            // What goes wrong is told to whoever needs it on disk; the records stay where they are, for the next turn.
            let _ = self.try_lead();
            if !self.is_flushed() {
                continue;
            }
            self.slot.end_flusher();
            // Somebody may have appended a record in between, and relied on this thread.
            if self.is_flushed() || !self.slot.begin_flusher() {
                return;
            }
        }
    }

    fn is_flushed(&self) -> bool {
        let stat = self.stat();
        stat.drained >= stat.appended
    }

    /// Frees room in the ring, or lets some time pass in which somebody else does.
    fn make_room(&self) -> Result<(), tupelo_engine::Error> {
        match self.try_lead() {
            Ok(true) => {}
            Ok(false) => {
                self.engine.wait_drained(self.stat().appended, Instant::now() + LOOK);
            }
            Err(Error::Engine(error)) => return Err(error),
            Err(error) => return Err(tupelo_engine::Error::Storage(error.to_string().into())),
        }
        Ok(())
    }

    /// Brings everything that stands in the ring to the file, unless somebody else is at it. Returns whether it did.
    fn try_lead(&self) -> Result<bool, Error> {
        let inside = gate::enter();
        let Some(drain) = self.engine.try_drain()? else { return Ok(false) };
        let drained = self.slot.with(&inside, |storage| {
            let writing = storage.write()?;
            let header = writing.header()?;
            let found = header.as_ref().map_or(0, |header| header.generation);
            let own = (self.memory.id, self.memory.generation);
            let Some(header) = header.filter(|header| own == (header.id, header.generation)) else {
                let (path, own) = (self.path().to_owned(), self.memory.generation);
                return Err(Error::TakenOver { path, own, found });
            };
            let mut batch = Batch::new(writing);
            let mut last = header.position;
            drain.each(u64::MAX, |position, change| {
                // What was committed before the one who did it was killed.
                if position <= header.position {
                    return Ok(());
                }
                last = position;
                batch.add(&change)
            })?;
            if last > header.position {
                batch.commit_up_to(last)?;
            }
            Ok(last)
        })?;
        drain.release(drained)?;
        Ok(true)
    }
}

impl Drop for Journal {
    /// What nobody waited for is on disk when the last handle of the process is gone. If it can not be, it stays in the segment, and
    /// comes to the file when somebody opens that again.
    fn drop(&mut self) {
        // Not for ever: who has the right to write to it may be stopped.
        let mut looks_left = 50;
        while looks_left > 0 && !self.is_flushed() {
            looks_left = if self.make_room().is_ok() { looks_left - 1 } else { 0 };
        }
        self.slot.close(&gate::enter());
    }
}
