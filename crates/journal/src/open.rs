//! Opening a space by its file: the memory that is there, or a new one that is filled from it.
//!
//! The file has an id and a generation, and the segment is named after both. So memory of another file, or of this file before
//! somebody filled another memory from it, is never taken for the file's. Whoever fills a new memory has the file locked until the
//! new generation is on disk; nobody looks for its segment before. The old memory, where some process still has it, can bring nothing
//! to the file any more.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tupelo_engine::{CreateOptions, Engine, Limits};
use tupelo_shm::{Directory, Segment};
use tupelo_tuple::encoding::{Decoded, Reader};

use crate::answers;
use crate::error::Error;
use crate::gate;
use crate::journal::{Journal, Memory};
use crate::layout;
use crate::slot::Slot;
use crate::storage::{FileNumber, Header, ID_BYTES, Storage};
use crate::writing::{Row, Writing};

/// Of how many bytes of a space one is for the ring between memory and file; and the least and the most that it has. No step, as a
/// `put_all` or a transaction, can change more than three quarters of it.
const RING_SHARE: u64 = 8;
const RING_BYTES_MIN: u64 = 4 << 20;
const RING_BYTES_MAX: u64 = 256 << 20;
/// Claims of one generation: the fences of the next one are above these (rule K1).
const FENCES: u64 = 1 << 40;
/// How the segment of a file is named.
const PREFIX: &str = "file-";

/// The journals of this process. Locked by who is inside the gate, so that no child of a fork finds it locked.
static JOURNALS: Mutex<Vec<Weak<Journal>>> = Mutex::new(Vec::new());

/// How a space is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Make the file if there is none.
    pub create: bool,
    /// Begin with an empty space, whatever is in the file. Processes that have it open can change nothing any more.
    pub fresh: bool,
    /// What a new space may hold. One that is there keeps its limits.
    pub limits: Limits,
    /// Where segments live.
    pub directory: Directory,
}

/// Whether a segment of this name is the memory of a file, and none of a space that was made by its name.
pub fn is_of_file(name: &str) -> bool {
    let Some(numbers) = name.strip_prefix(PREFIX) else { return false };
    let parts: Vec<&str> = numbers.split('-').collect();
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.len() == 4 && parts[0].len() == 2 * ID_BYTES && parts.iter().all(is_number)
}

impl Memory {
    /// The one that the header of a file speaks of.
    pub(crate) const fn of(file: FileNumber, header: &Header) -> Self {
        Self { id: header.id, file, generation: header.generation }
    }

    /// The name of its segment.
    pub(crate) fn name(&self) -> String {
        let Self { id, file: FileNumber { device, inode }, generation } = self;
        let id = u128::from_be_bytes(*id);
        format!("{PREFIX}{id:032x}-{generation:x}-{device:x}-{inode:x}")
    }
}

impl Journal {
    /// Opens the space that is kept in the file at `path`: all processes that do so have the same one.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no file and none is to be made. What else is wrong with it. What the engine says if the tuples
    /// of the file do not fit into memory.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Arc<Self>, Error> {
        // Dropped behind the gate: the last handle of a journal goes through it.
        let mut known = Vec::new();
        let inside = gate::enter();
        // Locked all the time: of several threads that open one file, all get the same journal.
        let mut journals = journals();
        known.extend(journals.iter().filter_map(Weak::upgrade));
        let storage =
            if options.create { Storage::open_or_create(path) } else { Storage::open(path) };
        let mut storage = storage?;
        layout::upgrade(&mut storage, options)?;
        let (engine, memory) = obtain(&mut storage, options)?;
        if let Some(known) = known.iter().find(|one| one.memory() == memory) {
            return Ok(Arc::clone(known));
        }
        let journal = Self::new(&inside, engine, memory, Slot::new(storage));
        journals.retain(|one| one.strong_count() > 0);
        journals.push(Arc::downgrade(&journal));
        Ok(journal)
    }
}

/// The memory of the file: the one that is there, or a new one.
fn obtain(storage: &mut Storage, options: &OpenOptions) -> Result<(Engine, Memory), Error> {
    if !options.fresh
        && let Some(header) = storage.header()?
    {
        let memory = Memory::of(storage.file(), &header);
        if let Some(engine) = attached(storage.path(), memory, options)?
            // Once more: somebody may have brought changes to the file since.
            && storage.header()?.is_some_and(|header| is_of(&engine, memory, &header))
        {
            return Ok((engine, memory));
        }
    }
    fill(storage, options)
}

/// Whether this memory goes with what is in the file, and not with a later state of it: one that was there before somebody
/// brought back an old copy, say.
pub(crate) fn is_of(engine: &Engine, memory: Memory, header: &Header) -> bool {
    let is_named = (memory.id, memory.generation) == (header.id, header.generation);
    is_named && engine.journal_stat().is_some_and(|stat| stat.drained <= header.position)
}

fn journals() -> MutexGuard<'static, Vec<Weak<Journal>>> {
    JOURNALS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Brings to their files what the spaces of this process have changed: for the end of a program.
///
/// # Errors
///
/// The first that occurs; the others are tried all the same.
pub fn flush_all() -> Result<(), Error> {
    let known = {
        let _inside = gate::enter();
        journals().iter().filter_map(Weak::upgrade).collect::<Vec<_>>()
    };
    let flushed = known.iter().map(|journal| journal.flush());
    flushed.fold(Ok(()), Result::and)
}

/// The memory that belongs to the file now; `None` if there is none that can be used.
pub(crate) fn attached(
    path: &Path,
    memory: Memory,
    options: &OpenOptions,
) -> Result<Option<Engine>, Error> {
    let create = CreateOptions { create: false, ..CreateOptions::default() };
    let (name, layout) = (memory.name(), Engine::segment_layout());
    let segment =
        Segment::create_or_attach(&options.directory, &name, &create, &layout, |_| Ok(()));
    let engine = segment.map_err(Error::from).and_then(|segment| Ok(Engine::new(segment)?));
    let engine = engine.map(|engine| named(engine, path));
    match engine {
        Ok(engine) => Ok(Some(engine)),
        Err(error) if is_of_no_use(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// As the engine calls the space in its errors.
fn named(engine: Engine, path: &Path) -> Engine {
    engine.named(format!("file://{}", path.display()))
}

/// Whether there is no memory, or one that nobody can use any more: it is damaged or removed, or another build has made it.
fn is_of_no_use(error: &Error) -> bool {
    use tupelo_shm::Error as Memory;
    let memory = match error {
        Error::Memory(error) => error,
        Error::Engine(tupelo_engine::Error::Memory(error)) => error,
        _ => return false,
    };
    matches!(
        memory,
        Memory::NotFound { .. }
            | Memory::Corrupted { .. }
            | Memory::Removed { .. }
            | Memory::VersionMismatch { .. }
    )
}

/// Makes a memory and fills it from the file, unless somebody else just has.
fn fill(storage: &mut Storage, options: &OpenOptions) -> Result<(Engine, Memory), Error> {
    let file = storage.file();
    let writing = storage.write()?;
    let found = writing.header()?;
    if !options.fresh
        && let Some(header) = &found
    {
        let memory = Memory::of(file, header);
        if let Some(engine) = attached(writing.path(), memory, options)?
            && is_of(&engine, memory, header)
        {
            return Ok((engine, memory));
        }
    }
    let is_new = found.is_none();
    let old = match found {
        Some(header) => header,
        None => new_header(options.limits)?,
    };
    let limits = if options.fresh { options.limits } else { old.limits };
    let header = Header { generation: old.generation + 1, position: 0, limits, ..old.clone() };
    if is_new {
        writing.create(&header)?;
    } else {
        writing.begin_generation(&header)?;
    }
    if options.fresh {
        writing.clear()?;
    }
    let memory = Memory::of(file, &header);
    let engine = restored(&writing, &header, memory, options)?;
    writing.commit()?;
    // Nobody finds it any more. That it is gone already is as well.
    let _ = options.directory.remove(&Memory::of(file, &old).name());
    Ok((engine, memory))
}

pub(crate) fn new_header(limits: Limits) -> Result<Header, Error> {
    let mut id = [0; ID_BYTES];
    let filled = rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty());
    if filled != Ok(ID_BYTES) {
        return Err(tupelo_shm::Error::corrupted("the system gives no random bytes").into());
    }
    Ok(Header { id, generation: 0, position: 0, next_id: 1, limits })
}

/// A new memory with the tuples of the file.
fn restored(
    writing: &Writing<'_>,
    header: &Header,
    memory: Memory,
    options: &OpenOptions,
) -> Result<Engine, Error> {
    let limits = header.limits;
    let ring_bytes = (limits.size_bytes / RING_SHARE).clamp(RING_BYTES_MIN, RING_BYTES_MAX);
    let create = CreateOptions {
        reserve_bytes: Engine::reserve_bytes_journalled(limits.size_bytes, ring_bytes),
        fresh: true, // the leavings of one who was killed before the generation was on disk
        ..CreateOptions::default()
    };
    let (name, layout) = (memory.name(), Engine::segment_layout());
    let segment =
        Segment::create_or_attach(&options.directory, &name, &create, &layout, |mapping| {
            Engine::initialise_journalled(mapping, &limits, ring_bytes)
        })?;
    let engine = named(Engine::new(segment)?, writing.path());
    writing.rows(|row| restore(&engine, writing.path(), row))?;
    engine.restore_keys(&answers::all(writing)?)?;
    engine.restored(header.next_id, (header.generation - 1).saturating_mul(FENCES));
    Ok(engine)
}

fn restore(engine: &Engine, path: &Path, row: &Row) -> Result<(), Error> {
    let mut reader = Reader::new(&row.image);
    let decoded = Decoded::read(&mut reader).and_then(|decoded| reader.finish().map(|()| decoded));
    let decoded = decoded.map_err(|error| Error::Corrupted {
        path: path.to_owned(),
        problem: format!("tuple {} does not decode: {error}", row.kept.id),
    })?;
    // One whose lease has ended meanwhile is not put, and stays in the file until its record says so.
    engine.restore(&row.kept, decoded.as_ref())?;
    Ok(())
}

/// Removes the file of a space, and its memory. Processes that have it open can change nothing any more.
///
/// # Errors
///
/// [`Error::NotFound`], [`Error::AccessDenied`]; [`Error::Corrupted`] for what is no file of a space, which stays. What the system
/// says.
pub fn remove(path: &Path, directory: &Directory) -> Result<(), Error> {
    {
        let _inside = gate::enter();
        match Storage::open(path) {
            Ok(mut storage) => disown(&mut storage, directory)?,
            // A file of a newer build is one of a space all the same.
            Err(Error::Newer { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let explained = |error| Error::io(path, "remove the file", &error);
    std::fs::remove_file(path).map_err(explained)?;
    for suffix in ["-wal", "-shm"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(explained(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Lets whoever has the space open find that it is not theirs any more, and removes its memory.
fn disown(storage: &mut Storage, directory: &Directory) -> Result<(), Error> {
    let file = storage.file();
    let writing = storage.write()?;
    let Some(header) = writing.header()? else { return Ok(()) };
    let next = Header { generation: header.generation + 1, position: 0, ..header.clone() };
    writing.begin_generation(&next)?;
    writing.commit()?;
    // It may be gone already.
    let _ = directory.remove(&Memory::of(file, &header).name());
    Ok(())
}
