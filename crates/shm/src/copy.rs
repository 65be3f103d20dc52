//! Copies between a segment and private memory, while other processes may write to the segment.
//!
//! An optimistic reader copies first and checks afterwards that nothing changed. A plain copy that races with a writer
//! is undefined behaviour in Rust even if its result is thrown away; a relaxed atomic access is not. So on x86-64 the
//! bytes are moved by assembly, as fast as `memcpy`: the compiler must take it for accesses of that kind. Elsewhere
//! they are moved by relaxed atomic words.
//!
//! The copy as a whole is not atomic: each byte is from before or after a concurrent store. No ordering:
//! the fences of the caller order.

/// Copies `to.len()` bytes at `from`, which others may write meanwhile, to private memory.
///
/// # Safety
///
/// `to.len()` bytes at `from` are mapped readable, do not overlap `to`, and are written concurrently
/// through atomics, this module or other processes only.
#[inline(always)]
pub(crate) unsafe fn copy_out(from: *const u8, to: &mut [u8]) {
    // SAFETY: `to` is valid for writes and ours alone; the caller vouches for `from`.
    unsafe { copy_raw(from, to.as_mut_ptr(), to.len()) };
}

/// As [`copy_out`], to memory that may not be initialised yet.
///
/// # Safety
///
/// As for [`copy_out`]; `to` is valid for writes of `bytes` bytes, which are the caller's alone.
#[inline(always)]
pub(crate) unsafe fn copy_raw(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy(from, to, bytes, Shared::Source) };
}

/// As [`copy_raw`], for a number of bytes that is known when the caller is compiled.
///
/// # Safety
///
/// As for [`copy_raw`], of `N` bytes.
#[inline(always)]
pub(crate) unsafe fn copy_exactly<const N: usize>(from: *const u8, to: *mut u8) {
    let (pieces, rest) = (N / PIECE_BYTES, N % PIECE_BYTES);
    for piece in 0..pieces {
        let at = piece * PIECE_BYTES;
        // SAFETY: a whole piece of the caller's range, on both sides.
        unsafe { copy_raw(from.wrapping_add(at), to.wrapping_add(at), PIECE_BYTES) };
    }
    let at = pieces * PIECE_BYTES;
    // SAFETY: the rest of the caller's range, on both sides.
    unsafe { copy_raw(from.wrapping_add(at), to.wrapping_add(at), rest) };
}

/// The most that is copied without a loop.
const PIECE_BYTES: usize = 32;

/// Copies private bytes to `to`, which others may read meanwhile.
///
/// # Safety
///
/// `from.len()` bytes at `to` are mapped writable, do not overlap `from`, and are accessed concurrently
/// through atomics, this module or other processes only.
#[inline(always)]
pub(crate) unsafe fn copy_in(from: &[u8], to: *mut u8) {
    // SAFETY: `from` is valid for reads and nobody writes it; the caller vouches for `to`.
    unsafe { copy(from.as_ptr(), to, from.len(), Shared::Target) };
}

/// Copies bytes from one place in a segment to another.
///
/// # Safety
///
/// `bytes` bytes at `from` are mapped readable, as many at `to` writable, both aligned to eight. Concurrent accesses to
/// both are through atomics, this module or other processes only.
#[inline(always)]
pub(crate) unsafe fn copy_across(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise. Should a damaged segment make them overlap, the copy is damaged too.
    unsafe { copy(from, to, bytes, Shared::Both) };
}

/// Which side others access.
#[derive(Clone, Copy)]
enum Shared {
    Source,
    Target,
    Both,
}

#[cfg(target_arch = "x86_64")]
use assembly::copy;
#[cfg(not(target_arch = "x86_64"))]
use words::copy;

#[cfg(target_arch = "x86_64")]
mod assembly {
    use std::arch::asm;

    use super::Shared;

    /// From here on `rep movsb`, which moves whole cache lines, makes up for its start (measured).
    const STRING_MOVE_BYTES: usize = 2048;

    /// # Safety
    ///
    /// `bytes` bytes are readable at `from`, writable at `to`, and do not overlap.
    #[inline(always)]
    pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize, _: Shared) {
        // To assembly both sides are alike.
        // Two moves that may overlap cover any size from one to two of their width.
        match bytes {
            0 => {}
            // SAFETY: the caller's promise holds for the whole range; 1 to 3 bytes.
            1..=3 => unsafe { up_to_3(from, to, bytes) },
            // SAFETY: as above; 4 to 7 bytes.
            4..=7 => unsafe { ends_of_4(from, to, bytes - 4) },
            // SAFETY: as above; 8 to 15 bytes.
            8..=15 => unsafe { ends_of_8(from, to, bytes - 8) },
            // SAFETY: as above; 16 to 32 bytes.
            16..=32 => unsafe { ends_of_16(from, to, bytes - 16) },
            // SAFETY: as above; more than 32 bytes.
            33..STRING_MOVE_BYTES => unsafe { by_32(from, to, bytes - 32) },
            // SAFETY: as above.
            _ => unsafe { string_move(from, to, bytes) },
        }
    }

    #[inline(always)]
    unsafe fn up_to_3(from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: first, middle and last byte of the caller's range, which may coincide.
        unsafe {
            asm!(
                "movzx {first:e}, byte ptr [{from}]",
                "movzx {middle:e}, byte ptr [{from} + {half}]",
                "movzx {end:e}, byte ptr [{from} + {last}]",
                "mov byte ptr [{to}], {first:l}",
                "mov byte ptr [{to} + {half}], {middle:l}",
                "mov byte ptr [{to} + {last}], {end:l}",
                from = in(reg) from, to = in(reg) to, half = in(reg) bytes / 2, last = in(reg) bytes - 1,
                first = out(reg) _, middle = out(reg) _, end = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn ends_of_4(from: *const u8, to: *mut u8, last: usize) {
        // SAFETY: 4 bytes at the beginning and 4 at `last` end where the caller's range ends.
        unsafe {
            asm!(
                "mov {first:e}, dword ptr [{from}]",
                "mov {end:e}, dword ptr [{from} + {last}]",
                "mov dword ptr [{to}], {first:e}",
                "mov dword ptr [{to} + {last}], {end:e}",
                from = in(reg) from, to = in(reg) to, last = in(reg) last,
                first = out(reg) _, end = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn ends_of_8(from: *const u8, to: *mut u8, last: usize) {
        // SAFETY: as in `ends_of_4`, with 8 bytes.
        unsafe {
            asm!(
                "mov {first}, qword ptr [{from}]",
                "mov {end}, qword ptr [{from} + {last}]",
                "mov qword ptr [{to}], {first}",
                "mov qword ptr [{to} + {last}], {end}",
                from = in(reg) from, to = in(reg) to, last = in(reg) last,
                first = out(reg) _, end = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn ends_of_16(from: *const u8, to: *mut u8, last: usize) {
        // SAFETY: as in `ends_of_4`, with 16 bytes.
        unsafe {
            asm!(
                "movdqu {first}, xmmword ptr [{from}]",
                "movdqu {end}, xmmword ptr [{from} + {last}]",
                "movdqu xmmword ptr [{to}], {first}",
                "movdqu xmmword ptr [{to} + {last}], {end}",
                from = in(reg) from, to = in(reg) to, last = in(reg) last,
                first = out(xmm_reg) _, end = out(xmm_reg) _,
                options(nostack, preserves_flags),
            );
        }
    }

    /// Steps of 64 bytes are no faster: 16 bytes are stored per cycle either way (measured).
    #[inline(always)]
    unsafe fn by_32(from: *const u8, to: *mut u8, last: usize) {
        // SAFETY: steps of 32 bytes begin below `last`, and a final one at `last`, where 32 bytes of the caller's range
        // are left. The final step may overlap the one before.
        unsafe {
            asm!(
                "2:",
                "movdqu {low}, xmmword ptr [{from} + {at}]",
                "movdqu {high}, xmmword ptr [{from} + {at} + 16]",
                "movdqu xmmword ptr [{to} + {at}], {low}",
                "movdqu xmmword ptr [{to} + {at} + 16], {high}",
                "add {at}, 32",
                "cmp {at}, {last}",
                "jb 2b",
                "movdqu {low}, xmmword ptr [{from} + {last}]",
                "movdqu {high}, xmmword ptr [{from} + {last} + 16]",
                "movdqu xmmword ptr [{to} + {last}], {low}",
                "movdqu xmmword ptr [{to} + {last} + 16], {high}",
                from = in(reg) from, to = in(reg) to, last = in(reg) last,
                at = inout(reg) 0_usize => _, low = out(xmm_reg) _, high = out(xmm_reg) _,
                options(nostack),
            );
        }
    }

    #[inline(always)]
    unsafe fn string_move(from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: moves the caller's range upwards; the ABI keeps the direction flag clear.
        unsafe {
            asm!(
                "rep movsb",
                inout("rcx") bytes => _, inout("rsi") from => _, inout("rdi") to => _,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(any(not(target_arch = "x86_64"), test))]
mod words {
    use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

    use super::Shared;

    const WORD_BYTES: usize = size_of::<usize>();

    /// # Safety
    ///
    /// `bytes` bytes are readable at `from`, writable at `to`, and do not overlap. Others access the shared side as
    /// [`super::copy_out`] allows; the other side is the caller's alone.
    pub(super) unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize, shared: Shared) {
        let side = match shared {
            // Of both, either: they are aligned alike.
            Shared::Source | Shared::Both => from,
            Shared::Target => to.cast_const(),
        };
        let head_bytes = side.align_offset(WORD_BYTES).min(bytes);
        let words_end = head_bytes + (bytes - head_bytes) / WORD_BYTES * WORD_BYTES;
        for at in (0..head_bytes).chain(words_end..bytes) {
            // SAFETY: `at` is inside the caller's range.
            let from = unsafe { from.add(at) };
            // SAFETY: as above.
            let to = unsafe { to.add(at) };
            // SAFETY: both are valid for a byte, and the shared one is accessed by atomics only.
            unsafe { copy_byte(from, to, shared) };
        }
        for at in (head_bytes..words_end).step_by(WORD_BYTES) {
            // SAFETY: a whole word at `at` is inside the caller's range.
            let from = unsafe { from.add(at) };
            // SAFETY: as above.
            let to = unsafe { to.add(at) };
            // SAFETY: both are valid for a word; the shared one is aligned, as `side` was aligned up to
            // `head_bytes`, and accessed by atomics only.
            unsafe { copy_word(from.cast(), to.cast(), shared) };
        }
    }

    /// # Safety
    ///
    /// `from` is valid for a read, `to` for a write.
    unsafe fn copy_byte(from: *const u8, to: *mut u8, shared: Shared) {
        match shared {
            Shared::Source => {
                // SAFETY: the caller's promise; an atomic only for the time of one load.
                let byte = unsafe { AtomicU8::from_ptr(from.cast_mut()) }.load(Ordering::Relaxed);
                // SAFETY: the caller's promise, and private.
                unsafe { to.write(byte) };
            }
            Shared::Target => {
                // SAFETY: the caller's promise, and private.
                let byte = unsafe { from.read() };
                // SAFETY: the caller's promise; an atomic only for the time of one store.
                unsafe { AtomicU8::from_ptr(to) }.store(byte, Ordering::Relaxed);
            }
            Shared::Both => {
                // SAFETY: the caller's promise; an atomic only for the time of one load.
                let byte = unsafe { AtomicU8::from_ptr(from.cast_mut()) }.load(Ordering::Relaxed);
                // SAFETY: the caller's promise; an atomic only for the time of one store.
                unsafe { AtomicU8::from_ptr(to) }.store(byte, Ordering::Relaxed);
            }
        }
    }

    /// # Safety
    ///
    /// `from` is valid for a read, `to` for a write, and the shared one of them is aligned.
    unsafe fn copy_word(from: *const usize, to: *mut usize, shared: Shared) {
        match shared {
            Shared::Source => {
                // SAFETY: the caller's promise; an atomic only for the time of one load.
                let word =
                    unsafe { AtomicUsize::from_ptr(from.cast_mut()) }.load(Ordering::Relaxed);
                // SAFETY: the caller's promise, and private.
                unsafe { to.write_unaligned(word) };
            }
            Shared::Target => {
                // SAFETY: the caller's promise, and private.
                let word = unsafe { from.read_unaligned() };
                // SAFETY: the caller's promise; an atomic only for the time of one store.
                unsafe { AtomicUsize::from_ptr(to) }.store(word, Ordering::Relaxed);
            }
            Shared::Both => {
                // SAFETY: the caller's promise; an atomic only for the time of one load.
                let word =
                    unsafe { AtomicUsize::from_ptr(from.cast_mut()) }.load(Ordering::Relaxed);
                // SAFETY: the caller's promise: it is aligned as `from` is.
                unsafe { AtomicUsize::from_ptr(to) }.store(word, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Copy = unsafe fn(*const u8, *mut u8, usize, Shared);

    /// Copies every size up to 300 bytes and around the limits between methods, at every alignment.
    fn check(copy: Copy) {
        let from: Vec<u8> = (0..40_000_usize)
            .map(|index| ((index * 7 + index / 256) % 251).try_into().unwrap())
            .collect();
        let sizes = (0..300).chain([2046, 2047, 2048, 2049, 4095, 4096, 16_384, 30_000]);
        for (bytes, offset) in sizes.flat_map(|bytes| (0..9).map(move |offset| (bytes, offset))) {
            for shared in [Shared::Source, Shared::Target] {
                let mut to = vec![0xa5; bytes + 64];
                let target = to[16 + offset..].as_mut_ptr();
                // SAFETY: the vectors hold `bytes` bytes from these offsets, and are different ones.
                unsafe { copy(from[offset..].as_ptr(), target, bytes, shared) };
                let (before, rest) = to.split_at(16 + offset);
                let (copied, after) = rest.split_at(bytes);
                assert_eq!(copied, &from[offset..offset + bytes]);
                assert!(
                    before.iter().chain(after).all(|&byte| byte == 0xa5),
                    "{bytes} at {offset}"
                );
            }
        }
    }

    /// Copies every size from one aligned place to another.
    fn check_across(copy: Copy) {
        for bytes in (0..300).chain([2046, 2048, 4095, 16_384]) {
            let from: Vec<u64> = (0..=bytes as u64 / 8).map(|word| word * 0x0101_0101).collect();
            let mut to = vec![u64::MAX; from.len() + 2];
            let (source, target) = (from.as_ptr().cast(), to[1..].as_mut_ptr().cast());
            // SAFETY: the vectors hold `bytes` bytes from there, aligned to eight, and are different ones.
            unsafe { copy(source, target, bytes, Shared::Both) };
            let all = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let (from, to): (Vec<u8>, Vec<u8>) = (all(&from), all(&to));
            assert_eq!(to[8..8 + bytes], from[..bytes]);
            assert!(to[..8].iter().chain(&to[8 + bytes..]).all(|&byte| byte == 0xff), "{bytes}");
        }
    }

    #[test]
    fn a_copy_between_two_places_of_a_segment_moves_exactly_its_bytes() {
        check_across(copy);
        check_across(words::copy);
    }

    #[test]
    fn a_copy_moves_exactly_its_bytes() {
        check(copy);
    }

    #[test]
    fn a_copy_by_words_moves_exactly_its_bytes() {
        check(words::copy);
    }
}
