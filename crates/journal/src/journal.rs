//! A space whose changes are written to a file.
//!
//! Memory answers every call. Changes stand in the journal of the segment, a ring of records. From there they are
//! written to the file in the order in which they happened. A call that needs its change on disk takes the right to
//! drain the ring, unless another call has it. It writes all records of the ring in one transaction, and wakes all
//! calls that wait for any of them (group commit). So one process writes at a time, and one sync of the disk serves all
//! waiting calls. If the process is killed, the next one goes on after the last record in the file.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tupelo_engine::{Drain, Engine, JournalStat};

use crate::error::Error;
use crate::gate::{self, Inside};
use crate::memory::Memory;
use crate::names::Names;
use crate::slot::Slot;
use crate::storage::Storage;
use crate::subscriptions::{self, KeptEvent, Subscribed};
use crate::tables::Tables;
use crate::together::{Others, Own, Together, bring_all};
use crate::turn::Also;
use crate::whole;

/// Longest wait for somebody else who drains, until the waiter looks whether that one was killed.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// So long somebody else may write without getting on, until that is explained.
pub(crate) const STANDSTILL: Duration = Duration::from_secs(30);
/// How long changes may be in memory alone if nobody waits until they are on disk.
const FLUSH_INTERVAL: Duration = Duration::from_millis(25);
/// As that, after the disk has refused.
const FLUSH_INTERVAL_AFTER_ERROR: Duration = Duration::from_secs(1);

/// How the right to drain is asked for.
type Right = for<'e> fn(&'e Engine) -> Result<Option<Drain<'e>>, tupelo_engine::Error>;

/// The journal of a space: its memory, and the way to its file. One per process and space.
pub struct Journal {
    engine: Arc<Engine>,
    /// The name of the space in its file; empty for the one that needs none.
    name: String,
    memory: Memory,
    slot: Arc<Slot>,
    /// The other spaces of the file, for steps that are shared with them.
    others: Others,
    /// Handles of the process that are open.
    uses: AtomicUsize,
}

/// The use of a journal by a handle, until that is closed or dropped. When the last use ends, the process closes its
/// descriptors of the file, though the handle may be referred to for long.
#[derive(Debug)]
pub struct JournalUse {
    journal: Arc<Journal>,
    is_over: AtomicBool,
}

impl JournalUse {
    /// Ends it. What nobody has waited for comes to the file first, as far as that is possible.
    pub fn end(&self) {
        if self.end_once() && self.journal.is_unused() {
            self.journal.bring_rest();
            self.journal.close_if_unused();
        }
    }

    /// Whether it was not over yet.
    fn end_once(&self) -> bool {
        let ends = !self.is_over.swap(true, Ordering::Relaxed);
        if ends {
            self.journal.uses.fetch_sub(1, Ordering::AcqRel);
        }
        ends
    }
}

impl Drop for JournalUse {
    fn drop(&mut self) {
        if self.end_once() {
            self.journal.close_if_unused();
        }
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Journal {
    pub(crate) fn new(
        inside: &Inside,
        engine: Engine,
        (name, memory): (&str, Memory),
        (slot, others): (Slot, Others),
    ) -> Arc<Self> {
        let slot = Arc::new(slot);
        gate::add(inside, &slot);
        Arc::new_cyclic(|journal: &Weak<Self>| {
            let journal = Weak::clone(journal);
            // Without the journal nobody is left who would use the engine.
            let drain =
                move |_bytes| journal.upgrade().map_or(Ok(()), |journal| journal.make_room());
            engine.set_drainer(drain);
            let (engine, uses) = (Arc::new(engine), AtomicUsize::new(0));
            Self { engine, name: name.to_owned(), memory, slot, others, uses }
        })
    }

    /// The memory of the space.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Notes that a handle uses it.
    pub fn begin_use(self: &Arc<Self>) -> JournalUse {
        self.uses.fetch_add(1, Ordering::AcqRel);
        JournalUse { journal: Arc::clone(self), is_over: AtomicBool::new(false) }
    }

    fn is_unused(&self) -> bool {
        self.uses.load(Ordering::Acquire) == 0
    }

    /// Brings to the file what nobody has waited for.
    fn bring_rest(&self) {
        // Not for ever: who has the right to write to it may be stopped.
        let mut looks_left = 50;
        while looks_left > 0 && !self.is_flushed() {
            looks_left = if self.make_room().is_ok() { looks_left - 1 } else { 0 };
        }
    }

    /// Closes the connection to the file, if no handle is open. A call that runs still in another thread opens it anew.
    fn close_if_unused(&self) {
        if self.is_unused() {
            self.slot.close(&gate::enter());
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.slot.path()
    }

    /// The id of the space, which stays the same whatever memory was filled from the file; a copy has it, too.
    pub const fn id(&self) -> [u8; 16] {
        self.memory.id
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
        self.settle_up_to(self.position())
    }

    /// Where the last change of this thread in the space stands.
    pub fn position(&self) -> u64 {
        self.engine.journal_position()
    }

    /// As [`Journal::settle`], for all that anybody has changed by now.
    ///
    /// # Errors
    ///
    /// As [`Journal::settle`]; what the memory says if it was removed: what had not come to the file is gone.
    pub fn flush(&self) -> Result<(), Error> {
        if self.engine.is_over() {
            // It says why.
            self.engine.try_drain()?;
        }
        self.settle_up_to(self.stat().appended)
    }

    /// Writes what is in the space at a moment of this call into another file, which must not exist. Others go on meanwhile. Of the space
    /// that needs no name, also all others of the file.
    ///
    /// # Errors
    ///
    /// As [`Journal::settle`] and [`crate::copy`].
    pub fn copy_to(&self, path: &Path) -> Result<(), Error> {
        self.flush()?;
        let only = (!self.name.is_empty()).then_some(&*self.name);
        whole::copy(self.path(), only, path, self.others.directory())
    }

    /// Makes the file as small as what is in it.
    ///
    /// # Errors
    ///
    /// As [`Journal::settle`] and [`crate::compact`].
    pub fn compact(&self) -> Result<(u64, u64), Error> {
        self.flush()?;
        whole::compact(self.path(), self.others.directory())
    }

    /// Waits until everything up to this position of the journal is on disk.
    ///
    /// # Errors
    ///
    /// As [`Journal::settle`].
    pub fn settle_up_to(&self, position: u64) -> Result<(), Error> {
        let mut seen = (self.stat().drained, Instant::now());
        // Whether whoever leads was killed is looked for now and then: that takes longer than the rest of the call.
        let mut looked = Instant::now();
        while self.stat().drained < position {
            // First, so that this does not sleep while the right to write is free.
            let releases = self.engine.releases();
            let looks = looked.elapsed() >= LOOK;
            if looks {
                looked = Instant::now();
            }
            let right = if looks { Engine::try_drain } else { Engine::try_drain_if_free };
            if self.lead(right, &mut |_| Ok(false))?
                || self.engine.wait_drained(position, releases, Instant::now() + LOOK)
            {
                continue;
            }
            let drained = self.stat().drained;
            if drained != seen.0 {
                seen = (drained, Instant::now());
            } else if seen.1.elapsed() > STANDSTILL {
                let standstill_s = STANDSTILL.as_secs();
                let problem = format!(
                    "whoever writes to the file has not got on for {standstill_s} s: is a process stopped?"
                );
                return Err(Error::Storage { path: self.path().to_owned(), problem });
            }
        }
        Ok(())
    }

    /// Whether all that this thread has changed is on disk already.
    pub fn is_settled(&self) -> bool {
        self.stat().drained >= self.position()
    }

    /// How far the journal is.
    pub fn stat(&self) -> JournalStat {
        let nothing = JournalStat { appended: 0, drained: 0, bytes: 0, batches: 0 };
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
            // No thread is to be had: then somebody waits after all. What goes wrong is explained to whoever needs it on disk.
            let _ = self.flush();
            self.slot.end_flusher();
        }
    }

    fn flush_until_done(&self) {
        let mut interval = FLUSH_INTERVAL;
        loop {
            thread::sleep(interval);
            // What goes wrong is explained to whoever needs it on disk; the records stay where they are, for the next turn.
            let is_refused = self.try_lead().is_err();
            interval = if is_refused { FLUSH_INTERVAL_AFTER_ERROR } else { FLUSH_INTERVAL };
            if !self.is_flushed() {
                continue;
            }
            self.slot.end_flusher();
            // Somebody may have appended a record in between, and relied on this thread.
            if self.is_flushed() || !self.slot.begin_flusher() {
                self.close_if_unused();
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
        let releases = self.engine.releases();
        match self.try_lead() {
            Ok(true) => {}
            Ok(false) => {
                let (appended, until) = (self.stat().appended, Instant::now() + LOOK);
                self.engine.wait_drained(appended, releases, until);
            }
            Err(Error::Engine(error)) => return Err(error),
            Err(error) => return Err(tupelo_engine::Error::Storage(error.to_string().into())),
        }
        Ok(())
    }

    /// Brings everything that stands in the ring to the file, unless somebody else is at it. Returns whether it did.
    fn try_lead(&self) -> Result<bool, Error> {
        self.try_lead_and(&mut |_| Ok(false))
    }

    /// As [`Journal::try_lead`], and writes something else with that.
    fn try_lead_and(&self, also: Also<'_>) -> Result<bool, Error> {
        self.lead(Engine::try_drain, also)
    }

    /// As [`Journal::try_lead_and`], by this way to the right.
    fn lead(&self, right: Right, also: Also<'_>) -> Result<bool, Error> {
        let (engine, releases) = {
            let inside = gate::enter();
            let Some(drain) = right(&self.engine)? else { return Ok(false) };
            match self.write(&inside, &drain, also)? {
                Together::Brought(drained) => {
                    drain.release(drained)?;
                    return Ok(true);
                }
                Together::Again => return Ok(false),
                Together::Busy(engine, releases) => (engine, releases),
            }
        };
        // Without the own right, which is perhaps what the other one waits for.
        engine.wait_drained(u64::MAX, releases, Instant::now() + LOOK);
        Ok(false)
    }

    /// Writes everything that stands in the ring to the file, and that of the other spaces of the file if they share steps. The own ring
    /// has it still.
    fn write(&self, inside: &Inside, drain: &Drain<'_>, also: Also<'_>) -> Result<Together, Error> {
        let own = Own { name: &self.name, memory: self.memory, engine: &self.engine, drain };
        self.slot.with(inside, |storage| bring_all(storage, &self.others, own, also))
    }

    /// Whether another space is kept in the same file: a step over both is on disk as a whole, or not at all.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.memory.file == other.memory.file
    }

    /// Begins a subscription that outlives its subscriber, or finds the one with this name: of all that comes to the ring from now
    /// on. `None` if it asks for something else.
    ///
    /// # Errors
    ///
    /// As [`Journal::settle`].
    pub fn subscribe(
        &self,
        name: &str,
        template: &[u8],
        keep: u64,
    ) -> Result<Option<Subscribed>, Error> {
        let mut found = None;
        loop {
            let (releases, appended) = (self.engine.releases(), self.stat().appended);
            let led = self.try_lead_and(&mut |tables| {
                found = subscriptions::subscribe(tables, name, template, keep)?;
                Ok(found.is_some())
            })?;
            if led {
                return Ok(found);
            }
            self.engine.wait_drained(appended, releases, Instant::now() + LOOK);
        }
    }

    /// Ends a subscription for good. Returns whether there was one of this name.
    ///
    /// # Errors
    ///
    /// As [`Journal::settle`].
    pub fn unsubscribe(&self, name: &str) -> Result<bool, Error> {
        self.writing(|tables| subscriptions::unsubscribe(tables, name))
    }

    /// Notes that a subscriber is done with all events up to this number.
    ///
    /// # Errors
    ///
    /// [`Error::SubscriptionOver`], and as [`Journal::settle`].
    pub fn acknowledge(&self, subscribed: Subscribed, up_to: u64) -> Result<(), Error> {
        self.writing(|tables| subscriptions::acknowledge(tables, subscribed, up_to))
    }

    /// The oldest events in the file after a number, `at_most` so many. Those of changes that are in memory alone are not there yet.
    ///
    /// # Errors
    ///
    /// [`Error::SubscriptionOver`]; what SQLite says.
    pub fn events(
        &self,
        subscribed: Subscribed,
        after: u64,
        at_most: usize,
    ) -> Result<Vec<KeptEvent>, Error> {
        let inside = gate::enter();
        self.slot.with(&inside, |storage| {
            storage.reading(|| {
                let names = self.names(storage)?;
                subscriptions::events(storage, (&names, subscribed), after, at_most)
            })
        })
    }

    /// How many events of a subscription are in the file after a number.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub fn events_waiting(&self, id: i64, after: u64) -> Result<u64, Error> {
        let inside = gate::enter();
        self.slot.with(&inside, |storage| {
            storage.reading(|| subscriptions::waiting(storage, (&self.names(storage)?, id), after))
        })
    }

    /// Writes something that is no change of the space.
    fn writing<R>(
        &self,
        write: impl FnOnce(&Tables<'_, '_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let inside = gate::enter();
        self.slot.with(&inside, |storage| {
            let writing = storage.write()?;
            let header = self.memory.require(writing.header(&self.name)?, writing.path())?;
            let written = write(&writing.tables(&header))?;
            writing.commit()?;
            Ok(written)
        })
    }

    /// What the tables of the space are called.
    fn names(&self, storage: &Storage) -> Result<Names, Error> {
        Ok(self.memory.require(storage.header(&self.name)?, storage.path())?.names())
    }
}

impl Drop for Journal {
    /// What nobody waited for is on disk when the last handle of the process is gone. If it can not be, it stays in the segment, and
    /// comes to the file when somebody opens that again.
    fn drop(&mut self) {
        self.bring_rest();
        self.slot.close(&gate::enter());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use tupelo_crashtest::{Exit, fork, kill_this_process};
    use tupelo_engine::Limits;
    use tupelo_shm::Directory;
    use tupelo_tuple::{fields, template};

    use super::Journal;
    use crate::batch::Batch;
    use crate::{OpenOptions, gate};

    /// Has a process killed at some point of its turn as the one that writes, and looks what the next one does.
    fn killed_in(name: &str, turn: impl FnOnce(&Journal)) {
        let directory = format!("/dev/shm/tupelo-journal-{name}-{}", std::process::id());
        fs::create_dir_all(&directory).unwrap();
        let path = std::path::Path::new(&directory).join("jobs.tupelo");
        let limits = Limits { size_bytes: 16 << 20, ..Limits::default() };
        let directory_of_memory = Directory::new(&directory);
        let options =
            OpenOptions { create: true, fresh: false, limits, directory: directory_of_memory };
        let journal = Journal::open(&path, "", &options).unwrap();
        journal.engine().put(&fields!["job", 1]).unwrap();
        journal.settle().unwrap();
        for number in 2..=4 {
            journal.engine().put(&fields!["job", number]).unwrap();
        }
        let taken =
            journal.engine().try_take(&[template!["job", 1]], tupelo_engine::Order::Fifo, |_| {
                Ok::<_, tupelo_engine::Error>(())
            });
        assert_eq!(taken, Ok(Some(())));
        let child = fork(|| {
            turn(&journal);
            kill_this_process()
        });
        assert!(matches!(child.wait(), Exit::Killed(_)));
        assert!(!journal.is_flushed(), "the ring is as it was");
        journal.engine().put(&fields!["job", 5]).unwrap();
        journal.settle().unwrap();
        assert!(journal.is_flushed());
        drop(journal);
        for entry in options.directory.list().unwrap() {
            options.directory.remove(&entry.name).unwrap();
        }
        let journal: Arc<Journal> = Journal::open(&path, "", &options).unwrap();
        assert_eq!(journal.engine().count(&[template![..]]), Ok(4));
        assert_eq!(journal.engine().count(&[template!["job", 1]]), Ok(0));
        drop(journal);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn the_next_one_goes_on_if_the_one_who_writes_is_killed_before_its_commit_c1_c4() {
        killed_in("before", |journal| {
            let inside = gate::enter();
            let drain = journal.engine.try_drain().unwrap().unwrap();
            let written = journal.slot.with(&inside, |storage| -> Result<(), _> {
                let writing = storage.write()?;
                let header = writing.header("")?.unwrap();
                let mut batch = Batch::new(writing.tables(&header))?;
                drain.each(u64::MAX, |_, change| batch.add(&change))?;
                kill_this_process()
            });
            written.unwrap();
        });
    }

    #[test]
    fn the_next_one_repeats_nothing_if_the_one_who_writes_is_killed_behind_its_commit_c1_c4() {
        killed_in("behind", |journal| {
            let inside = gate::enter();
            let drain = journal.engine.try_drain().unwrap().unwrap();
            journal.write(&inside, &drain, &mut |_| Ok(false)).unwrap();
        });
    }
}
