//! A place for a copy out of a segment: on the stack if it is short.

use std::mem::MaybeUninit;

use crate::access::{Span, View};

/// Room for a copy of bytes of a segment. Not cleared between uses: [`CopyBuffer::copy`] returns only the bytes that it
/// filled.
pub struct CopyBuffer {
    short: [MaybeUninit<u64>; Self::SHORT_BYTES / 8],
    long: Vec<u8>,
    /// The size of the last copy, in bytes; it is in `long` if that is more than `short` has.
    filled_bytes: usize,
}

impl Default for CopyBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl CopyBuffer {
    /// Up to this size, a copy needs no allocation.
    pub const SHORT_BYTES: usize = 512;

    /// An empty buffer; costs nothing.
    #[inline(always)]
    pub const fn new() -> Self {
        let short = [const { MaybeUninit::uninit() }; Self::SHORT_BYTES / 8];
        Self { short, long: Vec::new(), filled_bytes: 0 }
    }

    /// Copies `bytes` bytes at `offset` and returns them. Nothing, and a violation,
    /// if they are not inside the segment: the size is another process's word, so it is checked before
    /// anything is allocated for it.
    #[inline(always)]
    pub fn copy(&mut self, view: &View<'_>, offset: usize, bytes: usize) -> &[u8] {
        self.filled_bytes = 0;
        if bytes > Self::SHORT_BYTES {
            return self.copy_long(view, offset, bytes);
        }
        if !view.reaches(offset, bytes) {
            return &[];
        }
        let short = self.short.as_mut_ptr().cast();
        // SAFETY: `bytes` are no more than `short` has; the view checked where they come from.
        unsafe { view.copy_to(offset, short, bytes) };
        self.filled_bytes = bytes;
        // SAFETY: the first `bytes` bytes were written just now.
        unsafe { std::slice::from_raw_parts(short, bytes) }
    }

    /// Copies a short window and returns the first `bytes` bytes of it, or all if it has no more. It does not look at
    /// how many they are.
    #[inline(always)]
    pub fn copy_window<const N: usize>(&mut self, window: Span<'_, N>, bytes: usize) -> &[u8] {
        const { assert!(N <= Self::SHORT_BYTES) };
        let short = self.short.as_mut_ptr().cast();
        // SAFETY: `short` has room for N bytes.
        unsafe { window.copy_to(short) };
        self.filled_bytes = bytes.min(N);
        // SAFETY: they were written just now.
        unsafe { std::slice::from_raw_parts(short, self.filled_bytes) }
    }

    /// The result of the last copy; empty if there was none.
    #[inline]
    pub fn copied(&self) -> &[u8] {
        if self.filled_bytes > Self::SHORT_BYTES {
            return &self.long;
        }
        // SAFETY: that many bytes were written by the last copy, and are no more than `short` has.
        unsafe { std::slice::from_raw_parts(self.short.as_ptr().cast(), self.filled_bytes) }
    }

    #[cold]
    fn copy_long(&mut self, view: &View<'_>, offset: usize, bytes: usize) -> &[u8] {
        if !view.reaches(offset, bytes) {
            return &[];
        }
        self.long.clear();
        self.long.reserve_exact(bytes);
        // SAFETY: there is room for `bytes`, which are nobody else's; the view checked where they come from.
        unsafe { view.copy_to(offset, self.long.as_mut_ptr(), bytes) };
        // SAFETY: the first `bytes` bytes were written just now.
        unsafe { self.long.set_len(bytes) };
        self.filled_bytes = bytes;
        &self.long
    }
}
