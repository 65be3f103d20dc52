//! The commit of a transaction: every partition concerned is locked, in every space, and one store makes all of it so
//! (rules X1, C1).

use smallvec::SmallVec;
use tupelo_shm::Section;

use crate::base::clock;
use crate::base::error::Error;
use crate::journal;
use crate::operations::bulk::{self, Together};
use crate::operations::{take, targets, transfer};
use crate::protocols::claim::settle;
use crate::protocols::transaction::part::Part;
use crate::protocols::transaction::{Few, State, Transaction, hold, lock};
use crate::recovery::full::{self, Wanted, largest_bytes};
use crate::recovery::provide::{self, Gathering};
use crate::recovery::quota::{self, Places};
use crate::recovery::{enter, fit, sweep};
use crate::store::incoming::Incoming;
use crate::store::partition::{self, HELD, Partition};
use crate::store::{Store, record, registry, step};
use crate::time::list::{List, Place};
use crate::waiters::deliver::Delivery;
use crate::waiters::timer_leader;

/// What changes in one space.
struct Change<'a> {
    part: &'a Part,
    incoming: &'a [(Incoming<'a>, u32)],
    /// Of everything that it touches, ascending.
    shapes: SmallVec<[u32; 2]>,
}

impl Transaction {
    /// Makes everything happen at one moment. Taken tuples are consumed, and put tuples appear, in the order of the
    /// puts. Others may take the tuples that were read.
    ///
    /// # Errors
    ///
    /// [`Error::Aborted`] if the lease has ended, and [`Error::NotAbsent`] if somebody else has put what was absent: nothing
    /// happened. As [`crate::Engine::put_all`], for any of the spaces: nothing happened yet, and the transaction is open.
    pub fn commit(&mut self) -> Result<(), Error> {
        // Whether its lease has ended is asked when all is locked.
        self.require_own_and_open()?;
        let done = match &self.parts[..] {
            [alone] if !alone.is_idle() => commit_alone(alone, self.term.end_ms),
            all => commit_parts(all, self.term.end_ms),
        };
        let is_done = match done {
            // It is told before the locks are taken: by then there may be nothing any more to be committed.
            Err(Error::LimitExceeded { .. } | Error::TooManyShapes(_))
                if clock::is_past(self.term.end_ms) =>
            {
                false
            }
            Err(Error::NotAbsent) => {
                self.state = State::Aborted;
                self.release()?;
                return Err(Error::NotAbsent);
            }
            done => done?,
        };
        if !is_done {
            return Err(self.run_out()?);
        }
        self.state = State::Committed;
        self.parts.clear();
        Ok(())
    }
}

/// Commits what was done in one space: nothing elsewhere has to come with it. Returns whether nothing was lost before.
fn commit_alone(part: &Part, end_ms: u64) -> Result<bool, Error> {
    let fields = part.writes.fields();
    let refs = part.writes.refs(&fields);
    let mut incoming = Together::new();
    part.incoming(&refs, &mut incoming)?;
    let change = Change::new(part, &incoming);
    let engine = &*part.engine;
    full::require_fit(engine, &incoming)?;
    timer_leader::catch_up_for_multi_shape(engine)?;
    let commit = || -> Result<Option<Delivery>, Error> {
        let (mut section, places) = change.enter()?;
        if clock::is_past(end_ms) {
            return Ok(None);
        }
        let delivery = change.apply(&mut section, places)?;
        if delivery.is_some() {
            journal::finish(engine, section)?;
        }
        Ok(delivery)
    };
    let (puts, leaving) = (change.puts(), part.holds.len());
    let wanted = Wanted { shapes: &puts, leaving, largest_bytes: largest_bytes(&incoming) };
    let done = full::making_room(engine, wanted, || provide::retry(engine, commit))?;
    let Some(delivery) = done else { return Ok(false) };
    delivery.wake(engine);
    Ok(true)
}

/// Commits, as often as something is missing. Returns whether nothing was lost before.
fn commit_parts(all: &[Box<Part>], end_ms: u64) -> Result<bool, Error> {
    let busy = all.iter().filter(|part| !part.is_idle());
    let mut parts: Few<&Part> = busy.map(|part| &**part).collect();
    // Always in the same order, whoever commits, so that no two wait for each other.
    parts.sort_by_key(|part| part.engine.segment.identity().uuid);
    let fields: Few<_> = parts.iter().map(|part| part.writes.fields()).collect();
    let refs: Few<_> =
        parts.iter().zip(&fields).map(|(part, fields)| part.writes.refs(fields)).collect();
    let mut incoming: Few<Together<'_>> = parts.iter().map(|_| Together::new()).collect();
    for ((part, refs), incoming) in parts.iter().zip(&refs).zip(&mut incoming) {
        part.incoming(refs, incoming)?;
        full::require_fit(&part.engine, incoming)?;
        timer_leader::catch_up_for_multi_shape(&part.engine)?;
    }
    let changes = parts.iter().zip(&incoming).map(|(part, incoming)| Change::new(part, incoming));
    let changes: Few<Change<'_>> = changes.collect();
    let mut has_dropped = false;
    loop {
        let (index, error) = match commit_once(&changes, end_ms) {
            Ok(done) => {
                for change in &changes {
                    sweep::return_log_reserve(&change.part.engine);
                }
                let Some(wakes) = done else { return Ok(false) };
                for (delivery, part) in wakes.into_iter().zip(&parts) {
                    delivery.wake(&part.engine);
                }
                return Ok(true);
            }
            Err((index, Error::Need(need))) => {
                match provide::provide(&changes[index].part.engine, need, Gathering::Waits) {
                    Ok(()) => continue,
                    Err(error) => (index, error),
                }
            }
            Err(refused) => refused,
        };
        match error {
            Error::SpaceFull(full)
                if !full.is_for_others()
                    && make_room(&changes, index, full.system_free_bytes, has_dropped)? =>
            {
                has_dropped = true;
            }
            error => return Err(error),
        }
    }
}

/// Drops a tuple for change number `index`, if that is the policy of its space and all changes may find room then. The
/// system has so many bytes left, if it said so. Returns whether it did.
fn make_room(
    changes: &[Change<'_>],
    index: usize,
    system_free_bytes: Option<u64>,
    has_dropped: bool,
) -> Result<bool, Error> {
    for (number, Change { part, incoming, .. }) in changes.iter().enumerate() {
        let more = incoming.len().saturating_sub(part.holds.len());
        if !full::may_have_room(&part.engine, more)? {
            return Ok(false);
        }
        let system_free_bytes = system_free_bytes.filter(|_| number == index);
        // Once, before anything is dropped.
        if !has_dropped
            && !fit::would_fit(&part.engine, largest_bytes(incoming), system_free_bytes)?
        {
            return Ok(false);
        }
    }
    let change = &changes[index];
    full::makes_room(&change.part.engine, &change.puts(), change.part.holds.len())
}

/// One attempt. An error comes with the number of the change that it concerns.
fn commit_once(
    changes: &[Change<'_>],
    end_ms: u64,
) -> Result<Option<Few<Delivery>>, (usize, Error)> {
    let mut sections: Few<Section<'_>> = Few::with_capacity(changes.len());
    let mut all_places: Few<Places> = Few::with_capacity(changes.len());
    for (index, change) in changes.iter().enumerate() {
        let (section, places) = change.enter_entirely().map_err(|error| (index, error))?;
        sections.push(section);
        all_places.push(places);
    }
    if clock::is_past(end_ms) {
        return Ok(None);
    }
    let mut wakes = Few::new();
    let locked = sections.iter_mut().zip(all_places);
    for (index, (change, (section, places))) in changes.iter().zip(locked).enumerate() {
        match change.apply(section, places).map_err(|error| (index, error))? {
            Some(delivery) => wakes.push(delivery),
            None => return Ok(None),
        }
    }
    let stores: Few<&Store> =
        changes.iter().map(|change| -> &Store { &change.part.engine }).collect();
    journal::commit_together(&stores, &mut sections)?;
    Ok(Some(wakes))
}

impl<'a> Change<'a> {
    /// What `part` has done, where `incoming` is what it puts.
    fn new(part: &'a Part, incoming: &'a [(Incoming<'a>, u32)]) -> Self {
        let held = part.held().chain(part.locks.all().map(|lock| &lock.place));
        let held = held.map(|place| partition::shape_of(place.scope));
        let mut shapes: SmallVec<[u32; 2]> =
            incoming.iter().map(|(_, shape)| *shape).chain(held).collect();
        shapes.sort_unstable();
        shapes.dedup();
        Self { part, incoming, shapes }
    }

    /// The shapes of what it puts, tuple by tuple.
    fn puts(&self) -> SmallVec<[u32; 2]> {
        self.incoming.iter().map(|(_, shape)| *shape).collect()
    }

    /// Locks all that it touches, if nothing else is to be locked. Returns the places for what it puts, too.
    fn enter(&self) -> Result<(Section<'a>, Places), Error> {
        self.with_shapes_to_lock(|shapes| self.enter_shapes(shapes))
    }

    /// As [`Change::enter`], with whatever else it may need.
    fn enter_entirely(&self) -> Result<(Section<'a>, Places), Error> {
        let engine: &'a Store = &self.part.engine;
        self.with_shapes_to_lock(|shapes| {
            if self.incoming.is_empty() {
                return Ok((transfer::lock_entirely(engine, shapes)?, None));
            }
            transfer::lock_entirely_to_put(engine, shapes)
        })
    }

    /// Gives `lock` what it touches, and what matches of what has to be absent may be in, of which none has come meanwhile.
    fn with_shapes_to_lock<R>(
        &self,
        lock: impl Fn(&[u32]) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if self.part.absent.is_none() {
            return lock(&self.shapes);
        }
        let count = || registry::count(&self.part.engine.memory.view());
        loop {
            let known = count();
            let mut shapes = self.shapes.clone();
            self.part.add_shapes_of_absent(&mut shapes);
            let locked = lock(&shapes)?;
            if count() == known {
                return Ok(locked);
            }
        }
    }

    fn enter_shapes(&self, shapes: &[u32]) -> Result<(Section<'a>, Places), Error> {
        let engine: &'a Store = &self.part.engine;
        let puts = !self.incoming.is_empty();
        if let [alone] = shapes[..] {
            let scope = partition::scope_of(alone);
            return if puts {
                quota::enter_to_put(engine, scope)
            } else {
                Ok((enter::enter(engine, scope)?, None))
            };
        }
        let shapes = shapes.iter().copied();
        let locked = if puts {
            targets::lock_all_to_put(engine, shapes)?
        } else {
            targets::lock_all(engine, shapes)?.map(|section| (section, None))
        };
        match locked {
            Some(locked) => Ok(locked),
            None => unreachable!("a part that is not idle touches a shape"),
        }
    }

    /// Makes the changes; `None`, and the section is only good to be dropped, if something was lost.
    fn apply(&self, section: &mut Section<'a>, places: Places) -> Result<Option<Delivery>, Error> {
        let engine: &'a Store = &self.part.engine;
        let locks = self.part.locks.oldest_first();
        let locks = || locks.iter().map(|lock| lock.place);
        if !locks().all(|place| hold::is_held(engine, section, place, List::Locks)) {
            return Ok(None);
        }
        let changes = self.incoming.len() + self.part.holds.len();
        step::count_anew(section, changes, self.shapes.iter().copied())?;
        let mut wakes = Delivery::default();
        for place in self.part.held() {
            let partition = begin(section, *place)?;
            let held = settle::held_at(engine, section.view(), *place, List::Enlisted);
            let Some((record, _)) = held.filter(|(_, fence)| *fence == place.fence) else {
                return Ok(None);
            };
            settle::end_hold(engine, section, partition, record, List::Enlisted)?;
            section.add(partition.page(), HELD, -1);
            wakes.join(settle::publish_end(engine, section, partition, record)?);
        }
        if !self.part.is_absent(section) {
            return Err(Error::NotAbsent);
        }
        // The places of what goes are free for what follows.
        quota::require_places(
            engine,
            places,
            self.incoming.len().saturating_sub(self.part.holds.len()),
        )?;
        for place in locks() {
            let partition = begin(section, place)?;
            let lock = record::at(section.view(), place.reference);
            wakes.join(lock::take_off(engine, section, partition, lock)?);
        }
        wakes.join(bulk::store_all(engine, section, self.incoming)?);
        // Frees last: a block that this section frees must not be filled in it again.
        for place in self.part.held() {
            let partition = begin(section, *place)?;
            let record = record::at(section.view(), place.reference);
            take::free_journalled(engine, section, partition, record)?;
        }
        for place in locks() {
            lock::free_lock(engine, section, place)?;
        }
        Ok(Some(wakes))
    }
}

/// Begins a step in the partition of a place.
fn begin<'m>(section: &mut Section<'m>, place: Place) -> Result<Partition<'m>, Error> {
    step::begin(section)?;
    section.focus(place.scope);
    Ok(Partition::of_scope(section.view(), place.scope))
}
