//! One reserved range of addresses with memory behind the parts that were committed.
//!
//! The whole range is reserved at once and memory is added inside it, so growth moves nothing and needs no word to the
//! other processes. A store to a committed page never raises SIGBUS. The kernel was asked for the page before any
//! access, and reports an error when there is none (rule B1).
//!
//! No descriptor is kept: a program may close numbers that are not its own, and open files of its own under
//! them. Everything is asked of the addresses alone (`MADV_POPULATE_WRITE`, `MADV_REMOVE`), so nothing that is done
//! here can meet another file. Hence a file has its whole length from the beginning.
//!
//! # Invariants
//!
//! - P1: from construction until `Drop`, every byte of the range belongs to this mapping.
//! - P2: when the last user of a mapping is gone, no code has an address in it. The kernel is told of a robust lock's
//!   address only while a section is open, which borrows the mapping. A thread finds its own data from one call to the
//!   next by the [number](Mapping::number) of the mapping. No other mapping ever has that number, though it may lie at
//!   the same addresses.
//!
//! Not here: the meaning of the bytes, and the offsets of the parts.

use std::ffi::c_void;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::io::Errno;
use rustix::mm::Advice;
use rustix::thread::futex;

use crate::addresses::{self, AddressRange, HUGE_PAGE_BYTES};
use crate::error::Error;
use crate::home::Home;
use crate::segment::Directory;
use crate::{copy, headroom};

const _: () = assert!(usize::BITS == 64, "a segment reserves more addresses than 32 bits count");

/// The number of the next mapping.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// A reserved range of addresses, shared through a file or private to the process.
///
/// The memory is raw: other processes, or other threads, write to it at any moment. Access it through
/// the checked and atomic functions of this crate only.
#[derive(Debug)]
pub struct Mapping {
    range: AddressRange,
    number: u64,
    reserved_bytes: usize,
    /// Where the file is; `None` if the memory is private to the process.
    home: Option<Home>,
    /// Held by the thread that says what an earlier program of this process has left in it.
    leaving: Mutex<()>,
}

impl Mapping {
    /// Maps `reserve_bytes` of `file`, one of `directory`, shared with every process that maps it. No memory is
    /// committed, and the file need not stay open.
    ///
    /// Beyond its end a file has no memory to give: it is to be as long as the range. Mapping the same file again in
    /// one process gives the same mapping, with the size of the first. An unused mapping is kept as long as the file
    /// has the name of a segment and no more than 64 others are kept. Memory of a removed file goes back at the next
    /// call, or with its name.
    ///
    /// # Errors
    ///
    /// [`Error::AddressSpace`] if the process may not reserve as much; [`Error::System`] otherwise.
    pub fn shared(
        file: &File,
        directory: &Directory,
        reserve_bytes: usize,
    ) -> Result<Arc<Self>, Error> {
        let home = Home::new(file, directory)?;
        let mut held = addresses::held();
        if let Some(mapping) = held.find(home.file()) {
            return Ok(mapping);
        }
        let range = held.place(reserve_bytes, Some(file.as_fd()))?;
        let identity = home.file();
        let mapping = Arc::new(Self::over(range, reserve_bytes, Some(home)));
        held.keep(identity, &mapping);
        Ok(mapping)
    }

    /// Reserves `reserve_bytes` of memory that only this process sees. All of it may be used at once;
    /// the system provides each page when it is first touched.
    ///
    /// # Errors
    ///
    /// [`Error::AddressSpace`] if the process may not reserve as much; [`Error::System`] otherwise.
    pub fn private(reserve_bytes: usize) -> Result<Arc<Self>, Error> {
        let range = addresses::held().place(reserve_bytes, None)?;
        Ok(Arc::new(Self::over(range, reserve_bytes, None)))
    }

    fn over(range: AddressRange, reserved_bytes: usize, home: Option<Home>) -> Self {
        // Relaxed: of two numbers no more is asked than that they differ.
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Self { range, number, reserved_bytes, home, leaving: Mutex::new(()) }
    }

    /// The number of the mapping, which no other one of this process ever has.
    #[inline]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The first address of the range, a multiple of 2 MiB. Another mapping may have the same after this one is dropped.
    #[inline]
    pub const fn base(&self) -> *mut u8 {
        self.range.base()
    }

    /// The size of the reserved range, in bytes.
    #[inline]
    pub const fn reserved_bytes(&self) -> usize {
        self.reserved_bytes
    }

    /// Whether other processes can see the memory.
    pub const fn is_shared(&self) -> bool {
        self.home.is_some()
    }

    /// Notes by which name the file is found, unless that is known.
    pub(crate) fn set_name(&self, name: &str) {
        if let Some(home) = &self.home {
            home.set_name(name);
        }
    }

    /// Where the file is found; `None` if there is none.
    pub(crate) const fn home(&self) -> Option<&Home> {
        self.home.as_ref()
    }

    /// Copies what stands at `offset` and may change meanwhile; zeros behind the end. A page that was never committed is
    /// got first, as everybody gets one: nothing that is wrong about the offset ends in a signal.
    ///
    /// # Errors
    ///
    /// As [`Mapping::commit_few`].
    pub(crate) fn read<const N: usize>(&self, offset: usize) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        let Some(end) = offset.checked_add(N).filter(|end| *end <= self.reserved_bytes) else {
            return Ok(bytes);
        };
        self.commit_few(offset..end)?;
        // SAFETY: inside the mapping, as was just checked.
        let from = unsafe { self.base().add(offset) };
        // SAFETY: the pages are there, and nobody makes a reference to them; `bytes` is elsewhere.
        unsafe { copy::copy_out(from, &mut bytes) };
        Ok(bytes)
    }

    /// The right to say what an earlier program of this process has left; `None` if another thread is at it. Not waited for: in
    /// the child of a fork that may be for ever, and a child was no other program.
    pub(crate) fn try_leave(&self) -> Option<MutexGuard<'_, ()>> {
        self.leaving.try_lock().ok()
    }

    /// Puts memory behind `range`, in bytes from the beginning. Committed memory stays as it is, the rest reads as
    /// zero. Afterwards a store to the range cannot raise SIGBUS.
    ///
    /// Private memory is only counted: the system provides its pages as they are touched.
    ///
    /// For a control group (a container) it goes by the last reading of [`headroom::refresh`], so that locks may be
    /// held meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] with the limit that was hit. Parts of the range may then be committed, which costs memory but is
    /// not visible; commit again, or [`release`](Self::release) them. [`Error::Corrupted`] if another process has cut
    /// the file short.
    ///
    /// # Panics
    ///
    /// If the range is empty, turned around or not inside the reserved range.
    pub fn commit(&self, range: Range<usize>) -> Result<(), Error> {
        self.check(&range);
        headroom::claim(range.len() as u64)?;
        self.commit_few(range)
    }

    /// As [`Mapping::commit`], for a few pages that may exist already, and without which no call could take anything.
    /// The limit of a control group (a container) is not asked: some memory is kept free for such pages.
    ///
    /// # Errors
    ///
    /// As [`Mapping::commit`], of the other limits.
    ///
    /// # Panics
    ///
    /// As [`Mapping::commit`].
    pub fn commit_few(&self, range: Range<usize>) -> Result<(), Error> {
        self.check(&range);
        let Some(home) = &self.home else {
            self.prefer_huge_pages(&range);
            return Ok(());
        };
        if range.len() >= HUGE_PAGE_BYTES {
            // An impossible size is refused before any of it is taken.
            home.check_size(range.len())?;
            if home.has_room(range.len()) {
                self.take_huge_pages(&range);
            }
        }
        self.populate(&range).map_err(|errno| match errno {
            Errno::FAULT | Errno::NOMEM => home.refusal(&range),
            errno => Error::system("allocate memory", None, errno),
        })
    }

    /// Has the system provide every page of `range`, as a store would, but with an error where a store would be a signal.
    fn populate(&self, range: &Range<usize>) -> Result<(), Errno> {
        let page_bytes = rustix::param::page_size();
        let begin = range.start / page_bytes * page_bytes;
        let end = range.end.next_multiple_of(page_bytes);
        // SAFETY: `check` has shown that the range begins inside the mapping.
        let start = unsafe { self.base().add(begin) };
        loop {
            // SAFETY: the pages are ours (P1), and their contents stay.
            let populated = unsafe {
                rustix::mm::madvise(start.cast(), end - begin, Advice::LinuxPopulateWrite)
            };
            match populated {
                Err(Errno::INTR | Errno::AGAIN) => {}
                // Before Linux 5.14.
                Err(Errno::INVAL) => return self.touch(begin..end),
                populated => return populated,
            }
        }
    }

    /// As [`Mapping::populate`], page by page, for kernels that know no other way. Before the kernel wakes the sleepers
    /// at an address, it gets the page, and says if there is none. A thread that wakes without a reason looks, and
    /// sleeps again.
    fn touch(&self, range: Range<usize>) -> Result<(), Errno> {
        for page in range.step_by(rustix::param::page_size()) {
            // SAFETY: inside of the mapping, as `check` has shown.
            let word = unsafe { self.base().add(page) };
            // SAFETY: aligned and mapped; only the kernel looks at it, which needs no page to be there.
            let word = unsafe { AtomicU32::from_ptr(word.cast()) };
            futex::wake(word, futex::Flags::empty(), 1)?;
        }
        Ok(())
    }

    /// Has the system put huge pages behind the whole blocks in `range`, where it has any. A walk through a million
    /// tuples, or to one of them, then misses the processor's table of pages far less often. The first access to each
    /// small page also needs no fault of its own.
    ///
    /// A block with one page in it is made into a huge one, which fills it with zeros: that is also faster than to get
    /// its 512 small pages. On such a request, a huge page is given whatever the mount and the system prefer for shared
    /// memory, except "deny". Where it is not given, small pages follow.
    fn take_huge_pages(&self, range: &Range<usize>) {
        let page_bytes = rustix::param::page_size();
        let mut block = range.start.next_multiple_of(HUGE_PAGE_BYTES);
        while block + HUGE_PAGE_BYTES <= range.end {
            let block_end = block + HUGE_PAGE_BYTES;
            if self.populate(&(block_end - page_bytes..block_end)).is_err() {
                return; // the whole range is asked for next, and its error says why
            }
            // SAFETY: `check` has shown that the block is inside the mapping.
            let start = unsafe { self.base().add(block) };
            // SAFETY: the pages are ours (P1), and keep their contents: existing pages are copied, the rest is zero, as
            // it would be. An error changes nothing.
            let given =
                unsafe { libc::madvise(start.cast(), HUGE_PAGE_BYTES, libc::MADV_COLLAPSE) };
            if given != 0 {
                return;
            }
            block = block_end;
        }
    }

    /// The same for private memory, of which the system provides pages as they are touched. So not for a single block,
    /// by which a small space grows, and of which it may use a part.
    fn prefer_huge_pages(&self, range: &Range<usize>) {
        if range.len() < 2 * HUGE_PAGE_BYTES {
            return;
        }
        let begin = range.start.next_multiple_of(HUGE_PAGE_BYTES);
        let end = range.end / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        if begin == end {
            return;
        }
        // SAFETY: `check` has shown that the blocks are inside the mapping.
        let start = unsafe { self.base().add(begin) };
        // SAFETY: the pages are ours (P1), and their contents stay. An error means small pages.
        let _ = unsafe {
            rustix::mm::madvise(start.cast::<c_void>(), end - begin, Advice::LinuxHugepage)
        };
    }

    /// Takes the memory behind `range` away; it reads as zero afterwards and must be committed again
    /// before the next store. The size of the file does not change.
    ///
    /// # Errors
    ///
    /// [`Error::System`] if the file system cannot punch holes; the memory then stays as it was.
    ///
    /// # Panics
    ///
    /// If the range is empty, turned around, not inside the reserved range or not whole pages.
    pub fn release(&self, range: Range<usize>) -> Result<(), Error> {
        self.check(&range);
        let page_bytes = rustix::param::page_size();
        assert!(
            range.start.is_multiple_of(page_bytes) && range.end.is_multiple_of(page_bytes),
            "{range:?} is not made of whole pages of {page_bytes} bytes"
        );
        // SAFETY: `check` has shown that the range begins inside the mapping.
        let start = unsafe { self.base().add(range.start) };
        let how = if self.is_shared() { Advice::LinuxRemove } else { Advice::LinuxDontNeed };
        // SAFETY: the pages are ours (P1), and this type hands out no references to them. For code that accesses them
        // raw it is a store of zeros, which that code allows for.
        let released = unsafe { rustix::mm::madvise(start.cast::<c_void>(), range.len(), how) };
        released.map_err(|errno| Error::system("release memory", None, errno))
    }

    fn check(&self, range: &Range<usize>) {
        assert!(
            range.start < range.end && range.end <= self.reserved_bytes,
            "{range:?} is not a range within the {} bytes of the mapping",
            self.reserved_bytes
        );
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Some(home) = self.home() {
            home.touch();
        }
        addresses::give_back(self.range);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::MetadataExt;

    use tupelo_crashtest::with_tiny_file_system;

    use super::*;

    #[test]
    fn pages_are_had_one_by_one_and_one_that_there_is_not_is_an_error() {
        let path =
            std::path::PathBuf::from(format!("/dev/shm/tupelo-touch-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        with_tiny_file_system(&path, 1 << 20, || {
            let name = path.join("file");
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(&name);
            let file = file.unwrap();
            file.set_len(4 << 20).unwrap();
            let mapping = Mapping::shared(&file, &Directory::new(&path), 4 << 20).unwrap();
            mapping.touch(0..512 << 10).unwrap();
            assert_eq!(fs::metadata(&name).unwrap().blocks() * 512, 512 << 10);
            assert_eq!(mapping.touch(0..4 << 20), Err(Errno::FAULT));
        });
        fs::remove_dir(path).unwrap();
    }
}
