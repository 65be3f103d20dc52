//! The ranges of addresses this process holds, found by the file they map.
//!
//! A range comes from the system once and never goes back, nor to another mapping (`mapping.rs`, P2). A
//! mapped file is kept when its last user is gone, since most come back: the same address, the same
//! thread slots. When its last name is gone too, or too many are idle, the range is retired: it gives up
//! its memory and its file and becomes one with the retired ranges beside it. So a process that makes and
//! removes spaces all day spends addresses, of which it has 128 TiB, but no memory and no mappings.

use std::cell::RefCell;
use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use crate::error::Error;
use crate::home::{FileIdentity, Home};
use crate::mapping::Mapping;
use crate::process;

/// The size of a huge page. Every range begins at a multiple of it, so that they fit where the system grants them.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// How many mapped files without users are kept; each costs the memory that only they hold.
const IDLE_MAX: usize = 64;

/// A range of addresses that came from the system and stays with this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressRange {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: a range is two numbers; whoever uses the address has their own argument.
unsafe impl Send for AddressRange {}
// SAFETY: as for `Send`; nothing here changes through a shared reference.
unsafe impl Sync for AddressRange {}

impl AddressRange {
    pub(crate) const fn base(self) -> *mut u8 {
        self.base
    }
}

/// The mapped files of the process.
pub(crate) struct Held {
    mapped: Vec<(FileIdentity, Arc<Mapping>)>,
}

static HELD: Mutex<Held> = Mutex::new(Held { mapped: Vec::new() });

/// Locks the list of mapped files.
pub(crate) fn held() -> MutexGuard<'static, Held> {
    process::watch_forks();
    lock()
}

fn lock() -> MutexGuard<'static, Held> {
    // No panic leaves the list half changed.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The lock, kept by a thread that forks: taken in the middle of a change by another thread, the
    /// child's copy would stay locked for ever.
    static FORKING: RefCell<Option<MutexGuard<'static, Held>>> = const { RefCell::new(None) };
}

/// Takes the lock before a fork; the same thread lets it go with [`after_fork`], in parent and child.
pub(crate) fn before_fork() {
    // Fails only in a thread that is already being torn down: then the child takes its chance.
    let _ = FORKING.try_with(|forking| forking.replace(Some(lock())));
}

/// Lets go of what [`before_fork`] took.
pub(crate) fn after_fork() {
    let _ = FORKING.try_with(RefCell::take);
}

impl Held {
    /// The mapping of a file, if this process has one.
    pub(crate) fn find(&self, identity: FileIdentity) -> Option<Arc<Mapping>> {
        let (_, mapping) = self.mapped.iter().find(|(other, _)| *other == identity)?;
        Some(Arc::clone(mapping))
    }

    /// The first mapping that is the one looked for.
    pub(crate) fn find_by(&self, is_it: impl Fn(&Mapping) -> bool) -> Option<Arc<Mapping>> {
        let (_, mapping) = self.mapped.iter().find(|(_, mapping)| is_it(mapping))?;
        Some(Arc::clone(mapping))
    }

    /// Keeps a mapping, and lets go of those that nobody here uses or can find any more.
    pub(crate) fn keep(&mut self, identity: FileIdentity, mapping: &Arc<Mapping>) {
        // Only `find` makes a user where there is none, and it needs the lock that we hold.
        let idle = |mapping: &Arc<Mapping>| Arc::strong_count(mapping) == 1;
        self.mapped.retain(|(_, mapping)| !idle(mapping) || is_found(mapping));
        let idle_count = self.mapped.iter().filter(|(_, mapping)| idle(mapping)).count();
        let mut excess_count = idle_count.saturating_sub(IDLE_MAX);
        // The oldest go first.
        self.mapped.retain(|(_, mapping)| {
            let goes = excess_count > 0 && idle(mapping);
            excess_count -= usize::from(goes);
            !goes
        });
        self.mapped.push((identity, Arc::clone(mapping)));
    }
}

/// Whether somebody else could still find the file.
fn is_found(mapping: &Mapping) -> bool {
    mapping.home().and_then(Home::status).is_some()
}

/// Maps `bytes` of the file, or private memory, at a range of its own.
pub(crate) fn place(bytes: usize, file: Option<BorrowedFd<'_>>) -> Result<AddressRange, Error> {
    let range = reserve(bytes)?;
    let address = range.base.cast::<c_void>();
    let mapped = match file {
        // SAFETY: the range was reserved just now and nothing uses it; `bytes` fit in it. To map over
        // it replaces untouched pages only.
        Some(file) => unsafe { rustix::mm::mmap(address, bytes, ACCESS, SHARED, file, 0) },
        // SAFETY: as above.
        None => unsafe { rustix::mm::mmap_anonymous(address, bytes, ACCESS, PRIVATE) },
    };
    mapped.map_err(|errno| refused(bytes, errno))?;
    Ok(range)
}

/// Gives up the memory and the file of a range. Its addresses stay readable and writable, as private
/// zeros: what a thread remembers of the range until it ends is stale then, but not dangerous.
pub(crate) fn retire(range: AddressRange) {
    // SAFETY: the range is ours, and the mapping that used it is being dropped: no borrow of it is
    // left that the zeros could surprise.
    let replaced =
        unsafe { rustix::mm::mmap_anonymous(range.base.cast(), range.bytes, ACCESS, PRIVATE) };
    // Failing (too many mappings) leaves the memory where it is until the process ends.
    let _ = replaced;
}

const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
const SHARED: MapFlags = MapFlags::FIXED.union(MapFlags::NORESERVE).union(MapFlags::SHARED);
const PRIVATE: MapFlags = MapFlags::FIXED.union(MapFlags::NORESERVE).union(MapFlags::PRIVATE);

/// Reserves addresses, aligned. What alignment leaves over at both ends stays with the process, and has
/// the properties of a retired range: so the system can make neighbours one mapping, of which a process
/// may have 65 530.
fn reserve(bytes: usize) -> Result<AddressRange, Error> {
    assert!(bytes > 0, "a mapping has at least one byte");
    let too_many = || refused(bytes, Errno::NOMEM);
    let range_bytes = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES).ok_or_else(too_many)?;
    let padded_bytes = range_bytes.checked_add(HUGE_PAGE_BYTES).ok_or_else(too_many)?;
    let how = PRIVATE.difference(MapFlags::FIXED);
    // SAFETY: without FIXED the system chooses addresses that nobody uses.
    let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), padded_bytes, ACCESS, how) };
    let start = start.map_err(|errno| refused(bytes, errno))?.cast::<u8>();
    // SAFETY: alignment skips less than HUGE_PAGE_BYTES, and the reservation is longer than that.
    let base = unsafe { start.add(start.align_offset(HUGE_PAGE_BYTES)) };
    Ok(AddressRange { base, bytes: range_bytes })
}

fn refused(bytes: usize, errno: Errno) -> Error {
    if errno == Errno::NOMEM {
        let limit_bytes = getrlimit(Resource::As).current;
        Error::AddressSpace { wanted_bytes: bytes as u64, limit_bytes }
    } else {
        Error::system("map memory", None, errno)
    }
}
