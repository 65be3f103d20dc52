//! One reserved range of addresses with memory behind the parts that were committed.
//!
//! The whole range is reserved at once and memory is added inside it, so growth moves nothing and needs
//! no word to the other processes. A store to a committed page never raises SIGBUS: `fallocate` has
//! fetched the page before anyone touches it, and says so as an error when there is none (rule B1).
//!
//! # Invariants
//!
//! - P1: from construction until `Drop`, every byte of the range belongs to this mapping.
//! - P2: a range of addresses that was ever ours is never used for anything else. The kernel may write
//!   to a robust lock's address until the thread that unlocked it has cleared its pending slot; if other
//!   memory lay there by then, it would be scribbled on. Nor can what a thread remembers by address
//!   be taken for another segment.
//!
//! Not here: what the bytes mean, and what stands at which offset.

use std::ffi::c_void;
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rustix::fs::{FallocateFlags, StatVfs};
use rustix::io::Errno;
use rustix::mm::Advice;
use rustix::process::{Resource, getrlimit};

use crate::addresses::{self, AddressRange, FileIdentity, HUGE_PAGE_BYTES};
use crate::error::{Error, Limit};
use crate::segment::Directory;
use crate::{headroom, process};

const _: () = assert!(usize::BITS == 64, "a segment reserves more addresses than 32 bits count");

/// A reserved range of addresses, shared through a file or private to the process.
///
/// The memory is raw: other processes, or other threads, write to it at any moment. Access it through
/// the checked and atomic functions of this crate only.
#[derive(Debug)]
pub struct Mapping {
    range: AddressRange,
    reserved_bytes: usize,
    /// `None` if the memory is private to the process.
    file: Option<File>,
    /// How others find the file, if they do.
    home: OnceLock<Home>,
    /// Held by the thread that says what an earlier program of this process has left in it.
    leaving: Mutex<()>,
}

/// The name of a segment, and where it counts.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) directory: Directory,
    pub(crate) name: String,
}

impl Mapping {
    /// Maps `reserve_bytes` of `file`, shared with every process that maps it. No memory is committed.
    ///
    /// The file may be shorter than the range. Mapping the same file again in one process gives the
    /// same mapping, with the size of the first. It is kept while it has no users, as long as the file
    /// has a name and no more than 64 others are kept; memory of a removed file goes back at the next
    /// call.
    ///
    /// # Errors
    ///
    /// [`Error::AddressSpace`] if the process may not reserve as much; [`Error::System`] otherwise.
    pub fn shared(file: File, reserve_bytes: usize) -> Result<Arc<Self>, Error> {
        let status =
            rustix::fs::fstat(&file).map_err(|errno| Error::system("inspect", None, errno))?;
        let identity = FileIdentity { device: status.st_dev, inode: status.st_ino };
        let mut held = addresses::held();
        if let Some(mapping) = held.find(identity) {
            return Ok(mapping);
        }
        let range = addresses::place(reserve_bytes, Some(file.as_fd()))?;
        let mapping = Arc::new(Self::over(range, reserve_bytes, Some(file)));
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
        process::watch_forks();
        let range = addresses::place(reserve_bytes, None)?;
        Ok(Arc::new(Self::over(range, reserve_bytes, None)))
    }

    fn over(range: AddressRange, reserved_bytes: usize, file: Option<File>) -> Self {
        Self { range, reserved_bytes, file, home: OnceLock::new(), leaving: Mutex::new(()) }
    }

    /// The first address of the range, a multiple of 2 MiB. No other mapping of this process ever has
    /// the same, even after this one is dropped; then it leads to private zeros.
    #[inline]
    pub const fn base(&self) -> *mut u8 {
        self.range.base()
    }

    /// The size of the reserved range, in bytes.
    #[inline]
    pub const fn reserved_bytes(&self) -> usize {
        self.reserved_bytes
    }

    /// How many bytes of the range can be there at all: beyond the end of its file, there is nothing to access.
    pub(crate) fn bytes_max(&self) -> usize {
        let status = self.file.as_ref().and_then(|file| rustix::fs::fstat(file).ok());
        let bytes =
            status.map_or(usize::MAX, |status| usize::try_from(status.st_size).unwrap_or(0));
        bytes.min(self.reserved_bytes)
    }

    /// The file behind the range; `None` if the memory is private to the process.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    /// Notes where the file is found, unless that is known.
    pub(crate) fn set_home(&self, directory: &Directory, name: &str) {
        self.home.get_or_init(|| Home { directory: directory.absolute(), name: name.to_owned() });
    }

    /// Where the file is found; `None` if it never had a name.
    pub(crate) fn home(&self) -> Option<&Home> {
        self.home.get()
    }

    /// The right to say what an earlier program of this process has left; `None` if another thread is at it. Not waited for: in
    /// the child of a fork that may be for ever, and a child was no other program.
    pub(crate) fn try_leave(&self) -> Option<MutexGuard<'_, ()>> {
        self.leaving.try_lock().ok()
    }

    /// Whether somebody else could still open the file.
    pub(crate) fn file_has_a_name(&self) -> bool {
        let status = self.file.as_ref().map(rustix::fs::fstat);
        status.is_some_and(|status| status.is_ok_and(|status| status.st_nlink > 0))
    }

    /// Puts memory behind `range`, in bytes from the beginning; what was committed before stays as it
    /// is, the rest reads as zero. Afterwards a store to the range can not raise SIGBUS.
    ///
    /// Private memory is only counted: the system provides its pages as they are touched.
    ///
    /// Of what a control group (a container) has left it goes by what [`headroom::refresh`] has read last, so that locks may be
    /// held meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] with the limit that was hit. Parts of the range may then be committed, which
    /// costs memory but can not be seen; commit again, or [`release`](Self::release) them.
    ///
    /// # Panics
    ///
    /// If the range is empty, turned around or not inside the reserved range.
    pub fn commit(&self, range: Range<usize>) -> Result<(), Error> {
        self.check(&range);
        headroom::claim(range.len() as u64)?;
        self.commit_few(range)
    }

    /// As [`Mapping::commit`], for a few pages that may be there already, and without which nobody could take anything: a
    /// control group (a container) near its limit is not asked. It keeps some memory free for such things.
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
        let Some(file) = &self.file else {
            self.prefer_huge_pages(&range);
            return Ok(());
        };
        check_file_size_limit(&range)?;
        self.take_huge_pages(file, &range);
        // All at once: then the kernel refuses what can not fit before it takes any of it.
        let mut step_bytes = range.len();
        let mut next = range.start;
        while next < range.end {
            let bytes = step_bytes.min(range.end - next);
            match rustix::fs::fallocate(file, FallocateFlags::empty(), next as u64, bytes as u64) {
                Ok(()) => next += bytes,
                // Older kernels undo the call at any signal. Under a profiler's timer a large one would
                // never finish; a smaller one gets through between two signals.
                Err(Errno::INTR) => step_bytes = (step_bytes / 2).max(rustix::param::page_size()),
                Err(errno) => return Err(full(file, range.end - next, errno)),
            }
        }
        Ok(())
    }

    /// Has the system put huge pages behind the whole blocks in `range`, where it has any. A walk through a million tuples,
    /// or to one of them, then misses the processor's table of pages far less often; and nobody has to be shown
    /// each small page the first time.
    ///
    /// A block with one page in it is made into a huge one, which fills it with zeros: that is also faster than to get its 512
    /// small pages. Asked for like that, a huge page is given whatever the mount and the system prefer for shared
    /// memory, but for "deny". Where it is not given, small pages follow. Where the file system has no room for the whole
    /// range nothing is taken.
    fn take_huge_pages(&self, file: &File, range: &Range<usize>) {
        let page_bytes = rustix::param::page_size();
        let has_room = |status: StatVfs| {
            status.f_blocks == 0 || status.f_bavail * status.f_frsize >= range.len() as u64
        };
        if range.len() < HUGE_PAGE_BYTES || !rustix::fs::fstatvfs(file).is_ok_and(has_room) {
            return;
        }
        let mut block = range.start.next_multiple_of(HUGE_PAGE_BYTES);
        while block + HUGE_PAGE_BYTES <= range.end {
            let last = (block + HUGE_PAGE_BYTES - page_bytes) as u64;
            if rustix::fs::fallocate(file, FallocateFlags::empty(), last, page_bytes as u64)
                .is_err()
            {
                return; // the whole range is asked for next, and its error says why
            }
            // SAFETY: `check` has shown that the block is inside the mapping.
            let start = unsafe { self.base().add(block) };
            // SAFETY: the pages are ours (P1), and keep their contents: what is there is copied, the rest is zero, as
            // it would be. An error changes nothing.
            let given =
                unsafe { libc::madvise(start.cast(), HUGE_PAGE_BYTES, libc::MADV_COLLAPSE) };
            if given != 0 {
                return;
            }
            block += HUGE_PAGE_BYTES;
        }
    }

    /// The same for private memory, of which the system provides pages as they are touched: so not of a single block,
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
        // SAFETY: the pages are ours (P1), and what is in them stays. An error means small pages.
        let _ = unsafe {
            rustix::mm::madvise(start.cast::<c_void>(), end - begin, Advice::LinuxHugepage)
        };
    }

    /// Takes the memory behind `range` away; it reads as zero afterwards and must be committed again
    /// before the next store. The size of the file does not change.
    ///
    /// # Errors
    ///
    /// [`Error::System`] if the file system can not punch holes; the memory then stays as it was.
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
        let released = if let Some(file) = &self.file {
            let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            rustix::fs::fallocate(file, how, range.start as u64, range.len() as u64)
        } else {
            // SAFETY: `check` has shown that the range begins inside the mapping.
            let start = unsafe { self.base().add(range.start) };
            // SAFETY: the pages are ours (P1) and private, and this type hands out no references to
            // them; to those who access them raw it is a store of zeros, which they allow for.
            unsafe {
                rustix::mm::madvise(start.cast::<c_void>(), range.len(), Advice::LinuxDontNeed)
            }
        };
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
        addresses::retire(self.range);
    }
}

/// Beyond `RLIMIT_FSIZE` the kernel sends SIGXFSZ, which kills; so ask first.
fn check_file_size_limit(range: &Range<usize>) -> Result<(), Error> {
    match getrlimit(Resource::Fsize).current {
        Some(limit_bytes) if limit_bytes < range.end as u64 => Err(Error::Full {
            wanted_bytes: range.len() as u64,
            available_bytes: limit_bytes.saturating_sub(range.start as u64),
            limit_bytes,
            limit: Limit::FileSize,
        }),
        _ => Ok(()),
    }
}

/// What a failed `fallocate` means, with the figures of the file system.
fn full(file: &File, wanted_bytes: usize, errno: Errno) -> Error {
    let limit = match errno {
        Errno::NOSPC | Errno::NOMEM => Limit::Filesystem,
        Errno::DQUOT => Limit::Quota,
        Errno::FBIG => Limit::FileSize,
        _ => return Error::system("allocate memory", None, errno),
    };
    let (left_bytes, limit_bytes) = rustix::fs::fstatvfs(file).map_or((0, 0), |status| {
        (status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize)
    });
    // What the file system has left is not what the other limits leave of it.
    let available_bytes = if limit == Limit::Filesystem { left_bytes } else { 0 };
    Error::Full { wanted_bytes: wanted_bytes as u64, available_bytes, limit_bytes, limit }
}
