//! The lock of a scope: a futex word with the kernel's robust ABI, and the sequence word of its readers.
//!
//! A *scope* is the memory that one lock protects; it is named by the granule of its lock line. The word holds the
//! owner's thread id, and `WAITERS` when a thread sleeps. The kernel finds a thread that dies inside, through the
//! pending slot of its robust list: it replaces the id by `OWNER_DIED` and wakes one sleeper. Only the pending slot is
//! used, no list: it costs 0.3 ns, and covers the lock that is being taken, held alone, or released. A thread that
//! holds several locks is covered for the others by the timed check of [`acquire`], which also serves where the kernel
//! does not help.
//!
//! | word | what |
//! |---:|---|
//! | 0 | the futex word |
//! | 4 | sequence: odd while a thread is inside; readers check that it is even and unchanged |
//! | 8 | owner: thread slot of the last locker, whose log a recoverer rolls back |
//! | 12 | the leading thread, (16, two words) the end of its cohort, and (24) since which sequence: [`crate::cohort`] |

use std::time::Duration;

use crate::access::{GRANULE, Span, View};
use crate::error::Error;
use crate::memory::Memory;
use crate::sync::{self, AtomicU32, Ordering, PAUSES, compiler_fence, fence};
use crate::thread::{self, Thread};
use crate::{futex, log, process};

/// A lock line.
pub(crate) type LockLine<'m> = Span<'m, GRANULE>;

pub(crate) const WORD: usize = 0;
pub(crate) const SEQUENCE: usize = 4;
pub(crate) const OWNER: usize = 8;

/// A thread sleeps on the word.
const WAITERS: u32 = 0x8000_0000;
/// The kernel found the owner dead.
const OWNER_DIED: u32 = 0x4000_0000;
/// The bits of the owner's thread id.
const TID: u32 = 0x3fff_ffff;

/// First sleep: a thread that does not leave its section within this is dead, stopped or descheduled.
const SLICE_FIRST: Duration = Duration::from_millis(1);
/// Later sleeps.
const SLICE: Duration = Duration::from_millis(20);
/// How long a living owner may stay inside before the caller is told its number. A stopped process can only be
/// detected, not cured.
const STALL: Duration = Duration::from_secs(10);

/// The lock line of `scope`.
///
/// # Errors
///
/// [`Error::Corrupted`] if there can be none: the scope was read from a damaged word.
#[inline(always)]
pub(crate) fn line<'m>(view: &View<'m>, scope: u32) -> Result<LockLine<'m>, Error> {
    if scope == 0 || !view.holds(scope as usize * GRANULE, GRANULE) {
        return Err(no_line(view));
    }
    Ok(view.at(scope))
}

#[cold]
#[inline(never)]
pub(crate) fn no_line(view: &View<'_>) -> Error {
    if view.limit() <= thread::fixed_bytes() {
        return view.refusal();
    }
    view.poison();
    Error::corrupted("a lock is named that lies outside of the segment")
}

/// Locks the scope of `line`. The unfinished changes of a dead owner are rolled back first. Returns the slot of the
/// last owner.
#[inline(always)]
pub(crate) fn acquire<'m>(
    memory: &'m Memory,
    thread: Thread<'m>,
    line: LockLine<'m>,
) -> Result<u32, Error> {
    thread.set_pending(line.word(WORD));
    // Acquire pairs with the Release in `release`: we see every store of the last owner.
    let free =
        line.word(WORD).compare_exchange(0, thread.tid, Ordering::Acquire, Ordering::Relaxed);
    if free.is_err() {
        acquire_contended(memory, line, thread).inspect_err(|_| thread.clear_pending())?;
    }
    let before = line.load(OWNER);
    line.init(OWNER, thread.slot_number());
    enter(line);
    Ok(before)
}

/// Locks the scope of `line` unless a living thread is inside. Returns whether it did. Does not wait.
pub(crate) fn try_acquire<'m>(
    memory: &'m Memory,
    thread: &Thread<'m>,
    line: LockLine<'m>,
) -> Result<bool, Error> {
    // Its own: that of the thread's last section may reach less far than the changes of a dead thread.
    let view = &memory.view();
    let seen = line.load(WORD);
    if seen & TID != 0 && owner_is_alive(view, line, seen & TID) {
        return Ok(false);
    }
    thread.set_pending(line.word(WORD));
    let ours = thread.tid | (seen & WAITERS);
    if line.word(WORD).compare_exchange(seen, ours, Ordering::Acquire, Ordering::Relaxed).is_err() {
        thread.clear_pending();
        return Ok(false);
    }
    if seen & !WAITERS != 0 {
        inherit(view, line, thread).inspect_err(|_| thread.clear_pending())?;
    }
    line.init(OWNER, thread.slot_number());
    enter(line);
    Ok(true)
}

/// Whether nobody is inside. A thread that has died there may be inside for long: [`try_acquire`] finds that out.
pub(crate) fn is_free(line: LockLine<'_>) -> bool {
    line.load(WORD) & TID == 0
}

/// The id of the thread inside `scope`, dead or alive; 0 if there is none.
pub(crate) fn holder(view: &View<'_>, scope: u32) -> u32 {
    let line: LockLine<'_> = view.at(scope);
    line.load(WORD) & TID
}

/// Whether a thread has slept until the owner of `scope` leaves, which is still inside.
pub(crate) fn is_waited_for(view: &View<'_>, scope: u32) -> bool {
    let line: LockLine<'_> = view.at(scope);
    line.load(WORD) & WAITERS != 0
}

/// Makes the sequence odd: from here on, readers look away.
#[inline(always)]
fn enter(line: LockLine<'_>) {
    line.init(SEQUENCE, line.load(SEQUENCE).wrapping_add(1));
    // Pairs with the Acquire fence in `Reader::unchanged`: a reader that sees one of our stores also
    // sees the odd sequence.
    fence(Ordering::Release);
}

/// Unlocks the scope of `line`; the stores inside are committed.
#[inline(always)]
pub(crate) fn release(thread: Thread<'_>, line: LockLine<'_>) {
    thread.set_pending(line.word(WORD));
    let sequence = line.load(SEQUENCE).wrapping_add(1);
    line.word(SEQUENCE).store(sequence, Ordering::Release);
    // Killed after the exchange and before the wake: the word is 0 and pending, so the kernel wakes one; unless
    // another has the lock by then, and does not know of the sleepers: they wake when their slice is over.
    if line.word(WORD).swap(0, Ordering::Release) & WAITERS != 0 {
        futex::wake(line.word(WORD), 1);
    }
    thread.clear_pending();
}

#[cold]
#[inline(never)]
fn acquire_contended<'m>(
    memory: &'m Memory,
    line: LockLine<'m>,
    thread: Thread<'m>,
) -> Result<(), Error> {
    let word = line.word(WORD);
    let (mut pauses, mut has_slept) = (0, false);
    // How long a thread has been inside without a break, as far as this thread has seen.
    let (mut sequence, mut waited) = (line.load(SEQUENCE), Duration::ZERO);
    loop {
        let seen = word.load(Ordering::Relaxed);
        if seen & TID == 0 {
            // A thread that slept must assume that others still sleep.
            let keep = if has_slept { WAITERS } else { seen & WAITERS };
            let ours = thread.tid | keep;
            if word.compare_exchange(seen, ours, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                if seen & OWNER_DIED != 0 {
                    return inherit(&memory.view(), line, &thread);
                }
                return Ok(());
            }
        } else if seen & TID == thread.tid {
            if owner_is_alive(&memory.view(), line, seen & TID) {
                return Err(Error::Reentrant);
            }
            // Left by a thread that had the same number, before it died.
            mark_died(word, seen);
        } else if pauses < PAUSES {
            sync::pause(pauses);
            pauses += 1;
        } else {
            waited += sleep(line, seen, has_slept);
            has_slept = true;
            let before = (seen, sequence);
            let seen = word.load(Ordering::Relaxed);
            sequence = line.load(SEQUENCE);
            if (seen ^ before.0) & TID != 0 || sequence != before.1 {
                // A thread has left, perhaps to come back at once: not worth another sleep, and no thread stays inside.
                (pauses, waited) = (0, Duration::ZERO);
            } else if !owner_is_alive(&memory.view(), line, seen & TID) {
                mark_died(word, seen);
            } else if waited >= STALL {
                return Err(Error::Stalled { pid: pid_inside(&memory.view(), line, seen & TID) });
            }
        }
    }
}

/// Says of a lock, whose owner is dead, that it is, as the kernel would have done it.
fn mark_died(word: &AtomicU32, seen: u32) {
    let died = (seen & WAITERS) | OWNER_DIED;
    // If it fails, another thread has said so.
    let _ = word.compare_exchange(seen, died, Ordering::Relaxed, Ordering::Relaxed);
}

/// Sleeps one slice while the word keeps an owner. Returns how long that was, since a signal ends it; no longer than the
/// slice, since this process may have been stopped, too.
fn sleep(line: LockLine<'_>, seen: u32, has_slept: bool) -> Duration {
    let word = line.word(WORD);
    let waiting = seen | WAITERS;
    let slice = if has_slept { SLICE } else { SLICE_FIRST };
    let begin_ns = sync::now_ns();
    if seen == waiting
        || word.compare_exchange(seen, waiting, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    {
        futex::wait(word, waiting, Some(slice));
    }
    Duration::from_nanos(sync::now_ns() - begin_ns).min(slice)
}

/// Whether the thread whose id stands in the word still runs. The owner word may not be its yet.
fn owner_is_alive(view: &View<'_>, line: LockLine<'_>, tid: u32) -> bool {
    let start_time = thread::start_time_of(view, line.load(OWNER), tid);
    process::thread_is_alive(tid, start_time)
}

/// The process to be told to go on: that of the thread whose id stands in the word. That thread may have been stopped
/// before it stored its slot. Then its id has to do, which signals take as well.
fn pid_inside(view: &View<'_>, line: LockLine<'_>, tid: u32) -> u32 {
    let number = line.load(OWNER);
    if thread::start_time_of(view, number, tid) == 0 { tid } else { thread::pid_of(view, number) }
}

/// Brings a dead owner's section back to the last committed state, in every scope that it had locked.
/// Killed in here: the next recoverer repeats it, since restoring is idempotent and the owner word is replaced
/// only afterwards.
///
/// All scopes at once, since a part that one of them gave away belongs to another. An extent that the section had taken
/// from the arena must not be taken again before the partition that had filled it is restored.
#[cold]
fn inherit<'m>(view: &View<'m>, line: LockLine<'m>, thread: &Thread<'m>) -> Result<(), Error> {
    let settled = settle(view, line, thread);
    if settled.is_err() {
        leave_to_others(line, OWNER_DIED);
    }
    settled
}

/// Unlocks a line that has a dead owner still. `state`: 0, or [`OWNER_DIED`] if it is to be inherited again.
fn leave_to_others(line: LockLine<'_>, state: u32) {
    if line.word(WORD).swap(state, Ordering::Release) & WAITERS != 0 {
        futex::wake(line.word(WORD), 1);
    }
}

fn settle<'m>(view: &View<'m>, line: LockLine<'m>, thread: &Thread<'m>) -> Result<(), Error> {
    let scope = u32::try_from(view.offset_of(line) / GRANULE).unwrap_or(0);
    let dead = line.load(OWNER);
    log::restore(view, dead, scope)?;
    compiler_fence(Ordering::SeqCst);
    make_even(line);
    for other in log::left_with(view, dead, scope) {
        let restored = restore_also(view, thread, dead, (scope, other));
        thread.set_pending(line.word(WORD));
        // Fails if a process that restores the other scope was stopped in the middle.
        restored?;
    }
    Ok(())
}

/// Ends a dead owner's stay: readers may look again.
fn make_even(line: LockLine<'_>) {
    let sequence = line.load(SEQUENCE);
    if sequence & 1 == 1 {
        line.word(SEQUENCE).store(sequence.wrapping_add(1), Ordering::Release);
    }
}

/// Sees to it that scope `other` of a dead section, of which this thread inherited `scope`, is restored: by this
/// thread, or by another recoverer. Recoverers restore their locked scopes before they wait for each other, so each waits for a
/// finite time.
fn restore_also<'m>(
    view: &View<'m>,
    thread: &Thread<'m>,
    dead: u32,
    (scope, other): (u32, u32),
) -> Result<(), Error> {
    let line: LockLine<'m> = view.at(other);
    let word = line.word(WORD);
    let mut waited = Duration::ZERO;
    while log::left_with(view, dead, scope).contains(&other) {
        let seen = word.load(Ordering::Relaxed);
        if seen & TID == 0 || !owner_is_alive(view, line, seen & TID) {
            thread.set_pending(word);
            let ours = thread.tid | (seen & WAITERS);
            if word.compare_exchange(seen, ours, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                let restored = log::restore(view, dead, other);
                compiler_fence(Ordering::SeqCst);
                if restored.is_ok() {
                    make_even(line);
                }
                leave_to_others(line, if restored.is_ok() { 0 } else { OWNER_DIED });
                restored?;
            }
        } else if waited < STALL {
            // Not a sleep on the word: its holder goes on with it after it has restored.
            sync::sleep(SLICE_FIRST);
            waited += SLICE_FIRST;
        } else {
            return Err(Error::Stalled { pid: pid_inside(view, line, seen & TID) });
        }
    }
    Ok(())
}

impl View<'_> {
    /// The number of the section over `scope` that the caller is in: another one than that of the sections before.
    #[inline]
    pub fn section_number(&self, scope: u32) -> u32 {
        self.at::<GRANULE>(scope).load(SEQUENCE)
    }

    /// Begins a read of `scope` without its lock: the sequence to compare with, or `None` if a thread is inside.
    #[inline(always)]
    pub fn begin_read(&self, scope: u32) -> Option<u32> {
        self.at::<GRANULE>(scope).begin_read()
    }

    /// Whether no thread was inside `scope` since [`View::begin_read`] gave `sequence`: then everything read since
    /// belongs together.
    #[inline(always)]
    pub fn unchanged(&self, scope: u32, sequence: u32) -> bool {
        self.at::<GRANULE>(scope).unchanged(sequence)
    }
}

impl LockLine<'_> {
    /// As [`View::begin_read`], of the scope with this line.
    #[inline(always)]
    pub fn begin_read(self) -> Option<u32> {
        // Acquire pairs with the Release in `release`: we see every store of the last section.
        let sequence = self.word(SEQUENCE).load(Ordering::Acquire);
        (sequence & 1 == 0).then_some(sequence)
    }

    /// As [`View::unchanged`], of the scope with this line.
    #[inline(always)]
    pub fn unchanged(self, sequence: u32) -> bool {
        // Pairs with the Release fence in `enter`: our reads come before this load.
        fence(Ordering::Acquire);
        self.load(SEQUENCE) == sequence
    }
}
