//! The heap use of a thread: for tests of how much that may be.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with counters for each thread.
///
/// ```
/// use tupelo_crashtest::{Allocations, CountingAllocator};
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let (sum, allocations) = Allocations::of(|| vec![1_u8; 1_000].iter().map(|one| u32::from(*one)).sum::<u32>());
/// assert_eq!(sum, 1_000);
/// assert_eq!((allocations.count, allocations.bytes_peak), (1, 1_000));
/// ```
#[derive(Debug)]
pub struct CountingAllocator;

/// The allocations of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocations {
    /// How often it has asked for memory, or for another amount of it.
    pub count: u64,
    /// The most bytes that it had at once, beyond its bytes at the beginning.
    pub bytes_peak: u64,
}

/// Of one thread, since it counts.
#[derive(Clone, Copy)]
struct Counts {
    count: u64,
    /// The bytes in use; below zero where it freed earlier allocations.
    bytes: i64,
    bytes_peak: i64,
}

const NONE: Counts = Counts { count: 0, bytes: 0, bytes_peak: 0 };

thread_local! {
    // Constant and without a destructor: to get at it allocates nothing, at any moment of a thread's life.
    static COUNTS: Cell<Counts> = const { Cell::new(NONE) };
}

impl Allocations {
    /// The allocations of `work`, by this thread.
    ///
    /// Needs [`CountingAllocator`] to be the allocator of the program; with any other there are none.
    pub fn of<R>(work: impl FnOnce() -> R) -> (R, Self) {
        COUNTS.set(NONE);
        let result = work();
        let counts = COUNTS.get();
        let bytes_peak = u64::try_from(counts.bytes_peak).unwrap_or(0);
        (result, Self { count: counts.count, bytes_peak })
    }
}

/// Notes that a thread has so many bytes more, or less.
fn note(allocations: u64, more: usize, less: usize) {
    let mut counts = COUNTS.get();
    counts.count += allocations;
    counts.bytes += signed(more) - signed(less);
    counts.bytes_peak = counts.bytes_peak.max(counts.bytes);
    COUNTS.set(counts);
}

/// No allocation has more bytes than that.
fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

// SAFETY: each call goes to the system's allocator with the same arguments, and returns its answer.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(0, 0, layout.size());
        // SAFETY: the caller's promise; the block came from the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // Both blocks exist while the one is copied into the other.
        note(1, new_size, 0);
        note(0, 0, layout.size());
        // SAFETY: the caller's promise; the block came from the system's allocator.
        unsafe { System.realloc(memory, layout, new_size) }
    }
}
