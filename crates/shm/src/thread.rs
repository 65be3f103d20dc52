//! Who works in a segment: a participant per process, a slot per thread.
//!
//! A thread slot is a page: the identity of the thread, what it has in flight, and its undo log. The log
//! is per thread, not per scope, so that it stays in the thread's own cache. Slots of the dead are
//! recycled by the engine's sweeper, after every scope that their log mentions was inherited.
//!
//! | word | participant | | word | thread slot |
//! |---:|---|---|---:|---|
//! | 0 | pid, 0 if free | | 0 | number of log entries |
//! | 8 | start time (two words) | | 4 | thread id, 0 if free |
//! | | | | 8 | participant number |
//! | | | | 12 | start of the log's run: granule, 0 if none |
//! | | | | 16 | start time (two words) |
//! | | | | 24 | entries that the run holds |
//! | | | | 32..64 | the engine's: what this thread has in flight |
//! | | | | 64.. | log entries of 16 bytes |

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use crate::access::{GRANULE, Span, View};
use crate::desk;
use crate::error::Error;
use crate::futex::{self, RobustListHead};
use crate::lock;
use crate::memory::Memory;
use crate::process::{self, ProcessId};
use crate::section::Section;
use crate::table::{self, PARTICIPANT_BYTES, PARTICIPANTS_MAX, SLOT_BYTES, THREADS_MAX};

const COUNT: usize = 0;
const TID: usize = 4;
const PARTICIPANT: usize = 8;
const RUN: usize = 12;
const START_TIME: usize = 16;
const RUN_ENTRIES: usize = 24;
/// Where the engine's eight words in a slot begin.
pub const ENGINE_WORDS: usize = 32;
/// How many of them there are.
pub const ENGINE_WORDS_COUNT: usize = 8;
const ENTRIES: usize = ENGINE_WORDS + 4 * ENGINE_WORDS_COUNT;
const ENTRY_BYTES: usize = 16;
/// Entries inside the slot: eight times what a put with eight indexes changes.
pub(crate) const INLINE_ENTRIES: u32 = 252;
/// Words that every section may change, whatever run its thread's log has.
pub const LOG_ENTRIES_MIN: usize = INLINE_ENTRIES as usize;
const _: () = assert!(INLINE_ENTRIES as usize == (SLOT_BYTES - ENTRIES) / ENTRY_BYTES);

/// The slot of one thread, as a window.
pub type Slot<'m> = Span<'m, SLOT_BYTES>;

/// One logged store. Two words, as it stands in the log, so that it travels in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogEntry {
    offset: usize,
    tag: u64,
}

/// A scope as a log entry has it: shifted to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScopeTag(u64);

impl ScopeTag {
    /// No scope: that of nothing.
    pub(crate) const NONE: Self = Self(0);

    #[inline(always)]
    pub(crate) fn new(scope: u32) -> Self {
        Self(u64::from(scope) << 32)
    }

    #[inline(always)]
    pub(crate) fn scope(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl LogEntry {
    /// `old` stood at `offset`, which `scope` protects.
    #[inline(always)]
    pub(crate) fn new(offset: usize, scope: ScopeTag, old: u32) -> Self {
        Self { offset, tag: scope.0 | u64::from(old) }
    }

    fn scope(self) -> u32 {
        ScopeTag(self.tag).scope()
    }

    /// The same entry, marked as restored.
    fn restored(self) -> Self {
        Self { offset: self.offset, tag: self.tag | ScopeTag::new(RESTORED).0 }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half of the tag is meant")]
    fn old(self) -> u32 {
        self.tag as u32
    }

    #[inline(always)]
    fn write(self, place: Span<'_, ENTRY_BYTES>) {
        place.init64(0, self.offset as u64);
        place.init64(8, self.tag);
    }
}

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
    /// The slot's page stays mapped for good.
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

    /// How many entries the log holds at most.
    #[inline(always)]
    pub fn log_capacity(&self) -> u32 {
        INLINE_ENTRIES.saturating_add(self.slot.load(RUN_ENTRIES))
    }

    /// Writes entry number `index` into the log's run. Returns whether it had room.
    #[cold]
    #[inline(never)]
    pub(crate) fn log_in_run(&self, view: &View<'m>, index: u32, entry: LogEntry) -> bool {
        let has_room = index < self.log_capacity();
        if has_room {
            entry.write(run_entry(view, self.slot, index));
        }
        has_room
    }

    pub(crate) fn logged(&self, view: &View<'m>, index: u32) -> LogEntry {
        logged(view, self.slot, index)
    }
}

/// Where the log's run in `slot` begins, if it has one.
pub fn log_run(slot: Slot<'_>) -> Option<u32> {
    let granule = slot.load(RUN);
    (granule != 0).then_some(granule)
}

/// Writes entry number `index`, which is below [`INLINE_ENTRIES`], into the log of `slot`; it counts only
/// after [`set_log_count`].
#[inline(always)]
pub(crate) fn log(slot: Slot<'_>, index: usize, entry: LogEntry) {
    entry.write(slot.part(ENTRIES + index * ENTRY_BYTES));
}

/// Says how many entries the log of `slot` has.
#[inline(always)]
pub(crate) fn set_log_count(slot: Slot<'_>, count: u32) {
    slot.init(COUNT, count);
}

/// Gives the log in `slot`, the caller's own or a dead thread's, a run of `bytes` bytes from `granule` for
/// long sections, or none. Returns where the one that it had begins. The section is to be short.
pub fn set_log_run<'m>(
    section: &mut Section<'m>,
    slot: Slot<'m>,
    granule: u32,
    bytes: usize,
) -> Option<u32> {
    let old = log_run(slot);
    let entries = u32::try_from(bytes / ENTRY_BYTES).unwrap_or(u32::MAX / 2);
    section.set(slot, RUN_ENTRIES, entries);
    section.set(slot, RUN, granule);
    old
}

fn run_entry<'m>(view: &View<'m>, slot: Slot<'m>, index: u32) -> Span<'m, ENTRY_BYTES> {
    let run = slot.load(RUN) as usize * GRANULE;
    view.span(run + (index - INLINE_ENTRIES) as usize * ENTRY_BYTES)
}

/// Where entry number `index` of the log in `slot` is.
fn entry_place<'m>(view: &View<'m>, slot: Slot<'m>, index: u32) -> Span<'m, ENTRY_BYTES> {
    if index < INLINE_ENTRIES {
        slot.part(ENTRIES + index as usize * ENTRY_BYTES)
    } else {
        run_entry(view, slot, index)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "addresses have 64 bits")]
fn logged<'m>(view: &View<'m>, slot: Slot<'m>, index: u32) -> LogEntry {
    let place = entry_place(view, slot, index);
    LogEntry { offset: place.load64(0) as usize, tag: place.load64(8) }
}

/// The slot with this number, or `None` for 0 and numbers that cannot be.
fn slot_of<'m>(view: &View<'m>, number: u32) -> Option<Slot<'m>> {
    let index = (number as usize).checked_sub(1)?;
    (index < THREADS_MAX).then(|| view.span(table::slot(index)))
}

/// Marks the scope of an entry that was restored. Scopes are granules of lock lines, far below it.
const RESTORED: u32 = 1 << 31;

/// Restores what the thread with slot `number` left uncommitted in `scope`, newest first, and marks it.
///
/// Killed in between, the rest is restored by the next heir, and perhaps one entry again: it is the oldest
/// of those done, so its value is the one that must stand.
pub(crate) fn restore(view: &View<'_>, number: u32, scope: u32) {
    let Some(slot) = slot_of(view, number) else { return };
    for index in (0..log_count(slot)).rev() {
        let entry = logged(view, slot, index);
        if entry.scope() == scope {
            put_back(view, &entry);
            compiler_fence(Ordering::SeqCst);
            entry.restored().write(entry_place(view, slot, index));
        }
    }
}

/// The scopes that the section of the thread with slot `number` changed and that were not restored yet,
/// ascending; none unless `scope` was restored from it: then the log is another section's.
pub(crate) fn left_with(view: &View<'_>, number: u32, scope: u32) -> Vec<u32> {
    let Some(slot) = slot_of(view, number) else { return Vec::new() };
    let scopes = (0..log_count(slot)).map(|index| logged(view, slot, index).scope());
    let mut scopes: Vec<u32> = scopes.collect();
    if !scopes.contains(&(scope | RESTORED)) {
        return Vec::new();
    }
    scopes.retain(|scope| scope & RESTORED == 0);
    scopes.sort_unstable();
    scopes.dedup();
    scopes
}

/// How many entries the log in `slot` has.
fn log_count(slot: Slot<'_>) -> u32 {
    slot.load(COUNT).min(INLINE_ENTRIES.saturating_add(slot.load(RUN_ENTRIES)))
}

/// Stores the old value where it stood.
pub(crate) fn put_back(view: &View<'_>, entry: &LogEntry) {
    let pair: Span<'_, 8> = view.span(entry.offset & !7);
    pair.init(entry.offset & 4, entry.old());
}

/// The process behind slot `number`; 0 if unknown.
pub(crate) fn pid_of(view: &View<'_>, number: u32) -> u32 {
    slot_of(view, number).map_or(0, |slot| participant_pid(view, slot.load(PARTICIPANT)))
}

/// The start time of the thread with slot `number`, if the slot is thread `tid`'s; else 0: unknown.
pub(crate) fn start_time_of(view: &View<'_>, number: u32, tid: u32) -> u64 {
    slot_of(view, number)
        .filter(|slot| slot.load(TID) == tid)
        .map_or(0, |slot| slot.load64(START_TIME))
}

// --- finding this thread's slot ---------------------------------------------------------------------

/// Makes a slot free. Its identity goes first: the next thread must not be taken for this one, which is dead.
fn vacate(slot: Slot<'_>) {
    slot.init64(START_TIME, 0);
    slot.word(TID).store(0, Ordering::Release);
}

fn nothing_in_flight(slot: Slot<'_>) -> bool {
    (0..ENGINE_WORDS_COUNT).all(|word| slot.load(ENGINE_WORDS + 4 * word) == 0)
}

#[derive(Clone, Copy)]
struct Registered {
    base: *const u8,
    slot: *const u8,
    robust: *mut RobustListHead,
    tid: u32,
    number: u32,
    fork_generation: u32,
}

/// The slots that this thread holds, given back when it ends.
struct Registrations(RefCell<Vec<Registered>>);

impl Drop for Registrations {
    fn drop(&mut self) {
        desk::forget();
        for held in self.0.borrow_mut().drain(..) {
            if held.fork_generation == process::fork_generation() {
                // SAFETY: mappings are never unmapped, and `base` is one; the slot's page is committed.
                let view = unsafe { View::new(held.base, table::slot(held.number as usize)) };
                if let Some(slot) = slot_of(&view, held.number) {
                    // Keeps the slot if something is in flight: the sweeper then sees a dead thread.
                    if slot.load(COUNT) == 0 && slot.load(RUN) == 0 && nothing_in_flight(slot) {
                        vacate(slot);
                    }
                }
            }
        }
    }
}

thread_local! {
    static ALL: Registrations = const { Registrations(RefCell::new(Vec::new())) };
}

/// The calling thread's slot in `memory`.
pub(crate) fn current(memory: &Memory) -> Result<Thread<'_>, Error> {
    let base: *const u8 = memory.mapping().base();
    let fork_generation = process::fork_generation();
    if memory.is_a_copy(fork_generation) {
        return Err(Error::CopiedByFork);
    }
    let held = ALL.with(|all| {
        let mut all = all.0.borrow_mut();
        // After a fork these are the parent's.
        all.retain(|held| held.fork_generation == fork_generation);
        if let Some(held) = all.iter().find(|held| held.base == base) {
            return Ok(*held);
        }
        let held = register(memory, fork_generation)?;
        all.push(held);
        Ok(held)
    })?;
    // SAFETY: the slot is a whole page of the mapping, committed when it was taken, and mappings stay.
    let slot = unsafe { Span::at_address(held.slot) };
    Ok(Thread { tid: held.tid, number: held.number, slot, robust: held.robust })
}

fn register(memory: &Memory, fork_generation: u32) -> Result<Registered, Error> {
    let base: *const u8 = memory.mapping().base();
    let tid = futex::thread_id();
    let participant = memory.participant(fork_generation)?;
    let start_time = process::thread_start_time(tid);
    for index in 0..THREADS_MAX {
        let offset = table::slot(index);
        if index >= memory.slots_used() {
            memory.mapping().commit(offset..offset + SLOT_BYTES)?;
            memory.raise_used(table::SLOTS_USED, index + 1);
        }
        // SAFETY: the page was committed just now.
        let view = unsafe { View::new(base, offset + SLOT_BYTES) };
        let slot: Slot<'_> = view.span(offset);
        if slot.word(TID).compare_exchange(0, tid, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            slot.init(PARTICIPANT, participant);
            slot.init64(START_TIME, start_time);
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let (slot, robust) = (base.wrapping_add(offset), futex::robust_head());
            return Ok(Registered { base, slot, robust, tid, number, fork_generation });
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
const PROCESS_START: usize = 8;

impl Memory {
    /// The number of this process among the participants; taken at the first use.
    fn participant(&self, fork_generation: u32) -> Result<u32, Error> {
        if let Some(number) = self.known_participant(fork_generation) {
            return Ok(number);
        }
        let me = ProcessId::current();
        let view = self.view();
        let entries =
            || (0..PARTICIPANTS_MAX).map(|number| (number, participant_entry(&view, number)));
        // Another handle of this process may have registered it.
        let ours = |entry: Participant<'_>| {
            entry.load(PID) == me.pid && entry.load64(PROCESS_START) == me.start_time
        };
        // A start time of 0 is unknown, so a sweep takes a half-registered process for alive.
        let registered = |entry: Participant<'_>| {
            let free =
                entry.word(PID).compare_exchange(0, me.pid, Ordering::AcqRel, Ordering::Relaxed);
            free.is_ok().then(|| entry.init64(PROCESS_START, me.start_time))
        };
        let known = entries().find(|(_, entry)| ours(*entry));
        let free = || {
            entries().find(|(number, entry)| {
                // First, so that whoever is registered is counted.
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
}

fn participant_entry<'m>(view: &View<'m>, number: usize) -> Participant<'m> {
    view.span(table::participant(number))
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
    /// The processes that use the segment, and those that died without being swept yet.
    pub fn participants(&self) -> Vec<ParticipantInfo> {
        let view = self.view();
        let all = 0..self.participants_used();
        all.filter_map(|number| participant_info(&view, number)).collect()
    }

    /// How many numbers of processes are taken, also by those that died without being swept yet.
    pub fn participants_count(&self) -> usize {
        let view = self.view();
        let is_taken = |number: &usize| participant_entry(&view, *number).load(PID) != 0;
        (0..self.participants_used()).filter(is_taken).count()
    }

    /// Whether a process or a thread that uses the segment has died and was not swept yet.
    pub fn somebody_died(&self) -> bool {
        let view = self.view();
        let mut participants =
            (0..self.participants_used()).filter_map(|number| participant_info(&view, number));
        participants.any(|one| !one.alive) || self.slots().into_iter().any(is_dead)
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
    /// Whoever wants to recycle one locks each of the scopes once (which rolls it back), settles what
    /// the slot's engine words say, and calls [`Memory::free_slot`].
    pub fn dead_slots(&self) -> Vec<(Slot<'_>, Vec<u32>)> {
        let view = self.view();
        let slots = (1..=self.slots_used()).filter_map(|number| {
            let slot = slot_of(&view, u32::try_from(number).ok()?)?;
            is_dead(slot).then(|| (slot, mentioned_scopes(&view, slot)))
        });
        slots.collect()
    }

    /// How many slots were ever used.
    pub fn slots_used(&self) -> usize {
        self.used(table::SLOTS_USED).min(THREADS_MAX)
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

    /// Makes the slot of a dead thread free for another. Its log is empty by now, or void.
    pub fn free_slot(&self, slot: Slot<'_>) {
        slot.init(COUNT, 0);
        vacate(slot);
    }

    /// Whether the thread of `slot` is inside `scope`, by what the lock says.
    pub fn is_locked_by(&self, scope: u32, slot: Slot<'_>) -> bool {
        lock::holder(&self.view(), scope) == slot.load(TID)
    }

    /// Makes the number of a dead process free for another.
    pub fn free_participant(&self, number: u32) {
        if (number as usize) < PARTICIPANTS_MAX {
            let view = self.view();
            let entry: Participant<'_> = view.span(table::participant(number as usize));
            entry.init64(PROCESS_START, 0);
            entry.word(PID).store(0, Ordering::Release);
        }
    }
}

/// Whether the thread of a slot is dead and was not swept yet.
fn is_dead(slot: Slot<'_>) -> bool {
    let tid = slot.load(TID);
    tid != 0 && !process::thread_is_alive(tid, slot.load64(START_TIME))
}

fn mentioned_scopes(view: &View<'_>, slot: Slot<'_>) -> Vec<u32> {
    let scope = |index| logged(view, slot, index).scope() & !RESTORED;
    let mut scopes: Vec<u32> = (0..log_count(slot)).map(scope).collect();
    scopes.sort_unstable();
    scopes.dedup();
    scopes
}

fn participant_info(view: &View<'_>, number: usize) -> Option<ParticipantInfo> {
    let entry = participant_entry(view, number);
    let pid = entry.load(PID);
    let alive = || process::is_alive(pid, entry.load64(PROCESS_START));
    let number = u32::try_from(number).ok()?;
    (pid != 0).then(|| ParticipantInfo { number, pid, alive: alive() })
}
