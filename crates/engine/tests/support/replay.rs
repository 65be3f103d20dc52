//! A journalled space, and what its journal adds up to.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tupelo_engine::{Change, CreateOptions, Drain, Engine, Error, Kept, Limits, RequestKey};
use tupelo_shm::Segment;
use tupelo_tuple::TupleView;
use tupelo_tuple::encoding::{Decoded, Reader};

/// What was kept: tuples by their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Replay {
    pub(crate) tuples: BTreeMap<u64, (Kept, Vec<u8>)>,
    /// Records seen.
    pub(crate) records: Vec<u64>,
    /// What requests were answered.
    pub(crate) answered: Vec<RequestKey>,
    /// With which segments the steps are shared.
    pub(crate) shared: Vec<u128>,
}

/// The canonical encoding of a tuple.
pub(crate) fn encoded(tuple: TupleView<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    tupelo_tuple::encoding::encode_tuple_view(&mut bytes, tuple).unwrap();
    bytes
}

impl Replay {
    /// Does what a change says.
    pub(crate) fn apply(&mut self, position: u64, change: &Change<'_>) {
        if self.records.last() != Some(&position) {
            assert!(self.records.last().is_none_or(|last| *last < position), "in order");
            self.records.push(position);
        }
        match change {
            Change::Put { id, tuple, terms } => {
                let kept = Kept { id: *id, terms: *terms, ..Kept::default() };
                let before = self.tuples.insert(*id, (kept, encoded(*tuple)));
                assert!(before.is_none(), "the id {id} is given twice");
            }
            Change::Taken { id } => {
                assert!(self.tuples.remove(id).is_some(), "{id} is taken, and is not there");
            }
            Change::Visible { id, new_id, terms } => {
                let (mut kept, tuple) = self.tuples.remove(id).unwrap();
                (kept.id, kept.terms) = (*new_id, *terms);
                assert!(self.tuples.insert(*new_id, (kept, tuple)).is_none());
            }
            Change::Lease { id, terms } => self.tuples.get_mut(id).unwrap().0.terms = *terms,
            Change::Attempts { id, attempts } => {
                self.tuples.get_mut(id).unwrap().0.attempts = attempts.clone();
            }
            Change::Answered(request) => self.answered.push(*request),
            Change::Shared { with } => self.shared.push(*with),
            other => panic!("an unknown change: {other:?}"),
        }
    }

    /// Reads all that there is, and releases it.
    pub(crate) fn drain(&mut self, engine: &Engine) {
        let drain = engine.try_drain().unwrap().expect("nobody else drains");
        let end = self.visit(&drain);
        drain.release(end).unwrap();
    }

    /// Reads all that there is. Returns where it ends.
    pub(crate) fn visit(&mut self, drain: &Drain<'_>) -> u64 {
        let end = drain.each(u64::MAX, |position, change| {
            self.apply(position, &change);
            Ok::<_, Error>(())
        });
        end.unwrap()
    }

    /// Checks that a space has exactly this.
    pub(crate) fn assert_is_in(&self, engine: &Engine) {
        let mut there = BTreeMap::new();
        engine
            .each_kept(|kept, tuple| {
                let id = kept.id;
                assert!(there.insert(id, (kept, encoded(tuple))).is_none(), "{id} is there twice");
                Ok::<_, Error>(())
            })
            .unwrap();
        let ids = |all: &BTreeMap<u64, (Kept, Vec<u8>)>| all.keys().copied().collect::<Vec<_>>();
        assert_eq!(ids(&self.tuples), ids(&there), "the journal has told, and is there");
        for (id, (kept, tuple)) in &self.tuples {
            let (other, other_tuple) = &there[id];
            assert_eq!(tuple, other_tuple, "{id}");
            assert_eq!(kept.attempts, other.attempts, "{id}");
            for (one, two) in [
                (kept.terms.hidden_until_ns, other.terms.hidden_until_ns),
                (kept.terms.ends_at_ns, other.terms.ends_at_ns),
            ] {
                assert_eq!(one.is_some(), two.is_some(), "{id}: {kept:?} {other:?}");
                let apart = one.unwrap_or_default().abs_diff(two.unwrap_or_default());
                // The wall clock may be slewed between two looks.
                assert!(apart < 1_000_000_000, "{id}: {kept:?} {other:?}");
            }
        }
    }

    /// A new space with this.
    pub(crate) fn restored(&self, size_bytes: u64) -> Arc<Engine> {
        let engine = bare(&Limits { size_bytes, ..Limits::default() }, 1 << 20);
        for (kept, tuple) in self.tuples.values() {
            let tuple = Decoded::read(&mut Reader::new(tuple)).unwrap();
            assert!(engine.restore(kept, tuple.as_ref()).unwrap());
        }
        let next = self.tuples.keys().next_back().map_or(1, |last| last + 1);
        engine.restored(next, 1 << 40);
        engine
    }
}

/// A private journalled space that nobody drains.
pub(crate) fn bare(limits: &Limits, journal_bytes: u64) -> Arc<Engine> {
    let options = CreateOptions {
        reserve_bytes: Engine::reserve_bytes_journalled(limits.size_bytes, journal_bytes),
        initial_commit_bytes: 4096,
        create: true,
        fresh: false,
        mode: 0o600,
    };
    let segment = Segment::private(&options, &Engine::segment_layout(), |mapping| {
        Engine::initialise_journalled(mapping, limits, journal_bytes)
    });
    Arc::new(Engine::new(segment.unwrap()).unwrap())
}

thread_local! {
    /// The spaces that a test has made in its thread.
    static WATCHED: Watched = const { Watched(RefCell::new(Vec::new())) };
}

struct Watched(RefCell<Vec<Journalled>>);

/// When the test is over. A failure ends the program: a test has no end of its own to say so.
impl Drop for Watched {
    fn drop(&mut self) {
        self.0.borrow().iter().for_each(|space| drop(space.verify()));
    }
}

/// A private journalled space that is checked when its thread ends.
pub(crate) fn watched(limits: &Limits) -> Arc<Engine> {
    let space = Journalled::of(limits, 16 << 20);
    let engine = Arc::clone(&space.engine);
    WATCHED.with(|watched| watched.0.borrow_mut().push(space));
    engine
}

/// A private journalled space, and what its journal told whenever its ring was full.
pub(crate) struct Journalled {
    pub(crate) engine: Arc<Engine>,
    replay: Arc<Mutex<Replay>>,
}

impl Journalled {
    pub(crate) fn new(size_bytes: u64) -> Self {
        Self::with(&Limits { size_bytes, ..Limits::default() })
    }

    pub(crate) fn with(limits: &Limits) -> Self {
        Self::of(limits, 1 << 20)
    }

    fn of(limits: &Limits, journal_bytes: u64) -> Self {
        let engine = bare(limits, journal_bytes);
        let replay = Arc::new(Mutex::new(Replay::default()));
        let (kept, weak) = (Arc::clone(&replay), Arc::downgrade(&engine));
        let is_first = engine.set_drainer(move |_| {
            let engine = weak.upgrade().expect("it is in use");
            // One thread drains at a time; the others find what it has freed.
            kept.lock().unwrap_or_else(PoisonError::into_inner).drain(&engine);
            Ok(())
        });
        assert!(is_first);
        Self { engine, replay }
    }

    /// What the journal has told until now.
    pub(crate) fn replay(&self) -> Replay {
        let mut replay = self.replay.lock().unwrap_or_else(PoisonError::into_inner);
        replay.drain(&self.engine);
        replay.clone()
    }

    /// Checks that this is what there is.
    pub(crate) fn verify(&self) -> Replay {
        self.engine.check().unwrap();
        let replay = self.replay();
        replay.assert_is_in(&self.engine);
        replay
    }
}
