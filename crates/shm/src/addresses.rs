//! The ranges of addresses this process holds, found by the file they map.
//!
//! A mapped file is kept when its last user is gone, since most users come back: the same address, the same thread
//! slots. Its range goes back to the system when its last name is gone too, when too many are idle, or when addresses
//! are short. Private memory goes back with its last user. A process may have limited addresses (`ulimit -v`).

use std::cell::RefCell;
use std::ffi::c_void;
use std::fs;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use crate::error::{AddressLimit, Error};
use crate::home::{FileIdentity, Home};
use crate::mapping::Mapping;
use crate::process;

/// The size of a huge page. Every range begins at a multiple of it, so that they fit where the system grants them.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// How many mapped files without users are kept; each costs the memory that only they hold.
const IDLE_MAX: usize = 64;

/// A range of addresses that came from the system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressRange {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: a range is two numbers; each user of the address has an own argument.
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
    /// The lock, kept by a thread that forks. If another thread had taken it in the middle of a change, the child's
    /// copy would stay locked for ever.
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

    /// The first mapping that matches.
    pub(crate) fn find_by(&self, is_it: impl Fn(&Mapping) -> bool) -> Option<Arc<Mapping>> {
        let (_, mapping) = self.mapped.iter().find(|(_, mapping)| is_it(mapping))?;
        Some(Arc::clone(mapping))
    }

    /// Keeps a mapping, and lets go of mappings that are unused here or cannot be found any more.
    pub(crate) fn keep(&mut self, identity: FileIdentity, mapping: &Arc<Mapping>) {
        self.let_go_of_lost();
        self.let_go_of_all_but(IDLE_MAX);
        self.mapped.push((identity, Arc::clone(mapping)));
    }

    /// Lets go of unused mappings whose file has no name.
    pub(crate) fn let_go_of_lost(&mut self) {
        self.mapped.retain(|(_, mapping)| !is_idle(mapping) || is_found(mapping));
    }

    /// Maps `bytes` of the file, or private memory, at a range of its own. If addresses are short, the addresses of
    /// unused mappings go first.
    pub(crate) fn place(
        &mut self,
        bytes: usize,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<AddressRange, Error> {
        let first = place(bytes, file);
        if matches!(first, Err(Error::AddressSpace { .. })) && self.let_go_of_all_but(0) {
            return place(bytes, file);
        }
        first
    }

    /// Lets go of mappings without users, the oldest first, until `count` are left. Returns whether any went.
    fn let_go_of_all_but(&mut self, count: usize) -> bool {
        let idle_count = self.mapped.iter().filter(|(_, mapping)| is_idle(mapping)).count();
        let mut excess_count = idle_count.saturating_sub(count);
        let goes_any = excess_count > 0;
        self.mapped.retain(|(_, mapping)| {
            let goes = excess_count > 0 && is_idle(mapping);
            excess_count -= usize::from(goes);
            !goes
        });
        goes_any
    }
}

/// Whether a mapping of the list has no users. Only [`Held::find`] adds a user to an unused mapping, under the lock of
/// the list. The end of a thread does so for a moment, without harm to a mapping that is in no list any more.
fn is_idle(mapping: &Arc<Mapping>) -> bool {
    Arc::strong_count(mapping) == 1
}

/// Whether another process could still find the file.
fn is_found(mapping: &Mapping) -> bool {
    mapping.home().and_then(Home::status).is_some()
}

/// Maps `bytes` of the file, or private memory, at a range of its own.
fn place(bytes: usize, file: Option<BorrowedFd<'_>>) -> Result<AddressRange, Error> {
    let range = reserve(bytes)?;
    let address = range.base.cast::<c_void>();
    let mapped = match file {
        // SAFETY: the range was reserved just now and nothing uses it; `bytes` fit in it. To map over
        // it replaces untouched pages only.
        Some(file) => unsafe { rustix::mm::mmap(address, bytes, ACCESS, SHARED, file, 0) },
        // SAFETY: as above.
        None => unsafe { rustix::mm::mmap_anonymous(address, bytes, ACCESS, PRIVATE) },
    };
    match mapped {
        Ok(_) => Ok(range),
        Err(errno) => {
            give_back(range);
            Err(refused(bytes, errno))
        }
    }
}

/// Gives a range back to the system, with the memory and the file behind.
pub(crate) fn give_back(range: AddressRange) {
    unmap(range.base, range.bytes);
}

/// Unmaps addresses that nobody uses.
fn unmap(start: *mut u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the addresses are ours, and by P2 of a mapping nobody has one of them any more.
    let unmapped = unsafe { rustix::mm::munmap(start.cast(), bytes) };
    // Failing (too many mappings) leaves the memory where it is until the process ends.
    let _ = unmapped;
}

const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
const SHARED: MapFlags = MapFlags::FIXED.union(MapFlags::NORESERVE).union(MapFlags::SHARED);
const PRIVATE: MapFlags = MapFlags::FIXED.union(MapFlags::NORESERVE).union(MapFlags::PRIVATE);

/// Reserves addresses, aligned, to map something over. They are not accessible, so they count as no memory where the
/// system counts mapped memory.
fn reserve(bytes: usize) -> Result<AddressRange, Error> {
    assert!(bytes > 0, "a mapping has at least one byte");
    let too_many = || refused(bytes, Errno::NOMEM);
    let range_bytes = bytes.checked_next_multiple_of(HUGE_PAGE_BYTES).ok_or_else(too_many)?;
    let padded_bytes = range_bytes.checked_add(HUGE_PAGE_BYTES).ok_or_else(too_many)?;
    let how = PRIVATE.difference(MapFlags::FIXED);
    let nothing = ProtFlags::empty();
    // SAFETY: without FIXED the system chooses addresses that nobody uses.
    let start = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), padded_bytes, nothing, how) };
    let start = start.map_err(|errno| refused(bytes, errno))?.cast::<u8>();
    let before_bytes = start.align_offset(HUGE_PAGE_BYTES);
    // SAFETY: alignment skips less than HUGE_PAGE_BYTES, and the reservation is longer than that.
    let base = unsafe { start.add(before_bytes) };
    // SAFETY: as above, by the rest.
    let end = unsafe { base.add(range_bytes) };
    unmap(start, before_bytes);
    unmap(end, HUGE_PAGE_BYTES - before_bytes);
    Ok(AddressRange { base, bytes: range_bytes })
}

fn refused(bytes: usize, errno: Errno) -> Error {
    if errno == Errno::NOMEM {
        Error::AddressSpace { wanted_bytes: bytes as u64, limit: limit_before(bytes as u64) }
    } else {
        Error::system("map memory", None, errno)
    }
}

/// Which limit it is that `wanted_bytes` more of addresses would exceed. The system does not say.
fn limit_before(wanted_bytes: u64) -> AddressLimit {
    let word = |path| fs::read_to_string(path).ok()?.split_whitespace().next()?.parse::<u64>().ok();
    let used_pages = word("/proc/self/statm").unwrap_or(0);
    let used_bytes = used_pages.saturating_mul(rustix::param::page_size() as u64);
    match getrlimit(Resource::As).current {
        Some(limit_bytes) if used_bytes.saturating_add(wanted_bytes) > limit_bytes => {
            AddressLimit::Process { used_bytes, limit_bytes }
        }
        _ if word("/proc/sys/vm/overcommit_memory") == Some(2) => AddressLimit::Overcommit,
        _ => AddressLimit::System,
    }
}
