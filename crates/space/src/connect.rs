//! Opening a space by its URL.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::SystemTime;

use tupelo_engine::{CreateOptions, Engine, Handle, Limits, WhenFull};
use tupelo_journal::{Journal, JournalUse};
use tupelo_protocol::Remote;
use tupelo_shm::fork_local::{ForkLocal, Slot};
use tupelo_shm::{Directory, HowRemoved, Orphan, Segment};

use crate::durable::{self, Durability};
use crate::error::Error;
use crate::forks;
use crate::lease_renewer::LeaseRenewer;
use crate::opened::Opened;
use crate::url::{Address, Place};

/// How a space is opened, and the limits of a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Create the space if there is none. Default: true.
    pub create: bool,
    /// Begin with an empty space, even if one exists. Processes that use the old one get [`Error::SpaceRemoved`]. Of a file it empties
    /// the space that the URL names; the other spaces of the file stay. Not without `create`.
    /// Default: false.
    pub fresh: bool,
    /// The most memory that a new space may use for tuples, in bytes. Default: 256 MiB.
    pub size_bytes: u64,
    /// The most tuples that a new space may hold, from 1 on. Default: `None`, as many as fit.
    pub tuples_max: Option<u64>,
    /// The policy of a new space for a put without room (rule B1). Default: [`WhenFull::Error`]. An existing space
    /// keeps its limits, and its policy.
    pub when_full: WhenFull,
    /// When a call through this handle that changes a space of a file returns. All other spaces are in memory alone, and it says
    /// nothing. Default: [`Durability::Group`].
    pub sync: Durability,
    /// For servers: what keyed requests are answered ([`crate::keyed`]) is kept in the space, so that the next server knows it. In a
    /// space of a file it comes to the file with the change. Says nothing for a private space. Default: false.
    pub keeps_keys: bool,
}

impl ConnectOptions {
    pub(crate) fn limits(&self) -> Limits {
        let Self { size_bytes, tuples_max, when_full, .. } = *self;
        Limits { size_bytes, tuples_max, when_full }
    }

    /// The addresses that each process takes for a space of this size, in bytes. The file of a `shm://` space is as long, and
    /// sparse.
    pub fn address_bytes(&self) -> u64 {
        Engine::reserve_bytes(self.size_bytes) as u64
    }

    /// Refuses contradictory options, whether or not the space exists.
    fn require_sense(&self) -> Result<(), Error> {
        if self.fresh && !self.create {
            return Err(Error::Misuse {
                problem: "fresh is true and create is false, and a fresh space is created".into(),
                hint: Some("open the one that is there without fresh, or let it be created".into()),
            });
        }
        if self.tuples_max == Some(0) {
            return Err(Error::Misuse {
                problem: "tuples_max is 0, and such a space holds nothing".into(),
                hint: Some("give 1 or more, or None for as many as fit".into()),
            });
        }
        Ok(())
    }
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            create: true,
            fresh: false,
            size_bytes: 256 << 20,
            tuples_max: None,
            when_full: WhenFull::default(),
            sync: Durability::default(),
            keeps_keys: false,
        }
    }
}

/// The limits that the caller asks for; `None`: any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitsAsked {
    /// As [`ConnectOptions::size_bytes`].
    pub size_bytes: Option<u64>,
    /// As [`ConnectOptions::tuples_max`].
    pub tuples_max: Option<u64>,
    /// As [`ConnectOptions::when_full`].
    pub when_full: Option<WhenFull>,
}

/// A handle of a space. Clones share it; threads may share it too.
#[derive(Clone)]
pub struct Space {
    pub(crate) inner: Arc<Inner>,
    /// Whether puts through this handle wait for room.
    pub(crate) waits: bool,
    /// Whether changes through this handle wait for the disk.
    pub(crate) sync: Durability,
}

pub(crate) struct Inner {
    pub(crate) backend: Backend,
    /// What brings the changes to a file, if the space is kept in one.
    pub(crate) journal: Option<Arc<Journal>>,
    /// Ends when the handle is closed.
    journal_use: Option<JournalUse>,
    pub(crate) url: String,
    place: Place,
    closed: AtomicBool,
    /// By which the engine knows what was begun through the handle.
    number: u32,
    pub(crate) opened: Opened,
    lease_renewer: LeaseRenewer,
}

/// Where a space is.
pub(crate) enum Backend {
    /// In memory that this process has.
    Local(Arc<Engine>),
    /// Elsewhere.
    Remote(Arc<dyn Remote>),
}

#[doc(hidden)]
impl Handle for Space {
    fn kept(&self) -> &Arc<Engine> {
        match &self.inner.backend {
            Backend::Local(engine) => engine,
            Backend::Remote(_) => unreachable!("only an engine gives claims of its own"),
        }
    }

    fn number(&self) -> u32 {
        self.inner.number
    }
}

/// A number that no other handle of the process has.
fn next_number() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
}

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Space").field(&self.inner.url).finish()
    }
}

/// The `mem://` spaces of a process, by name. They live as long as the process, or until removed.
type Private = HashMap<String, Arc<Engine>>;

/// The spaces of this process: the child of a fork has a copy of its parent's, which it must not use.
static PRIVATE: ForkLocal<Private> = ForkLocal::new();

/// Locked for a moment only, never while a space is made.
fn private() -> MutexGuard<'static, Slot<Private>> {
    PRIVATE.lock(|_| None)
}

impl Space {
    /// Opens the space at `url`: `mem://NAME` or `shm://NAME`; `?size=1G` behind it stands for `size_bytes`. Or one that is
    /// kept in a file, `file:///path/jobs.tupelo`; `?size=1G&sync=none` behind it stand for `size_bytes` and `sync`. Or one of a
    /// server on this machine: `unix:///path/of/the/socket?space=NAME`, and `&size=1G` behind it.
    ///
    /// # Errors
    ///
    /// [`Error::ConnectionLost`] if there is no server, [`Error::VersionMismatch`] also if it speaks another version.
    ///
    /// * [`Error::Misuse`] for a text that is no such URL, and for options that contradict each other.
    /// * [`Error::SpaceNotFound`] if there is none and `create` is false.
    /// * [`Error::AccessDenied`], [`Error::VersionMismatch`], [`Error::SpaceCorrupted`] for a space that cannot be used.
    /// * [`Error::SpaceFull`] if a new one finds no room.
    /// * [`Error::Storage`] if its file cannot be read or written.
    pub fn connect(url: &str, options: &ConnectOptions) -> Result<Self, Error> {
        forks::watch();
        let Address { place, size_bytes, sync } = Address::parse(url)?;
        let size_bytes = size_bytes.unwrap_or(options.size_bytes);
        let sync = sync.unwrap_or(options.sync);
        let options = ConnectOptions { size_bytes, sync, ..options.clone() };
        options.require_sense()?;
        let mut journal = None;
        let backend = match &place {
            Place::Memory(name) => Backend::Local(connect_private(name, url, &options)?),
            Place::SharedMemory(name) => Backend::Local(Arc::new(attach(name, url, &options)?)),
            Place::File { path, space, .. } => {
                let opened = durable::open((path, space), url, &options)?;
                Backend::Local(Arc::clone(journal.insert(opened).engine()))
            }
            Place::Server { server, name } => {
                Backend::Remote(crate::remote::connect(server, (name, url), &options)?)
            }
        };
        let journal_use = journal.as_ref().map(Journal::begin_use);
        let inner = Inner {
            backend,
            journal,
            journal_use,
            url: url.into(),
            place,
            closed: AtomicBool::new(false),
            number: next_number(),
            opened: Opened::default(),
            lease_renewer: LeaseRenewer::default(),
        };
        let mut space = Self { inner: Arc::new(inner), waits: false, sync };
        space.waits = space.when_full() == WhenFull::Wait;
        space.require_limits(&LimitsAsked::default())?; // but for a size in the URL
        Ok(space)
    }

    /// Refuses limits other than those that the space was created with. For a caller that asks for some, and opens a
    /// space that
    /// may have been there: it keeps its own, and a program that counts on others would go wrong late. A size in the URL
    /// goes first. The limits of a server's space are not compared: the protocol does not tell them yet.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] with both values.
    pub fn require_limits(&self, asked: &LimitsAsked) -> Result<(), Error> {
        let Some(engine) = self.local() else { return Ok(()) };
        let has = engine.limits();
        let size_asked = Address::parse(self.url())?.size_bytes.or(asked.size_bytes);
        let shown =
            |max: Option<u64>| max.map_or_else(|| "no limit".to_owned(), |max| max.to_string());
        let size_differs =
            |size_bytes: &u64| Engine::rounded_size_bytes(*size_bytes) != has.size_bytes;
        let (what, had, wanted) = if let Some(size_bytes) = size_asked.filter(size_differs) {
            ("size", format!("{} bytes", has.size_bytes), format!("{size_bytes} bytes"))
        } else if asked.tuples_max.is_some_and(|max| Some(max) != has.tuples_max) {
            ("tuples_max", shown(has.tuples_max), shown(asked.tuples_max))
        } else if let Some(when_full) = asked.when_full.filter(|policy| *policy != has.when_full) {
            ("when_full", format!("{:?}", has.when_full.name()), format!("{:?}", when_full.name()))
        } else {
            return Ok(());
        };
        let removed = match self.place() {
            Place::File { space, .. } if space.is_empty() => "the file with all its spaces",
            _ => "the space",
        };
        Err(Error::Misuse {
            problem: format!("{what} of {} is {had}, and {wanted} is asked for", self.url()),
            hint: Some(format!(
                "a space keeps what it was created with: leave {what} out, or remove {removed} with `tupelo rm URL`, \
                 or take another name"
            )),
        })
    }

    /// The URL that the space was opened with.
    pub fn url(&self) -> &str {
        &self.inner.url
    }

    /// The name of the space.
    pub fn name(&self) -> &str {
        self.inner.place.name()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.inner.place
    }

    /// Whether it is in memory that this process has; if not, calls go over a connection.
    pub fn is_here(&self) -> bool {
        matches!(self.inner.backend, Backend::Local(_))
    }

    /// Whether it is private to this process: `mem://`.
    pub(crate) fn is_private(&self) -> bool {
        matches!(self.inner.place, Place::Memory(_))
    }

    /// Whether `other` is a handle of this very space: its name may have been given to another one since.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.inner.backend, &other.inner.backend) {
            (Backend::Local(one), Backend::Local(other)) => one.is_same_space(other),
            (Backend::Remote(one), Backend::Remote(other)) => one.identity() == other.identity(),
            _ => false,
        }
    }

    /// Whether one step can change both: they are here, or of one server.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        match (&self.inner.backend, &other.inner.backend) {
            (Backend::Local(_), Backend::Local(_)) => true,
            (Backend::Remote(one), Backend::Remote(other)) => {
                one.identity().client == other.identity().client
            }
            _ => false,
        }
    }

    /// Ends the use of this handle and its clones: later calls are refused, and blocked ones return. What was begun
    /// through it ends at once (rule L5). Claimed tuples are back as after a failed attempt, transactions are rolled back,
    /// subscriptions end. The space stays.
    pub fn close(&self) {
        self.leave();
        if let Backend::Local(engine) = &self.inner.backend {
            // What can not be given back now comes back when its time is over.
            let _ = engine.give_up(self.inner.number);
        }
        self.inner.opened.end();
        if let Backend::Local(engine) = &self.inner.backend {
            let _ = engine.rouse();
            engine.close_descriptors();
        }
        if let Some(journal_use) = &self.inner.journal_use {
            journal_use.end();
        }
    }

    /// As [`Space::close`], and ends nothing: for the child of a fork, in a space that stays with its parent.
    pub fn leave(&self) {
        self.inner.closed.store(true, Ordering::Relaxed);
    }

    /// The engine, unless the handle was closed, or the space is elsewhere.
    #[inline]
    pub(crate) fn local(&self) -> Option<&Arc<Engine>> {
        // Relaxed: it orders nothing, and the compiler still knows the fields of a put behind it.
        if self.inner.closed.load(Ordering::Relaxed) {
            return None;
        }
        match &self.inner.backend {
            Backend::Local(engine) => Some(engine),
            Backend::Remote(_) => None,
        }
    }

    /// The engine, for what comes after something that only an engine here does: if there is none, the handle was closed.
    #[inline]
    pub(crate) fn engine(&self) -> Result<&Arc<Engine>, Error> {
        self.local().ok_or_else(|| self.closed_error())
    }

    /// Refuses if the handle was closed.
    #[inline]
    pub(crate) fn require_open(&self) -> Result<(), Error> {
        let closed = self.inner.closed.load(Ordering::Relaxed);
        if closed { Err(self.closed_error()) } else { Ok(()) }
    }

    /// What renews the claims and leases of this handle.
    pub(crate) fn lease_renewer(&self) -> &LeaseRenewer {
        &self.inner.lease_renewer
    }

    #[cold]
    pub(crate) fn closed_error(&self) -> Error {
        Error::SpaceClosed { url: self.inner.url.clone() }
    }
}

pub(crate) fn create_options(options: &ConnectOptions) -> Result<CreateOptions, Error> {
    let reserve_bytes = Engine::reserve_bytes(options.size_bytes);
    // The size first: the bytes of a segment far beyond the maximum do not fit in a number.
    if options.size_bytes > tupelo_shm::RESERVE_BYTES_MAX as u64
        || reserve_bytes > tupelo_shm::RESERVE_BYTES_MAX
    {
        let limit = tupelo_shm::RESERVE_BYTES_MAX >> 30;
        let problem =
            format!("a space of {} bytes is over the maximum of {limit} GiB", options.size_bytes);
        return Err(Error::Misuse { problem, hint: Some("create it with a smaller size".into()) });
    }
    Ok(CreateOptions {
        reserve_bytes,
        initial_commit_bytes: 0,
        create: options.create,
        fresh: options.fresh,
        mode: 0o600,
    })
}

fn connect_private(name: &str, url: &str, options: &ConnectOptions) -> Result<Arc<Engine>, Error> {
    let existing =
        |private: &Private| if options.fresh { None } else { private.get(name).cloned() };
    if let Some(engine) = existing(private().content()) {
        return Ok(engine);
    }
    if !options.create {
        return Err(Error::SpaceNotFound { url: url.into() });
    }
    // Without the lock, which others need for a moment: this takes long.
    let segment =
        Segment::private(&create_options(options)?, &Engine::segment_layout(), |mapping| {
            Engine::initialise(mapping, &options.limits())
        })?;
    let engine = Arc::new(Engine::new(segment)?.named(format!("mem://{name}")));
    let mut private = private();
    // Of several callers that made one meanwhile, all get that of the first.
    if let Some(first) = existing(private.content()) {
        return Ok(first);
    }
    let replaced = private.content().insert(name.to_owned(), Arc::clone(&engine));
    drop(private);
    if let Some(replaced) = replaced {
        replaced.retire(HowRemoved::Replaced);
    }
    Ok(engine)
}

fn attach(name: &str, url: &str, options: &ConnectOptions) -> Result<Engine, Error> {
    let create = create_options(options)?;
    let layout = Engine::segment_layout();
    loop {
        let segment =
            Segment::create_or_attach(&Directory::default(), name, &create, &layout, |mapping| {
                Engine::initialise(mapping, &options.limits())
            });
        let segment = segment.map_err(|error| named(error, url))?;
        match Engine::new(segment).map_err(Error::from) {
            // Since it was attached to: there is another one by now, or none.
            Err(Error::SpaceRemoved { .. }) => {}
            engine => {
                let engine = engine?.named(format!("shm://{name}"));
                return Ok(if options.keeps_keys { engine.keeping_keys()? } else { engine });
            }
        }
    }
}

pub(crate) fn named(error: tupelo_shm::Error, url: &str) -> Error {
    match error {
        tupelo_shm::Error::NotFound { .. } => Error::SpaceNotFound { url: url.into() },
        error => error.into(),
    }
}

/// Removes a space. Processes that use it get [`Error::SpaceRemoved`], in a blocked call within 100 ms. A later connection finds a
/// new one. A `file://` URL without `?space=` removes the file with all its spaces.
///
/// # Errors
///
/// [`Error::SpaceNotFound`], [`Error::AccessDenied`], [`Error::Misuse`] for a text that is no URL.
pub fn remove(url: &str) -> Result<(), Error> {
    match Address::parse(url)?.place {
        Place::Memory(name) => {
            let removed = private().content().remove(&name);
            let removed = removed.ok_or_else(|| Error::SpaceNotFound { url: url.into() })?;
            removed.retire(HowRemoved::Removed);
            Ok(())
        }
        Place::SharedMemory(name) => {
            Directory::default().remove(&name).map_err(|error| named(error, url))
        }
        Place::File { path, space, .. } => durable::remove((&path, &space), url),
        Place::Server { server, name } => crate::remote::remove(&server, (&name, url)),
    }
}

/// Takes over a `shm://` space of another pid namespace, with its tuples: of a container that was started again, say. The
/// caller says that all processes of that namespace have ended. What they held comes back, as after any death. A process
/// that lives after all counts as dead, and may damage the space. A space of this namespace stays as it is.
///
/// # Errors
///
/// [`Error::SpaceNotFound`], [`Error::AccessDenied`], [`Error::SpaceCorrupted`], [`Error::VersionMismatch`]; [`Error::Misuse`]
/// for a URL of another kind.
pub fn adopt(url: &str) -> Result<(), Error> {
    let Place::SharedMemory(name) = Address::parse(url)?.place else {
        return Err(Error::Misuse {
            problem: format!("{url} can not be adopted: only shm:// belongs to a pid namespace"),
            hint: Some("open it as it is".into()),
        });
    };
    let layout = Engine::segment_layout();
    Directory::default().adopt(&name, &layout).map_err(|error| named(error, url))
}

/// A shared-memory space of this user, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceEntry {
    /// Its name: it opens as `shm://` and this.
    pub name: String,
    /// The memory that it uses, in bytes.
    pub bytes: u64,
    /// When it was last opened or closed, or had its memory changed.
    pub modified: SystemTime,
}

/// The shared-memory spaces of this user, by name.
///
/// # Errors
///
/// [`Error::System`] if the directory of shared memory cannot be read.
pub fn spaces() -> Result<Vec<SpaceEntry>, Error> {
    let entries = Directory::default().list()?.into_iter();
    Ok(entries
        // What is the memory of a file is found by the file.
        .filter(|entry| !tupelo_journal::is_of_file(&entry.name))
        .map(|entry| SpaceEntry { name: entry.name, bytes: entry.bytes, modified: entry.modified })
        .collect())
}

/// The processes of this user that still use a `shm://` space which was removed, as far as `/proc` shows them.
pub fn orphans() -> Vec<Orphan> {
    Directory::default().orphans()
}

#[cfg(test)]
mod tests {
    use super::{ConnectOptions, Space, private};
    use crate::{fields, template};
    use tupelo_crashtest::{Exit, fork};

    #[test]
    fn the_child_of_a_fork_has_private_spaces_of_its_own_and_waits_for_no_lock_of_its_parent() {
        let options = ConnectOptions::default();
        let space = Space::connect("mem://forked-while-locked", &options).unwrap();
        space.put(&fields!["parent"]).unwrap();
        for is_locked in [true, false] {
            let locked = is_locked.then(private);
            let child = fork(|| {
                let space = Space::connect("mem://forked-while-locked", &options).unwrap();
                space.put(&fields!["child"]).unwrap();
                assert_eq!(space.count(&[template![..]]), Ok(1), "of its own, with what it put");
            });
            drop(locked);
            assert_eq!(child.wait(), Exit::Done);
        }
        assert_eq!(space.count(&[template!["parent"]]), Ok(1));
        crate::remove("mem://forked-while-locked").unwrap();
    }
}
