//! The users of a segment: a participant per process, a slot per thread.
//!
//! A thread slot is a page: the identity of the thread, what it has in flight, and its undo log. The log
//! is per thread, not per scope, so that it stays in the thread's own cache. Slots of the dead are
//! recycled by the engine's sweeper, after every scope that their log mentions was inherited.
//!
//! | word | participant | | word | thread slot |
//! |---:|---|---|---:|---|
//! | 0 | pid, 0 if free | | 0 | number of log entries |
//! | 8 | start time (two words) | | 4 | thread id, 0 if free |
//! | 16 | which of its programs (two words) | | 8 | participant number |
//! | | | | 12 | start of the log's run: granule, 0 if none |
//! | | | | 16 | start time (two words); the highest bit: the thread was at its end when it came |
//! | | | | 24 | entries that the run holds |
//! | | | | 28 | whether the log is one of a commit over several segments ([`crate::link`]) |
//! | | | | 32..64 | the engine's: what this thread has in flight |
//! | | | | 64.. | log entries of 16 bytes |

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, Weak};

use crate::access::{Span, View};
use crate::context;
use crate::error::Error;
use crate::futex::{self, RobustListHead};
use crate::headroom;
use crate::lock;
use crate::log;
use crate::mapping::Mapping;
use crate::memory::Memory;
use crate::process::{self, ProcessId};
use crate::table::{self, PARTICIPANT_BYTES, PARTICIPANTS_MAX, SLOT_BYTES, THREADS_MAX};

/// How many entries the log has.
pub(crate) const COUNT: usize = 0;
pub(crate) const TID: usize = 4;
const PARTICIPANT: usize = 8;
/// Where the log's run begins: a granule, 0 if there is none.
pub(crate) const RUN: usize = 12;
pub(crate) const START_TIME: usize = 16;
/// Entries that the run holds.
pub(crate) const RUN_ENTRIES: usize = 24;
/// Where the log's note on a commit over several segments begins: entry + 1, 0 if there is none.
pub(crate) const LINK: usize = 28;
/// Where the engine's eight words in a slot begin.
pub const ENGINE_WORDS: usize = 32;
/// How many of them there are.
pub const ENGINE_WORDS_COUNT: usize = 8;
/// Where the log's first entries begin.
pub(crate) const ENTRIES: usize = ENGINE_WORDS + 4 * ENGINE_WORDS_COUNT;

/// The slot of one thread, as a window.
pub type Slot<'m> = Span<'m, SLOT_BYTES>;

/// The calling thread in one segment.
#[derive(Clone, Copy)]
pub struct Thread<'m> {
    pub(crate) tid: u32,
    number: u32,
    slot: Slot<'m>,
    robust: *mut RobustListHead,
}

impl<'m> Thread<'m> {
    /// No thread.
    pub(crate) const fn nobody() -> Self {
        Self { tid: 0, number: 0, slot: Slot::of_nothing(), robust: std::ptr::null_mut() }
    }

    /// The same, to be kept.
    ///
    /// # Safety
    ///
    /// It is used only while the slot's page is mapped.
    pub(crate) const unsafe fn kept(self) -> Thread<'static> {
        let Self { tid, number, robust, .. } = self;
        // SAFETY: the caller's promise.
        let slot = unsafe { self.slot.kept() };
        Thread { tid, number, slot, robust }
    }

    /// Whether a section of this thread has changed something and is still open.
    pub(crate) fn has_logged(&self) -> bool {
        self.slot.load(COUNT) != 0
    }

    /// The number of the slot, from 1: how locks and records name a thread.
    #[inline(always)]
    pub fn slot_number(&self) -> u32 {
        self.number
    }

    /// The slot itself.
    #[inline(always)]
    pub fn slot(&self) -> Slot<'m> {
        self.slot
    }

    /// The number of the participant (process) that the thread belongs to.
    #[inline]
    pub fn participant(&self) -> u32 {
        self.slot.load(PARTICIPANT)
    }

    /// Tells the kernel which lock this thread is about to take or release.
    #[inline(always)]
    pub(crate) fn set_pending(&self, word: &AtomicU32) {
        // SAFETY: the head is this thread's own, valid until it ends; only the kernel reads it, after.
        unsafe { futex::set_pending(self.robust, word) };
    }

    /// Tells the kernel that no lock is in transition.
    #[inline(always)]
    pub(crate) fn clear_pending(&self) {
        // SAFETY: as in `set_pending`.
        unsafe { futex::clear_pending(self.robust) };
    }
}

/// The slot with this number, or `None` for 0 and numbers that cannot be.
pub(crate) fn slot_of<'m>(view: &View<'m>, number: u32) -> Option<Slot<'m>> {
    let index = (number as usize).checked_sub(1)?;
    (index < THREADS_MAX).then(|| view.span(table::slot(index)))
}

/// The process behind slot `number`; 0 if unknown.
pub(crate) fn pid_of(view: &View<'_>, number: u32) -> u32 {
    slot_of(view, number).map_or(0, |slot| participant_pid(view, slot.load(PARTICIPANT)))
}

/// The start time of the thread with slot `number`, if the slot is thread `tid`'s; else 0: unknown.
pub(crate) fn start_time_of(view: &View<'_>, number: u32, tid: u32) -> u64 {
    slot_of(view, number)
        .filter(|slot| slot.load(TID) == tid)
        .map(|slot| started(slot.load64(START_TIME)))
        // The slot of a thread that has left tells nothing of another that has its number.
        .filter(|start_time| *start_time != LEFT)
        .unwrap_or(0)
}

// --- finding this thread's slot ---------------------------------------------------------------------

/// Makes a slot free. Its identity goes first: the next thread must not be taken for this one, which is dead.
fn vacate(slot: Slot<'_>) {
    slot.init64(START_TIME, 0);
    slot.word(TID).store(0, Ordering::Release);
}

/// Start time of a thread that has ended and left its slot to the sweeper.
pub(crate) const LEFT: u64 = u64::MAX;
/// In the start time of a thread that is at its end, and will not give this slot back: sweepers ask whether it lives.
const ENDING: u64 = 1 << 63;

/// When a thread started, by its slot: for [`LEFT`], a time of no living thread.
fn started(start_time: u64) -> u64 {
    if start_time == LEFT { LEFT } else { start_time & !ENDING }
}

fn nothing_in_flight(slot: Slot<'_>) -> bool {
    (0..ENGINE_WORDS_COUNT).all(|word| slot.load(ENGINE_WORDS + 4 * word) == 0)
}

#[derive(Clone, Copy)]
struct Registered {
    /// The number of the mapping.
    mapping: u64,
    slot: *const u8,
    robust: *mut RobustListHead,
    tid: u32,
    number: u32,
    fork_generation: u32,
}

/// The slots that this thread holds, given back when it ends.
struct Registrations(RefCell<Vec<(Registered, Weak<Mapping>)>>);

impl Drop for Registrations {
    fn drop(&mut self) {
        context::forget();
        for (held, mapping) in self.0.borrow_mut().drain(..) {
            let is_own = held.fork_generation == process::fork_generation();
            // Of a mapping that is gone there is nothing to give back to.
            if let Some(mapping) = mapping.upgrade().filter(|_| is_own) {
                // SAFETY: the mapping stays as long as `mapping` does; the slot's page is committed.
                let view = unsafe { View::new(mapping.base(), table::slot(held.number as usize)) };
                if let Some(slot) = slot_of(&view, held.number) {
                    // Keeps the slot if something is in flight: the sweeper then sees a dead thread, and
                    // needs not ask the system.
                    if slot.load(COUNT) == 0 && slot.load(RUN) == 0 && nothing_in_flight(slot) {
                        vacate(slot);
                    } else {
                        slot.init64(START_TIME, LEFT);
                    }
                }
            }
        }
    }
}

/// Most slots that a thread at its end keeps: in so many spaces its last destructors may work in turns.
const LATE_MAX: usize = 4;

thread_local! {
    static ALL: Registrations = const { Registrations(RefCell::new(Vec::new())) };
    /// The slots that the thread has got since, newest first. Without a destructor: it would come too early again for
    /// another slot.
    static LATE: Cell<[Option<Registered>; LATE_MAX]> = const { Cell::new([None; LATE_MAX]) };
}

/// The calling thread's slot in `memory`.
pub(crate) fn current(memory: &Memory) -> Result<Thread<'_>, Error> {
    let mapping = memory.mapping().number();
    let fork_generation = process::fork_generation();
    if memory.is_a_copy(fork_generation) {
        return Err(Error::CopiedByFork);
    }
    let held = ALL.try_with(|all| {
        let mut all = all.0.borrow_mut();
        // After a fork these are the parent's.
        all.retain(|(held, _)| held.fork_generation == fork_generation);
        if let Some((held, _)) = all.iter().find(|(held, _)| held.mapping == mapping) {
            return Ok(*held);
        }
        let held = register(memory, fork_generation, 0)?;
        all.retain(|(_, mapping)| mapping.strong_count() > 0);
        all.push((held, Arc::downgrade(memory.mapping())));
        Ok(held)
    });
    let held = held.unwrap_or_else(|_| late(memory, fork_generation))?;
    // SAFETY: the slot is a whole page of the mapping, committed when it was taken, and `memory` keeps the mapping.
    let slot = unsafe { Span::at_address(held.slot) };
    Ok(Thread { tid: held.tid, number: held.number, slot, robust: held.robust })
}

/// The slot of a thread that is at its end, of which another destructor uses the space once more. The thread has given
/// back its slots already: this slot is left to a sweep. It stays the same one, since a log that was made longer is the
/// slot's.
#[cold]
fn late(memory: &Memory, fork_generation: u32) -> Result<Registered, Error> {
    let mapping = memory.mapping().number();
    let mut all = LATE.get();
    let is_here =
        |held: &&Registered| held.mapping == mapping && held.fork_generation == fork_generation;
    if let Some(held) = all.iter().flatten().find(is_here) {
        return Ok(*held);
    }
    let held = register(memory, fork_generation, ENDING)?;
    all.rotate_right(1);
    all[0] = Some(held);
    LATE.set(all);
    Ok(held)
}

/// Slots that are made at once.
const SLOTS_TOGETHER: usize = 8;
const _: () = assert!(THREADS_MAX.is_multiple_of(SLOTS_TOGETHER));

/// Makes a slot, and some for later threads, so that there are any where the system gives no more memory.
fn commit_slot(memory: &Memory, index: usize) -> Result<(), Error> {
    let offset = table::slot(index);
    let pages = |slots: usize| offset..offset + slots * SLOT_BYTES;
    let mapping = memory.mapping();
    if index.is_multiple_of(SLOTS_TOGETHER) {
        headroom::refresh();
        if mapping.commit(pages(SLOTS_TOGETHER)).is_ok() {
            return Ok(());
        }
    }
    mapping.commit_few(pages(1))
}

/// Takes a slot for the calling thread. `mark` is added to its start time.
fn register(memory: &Memory, fork_generation: u32, mark: u64) -> Result<Registered, Error> {
    let base: *const u8 = memory.mapping().base();
    let tid = futex::thread_id();
    let participant = memory.participant(fork_generation)?;
    let start_time = process::thread_start_time(tid) | mark;
    for index in 0..THREADS_MAX {
        let offset = table::slot(index);
        if index >= memory.slots_used() {
            commit_slot(memory, index)?;
            memory.raise_used(table::SLOTS_USED, index + 1);
        }
        // SAFETY: the page was committed just now.
        let view = unsafe { View::new(base, offset + SLOT_BYTES) };
        let slot: Slot<'_> = view.span(offset);
        if slot.word(TID).compare_exchange(0, tid, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            slot.init(PARTICIPANT, participant);
            // Release: a thread that finds it finds the number (`identity`).
            slot.double(START_TIME).store(start_time, Ordering::Release);
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let (slot, robust) = (base.wrapping_add(offset), futex::robust_head());
            memory.note_arrival(index);
            let mapping = memory.mapping().number();
            return Ok(Registered { mapping, slot, robust, tid, number, fork_generation });
        }
    }
    Err(Error::LimitExceeded { what: "threads in one space", limit: THREADS_MAX })
}

// --- participants ------------------------------------------------------------------------------------

/// The bytes that every segment commits at once: identity and participants.
pub(crate) const fn fixed_bytes() -> usize {
    table::participant(PARTICIPANTS_MAX)
}

type Participant<'m> = Span<'m, PARTICIPANT_BYTES>;
const PID: usize = 0;
/// Also [`LEFT`]: the process has become another program.
pub(crate) const PROCESS_START: usize = 8;
/// Which program the process is ([`process::program`]); 0 if unknown.
const PROGRAM: usize = 16;

impl Memory {
    /// The number of this process among the participants; taken at the first use.
    fn participant(&self, fork_generation: u32) -> Result<u32, Error> {
        if let Some(number) = self.known_participant(fork_generation) {
            return Ok(number);
        }
        self.leave_earlier_program();
        let (me, program) = (ProcessId::current(), process::program());
        let view = self.view();
        let entries =
            || (0..PARTICIPANTS_MAX).map(|number| (number, participant_entry(&view, number)));
        // Another handle of this process may have registered it.
        let ours = |entry: Participant<'_>| is_of(entry, me) && is_program(entry, program);
        // A start time of 0 is unknown, so a sweep takes a half-registered process for alive.
        let registered = |entry: Participant<'_>| {
            let free =
                entry.word(PID).compare_exchange(0, me.pid, Ordering::AcqRel, Ordering::Relaxed);
            free.is_ok().then(|| {
                entry.init64(PROGRAM, program);
                // Release pairs with the Acquire in `is_of`.
                entry.double(PROCESS_START).store(me.start_time, Ordering::Release);
            })
        };
        let known = entries().find(|(_, entry)| ours(*entry));
        let free = || {
            entries().find(|(number, entry)| {
                // First, so that every registered process is counted.
                self.raise_used(table::PARTICIPANTS_USED, number + 1);
                registered(*entry).is_some()
            })
        };
        let place = known.or_else(free);
        let (number, _) = place.ok_or(Error::LimitExceeded {
            what: "processes in one space",
            limit: PARTICIPANTS_MAX,
        })?;
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.remember_participant(fork_generation, number);
        Ok(number)
    }

    /// Marks the places of this process's earlier program, before it became another one (`exec`), as a dead process's.
    /// To the system the two are one process; only the later program knows.
    fn leave_earlier_program(&self) {
        // By one thread at a time: an entry that another has left may be swept by now, and be this program's own.
        let Some(_alone) = self.mapping().try_leave() else { return };
        let (me, program) = (ProcessId::current(), process::program());
        let view = self.view();
        for number in 0..self.participants_used() {
            let entry = participant_entry(&view, number);
            if !is_of(entry, me) || is_program(entry, program) {
                continue;
            }
            // One of its threads seems to live, by its number. This program's first thread has the number now, and its
            // own slot names another participant (seen by every process that sees its start time).
            let is_its = |slot: &Slot<'_>| {
                identity(*slot) == Some((me.pid, me.start_time))
                    && slot.load(PARTICIPANT) as usize == number
            };
            for slot in self.slots().into_iter().filter(is_its) {
                slot.init64(START_TIME, LEFT);
            }
            entry.init64(PROCESS_START, LEFT);
        }
    }
}

fn participant_entry<'m>(view: &View<'m>, number: usize) -> Participant<'m> {
    view.span(table::participant(number))
}

/// Whether the entry is of this process, whatever program it was. Then its statements about that are seen, too.
fn is_of(entry: Participant<'_>, process: ProcessId) -> bool {
    entry.load(PID) == process.pid
        && entry.double(PROCESS_START).load(Ordering::Acquire) == process.start_time
}

/// Whether the entry, which is of this process, may be of its program, too.
fn is_program(entry: Participant<'_>, program: u64) -> bool {
    let entered = entry.load64(PROGRAM);
    entered == program || entered == 0 || program == 0
}

fn process_of(entry: Participant<'_>) -> ProcessId {
    ProcessId { pid: entry.load(PID), start_time: entry.load64(PROCESS_START) }
}

fn participant_pid(view: &View<'_>, number: u32) -> u32 {
    if number as usize >= PARTICIPANTS_MAX {
        return 0;
    }
    let entry: Participant<'_> = view.span(table::participant(number as usize));
    entry.load(PID)
}

/// A process that uses the segment, or did until it died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParticipantInfo {
    /// Its number in the segment.
    pub number: u32,
    /// Its process id.
    pub pid: u32,
    /// Whether it still runs.
    pub alive: bool,
}

impl Memory {
    /// The processes that use the segment, and dead ones that were not swept yet.
    pub fn participants(&self) -> Vec<ParticipantInfo> {
        let view = self.view();
        let all = 0..self.participants_used();
        all.filter_map(|number| participant_info(&view, number)).collect()
    }

    /// The process with this number, as long as it has it; 0 if no process has it. The system is not asked whether the
    /// process lives: this may be called for each of many records, under a lock.
    pub fn pid_of_participant(&self, number: u32) -> u32 {
        participant_pid(&self.view(), number)
    }

    /// How many numbers of processes are taken, also by dead ones that were not swept yet.
    pub fn participants_count(&self) -> usize {
        let view = self.view();
        let is_taken = |number: &usize| participant_entry(&view, *number).load(PID) != 0;
        (0..self.participants_used()).filter(is_taken).count()
    }

    /// Whether a process that uses the segment has died and was not swept yet, or a thread with unfinished work has. A
    /// cheap look (a system call, as a rule), that may be taken often.
    pub fn somebody_died(&self) -> bool {
        let view = self.view();
        let own = self.known_participant(process::fork_generation());
        if own.is_none() {
            self.leave_earlier_program();
        }
        let others = (0..self.participants_used()).filter(|number| {
            own.is_none_or(|own| own as usize != *number)
                && participant_entry(&view, *number).load(PID) != 0
        });
        let others: Vec<ProcessId> =
            others.map(|number| process_of(participant_entry(&view, number))).collect();
        let may_matter = |slot: &Slot<'_>| has_left(*slot) || !nothing_in_flight(*slot);
        self.deaths().any(&others) || self.slots().into_iter().filter(may_matter).any(is_dead)
    }

    /// Every slot that was ever used.
    pub fn slots(&self) -> Vec<Slot<'_>> {
        let view = self.view();
        (1..=self.slots_used())
            .filter_map(|number| slot_of(&view, u32::try_from(number).ok()?))
            .collect()
    }

    /// The slots whose thread or process is dead, with the scopes that their logs mention.
    ///
    /// To recycle a slot, lock each of the scopes once (which rolls it back), settle the slot's engine words, and call
    /// [`Memory::free_slot`].
    pub fn dead_slots(&self) -> Vec<(Slot<'_>, Vec<u32>)> {
        let view = self.view();
        let slots = (1..=self.slots_used()).filter_map(|number| {
            let slot = slot_of(&view, u32::try_from(number).ok()?)?;
            is_dead(slot).then(|| (slot, log::mentioned_scopes(&view, slot)))
        });
        slots.collect()
    }

    /// How many slots were ever used.
    pub fn slots_used(&self) -> usize {
        self.used(table::SLOTS_USED).min(THREADS_MAX)
    }

    /// Number and start time of the thread whose slot it is. They tell it from a later thread in the same slot. `None`
    /// if the slot is free.
    pub fn owner_of(&self, slot: Slot<'_>) -> Option<(u32, u64)> {
        identity(slot)
    }

    fn participants_used(&self) -> usize {
        self.used(table::PARTICIPANTS_USED).min(PARTICIPANTS_MAX)
    }

    fn used(&self, offset: usize) -> usize {
        let header: Span<'_, 16> = self.view().span(table::COMMITTED);
        header.load(offset - table::COMMITTED) as usize
    }

    fn raise_used(&self, offset: usize, count: usize) {
        let header: Span<'_, 16> = self.view().span(table::COMMITTED);
        let used = header.word(offset - table::COMMITTED);
        used.fetch_max(u32::try_from(count).unwrap_or(u32::MAX), Ordering::Release);
    }

    /// Makes the slot of a dead thread free for another. Its log is empty by now, or void, and no log [waits for its
    /// decision](Memory::still_decides).
    pub fn free_slot(&self, slot: Slot<'_>) {
        // First: a question about a commit has an answer as long as this word stands.
        slot.word(LINK).store(0, Ordering::Release);
        slot.word(COUNT).store(0, Ordering::Release);
        vacate(slot);
    }

    /// Whether the thread of `slot` is inside `scope`, by the lock.
    pub fn is_locked_by(&self, scope: u32, slot: Slot<'_>) -> bool {
        lock::holder(&self.view(), scope) == slot.load(TID)
    }

    /// Whether a thread sleeps, or has slept, until the owner of `scope` leaves, which is still inside. A thread that
    /// only looks does not.
    pub fn is_waited_for(&self, scope: u32) -> bool {
        lock::is_waited_for(&self.view(), scope)
    }

    /// Makes the number of a dead process free for another.
    pub fn free_participant(&self, number: u32) {
        if (number as usize) < PARTICIPANTS_MAX {
            let view = self.view();
            let entry: Participant<'_> = view.span(table::participant(number as usize));
            entry.init64(PROCESS_START, 0);
            entry.init64(PROGRAM, 0);
            entry.word(PID).store(0, Ordering::Release);
        }
    }
}

/// Whether the thread of a slot is dead and was not swept yet.
fn is_dead(slot: Slot<'_>) -> bool {
    is_dead_by(slot, process::thread_is_alive)
}

/// As [`is_dead`], with `is_alive` to say whether a thread lives of a number and a start time.
fn is_dead_by(slot: Slot<'_>, is_alive: impl Fn(u32, u64) -> bool) -> bool {
    identity(slot).is_some_and(|before| {
        let (tid, start_time) = before;
        let has_ended = start_time == LEFT || !is_alive(tid, started(start_time));
        // Meanwhile the thread may have given its slot up and ended, and a living one have taken it.
        has_ended && identity(slot) == Some(before)
    })
}

/// Whether the thread of a slot said at its end that the slot is to be swept: now, or when it has ended.
fn has_left(slot: Slot<'_>) -> bool {
    const { assert!(LEFT & ENDING != 0) };
    identity(slot).is_some_and(|(_, start_time)| start_time & ENDING != 0)
}

/// Number and start time of the thread of a slot, which are of one thread. `None` if the slot is free, or becomes
/// another living thread's at this moment.
fn identity(slot: Slot<'_>) -> Option<(u32, u64)> {
    // The fence pairs with the Release store of the start time in `register`, which follows that of the number. A
    // reader of a later thread's start time finds its number, too, when it looks again.
    let tid = slot.word(TID).load(Ordering::Acquire);
    let start_time = slot.load64(START_TIME);
    fence(Ordering::Acquire);
    let is_same = slot.word(TID).load(Ordering::Relaxed) == tid;
    (tid != 0 && is_same).then_some((tid, start_time))
}

fn participant_info(view: &View<'_>, number: usize) -> Option<ParticipantInfo> {
    let ProcessId { pid, start_time } = process_of(participant_entry(view, number));
    let alive = || process::is_alive(pid, start_time);
    let number = u32::try_from(number).ok()?;
    (pid != 0).then(|| ParticipantInfo { number, pid, alive: alive() })
}

#[cfg(test)]
mod tests;
