//! One turn of the journals of all spaces of a file, where they share steps: a transaction, or tuples that move.
//!
//! Such a step has a record in the ring of each of its spaces, and all of them come to the file in one transaction of SQLite. For that
//! a process has the right to drain of each space whose memory is there. It looks where all rings end at one moment, at which each
//! step is in all of its rings or in none. Whoever was killed before the rings were freed has them read again, up to the positions in
//! the file.
//!
//! If the memory of one space was lost, so were steps of it that had not come to the file. Then the other spaces of such a step must
//! not bring it either. Their memory is given up, too, and is filled again from the file: nothing of this was acknowledged as durable.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tupelo_engine::{Change, Drain, Engine};
use tupelo_shm::Directory;

use crate::batch::Batch;
use crate::error::Error;
use crate::header::Header;
use crate::journal::{LOOK, STANDSTILL};
use crate::memory::{Found, Memory, attached, begin_next, is_of, require_brought};
use crate::storage::Storage;
use crate::turn::{Also, Turn, bring};
use crate::writing::Writing;

/// How often a space that is to end is brought to the file, while others go on to change it.
const LOOKS_MAX: usize = 50;

/// What such a turn has come to.
pub(crate) enum Together {
    /// Everything is in the file, and the rings of the other spaces are free. The own one is in the file up to here.
    Brought(u64),
    /// Somebody else drains one of the spaces, whose number of releases was this before.
    Busy(Arc<Engine>, u32),
    /// The spaces of the file have changed meanwhile.
    Again,
}

/// The memory of the other spaces of a file, as far as this process has needed it.
pub(crate) struct Others {
    directory: Directory,
    /// Locked by who is inside the gate, so that no child of a fork finds it locked.
    known: Mutex<Vec<Other>>,
}

/// The space that is brought, and the right to drain it.
#[derive(Clone, Copy)]
pub(crate) struct Own<'e> {
    pub(crate) name: &'e str,
    pub(crate) memory: Memory,
    pub(crate) engine: &'e Engine,
    pub(crate) drain: &'e Drain<'e>,
}

/// Another space of the file, whose memory is there.
#[derive(Clone)]
struct Other {
    name: String,
    /// That of the space in its file.
    number: i64,
    memory: Memory,
    /// The number of its segment.
    segment: u128,
    engine: Arc<Engine>,
}

impl Others {
    /// Of a file whose segments are in this directory.
    pub(crate) const fn new(directory: Directory) -> Self {
        Self { directory, known: Mutex::new(Vec::new()) }
    }

    /// Where the segments are.
    pub(crate) const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Those of these spaces whose memory is there; and what is in the way of looking for the rest.
    fn attached(
        &self,
        storage: &Storage,
        headers: &[(String, Header)],
    ) -> (Vec<Other>, Result<(), Error>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut found, mut trouble) = (Vec::new(), Ok(()));
        for (name, header) in headers {
            let memory = Memory::of(storage.file(), header);
            let one = known.iter().find(|one| one.memory == memory && !one.engine.is_over());
            let engine = match one {
                Some(one) => Ok(Some(Arc::clone(&one.engine))),
                None => match attached(storage.path(), (name, memory), &self.directory) {
                    Ok(Found::Engine(engine)) => Ok(Some(Arc::from(engine))),
                    // No build shares a step with the memory of another one.
                    Ok(Found::Nothing | Found::OfAnotherBuild(_)) => Ok(None),
                    Err(error) => Err(error),
                },
            };
            match engine {
                Ok(None) => {}
                Ok(Some(engine)) => {
                    let (name, number, segment) =
                        (name.clone(), header.number, segment_of(&engine));
                    found.push(Other { name, number, memory, segment, engine });
                }
                Err(error) => trouble = Err(error),
            }
        }
        known.clone_from(&found);
        (found, trouble)
    }

    /// Gives up the memory of spaces that share a step with one whose memory was lost.
    fn give_up(&self, storage: &mut Storage, lost: &[(String, Memory)]) -> Result<(), Error> {
        let file = storage.file();
        let writing = storage.write()?;
        for (name, memory) in lost {
            if let Some(header) = writing.header(name)?.filter(|found| memory.is_named_by(found)) {
                begin_next(&writing, (file, &header), &self.directory)?;
            }
        }
        writing.commit()?;
        for (_, memory) in lost {
            // It may be gone already.
            let _ = self.directory.remove(&memory.name());
        }
        Ok(())
    }
}

fn segment_of(engine: &Engine) -> u128 {
    u128::from_be_bytes(engine.segment().identity().uuid)
}

/// The right to drain another space. Of two processes that each have one and want the other, that of the lower number waits.
fn right(engine: &Engine, waits: bool) -> Result<Result<Drain<'_>, u32>, Error> {
    let until = Instant::now() + LOOK;
    loop {
        let releases = engine.releases();
        if let Some(drain) = engine.try_drain()? {
            return Ok(Ok(drain));
        }
        if !waits || Instant::now() >= until {
            return Ok(Err(releases));
        }
        engine.wait_drained(u64::MAX, releases, until);
    }
}

/// The spaces that share steps with each other, and the rights to drain them; or the one that somebody else drains, with its releases.
type Rights<'o> = Result<Vec<(&'o Other, Drain<'o>)>, (Arc<Engine>, u32)>;

/// The rights to drain all spaces that share steps with the one of this number, directly or by others. `shared` are the segments that its
/// own ring names. Nobody waits for a space that has nothing to do with it.
fn rights<'o>(attached: &'o [Other], own: i64, shared: &[u128]) -> Result<Rights<'o>, Error> {
    let mut wanted = shared.to_vec();
    let mut had: Vec<(&Other, Drain<'_>)> = Vec::new();
    loop {
        let is_had = |one: &Other| had.iter().any(|(other, _)| other.segment == one.segment);
        let mut next = attached.iter().filter(|one| wanted.contains(&one.segment) && !is_had(one));
        let Some(next) = next.next() else { return Ok(Ok(had)) };
        let drain = match right(&next.engine, own < next.number)? {
            Ok(drain) => drain,
            Err(releases) => return Ok(Err((Arc::clone(&next.engine), releases))),
        };
        drain.each(u64::MAX, |_, change| {
            if let Change::Shared { with } = change
                && !wanted.contains(&with)
            {
                wanted.push(with);
            }
            Ok::<_, Error>(())
        })?;
        had.push((next, drain));
    }
}

/// Writes everything that stands in the ring of a space to the file, with all steps that it shares, and what `also` writes.
///
/// # Errors
///
/// [`Error::TakenOver`] if the space has another memory by now, or shares a step with one whose memory was lost; what SQLite says.
pub(crate) fn bring_all(
    storage: &mut Storage,
    others: &Others,
    own: Own<'_>,
    also: Also<'_>,
) -> Result<Together, Error> {
    match bring(storage, (own.name, own.memory), own.drain, also)? {
        Turn::Brought(position) => Ok(Together::Brought(position)),
        Turn::Shared(with) => bring_together(storage, others, own, &with, also),
    }
}

/// As [`bring_all`], of a space that shares steps with the ones that have these segments.
fn bring_together(
    storage: &mut Storage,
    others: &Others,
    own: Own<'_>,
    shared: &[u128],
    also: Also<'_>,
) -> Result<Together, Error> {
    let header = own.memory.require(storage.header(own.name)?, storage.path())?;
    let mut headers = storage.headers()?;
    headers.retain(|(other, _)| other != own.name);
    let (attached, trouble) = others.attached(storage, &headers);
    let had = match rights(&attached, header.number, shared)? {
        Ok(had) => had,
        Err((engine, releases)) => return Ok(Together::Busy(engine, releases)),
    };
    // Only now: without the right to drain, somebody else may bring changes to the file between two looks.
    let behind = storage.headers()?;
    let is_of_file = |one: &Other| {
        let mut found = behind.iter().filter(|(name, _)| *name == one.name);
        found.any(|(_, header)| is_of(&one.engine, one.memory, header))
    };
    let mut members = vec![Member {
        name: own.name,
        memory: own.memory,
        segment: segment_of(own.engine),
        drain: own.drain,
    }];
    members.extend(had.iter().filter(|(one, _)| is_of_file(one)).map(|(one, drain)| Member {
        name: &one.name,
        memory: one.memory,
        segment: one.segment,
        drain,
    }));
    let is_had = |one: &&Other| had.iter().any(|(other, _)| other.segment == one.segment);
    let beside = attached.iter().filter(|one| !is_had(one)).map(|one| one.segment).collect();
    let file = storage.file();
    let mut known = vec![own.memory];
    known.extend(headers.iter().map(|(_, header)| Memory::of(file, header)));
    let lost = match write(storage, &members, &Surroundings { known, beside }, also)? {
        Written::Brought(position) => return Ok(Together::Brought(position)),
        Written::Again => return Ok(Together::Again),
        Written::Lost(lost) => lost,
    };
    // What could not be looked at is not lost.
    trouble?;
    others.give_up(storage, &lost)?;
    // Of the own memory that says that it has been taken over.
    own.memory.require(storage.header(own.name)?, storage.path())?;
    Ok(Together::Again)
}

/// One of the spaces that share steps.
struct Member<'e> {
    name: &'e str,
    memory: Memory,
    /// The number of its segment.
    segment: u128,
    drain: &'e Drain<'e>,
}

/// What was known of the file when the rights to drain were taken.
struct Surroundings {
    /// The memory of all its spaces.
    known: Vec<Memory>,
    /// The segments of those that shared no step with the members.
    beside: Vec<u128>,
}

/// What has been written of all rings.
enum Written {
    /// All of it: the own ring up to here.
    Brought(u64),
    /// Nothing: the spaces of the file have changed.
    Again,
    /// Nothing: these have steps of which the rest is lost.
    Lost(Vec<(String, Memory)>),
}

/// Writes what the rings of all members have at one moment. The first of them is the own space.
fn write(
    storage: &mut Storage,
    members: &[Member<'_>],
    surroundings: &Surroundings,
    also: Also<'_>,
) -> Result<Written, Error> {
    let drains: Vec<&Drain<'_>> = members.iter().map(|member| member.drain).collect();
    let ends = Drain::ends(&drains)?;
    let file = storage.file();
    let writing = storage.write()?;
    let (mut lost, mut positions, mut is_closed) = (Vec::new(), Vec::new(), true);
    for (index, (member, end)) in members.iter().zip(ends).enumerate() {
        let header = writing.header(member.name)?;
        let Some(header) = header.filter(|header| member.memory.is_named_by(header)) else {
            return Ok(Written::Again);
        };
        let mut batch = Batch::new(writing.tables(&header))?;
        let (mut brought, mut is_lost) = (header.position, false);
        member.drain.each_before(end, |position, change| {
            if position <= header.position {
                return Ok(());
            }
            brought = position;
            match change {
                Change::Shared { with } => {
                    let is_beside = surroundings.beside.contains(&with);
                    // The step is newer than the rights.
                    is_closed &= !is_beside;
                    is_lost |= !is_beside && members.iter().all(|member| member.segment != with);
                    Ok(())
                }
                change => batch.add(&change),
            }
        })?;
        let has_more = index == 0 && also(batch.tables())?;
        if has_more || brought > header.position {
            batch.finish(brought)?;
        }
        if is_lost {
            lost.push((member.name.to_owned(), member.memory));
        }
        positions.push(brought);
    }
    if !is_closed {
        return Ok(Written::Again);
    }
    if !lost.is_empty() {
        // A space that was made, or whose memory was filled, since the list was read.
        let is_known = |header: &Header| surroundings.known.contains(&Memory::of(file, header));
        let is_new = writing.headers()?.iter().any(|(_, header)| !is_known(header));
        drop(writing);
        return Ok(if is_new { Written::Again } else { Written::Lost(lost) });
    }
    writing.commit_and_shrink()?;
    for (member, position) in members.iter().zip(&positions).skip(1) {
        // The file has it. Who drains a ring that was not released reads on behind the position in the file.
        let _ = member.drain.release(*position);
    }
    Ok(Written::Brought(positions[0]))
}

/// Brings to the file what the memory of a space has not brought there yet, with all steps that it shares. Returns that memory, if there
/// is one that this build can read. One that it can not read has to have brought all.
///
/// # Errors
///
/// What the engine and SQLite say; [`Error::Storage`] if somebody else writes, and does not get on.
pub(crate) fn settle(
    storage: &mut Storage,
    (name, header): (&str, &Header),
    directory: &Directory,
) -> Result<Option<Box<Engine>>, Error> {
    let memory = Memory::of(storage.file(), header);
    let engine = match attached(storage.path(), (name, memory), directory)? {
        Found::Engine(engine) => engine,
        Found::Nothing => return Ok(None),
        Found::OfAnotherBuild(end) => {
            // Read after the end: a program of that build may bring more to the file at any time.
            let position = storage.header(name)?.map_or(0, |header| header.position);
            require_brought(storage.path(), memory, (end, position), directory)?;
            return Ok(None);
        }
    };
    let others = Others::new(directory.clone());
    let until = Instant::now() + STANDSTILL;
    while Instant::now() < until {
        let releases = engine.releases();
        let Some(drain) = engine.try_drain()? else {
            engine.wait_drained(u64::MAX, releases, Instant::now() + LOOK);
            continue;
        };
        // Only now: nobody else brings changes to the file between the two looks.
        if !storage.header(name)?.is_some_and(|header| is_of(&engine, memory, &header)) {
            return Ok(None);
        }
        let own = Own { name, memory, engine: &engine, drain: &drain };
        match bring_all(storage, &others, own, &mut |_| Ok(false))? {
            Together::Brought(position) => {
                drain.release(position)?;
                drop(drain);
                return Ok(Some(engine));
            }
            Together::Again => {}
            Together::Busy(other, releases) => {
                // Without the own right, which is perhaps what that one waits for.
                drop(drain);
                other.wait_drained(u64::MAX, releases, Instant::now() + LOOK);
            }
        }
    }
    let standstill_s = STANDSTILL.as_secs();
    let problem = format!(
        "cannot change the file: another program has written to it for {standstill_s} s; is a process stopped?"
    );
    Err(Error::Storage { path: storage.path().to_owned(), problem })
}

/// Ends a space of a file, or begins it anew: `end` does it. What the space shares with others of the file comes to it before. `end` is to
/// remove its memory before it commits: what is shared after that look would be lost with it, and then the others give up their memory.
/// The same if it can not be brought, which is no reason to keep the space.
///
/// # Errors
///
/// That of `end`; what SQLite says.
pub(crate) fn end_settled<R>(
    storage: &mut Storage,
    name: &str,
    directory: &Directory,
    end: impl FnOnce(Writing<'_>) -> Result<R, Error>,
) -> Result<R, Error> {
    for _ in 0..LOOKS_MAX {
        let headers = storage.headers()?;
        let header = headers.iter().find(|(other, _)| other == name).map(|(_, header)| header);
        let Some(header) = header.filter(|_| headers.len() > 1) else { break };
        let Ok(engine) = settle(storage, (name, header), directory) else { break };
        let memory = Memory::of(storage.file(), header);
        let writing = storage.write()?;
        let is_settled = |engine: &Engine, header: &Header| {
            let stat = engine.journal_stat();
            memory.is_named_by(header) && stat.is_none_or(|stat| stat.appended <= header.position)
        };
        // Nobody else brings anything to the file now; but others go on to change the space.
        let is_ready = match (&engine, &writing.header(name)?) {
            (Some(engine), Some(header)) => is_settled(engine, header),
            _ => true,
        };
        if is_ready {
            return end(writing);
        }
    }
    end(storage.write()?)
}
