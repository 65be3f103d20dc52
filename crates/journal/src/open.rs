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
use crate::header::Header;
use crate::journal::Journal;
use crate::layout;
use crate::memory::{Found, Memory, attached, is_of, named, require_brought};
use crate::slot::Slot;
use crate::storage::{FileNumber, Storage};
use crate::tables::{Row, Tables};
use crate::together::{Others, end_settled};
use crate::writing::Writing;

/// Of how many bytes of a space one is for the ring between memory and file; and the least and the most that it has. No step, as a
/// `put_all` or a transaction, can change more than three quarters of it.
const RING_SHARE: u64 = 8;
const RING_BYTES_MIN: u64 = 4 << 20;
const RING_BYTES_MAX: u64 = 256 << 20;
/// Claims of one generation: the fences of the next one are above these (rule K1).
const FENCES: u64 = 1 << 40;

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

impl Journal {
    /// Opens the space of this name that is kept in the file at `path`: all processes that do so have the same one. The name is empty for
    /// the space that needs none.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is no file or no such space in it, and none is to be made. What else is wrong with it. What the engine says if the tuples
    /// of the file do not fit into memory.
    pub fn open(path: &Path, name: &str, options: &OpenOptions) -> Result<Arc<Self>, Error> {
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
        let (engine, memory) = obtain(&mut storage, name, options)?;
        if let Some(known) = known.iter().find(|one| one.memory() == memory) {
            return Ok(Arc::clone(known));
        }
        let others = Others::new(options.directory.clone());
        let journal = Self::new(&inside, engine, (name, memory), (Slot::new(storage), others));
        journals.retain(|one| one.strong_count() > 0);
        journals.push(Arc::downgrade(&journal));
        Ok(journal)
    }
}

/// The memory of the file: the one that is there, or a new one.
fn obtain(
    storage: &mut Storage,
    name: &str,
    options: &OpenOptions,
) -> Result<(Engine, Memory), Error> {
    if !options.fresh
        && let Some(header) = storage.header(name)?
    {
        let memory = Memory::of(storage.file(), &header);
        if let Found::Engine(engine) = attached(storage.path(), (name, memory), &options.directory)?
            // Once more: somebody may have brought changes to the file since.
            && storage.header(name)?.is_some_and(|header| is_of(&engine, memory, &header))
        {
            return Ok((*engine, memory));
        }
    }
    fill(storage, name, options)
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
    // What was removed has nothing to be brought.
    let flushed = known.iter().filter(|one| !one.engine().is_over()).map(|one| one.flush());
    flushed.fold(Ok(()), Result::and)
}

/// Makes a memory and fills it from the file, unless somebody else just has.
fn fill(
    storage: &mut Storage,
    name: &str,
    options: &OpenOptions,
) -> Result<(Engine, Memory), Error> {
    let file = storage.file();
    if options.fresh {
        let emptied = |writing: Writing<'_>| filled(writing, file, name, options);
        return end_settled(storage, name, &options.directory, emptied);
    }
    filled(storage.write()?, file, name, options)
}

fn filled(
    writing: Writing<'_>,
    file: FileNumber,
    name: &str,
    options: &OpenOptions,
) -> Result<(Engine, Memory), Error> {
    let found = writing.header(name)?;
    if !options.fresh
        && let Some(header) = &found
    {
        let memory = Memory::of(file, header);
        match attached(writing.path(), (name, memory), &options.directory)? {
            Found::Engine(engine) if is_of(&engine, memory, header) => {
                return Ok((*engine, memory));
            }
            Found::Engine(_) | Found::Nothing => {}
            Found::OfAnotherBuild(end) => {
                require_brought(
                    writing.path(),
                    memory,
                    (end, header.position),
                    &options.directory,
                )?;
            }
        }
    }
    let is_new = found.is_none();
    if is_new && !options.create {
        return Err(Error::NotFound { path: writing.path().to_owned() });
    }
    let old = found.map_or_else(|| Header::new(options.limits), Ok)?;
    let limits = if options.fresh { options.limits } else { old.limits };
    let header = Header { generation: old.generation + 1, position: 0, limits, ..old.clone() };
    let header = if is_new { writing.create(name, &header)? } else { header };
    let tables = writing.tables(&header);
    if !is_new {
        tables.begin_generation(&header)?;
    }
    if options.fresh {
        tables.clear()?;
    }
    let memory = Memory::of(file, &header);
    let engine = restored(&tables, &header, (name, memory), options);
    // That it is gone already is as well.
    let remove_old = || drop(options.directory.remove(&Memory::of(file, &old).name()));
    if options.fresh && engine.is_ok() {
        remove_old();
    }
    let engine = engine.and_then(|engine| writing.commit().map(|()| engine));
    if engine.is_err() {
        // It is not that of the file.
        let _ = options.directory.remove(&memory.name());
    }
    let engine = engine?;
    // Nobody finds it any more.
    remove_old();
    Ok((engine, memory))
}

/// A new memory with the tuples of the file.
fn restored(
    tables: &Tables<'_, '_>,
    header: &Header,
    (space, memory): (&str, Memory),
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
    let engine = named(Engine::new(segment)?, tables.path(), space);
    tables.rows(|row| restore(&engine, tables.path(), row))?;
    engine.restore_keys(&answers::all(tables)?)?;
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
