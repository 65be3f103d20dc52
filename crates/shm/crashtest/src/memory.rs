//! Memory that an experiment starts from again and again.
//!
//! Of a region, only the pages that exist are kept and compared, so a region may be as large as the address range of a
//! segment.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const PAGE_BYTES: usize = 4096;
const PAGE_WORDS: usize = PAGE_BYTES / 8;

/// A range of shared memory, the same in all processes of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    base: *mut u8,
    pages: usize,
}

/// What stood in a region at some moment.
pub(crate) struct Snapshot {
    region: Region,
    /// The pages that existed, in ascending order; all others read as zero.
    pages: Vec<(usize, Box<[u64; PAGE_WORDS]>)>,
}

impl Region {
    /// The `bytes` bytes from `base`.
    ///
    /// # Safety
    ///
    /// The range is mapped shared, readable and writable, as long as experiments use it. Only the processes of an
    /// experiment access it meanwhile, except through atomics. It consists of whole pages, and touching a missing page
    /// makes it.
    ///
    /// # Panics
    ///
    /// If the range is not made of whole pages of 4 KiB.
    pub unsafe fn new(base: *mut u8, bytes: usize) -> Self {
        assert!(base.addr().is_multiple_of(PAGE_BYTES) && bytes.is_multiple_of(PAGE_BYTES));
        Self { base, pages: bytes / PAGE_BYTES }
    }

    /// The memory of a mapping, which is kept until the process ends.
    pub fn of(mapping: &Arc<tupelo_shm::Mapping>) -> Self {
        mem::forget(Arc::clone(mapping));
        // SAFETY: a mapping stays as long as anybody has it, and its crate accesses it by atomics only.
        unsafe { Self::new(mapping.base(), mapping.reserved_bytes()) }
    }

    /// Which pages exist.
    fn present(&self) -> impl Iterator<Item = usize> {
        let mut presence = vec![0_u8; self.pages];
        // SAFETY: the range is mapped, by the promise to `new`, and there is a byte for each page.
        let code = unsafe {
            libc::mincore(self.base.cast(), self.pages * PAGE_BYTES, presence.as_mut_ptr())
        };
        assert!(code == 0, "can not ask for pages: {}", io::Error::last_os_error());
        presence.into_iter().enumerate().filter(|(_, byte)| byte & 1 == 1).map(|(page, _)| page)
    }

    /// A page, as words.
    fn page(&self, page: usize) -> &[AtomicU64; PAGE_WORDS] {
        assert!(page < self.pages);
        // SAFETY: inside the range, as was just checked.
        let start = unsafe { self.base.add(page * PAGE_BYTES) };
        // SAFETY: mapped and aligned, by the promise to `new`; atomics may be shared.
        unsafe { &*start.cast() }
    }

    pub(crate) fn snapshot(self) -> Snapshot {
        let copy = |page: usize| {
            let words = self.page(page);
            (page, Box::new(std::array::from_fn(|index| words[index].load(Ordering::Relaxed))))
        };
        Snapshot { region: self, pages: self.present().map(copy).collect() }
    }

    /// Where it lies, and its bytes.
    pub(crate) fn place(self) -> (usize, usize) {
        (self.base.addr(), self.pages * PAGE_BYTES)
    }

    /// From now on the calling process is stopped when it writes to the region.
    pub(crate) fn protect(self) {
        // SAFETY: mapped, by the promise to `new`; nothing but the rights of this process changes.
        let code =
            unsafe { libc::mprotect(self.base.cast(), self.pages * PAGE_BYTES, libc::PROT_READ) };
        assert!(code == 0, "can not protect: {}", io::Error::last_os_error());
    }
}

impl Snapshot {
    /// Puts the region back into the state of the snapshot.
    pub(crate) fn restore(&self) {
        for (page, words) in &self.pages {
            write_page(self.region.page(*page), words);
        }
        for page in self.region.present() {
            if self.pages.binary_search_by_key(&page, |(known, _)| *known).is_err() {
                write_page(self.region.page(page), &[0; PAGE_WORDS]);
            }
        }
    }
}

/// Writes only what differs: most pages do not, and reading leaves their cache lines alone.
fn write_page(page: &[AtomicU64; PAGE_WORDS], words: &[u64; PAGE_WORDS]) {
    for (place, &word) in page.iter().zip(words) {
        if place.load(Ordering::Relaxed) != word {
            place.store(word, Ordering::Relaxed);
        }
    }
}
