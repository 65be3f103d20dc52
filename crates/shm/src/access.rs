//! Checked access to shared memory by offset: the only way anything above this crate touches a segment.
//!
//! Nothing in a segment is a pointer: addresses differ per process, offsets do not. Some process wrote the offset,
//! perhaps a damaged one, so it is input (rule C5). A [`View`] checks it against the committed size before it becomes
//! an address. A violating offset leads to a page of zeros, and the view remembers the violation. So the code that
//! walks a structure needs no error path at each step: zeros end every walk. The owner of the view asks once, at the
//! end, whether the data was real.
//!
//! Racing accesses are part of the design (optimistic readers), so every load and store is atomic.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::copy;
use crate::error::Error;
use crate::liveness;
use crate::removal;
use crate::superblock::{STATE, State};
use crate::table::COMMITTED;

/// Bytes of a granule: the unit in which blocks are addressed, and a cache line.
pub const GRANULE: usize = 64;

/// Largest window that a violating offset can be answered with.
const ZEROS_BYTES: usize = 4096;

#[repr(align(4096))]
struct Zeros([AtomicU64; ZEROS_BYTES / 8]);

/// The memory behind a violating offset. Stores that land here are lost: their operation ends with an error, and the
/// next violation makes it zeros again. Per process, so no other process can fill it.
static ZEROS: Zeros = Zeros([const { AtomicU64::new(0) }; ZEROS_BYTES / 8]);

/// A window of `N` bytes into a segment, known to lie inside it and to begin at a multiple of eight.
/// Offsets into it that are constants cost no check at run time.
#[derive(Clone, Copy)]
pub struct Span<'m, const N: usize> {
    start: *const u8,
    mapping: PhantomData<&'m AtomicU32>,
}

impl<'m, const N: usize> Span<'m, N> {
    /// The window at `start`.
    ///
    /// # Safety
    ///
    /// `N` bytes from `start`, which is 8-aligned, lie in a mapping, are committed, and stay so for `'m`.
    #[inline(always)]
    pub(crate) const unsafe fn at_address(start: *const u8) -> Self {
        Self { start, mapping: PhantomData }
    }

    /// A window that nothing is asked of.
    pub(crate) const fn of_nothing() -> Self {
        Self { start: std::ptr::null(), mapping: PhantomData }
    }

    /// The same window, to be kept.
    ///
    /// # Safety
    ///
    /// As for [`Span::at_address`], for good.
    #[inline(always)]
    pub(crate) const unsafe fn kept(self) -> Span<'static, N> {
        Span { start: self.start, mapping: PhantomData }
    }

    /// The word at `at`, for operations that need more than a load or a store.
    ///
    /// # Panics
    ///
    /// If the word is not aligned or not inside the window: a bug of the caller, not of the data.
    #[inline(always)]
    pub fn word(self, at: usize) -> &'m AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= N, "word outside of its window");
        // SAFETY: the constructor checked that N bytes from `start`, which is 8-aligned, lie in memory that
        // stays mapped for 'm; `at` is inside and aligned. Atomic, so races are defined.
        unsafe { &*self.start.wrapping_add(at).cast::<AtomicU32>() }
    }

    /// The double word at `at`.
    ///
    /// # Panics
    ///
    /// If it is not aligned or not inside the window.
    #[inline(always)]
    pub fn double(self, at: usize) -> &'m AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= N, "double word outside of its window");
        // SAFETY: as in `word`; spans begin 8-aligned, so the double word is aligned too.
        unsafe { &*self.start.wrapping_add(at).cast::<AtomicU64>() }
    }

    /// The window of `M` bytes that begins at `at` inside of this one. Checked against this window, not
    /// against the segment: nothing at run time if `at` is a constant.
    ///
    /// # Panics
    ///
    /// If it is not aligned to eight or does not end inside: a bug of the caller, not of the data.
    #[inline(always)]
    pub fn part<const M: usize>(self, at: usize) -> Span<'m, M> {
        assert!(at.is_multiple_of(8) && at <= N && M <= N - at, "part outside of its window");
        // Inside of a window that was checked, and aligned as it is.
        Span { start: self.start.wrapping_add(at), mapping: PhantomData }
    }

    /// The word at `at`, to be kept: what [`crate::Section::set_word`] stores into.
    ///
    /// # Panics
    ///
    /// As [`Span::word`].
    #[inline(always)]
    pub fn place(self, at: usize) -> Word<'m> {
        Word { word: self.word(at) }
    }

    /// Loads the word at `at`. No ordering: the lock or the sequence check around it orders.
    #[inline(always)]
    pub fn load(self, at: usize) -> u32 {
        self.word(at).load(Ordering::Relaxed)
    }

    /// Loads the double word at `at`.
    #[inline(always)]
    pub fn load64(self, at: usize) -> u64 {
        self.double(at).load(Ordering::Relaxed)
    }

    /// Stores a word that means nothing yet: the body of a free block, a field of an unlinked record.
    /// What others can reach is stored with [`crate::Section::set`] instead.
    #[inline(always)]
    pub fn init(self, at: usize, value: u32) {
        self.word(at).store(value, Ordering::Relaxed);
    }

    /// Stores a double word that means nothing yet.
    #[inline(always)]
    pub fn init64(self, at: usize, value: u64) {
        self.double(at).store(value, Ordering::Relaxed);
    }

    /// The memory behind `at`, as a window whose length is known at run time only.
    ///
    /// # Panics
    ///
    /// If `at` is not aligned to eight or not inside: a bug of the caller.
    #[inline]
    pub fn rest(self, at: usize) -> Fresh<'m> {
        assert!(at.is_multiple_of(8) && at <= N, "rest outside of its window");
        // Inside of a window that was checked, and aligned as it is.
        let start = self.start.wrapping_add(at);
        Fresh { start, doubles: (N - at) / 8, mapping: PhantomData }
    }

    /// Copies the window to `to`.
    ///
    /// # Safety
    ///
    /// `to` is the caller's and has room for `N` bytes.
    #[inline(always)]
    pub(crate) unsafe fn copy_to(self, to: *mut u8) {
        // SAFETY: the constructor checked that N bytes from `start` are mapped; `to` is by the caller's promise.
        unsafe { copy::copy_exactly::<N>(self.start, to) };
    }

    /// Which of the first eight words equal `value`: bit `i` for word `i`.
    ///
    /// # Panics
    ///
    /// If the window has fewer than eight words: a bug of the caller.
    #[inline(always)]
    pub fn equal_words(self, value: u32) -> u32 {
        assert!(N >= 32, "fewer than eight words");
        #[cfg(target_arch = "x86_64")]
        {
            let set: u32;
            // SAFETY: reads 32 bytes of the window, with loads that need no alignment. Assembly, since other processes
            // may write meanwhile. A racing vector load in Rust would be undefined; a load that the compiler does not
            // see is a plain load.
            unsafe {
                std::arch::asm!(
                    "movd {t}, {value:e}",
                    "pshufd {t}, {t}, 0",
                    "movdqu {x}, [{p}]",
                    "movdqu {y}, [{p} + 16]",
                    "pcmpeqd {x}, {t}",
                    "pcmpeqd {y}, {t}",
                    "packssdw {x}, {y}",
                    "packsswb {x}, {x}",
                    "pmovmskb {set:e}, {x}",
                    value = in(reg) value,
                    p = in(reg) self.start,
                    t = out(xmm_reg) _,
                    x = out(xmm_reg) _,
                    y = out(xmm_reg) _,
                    set = lateout(reg) set,
                    options(readonly, nostack, preserves_flags),
                );
            }
            set & 0xff
        }
        #[cfg(not(target_arch = "x86_64"))]
        (0..8).fold(0, |set, i| set | u32::from(self.load(4 * i) == value) << i)
    }
}

/// One word of a segment, known to lie inside it.
#[derive(Clone, Copy)]
pub struct Word<'m> {
    pub(crate) word: &'m AtomicU32,
}

impl Word<'_> {
    /// Loads the word, without ordering.
    #[inline(always)]
    pub fn load(self) -> u32 {
        self.word.load(Ordering::Relaxed)
    }
}

/// A window whose length is known at run time only: so many double words, which nobody else can reach yet.
#[derive(Clone, Copy)]
pub struct Fresh<'m> {
    start: *const u8,
    doubles: usize,
    mapping: PhantomData<&'m AtomicU64>,
}

impl Fresh<'_> {
    /// Stores double word number `index`.
    ///
    /// # Panics
    ///
    /// If it is not inside the window: a bug of the caller, not of the data.
    #[inline(always)]
    pub fn init(self, index: usize, value: u64) {
        assert!(index < self.doubles, "double word outside of its window");
        // SAFETY: the constructor checked that so many double words from `start`, which is 8-aligned, lie in memory
        // that stays mapped for 'm. `index` is one of them. Atomic, so races are defined.
        let double = unsafe { &*self.start.cast::<AtomicU64>().wrapping_add(index) };
        double.store(value, Ordering::Relaxed);
    }

    /// Copies `bytes` to the byte offset `at`.
    ///
    /// # Panics
    ///
    /// If they do not end inside the window.
    #[inline]
    pub fn copy_in_at(self, at: usize, bytes: &[u8]) {
        let end = at.checked_add(bytes.len());
        assert!(end.is_some_and(|end| end <= 8 * self.doubles), "bytes outside of their window");
        // SAFETY: `at` is inside the window, as is the end.
        let to = unsafe { self.start.add(at).cast_mut() };
        // SAFETY: all of `bytes` end inside the window, which is mapped; `copy_in` tolerates readers.
        unsafe { copy::copy_in(bytes, to) };
    }
}

/// Access to one segment during one operation: base, committed size, and whether an offset failed.
pub struct View<'m> {
    base: *const u8,
    limit: usize,
    /// The last place where the largest window may begin: what begins no later needs no further look, whatever its
    /// size.
    last: usize,
    /// 0 or 1; a whole word, since padding after it would be copied around with every section.
    violated: Cell<usize>,
    mapping: PhantomData<&'m AtomicU32>,
}

impl<'m> View<'m> {
    /// The least that a view shows: as much as the largest window. So the last place where a window may begin is never
    /// negative, and one comparison checks it.
    pub(crate) const BYTES_MIN: usize = ZEROS_BYTES;

    /// A view of the first `limit` bytes from `base`.
    ///
    /// # Safety
    ///
    /// `limit` bytes from `base`, which is page-aligned, are mapped readable and writable, and stay so for `'m`. This
    /// process accesses them only through views. `limit` is at least [`View::BYTES_MIN`].
    #[inline(always)]
    pub(crate) const unsafe fn new(base: *const u8, limit: usize) -> Self {
        debug_assert!(limit >= Self::BYTES_MIN, "a view is larger than any window");
        let last = limit - Self::BYTES_MIN;
        Self { base, limit, last, violated: Cell::new(0), mapping: PhantomData }
    }

    /// A view that nothing is asked of.
    pub(crate) const fn of_nothing() -> Self {
        let (base, limit, violated) = (std::ptr::null(), Self::BYTES_MIN, Cell::new(0));
        Self { base, limit, last: 0, violated, mapping: PhantomData }
    }

    /// The same view, to be kept.
    ///
    /// # Safety
    ///
    /// As for [`View::new`], for good.
    pub(crate) unsafe fn kept(self) -> View<'static> {
        let Self { base, limit, last, violated, .. } = self;
        View { base, limit, last, violated, mapping: PhantomData }
    }

    /// Where the segment begins in this process.
    #[inline(always)]
    pub(crate) fn base(&self) -> *const u8 {
        self.base
    }

    /// The window of `N` bytes at `offset`. Outside of the segment: zeros, and the view is violated.
    #[inline(always)]
    pub fn span<const N: usize>(&self, offset: usize) -> Span<'m, N> {
        const { assert!(N <= ZEROS_BYTES) };
        // The first test vanishes where the compiler sees that the offset is made of granules.
        if !offset.is_multiple_of(8) || offset > self.last {
            return self.late_window(offset);
        }
        self.window(offset)
    }

    /// The window of `N` bytes at granule `granule`; 0 is the null reference and a violation.
    #[inline(always)]
    pub fn at<const N: usize>(&self, granule: u32) -> Span<'m, N> {
        self.window_at(granule).unwrap_or_else(|| self.violation())
    }

    /// As [`View::at`], but `None`, and no violation, where there is no such window. For references that another
    /// process may have stored since this view was made: they may lead to memory that is newer than the view.
    #[inline(always)]
    pub fn window_at<const N: usize>(&self, granule: u32) -> Option<Span<'m, N>> {
        const { assert!(N <= ZEROS_BYTES) };
        let offset = granule as usize * GRANULE;
        // Wraps for the null reference.
        let is_early = offset.wrapping_sub(1) < self.last;
        (is_early || self.holds_late(granule, N)).then(|| self.window(offset))
    }

    /// Whether there is a window of `bytes` bytes at `granule`, which is 0, near the end, or beyond it.
    #[cold]
    #[inline(never)]
    fn holds_late(&self, granule: u32, bytes: usize) -> bool {
        granule != 0 && self.holds(granule as usize * GRANULE, bytes)
    }

    /// The window at an offset that is near the end of the segment, or none.
    #[cold]
    #[inline(never)]
    fn late_window<const N: usize>(&self, offset: usize) -> Span<'m, N> {
        if !offset.is_multiple_of(8) || !self.holds(offset, N) {
            return self.violation();
        }
        self.window(offset)
    }

    /// The window at `offset`, which was checked.
    #[inline(always)]
    fn window<const N: usize>(&self, offset: usize) -> Span<'m, N> {
        liveness::access(self.base, offset, N);
        Span { start: self.base.wrapping_add(offset), mapping: PhantomData }
    }

    #[cold]
    #[inline(never)]
    fn violation<const N: usize>(&self) -> Span<'m, N> {
        self.violated.set(1);
        ZEROS.0.iter().for_each(|double| double.store(0, Ordering::Relaxed));
        Span { start: ZEROS.0.as_ptr().cast(), mapping: PhantomData }
    }

    /// Where a window of this segment begins, as an offset. For a violating one: beyond the segment, so that it
    /// is refused again wherever it comes back from, the undo log for one.
    #[inline(always)]
    pub fn offset_of<const N: usize>(&self, window: Span<'m, N>) -> usize {
        self.offset_at(window.start)
    }

    /// The offset of an address. The mapping fills all addresses from its base on, so that of anything else
    /// is beyond its end, or negative, which is further beyond.
    #[inline(always)]
    pub(crate) fn offset_at(&self, address: *const u8) -> usize {
        address.addr().wrapping_sub(self.base.addr())
    }

    /// The window of `bytes` bytes at `offset`, rounded up to double words, for memory that no other process can reach
    /// yet.
    /// Outside of the segment: none, and the view is violated.
    #[inline(always)]
    pub fn fresh(&self, offset: usize, bytes: usize) -> Option<Fresh<'m>> {
        let doubles = bytes.div_ceil(8);
        if !offset.is_multiple_of(8) || !self.holds(offset, 8 * doubles) {
            self.violate();
            return None;
        }
        liveness::access(self.base, offset, 8 * doubles);
        Some(Fresh { start: self.base.wrapping_add(offset), doubles, mapping: PhantomData })
    }

    /// Whether some offset lay outside of the segment, or a walk found what cannot be.
    #[inline(always)]
    pub fn violated(&self) -> bool {
        self.violated.get() != 0
    }

    /// Notes that the structure contradicts itself (a walk longer than the segment can hold, a state
    /// that does not exist).
    #[cold]
    #[inline(never)]
    pub fn violate(&self) {
        self.violated.set(1);
    }

    /// How many granules the view reaches over.
    #[inline(always)]
    pub fn granules(&self) -> u32 {
        u32::try_from(self.limit / GRANULE).unwrap_or(u32::MAX)
    }

    /// How far the view reaches, in bytes.
    #[inline(always)]
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// As [`crate::Memory::poison`], for the segment in view.
    #[cold]
    pub(crate) fn poison(&self) {
        let state = self.span::<8>(STATE & !7).word(STATE & 4);
        let (good, poisoned) = (State::Good as u32, State::Poisoned as u32);
        // One that was removed stays so: what is found there after that is no damage.
        let _ = state.compare_exchange(good, poisoned, Ordering::Release, Ordering::Relaxed);
        // Release pairs with the Acquire where views are made.
        self.span::<8>(COMMITTED).word(0).store(0, Ordering::Release);
    }

    /// Why nothing can be had of the segment in view, whose views were stopped.
    #[cold]
    pub(crate) fn refusal(&self) -> Error {
        removal::refusal(self)
    }

    /// Reaches up to `limit` from here on, which is no further than the segment: what lies beyond is zeros, and
    /// violates. Returns how far it reached before.
    ///
    /// # Safety
    ///
    /// As for [`View::new`].
    #[inline(always)]
    pub(crate) unsafe fn reach(&mut self, limit: usize) -> usize {
        debug_assert!(limit >= Self::BYTES_MIN, "a view is larger than any window");
        self.last = limit - Self::BYTES_MIN;
        std::mem::replace(&mut self.limit, limit)
    }

    /// Forgets violations: an optimistic reader that raced with a writer saw garbage, not damage.
    #[inline]
    pub fn forgive(&self) {
        self.violated.set(0);
    }

    /// Copies `out.len()` bytes at `offset` out of the segment; zeros if they are not inside.
    #[inline(always)]
    pub fn copy_out(&self, offset: usize, out: &mut [u8]) {
        if !self.holds(offset, out.len()) {
            self.violated.set(1);
            out.fill(0);
            return;
        }
        liveness::access(self.base, offset, out.len());
        // SAFETY: `holds` checked the range; `copy_out` tolerates concurrent writers.
        unsafe { copy::copy_out(self.base.wrapping_add(offset), out) };
    }

    /// Copies `bytes` bytes at `offset` to `to`.
    ///
    /// # Safety
    ///
    /// The view [`reaches`](Self::reaches) them, and `to` is the caller's and has room for as many.
    #[inline(always)]
    pub(crate) unsafe fn copy_to(&self, offset: usize, to: *mut u8, bytes: usize) {
        liveness::access(self.base, offset, bytes);
        // SAFETY: both by the caller's promise; `copy_raw` tolerates concurrent writers.
        unsafe { copy::copy_raw(self.base.wrapping_add(offset), to, bytes) };
    }

    /// Copies `bytes` into the segment at `offset`, where nobody else can reach yet.
    #[inline(always)]
    pub fn copy_in(&self, offset: usize, bytes: &[u8]) {
        if !self.holds(offset, bytes.len()) {
            self.violated.set(1);
            return;
        }
        liveness::access(self.base, offset, bytes.len());
        // SAFETY: `holds` checked the range; `copy_in` tolerates concurrent readers.
        unsafe { copy::copy_in(bytes, self.base.wrapping_add(offset).cast_mut()) };
    }

    /// Copies `bytes` bytes from one offset to another, where nobody else can reach yet; both are multiples of eight.
    #[inline(always)]
    pub fn copy_across(&self, from: usize, to: usize, bytes: usize) {
        let is_aligned = (from | to).is_multiple_of(8);
        if !is_aligned || !self.holds(from, bytes) || !self.holds(to, bytes) {
            self.violated.set(1);
            return;
        }
        liveness::access(self.base, from, bytes);
        liveness::access(self.base, to, bytes);
        let (from, to) = (self.base.wrapping_add(from), self.base.wrapping_add(to));
        // SAFETY: `holds` checked the ranges, and they are aligned; `copy_across` tolerates concurrent readers.
        unsafe { copy::copy_across(from, to.cast_mut(), bytes) };
    }

    /// Whether `len` bytes at `offset` lie inside; notes a violation if not.
    #[inline]
    pub fn reaches(&self, offset: usize, len: usize) -> bool {
        let holds = self.holds(offset, len);
        if !holds {
            self.violated.set(1);
        }
        holds
    }

    #[inline(always)]
    pub(crate) fn holds(&self, offset: usize, len: usize) -> bool {
        offset <= self.limit && len <= self.limit - offset
    }
}
