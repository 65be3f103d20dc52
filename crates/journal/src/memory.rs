//! The memory of a space that is kept in a file: which segment it is, and whether it goes with what the file says.

use std::path::Path;

use tupelo_engine::{CreateOptions, Engine};
use tupelo_shm::{Directory, Segment};

use crate::error::Error;
use crate::header::{Header, ID_BYTES};
use crate::storage::FileNumber;
use crate::writing::Writing;

/// How the segment of a file is named.
const PREFIX: &str = "file-";

/// Which memory of which space it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The id of the space in the file, which a copy of it has, too.
    pub(crate) id: [u8; ID_BYTES],
    /// The number of the file, which no copy has.
    pub(crate) file: FileNumber,
    /// How often memory was filled for the space.
    pub(crate) generation: u64,
}

impl Memory {
    /// The one that the header of a space speaks of.
    pub(crate) const fn of(file: FileNumber, header: &Header) -> Self {
        Self { id: header.id, file, generation: header.generation }
    }

    /// The name of its segment.
    pub(crate) fn name(&self) -> String {
        let Self { id, file: FileNumber { device, inode }, generation } = self;
        let id = u128::from_be_bytes(*id);
        format!("{PREFIX}{id:032x}-{generation:x}-{device:x}-{inode:x}")
    }

    /// Whether the header of a space speaks of this memory.
    pub(crate) fn is_named_by(&self, header: &Header) -> bool {
        (self.id, self.generation) == (header.id, header.generation)
    }

    /// The header of its space, if the file still has this memory.
    ///
    /// # Errors
    ///
    /// [`Error::TakenOver`].
    pub(crate) fn require(&self, found: Option<Header>, path: &Path) -> Result<Header, Error> {
        let generation = found.as_ref().map_or(0, |header| header.generation);
        found.filter(|header| self.is_named_by(header)).ok_or_else(|| Error::TakenOver {
            path: path.to_owned(),
            own: self.generation,
            found: generation,
        })
    }
}

/// Whether a segment of this name is the memory of a file, and none of a space that was made by its name.
pub fn is_of_file(name: &str) -> bool {
    let Some(numbers) = name.strip_prefix(PREFIX) else { return false };
    let parts: Vec<&str> = numbers.split('-').collect();
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.len() == 4 && parts[0].len() == 2 * ID_BYTES && parts.iter().all(is_number)
}

/// Whether this memory goes with what is in the file, and not with a later state of it: one that was there before somebody
/// brought back an old copy, say.
pub(crate) fn is_of(engine: &Engine, memory: Memory, header: &Header) -> bool {
    let is_behind = |drained| drained <= header.position;
    let stat = engine.journal_stat();
    memory.is_named_by(header) && stat.is_some_and(|stat| is_behind(stat.drained))
}

/// What there is of a memory of a space.
pub(crate) enum Found {
    /// The memory.
    Engine(Box<Engine>),
    /// None that can be used.
    Nothing,
    /// One that another build has made, which has appended to its journal up to this position.
    OfAnotherBuild(u64),
}

/// The memory that belongs to a space of the file now, if there is one that can be used.
///
/// # Errors
///
/// What the engine and the memory say.
pub(crate) fn attached(
    path: &Path,
    (space, memory): (&str, Memory),
    directory: &Directory,
) -> Result<Found, Error> {
    let create = CreateOptions { create: false, ..CreateOptions::default() };
    let (name, layout) = (memory.name(), Engine::segment_layout());
    let segment = Segment::create_or_attach(directory, &name, &create, &layout, |_| Ok(()));
    let engine = segment.map_err(Error::from).and_then(|segment| Ok(Engine::new(segment)?));
    let engine = engine.map(|engine| named(engine, path, space));
    match engine {
        Ok(engine) => Ok(Found::Engine(Box::new(engine))),
        Err(Error::Memory(tupelo_shm::Error::VersionMismatch { .. })) => {
            let end = Engine::journal_end_of(directory, &name)?;
            Ok(end.map_or(Found::Nothing, Found::OfAnotherBuild))
        }
        Err(error) if is_of_no_use(&error) => Ok(Found::Nothing),
        Err(error) => Err(error),
    }
}

/// Refuses to do without the memory of another build that has appended up to `end`, unless all of that is in the file, which is at
/// `position`. This build can not read the rest.
pub(crate) fn require_brought(
    path: &Path,
    memory: Memory,
    (end, position): (u64, u64),
    directory: &Directory,
) -> Result<(), Error> {
    let bytes = end.saturating_sub(position);
    if bytes == 0 {
        return Ok(());
    }
    let memory = directory.path_of(&memory.name())?;
    Err(Error::OnlyInOldMemory { path: path.to_owned(), memory, bytes })
}

/// Begins the next generation of a space, for whoever fills a memory from the file: a process that has the old one can bring nothing to the
/// file any more.
///
/// # Errors
///
/// What SQLite and the system say.
pub(crate) fn begin_next(
    writing: &Writing<'_>,
    (file, header): (FileNumber, &Header),
    directory: &Directory,
) -> Result<(), Error> {
    let next = Header { generation: header.generation + 1, position: 0, ..header.clone() };
    // Whoever was killed while it filled one of that generation has left it, and it would be taken for the memory of the file.
    match directory.remove(&Memory::of(file, &next).name()) {
        Ok(()) | Err(tupelo_shm::Error::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    writing.tables(&next).begin_generation(&next)
}

/// As the engine calls the space in its errors.
pub(crate) fn named(engine: Engine, path: &Path, space: &str) -> Engine {
    let url = format!("file://{}", path.display());
    engine.named(if space.is_empty() { url } else { format!("{url}?space={space}") })
}

/// Whether there is no memory, or one that nobody can use any more: it is damaged or removed.
fn is_of_no_use(error: &Error) -> bool {
    use tupelo_shm::Error as Memory;
    let memory = match error {
        Error::Memory(error) => error,
        Error::Engine(tupelo_engine::Error::Memory(error)) => error,
        _ => return false,
    };
    matches!(memory, Memory::NotFound { .. } | Memory::Corrupted { .. } | Memory::Removed { .. })
}
