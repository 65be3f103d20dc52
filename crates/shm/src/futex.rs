//! The kernel's services for locks: sleeping on a word, and the robust list that tells of dead owners.
//!
//! The words lie in memory that several processes map. So the futexes are shared ones: the kernel finds sleepers by the
//! page, not by the address.
//!
//! Each thread registers one robust list head. When the thread dies, in whatever way, the kernel looks at the words
//! that the head names. Where a word holds the thread's number it stores `OWNER_DIED` and wakes a sleeper. The C
//! library registers a head per thread for its own mutexes. We share it through the slot `list_op_pending`, whose word
//! the kernel treats like one on the list. The C library uses the slot while it links or unlinks a robust mutex and
//! clears it again. So do we, and in between we call nothing of it.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::num::NonZeroU32;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Another thread woke us, or the kernel did so without cause: look at the word again.
    Woken,
    /// The time ran out.
    TimedOut,
    /// The word no longer had the expected value; there was no sleep.
    Changed,
    /// A signal handler of this thread ran.
    Interrupted,
}

/// Sleeps while `word` holds `expected`, until woken or until `timeout` has passed (`None`: no limit).
///
/// The kernel compares and falls asleep in one step. So a wake between the caller's last look at the word and the sleep
/// is not missed, provided the waker changes the word first.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Wake {
    // A timeout beyond the range of the clock (292 years) is none.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    told(futex::wait(word, Flags::empty(), expected, timeout.as_ref()))
}

fn told(waited: rustix::io::Result<()>) -> Wake {
    match waited {
        Err(Errno::TIMEDOUT) => Wake::TimedOut,
        Err(Errno::AGAIN) => Wake::Changed,
        Err(Errno::INTR) => Wake::Interrupted,
        // Any other error (a page that vanished) makes a sleep impossible: let the caller look again.
        Ok(()) | Err(_) => Wake::Woken,
    }
}

/// Wakes up to `count` sleepers of `word`, in any process. Returns how many there were.
///
/// Costs a system call even if nobody sleeps (250 ns): callers keep a bit that says so.
pub fn wake(word: &AtomicU32, count: u32) -> usize {
    // The kernel takes the count for signed, and all for one.
    let count = count.min(i32::MAX.cast_unsigned());
    // Fails only for a page that vanished, and there nobody can sleep.
    futex::wake(word, Flags::empty(), count).unwrap_or(0)
}

/// As [`wait`], for one of the sleepers of a word that is told apart by bits: [`wake_of`] wakes it if they have a bit in common.
pub fn wait_of(word: &AtomicU32, expected: u32, timeout: Duration, bits: NonZeroU32) -> Wake {
    // This call of the kernel takes a moment, and not a time.
    let now = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default();
    let until = now.checked_add(timeout).and_then(|until| Timespec::try_from(until).ok());
    told(futex::wait_bitset(word, Flags::empty(), expected, until.as_ref(), bits))
}

/// As [`wake`], of the sleepers that have one of these bits. All that sleep by [`wait`] have each bit.
pub fn wake_of(word: &AtomicU32, count: u32, bits: NonZeroU32) -> usize {
    let count = count.min(i32::MAX.cast_unsigned());
    futex::wake_bitset(word, Flags::empty(), count, bits).unwrap_or(0)
}

/// The calling thread's number, as it stands in a robust lock word. A system call (120 ns).
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// The head of a thread's robust list: `struct robust_list_head` of the kernel.
#[derive(Debug)]
#[repr(C)]
pub struct RobustListHead {
    /// The first lock of the list; the head itself if the list is empty.
    list: *mut c_void,
    /// From a list entry to its futex word, in bytes: one figure for all locks of the thread (a C `long`, which is an
    /// `isize` on Linux).
    futex_offset_bytes: isize,
    /// The entry of a lock that is being taken or released, or null.
    list_op_pending: *mut c_void,
}

// The kernel reads it by these offsets; `set_robust_list` refuses another size.
const _: () = assert!(size_of::<RobustListHead>() == 24);

thread_local! {
    /// For threads without a head of the C library (musl sets one up at the first robust mutex only).
    static OWN_HEAD: UnsafeCell<RobustListHead> = const {
        UnsafeCell::new(RobustListHead {
            list: ptr::null_mut(),
            futex_offset_bytes: 0,
            list_op_pending: ptr::null_mut(),
        })
    };
}

/// The calling thread's robust list head; registers one if there is none.
///
/// It stays valid until the thread ends. In the child of a fork it stays valid until the child asks for it anew: the
/// kernel forgets it there, while the C library registers its own again.
pub fn robust_head() -> *mut RobustListHead {
    let mut head: *mut RobustListHead = ptr::null_mut();
    let mut head_bytes = 0_usize;
    // SAFETY: thread 0 is the calling one; both pointers are to local variables of the right size.
    let code =
        unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut head_bytes) };
    if code == 0 && !head.is_null() && head_bytes == size_of::<RobustListHead>() {
        return head;
    }
    let own = OWN_HEAD.with(UnsafeCell::get);
    // SAFETY: `own` is this thread's, and no reference to it exists. The kernel takes a list that
    // leads back to its head for empty.
    unsafe { (*own).list = own.cast() };
    // SAFETY: the head lives in the thread's static storage, which outlives the thread's last
    // instruction; the kernel reads it at that point at the latest.
    let code =
        unsafe { libc::syscall(libc::SYS_set_robust_list, own, size_of::<RobustListHead>()) };
    // A kernel without robust futexes: nobody reads the head then, and recoverers find the dead by time.
    let _ = code;
    own
}

/// Names `word` as the lock that the calling thread is about to take or release.
///
/// # Safety
///
/// `head` is what [`robust_head`] returned to this thread in this process, and it lives.
#[inline(always)]
pub unsafe fn set_pending(head: *mut RobustListHead, word: &AtomicU32) {
    // SAFETY: the caller's promise; `futex_offset` is set once, when the head is registered.
    let futex_offset_bytes = unsafe { (*head).futex_offset_bytes };
    let entry = word.as_ptr().cast::<c_void>().wrapping_byte_offset(-futex_offset_bytes);
    // SAFETY: the caller's promise.
    unsafe { store_pending(head, entry) };
    // The lock word must not be touched before it is named.
    compiler_fence(Ordering::SeqCst);
}

/// Says that no lock is being taken or released any more.
///
/// # Safety
///
/// As for [`set_pending`].
#[inline(always)]
pub unsafe fn clear_pending(head: *mut RobustListHead) {
    // Nor after it is no longer.
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the caller's promise.
    unsafe { store_pending(head, ptr::null_mut()) };
}

/// # Safety
///
/// As for [`set_pending`].
#[inline(always)]
unsafe fn store_pending(head: *mut RobustListHead, entry: *mut c_void) {
    // SAFETY: the head lives, by the caller's promise.
    let slot = unsafe { &raw mut (*head).list_op_pending };
    // SAFETY: as above, and only this thread stores here. Volatile: the reader is the kernel, of which
    // the compiler knows nothing.
    unsafe { slot.write_volatile(entry) };
}
