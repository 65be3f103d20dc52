//! Segments by name: created whole or not at all, found, listed, removed.
//!
//! A segment gets its memory and its contents while it has no name. It gets its name in one step that fails if another
//! process was faster. So no process ever meets a half-made segment. A creator killed at any instruction leaves nothing
//! (rule C1), or at most a file that the next creator removes.
//!
//! The trust boundary is the permission to write to the file: a process that can write can damage (rule C5). Files of
//! other users are therefore never attached, whatever their name says.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::access::GRANULE;
use crate::addresses;
use crate::adoption;
use crate::error::Error;
use crate::home::Home;
use crate::mapping::Mapping;
use crate::orphans::{self, Orphan};
use crate::publish::Unpublished;
use crate::removal::{self, HowRemoved, Removal};
use crate::superblock::{IDENTITY_BYTES, Identity, Layout, RESERVE_BYTES_MAX, STATE, State};
use crate::{copy, headroom, names, table};

/// Tries to attach or create, when others remove and create the same name meanwhile.
const TRIES_MAX: u32 = 100;

/// Numbers of descriptors that are the standard streams of every program.
const STREAMS: RawFd = 3;

/// The part of a file that is read before it is mapped: the identity and the committed size.
const START_BYTES: usize = table::COMMITTED + 4;

/// Where segments live, and whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    path: PathBuf,
    user: u32,
}

impl Default for Directory {
    /// `/dev/shm`, for the effective user of the process.
    fn default() -> Self {
        Self::new("/dev/shm")
    }
}

/// How to make or find a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateOptions {
    /// The most the segment can grow to, in bytes: addresses, no memory. Rounded up to pages. A process that attaches
    /// gets the figure of the creator.
    pub reserve_bytes: usize,
    /// The memory a new segment begins with, in bytes.
    pub initial_commit_bytes: usize,
    /// Create the segment if there is none.
    pub create: bool,
    /// Put a new segment in the place of an old one. Processes attached to the old one are told. Not without `create`.
    pub fresh: bool,
    /// Permission bits of a new file.
    pub mode: u32,
}

/// A segment in use. Dropped, it stays where it is.
#[derive(Debug)]
pub struct Segment {
    mapping: Arc<Mapping>,
    identity: Identity,
    path: Option<PathBuf>,
    created: bool,
    stale_boot: bool,
}

/// A segment as a directory shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentEntry {
    /// Its name.
    pub name: String,
    /// The memory it takes, in bytes.
    pub bytes: u64,
    /// When it was made, or last gave memory back to the system. Stores to memory, and growth, leave no trace in the file's
    /// times.
    pub modified: SystemTime,
}

impl Directory {
    /// Any directory, for the effective user of the process. Memory in it is as fast, and as lasting, as
    /// its file system.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), user: rustix::process::geteuid().as_raw() }
    }

    /// The same directory, for a process that is somewhere else by now.
    pub(crate) fn absolute(&self) -> Self {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        Self { path, user: self.user }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose segments are looked for.
    pub(crate) const fn user(&self) -> u32 {
        self.user
    }

    /// The file of segment `name`.
    ///
    /// # Errors
    ///
    /// [`Error::BadName`].
    pub fn path_of(&self, name: &str) -> Result<PathBuf, Error> {
        names::check(name)?;
        Ok(self.path.join(names::file_name(name, self.user)))
    }

    /// The segments of this user, by name.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] or [`Error::AccessDenied`] if the directory cannot be read.
    pub fn list(&self) -> Result<Vec<SegmentEntry>, Error> {
        let entries = fs::read_dir(&self.path).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            self.refused("list", &self.path, errno)
        })?;
        let entries = entries.flatten();
        let mut segments: Vec<_> = entries.filter_map(|entry| self.entry(&entry)).collect();
        segments.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(segments)
    }

    /// The processes that still use segments of this user which have lost their names.
    pub fn orphans(&self) -> Vec<Orphan> {
        orphans::of(&self.path, self.user)
    }

    /// Makes segment `name` one of this pid and time namespace, if it is of another one. The caller says that all
    /// processes of that have ended.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], and as [`Segment::create_or_attach`]; the segment is as before.
    pub fn adopt(&self, name: &str, layout: &Layout) -> Result<(), Error> {
        let path = self.path_of(name)?;
        adoption::adopt(&self.open(&path)?, &path, layout)
    }

    /// Reads what segment `name` has at `offset`, whatever layout it is of, without attaching to it. What is
    /// beyond its end stays as it is in `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::AccessDenied`], [`Error::BadName`]; what the system says.
    pub fn read_at(&self, name: &str, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let path = self.path_of(name)?;
        let file = self.open(&path)?;
        read_at(&file, offset, bytes).map_err(|errno| Error::system("read", Some(path), errno))
    }

    /// What to list for a file; `None` if it is no segment of this user, or vanished meanwhile.
    fn entry(&self, entry: &fs::DirEntry) -> Option<SegmentEntry> {
        let name = names::space_of(entry.file_name().to_str()?, self.user)?.to_owned();
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        // Blocks of 512 bytes, whatever the file system's own are.
        let bytes = metadata.blocks() * 512;
        let changed = Duration::from_secs(u64::try_from(metadata.ctime()).unwrap_or(0));
        let modified = metadata.modified().ok()?.max(SystemTime::UNIX_EPOCH + changed);
        Some(SegmentEntry { name, bytes, modified })
    }

    /// Removes a segment. Every later operation of the attached processes ends with [`Error::Removed`]; a later process finds
    /// nothing, or a new one.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::AccessDenied`], [`Error::BadName`].
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path_of(name)?;
        // Opened before it loses its name. What can not be opened is no segment that anybody is attached to.
        let file = self.open(&path).ok();
        rustix::fs::unlink(&path).map_err(|errno| self.refused("remove", &path, errno))?;
        if let Some(file) = file {
            removal::publish_to_attached(&file, HowRemoved::Removed);
        }
        addresses::held().let_go_of_lost();
        Ok(())
    }

    /// The meaning of a refusal by the system, with the figures that explain it.
    pub(crate) fn refused(&self, action: &'static str, path: &Path, errno: Errno) -> Error {
        match errno {
            Errno::NOENT => Error::NotFound { path: path.into() },
            Errno::ACCESS | Errno::PERM => {
                let metadata = fs::symlink_metadata(path);
                Error::AccessDenied {
                    path: path.into(),
                    mode: metadata.as_ref().map_or(0, |data| data.mode() & 0o7777),
                    owner: metadata.as_ref().map_or(0, MetadataExt::uid),
                    user: self.user,
                }
            }
            Errno::LOOP | Errno::ISDIR | Errno::NXIO => not_a_file(path),
            _ => Error::system(action, Some(path.into()), errno),
        }
    }

    /// Opens the file of a segment and checks whose it is.
    pub(crate) fn open(&self, path: &Path) -> Result<File, Error> {
        // No link is followed, and no pipe waited for: the directory is open to all users.
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = open_file(path, flags, Mode::empty())
            .map_err(|errno| self.refused("open", path, errno))?;
        let metadata = file.metadata().map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            Error::system("inspect", Some(path.into()), errno)
        })?;
        if !metadata.is_file() {
            return Err(not_a_file(path));
        }
        if metadata.uid() != self.user {
            let (mode, owner) = (metadata.mode() & 0o7777, metadata.uid());
            return Err(Error::AccessDenied { path: path.into(), mode, owner, user: self.user });
        }
        Ok(file)
    }
}

/// Opens a file under a number that is none of the standard streams. A program may have been started without such a
/// stream, or have closed it. If it prints, it would write into the file that got the stream's number.
pub(crate) fn open_file(path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<File> {
    let file = rustix::fs::open(path, flags, mode)?;
    if file.as_raw_fd() >= STREAMS {
        return Ok(file.into());
    }
    rustix::io::fcntl_dupfd_cloexec(&file, STREAMS).map(File::from)
}

fn not_a_file(path: &Path) -> Error {
    Error::corrupted(format!("{} is not a regular file", path.display()))
}

impl Default for CreateOptions {
    /// Creates the segment if need be, for this user only, with room for 256 MiB.
    fn default() -> Self {
        Self {
            reserve_bytes: 256 << 20,
            initial_commit_bytes: 0,
            create: true,
            fresh: false,
            mode: 0o600,
        }
    }
}

impl Segment {
    /// Attaches to the segment `name`, or creates it. Of any number of racing creators, one wins and the others attach
    /// to its segment. `initialise` fills a new segment; no other process sees it meanwhile. Its identity stands there
    /// already, and [`IDENTITY_BYTES`] are not to be touched.
    ///
    /// Attaching again in one process gives the same [`Mapping`].
    ///
    /// # Errors
    ///
    /// * [`Error::NotFound`] if there is none and `create` is false.
    /// * [`Error::Full`] if a new one finds no room.
    /// * [`Error::AccessDenied`], [`Error::Corrupted`], [`Error::VersionMismatch`] and [`Error::OtherNamespace`] if
    ///   there is one that cannot be used; it stays as it is.
    /// * The error of `initialise`.
    ///
    /// Nothing was created in any of these cases.
    ///
    /// # Panics
    ///
    /// If the segment is to be fresh and not to be created.
    pub fn create_or_attach(
        directory: &Directory,
        name: &str,
        options: &CreateOptions,
        layout: &Layout,
        initialise: impl FnOnce(&Mapping) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        assert!(options.create || !options.fresh, "a fresh segment is created");
        let segment = Self::obtain(directory, name, options, layout, initialise)?;
        segment.mapping.set_name(name);
        Ok(segment)
    }

    fn obtain(
        directory: &Directory,
        name: &str,
        options: &CreateOptions,
        layout: &Layout,
        initialise: impl FnOnce(&Mapping) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let path = directory.path_of(name)?;
        let mut initialise = Some(initialise);
        let mut made: Option<(Unpublished, Self)> = None;
        for _ in 0..TRIES_MAX {
            if !options.fresh {
                match directory.open(&path) {
                    Ok(file) => match Self::attach(&file, directory, &path, layout) {
                        // It has lost its name since it was opened.
                        Err(Error::Removed { .. }) => continue,
                        attached => return attached,
                    },
                    Err(Error::NotFound { .. }) if options.create => {}
                    Err(error) => return Err(error),
                }
            }
            // Made once: if another process was faster and then removed its segment, ours is still good.
            if let Some(initialise) = initialise.take() {
                made = Some(Self::make(directory, &path, options, layout, initialise)?);
            }
            let Some((file, segment)) = made.take() else { break };
            if options.fresh {
                let old = directory.open(&path).ok();
                file.replace(directory, &path)?;
                if let Some(old) = old {
                    removal::publish_to_attached(&old, HowRemoved::Replaced);
                }
                return Ok(segment);
            }
            if file.publish(&path)? {
                return Ok(segment);
            }
            made = Some((file, segment));
        }
        Err(Error::system("settle who creates", Some(path), Errno::AGAIN))
    }

    /// A segment in memory that only this process sees, and that ends with it.
    ///
    /// # Errors
    ///
    /// [`Error::AddressSpace`], and what `initialise` says.
    pub fn private(
        options: &CreateOptions,
        layout: &Layout,
        initialise: impl FnOnce(&Mapping) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mapping = Mapping::private(whole_pages(options.reserve_bytes))?;
        Self::fill(mapping, None, options, layout, initialise)
    }

    /// A segment of shared memory without a name: the children of a fork have it, and nobody else ever does.
    ///
    /// # Errors
    ///
    /// As [`Segment::create_or_attach`] for one that is created.
    pub fn nameless(
        directory: &Directory,
        options: &CreateOptions,
        layout: &Layout,
        initialise: impl FnOnce(&Mapping) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let made = Self::make(directory, directory.path(), options, layout, initialise)?;
        Ok(made.1)
    }

    /// Makes a segment that has no name yet.
    fn make(
        directory: &Directory,
        path: &Path,
        options: &CreateOptions,
        layout: &Layout,
        initialise: impl FnOnce(&Mapping) -> Result<(), Error>,
    ) -> Result<(Unpublished, Self), Error> {
        let file = Unpublished::new(directory, options.mode)?;
        let reserve_bytes = whole_pages(options.reserve_bytes);
        file.set_length(reserve_bytes)?;
        let mapping = Mapping::shared(file.file(), directory, reserve_bytes)?;
        // Others may need the memory that it has taken of a file system that is too small.
        let segment = Self::fill(mapping, Some(path.into()), options, layout, initialise)
            .inspect_err(|_| addresses::held().let_go_of_lost())?;
        Ok((file, segment))
    }

    /// Gives a mapping its first memory, its identity and its contents.
    fn fill(
        mapping: Arc<Mapping>,
        path: Option<PathBuf>,
        options: &CreateOptions,
        layout: &Layout,
        initialise: impl FnOnce(&Mapping) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let reserved_bytes = mapping.reserved_bytes();
        assert!(
            (START_BYTES..=RESERVE_BYTES_MAX).contains(&reserved_bytes),
            "a segment reserves at most {RESERVE_BYTES_MAX} bytes, not {reserved_bytes}"
        );
        let identity = Identity::new(*layout, reserved_bytes)?;
        headroom::refresh();
        mapping.commit(0..options.initial_commit_bytes.clamp(START_BYTES, reserved_bytes))?;
        // SAFETY: the first page was committed just now, and no other code knows the mapping yet.
        unsafe { copy::copy_in(&identity.encode(), mapping.base()) };
        initialise(&mapping)?;
        Ok(Self { mapping, identity, path, created: true, stale_boot: false })
    }

    /// Attaches to a file, after it was checked from outside. A file that is shorter than it says is found here, not by
    /// a signal at the first access.
    fn attach(
        file: &File,
        directory: &Directory,
        path: &Path,
        layout: &Layout,
    ) -> Result<Self, Error> {
        let mut start = [0; START_BYTES];
        let file_bytes = read_start(file, &mut start)
            .map_err(|errno| Error::system("read", Some(path.into()), errno))?;
        if file_bytes < START_BYTES as u64 {
            return Err(Error::corrupted(format!(
                "{} has {file_bytes} bytes where the beginning of a space takes {START_BYTES}",
                path.display()
            )));
        }
        let Some(identity_bytes) = start.first_chunk::<IDENTITY_BYTES>() else { unreachable!() };
        let identity = Identity::decode(identity_bytes, layout)?;
        if State::from_bytes(identity_bytes) == Some(State::Poisoned) {
            return Err(Error::poisoned());
        }
        if let Some(removal) = Removal::of_bytes(identity_bytes) {
            return Err(Error::Removed { removal });
        }
        let stale_boot = identity.check_surroundings()?;
        if file_bytes != identity.reserve_bytes as u64 {
            return Err(Error::corrupted(format!(
                "{} has {file_bytes} bytes where {} were reserved",
                path.display(),
                identity.reserve_bytes
            )));
        }
        let Some(granules) = start.last_chunk::<4>() else { unreachable!() };
        let committed_bytes = u32::from_ne_bytes(*granules) as usize * GRANULE;
        if !(START_BYTES..=identity.reserve_bytes).contains(&committed_bytes) {
            return Err(Error::corrupted(format!(
                "{} says that {committed_bytes} of its {file_bytes} bytes are in use",
                path.display()
            )));
        }
        let mapping = Mapping::shared(file, directory, identity.reserve_bytes)?;
        Ok(Self { mapping, identity, path: Some(path.into()), created: false, stale_boot })
    }

    /// The memory of the segment.
    pub const fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// The segment's statements about itself.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Its file, as it was named when we attached; `None` if it is private.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether this call made the segment.
    pub const fn created(&self) -> bool {
        self.created
    }

    /// Whether the machine was started anew since the segment was made. Then all its users are dead, whatever their
    /// process numbers say. Cannot happen in `/dev/shm`.
    pub const fn stale_boot(&self) -> bool {
        self.stale_boot
    }

    /// Whether the segment can be used; `None` if the word that says so is damaged itself.
    pub fn state(&self) -> Option<State> {
        // Acquire pairs with the Release in `set_state`.
        State::from_word(self.state_word().load(Ordering::Acquire))
    }

    /// Tells everybody attached whether the segment can be used.
    pub fn set_state(&self, state: State) {
        // Release pairs with the Acquire in `state`: a reader of the verdict sees its cause.
        self.state_word().store(state as u32, Ordering::Release);
    }

    /// Whether its name is gone, or another file's, as far as this process can tell: never for one that is private.
    pub fn is_missing(&self) -> bool {
        self.mapping.home().is_some_and(Home::is_missing)
    }

    fn state_word(&self) -> &AtomicU32 {
        // SAFETY: inside the first page, which is committed for good.
        let word = unsafe { self.mapping.base().add(STATE) };
        // SAFETY: aligned, mapped as long as `self` borrows the mapping, accessed by atomics only.
        unsafe { AtomicU32::from_ptr(word.cast()) }
    }
}

fn whole_pages(bytes: usize) -> usize {
    bytes.next_multiple_of(rustix::param::page_size())
}

/// Reads the beginning of a file, zeros where it is too short. Returns the size of the file, in bytes.
pub(crate) fn read_start(file: &File, start: &mut [u8]) -> Result<u64, Errno> {
    read_at(file, 0, start)?;
    Ok(rustix::fs::fstat(file)?.st_size.cast_unsigned())
}

/// Reads what a file has at `offset`. What is beyond its end stays as it is.
fn read_at(file: &File, offset: u64, bytes: &mut [u8]) -> Result<(), Errno> {
    let mut read_bytes = 0;
    while read_bytes < bytes.len() {
        let rest = &mut bytes[read_bytes..];
        match retry_on_intr(|| rustix::io::pread(file, &mut *rest, offset + read_bytes as u64))? {
            0 => break,
            more => read_bytes += more,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a fresh segment is created")]
    fn a_segment_that_is_fresh_and_not_created_makes_no_sense() {
        let options = CreateOptions { create: false, fresh: true, ..CreateOptions::default() };
        let layout =
            Layout { minor: 0, abi_hash: 0, features_incompatible: 0, features_compatible: 0 };
        let directory = Directory::new(std::env::temp_dir());
        let _ = Segment::create_or_attach(&directory, "nothing", &options, &layout, |_| Ok(()));
    }

    #[test]
    fn a_file_of_another_user_is_refused_with_its_owner_and_mode() {
        let here = std::env::temp_dir().join(format!("tupelo-owner-{}", std::process::id()));
        fs::create_dir(&here).unwrap();
        let ours = Directory::new(&here);
        // Another user's view of a file that we plant under their name.
        let theirs = Directory { user: ours.user + 1, ..ours.clone() };
        let path = theirs.path_of("planted").unwrap();
        fs::write(&path, "whatever").unwrap();
        let mode = fs::metadata(&path).unwrap().mode() & 0o7777;
        let error = theirs.open(&path).unwrap_err();
        let (owner, user) = (ours.user, theirs.user);
        assert_eq!(error, Error::AccessDenied { path: path.clone(), mode, owner, user });
        let message = error.to_string();
        assert!(message.contains(&format!("belongs to user {owner} with mode {mode:04o}")));
        assert!(ours.open(&path).is_ok());
        fs::remove_dir_all(here).unwrap();
    }
}
