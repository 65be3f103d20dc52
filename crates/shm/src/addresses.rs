//! The ranges of addresses this process holds, found by the file they map.
//!
//! A range comes from the system once and never goes back, nor to another mapping (`mapping.rs`, P2). A
//! retired one gives up its memory and its file: a process that opens and closes spaces all day spends
//! addresses, of which it has 128 TiB, but no memory.

use std::cell::RefCell;
use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use crate::error::Error;
use crate::mapping::Mapping;
use crate::process;

/// Every range begins at a multiple of this, so that huge pages fit where the system grants them.
const ALIGN_BYTES: usize = 2 << 20;

/// A file whatever it is called: neither part is given to another file while a mapping holds it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

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
    mapped: Vec<(FileIdentity, Weak<Mapping>)>,
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
        mapping.upgrade()
    }

    /// Makes a mapping known, and forgets those that are gone.
    pub(crate) fn remember(&mut self, identity: FileIdentity, mapping: &Arc<Mapping>) {
        self.mapped.retain(|(_, known)| known.strong_count() > 0);
        self.mapped.push((identity, Arc::downgrade(mapping)));
    }
}

/// Maps `bytes` of the file, or private memory, at a range of its own.
pub(crate) fn place(bytes: usize, file: Option<BorrowedFd<'_>>) -> Result<AddressRange, Error> {
    let range = reserve(bytes)?;
    let address = range.base.cast::<c_void>();
    let mapped = match file {
        // SAFETY: the range was reserved just now and nothing uses it; `bytes` fit in it. To map over
        // it replaces inaccessible pages only.
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

/// Reserves addresses, aligned and inaccessible.
fn reserve(bytes: usize) -> Result<AddressRange, Error> {
    assert!(bytes > 0, "a mapping has at least one byte");
    let range_bytes =
        bytes.checked_next_multiple_of(ALIGN_BYTES).ok_or_else(|| refused(bytes, Errno::NOMEM))?;
    let padded_bytes = range_bytes.saturating_add(ALIGN_BYTES);
    let how = MapFlags::NORESERVE | MapFlags::PRIVATE;
    // SAFETY: without FIXED the system chooses addresses that nobody uses.
    let reserved = unsafe {
        rustix::mm::mmap_anonymous(ptr::null_mut(), padded_bytes, ProtFlags::empty(), how)
    };
    let start = reserved.map_err(|errno| refused(bytes, errno))?.cast::<u8>();
    let before_bytes = start.align_offset(ALIGN_BYTES);
    // SAFETY: alignment skips less than ALIGN_BYTES, and the reservation is longer than that.
    let base = unsafe { start.add(before_bytes) };
    // SAFETY: `range_bytes` begin at `base` within the reservation, see the sizes above.
    let end = unsafe { base.add(range_bytes) };
    let after_bytes = padded_bytes - before_bytes - range_bytes;
    for (edge, edge_bytes) in [(start, before_bytes), (end, after_bytes)] {
        if edge_bytes > 0 {
            // SAFETY: the edge is part of the reservation above and outside the range we keep; no lock
            // was ever there (P2). Failing costs up to ALIGN_BYTES of addresses.
            let _ = unsafe { rustix::mm::munmap(edge.cast(), edge_bytes) };
        }
    }
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
