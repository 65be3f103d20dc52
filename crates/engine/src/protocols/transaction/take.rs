//! What a transaction takes out of a space: as everybody, and also what it alone has read (rules X3, X6).

use tupelo_shm::{Section, View};
use tupelo_tuple::TemplateRef;

use crate::Engine;
use crate::base::error::Error;
use crate::index::find::{Hit, Order, Purpose};
use crate::operations::at_match::{self, Clock};
use crate::operations::bulk;
use crate::operations::targets::{Target, TupleBuffer, TupleCopy};
use crate::protocols::transaction::Term;
use crate::protocols::transaction::hold::{self, Enlisted};
use crate::protocols::transaction::lock::{self, Lock, Locks};
use crate::protocols::transaction::part::Part;
use crate::protocols::transaction::write_set::{Number, is_preceded};
use crate::store::partition::{self, Partition};
use crate::store::record::{self, Record};
use crate::store::registry::Kinds;
use crate::store::{Store, step};
use crate::time::list::List;

/// What is done with the first match among all, locked or not.
enum First {
    /// It was taken. The lock that the transaction had on it is turned into that.
    Taken(Enlisted, bool, Option<Lock>),
    /// What the transaction has put itself comes before it, and before all others.
    Preceded,
    /// Somebody else has read it: the match is another one.
    Passed,
}

impl Part {
    /// Takes the match that `order` asks for out of the space, past what others have read. It is not yet noted as
    /// held by the transaction, and may still be preceded by `rival`, what the transaction itself has put. Returns also
    /// whether it was copied to `copy`, as a short one is.
    pub(super) fn take(
        &mut self,
        template: &[TemplateRef<'_>],
        order: Order,
        rival: Option<Number>,
        term: Term,
        copy: &mut TupleBuffer,
    ) -> Result<Option<(Enlisted, bool)>, Error> {
        if self.locks.is_empty() {
            let engine: &Store = &self.engine;
            let how = (order, Purpose::Take, Clock::BeforeSearch);
            return at_match::at_match(engine, template, how, |section, partition, hit, kinds| {
                let is_copied = copy.fill_short(section.view(), hit.record, kinds);
                Ok((hold::enlist(engine, section, partition, hit, term)?, is_copied))
            });
        }
        // By all other orders, what it has put itself comes after all that is in the space, or has won before.
        let rival = rival.filter(|_| order.is_by_field());
        match self.take_first(template, order, rival, term, copy)? {
            None | Some(First::Preceded) => Ok(None),
            Some(First::Taken(taken, is_copied, lock)) => {
                if let Some(lock) = lock {
                    self.locks.remove(&lock);
                }
                Ok(Some((taken, is_copied)))
            }
            Some(First::Passed) => self.take_shown(template, order, rival, term, copy),
        }
    }

    /// As [`Part::take`], if the match is the first one also for who only reads: nearly always. A search knows no more than
    /// that somebody has read a tuple; of that one it is looked who.
    fn take_first(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        rival: Option<Number>,
        term: Term,
        copy: &mut TupleBuffer,
    ) -> Result<Option<First>, Error> {
        let (engine, locks): (&Engine, _) = (&self.engine, &self.locks);
        let rival = rival.map(|number| self.writes.get(number).view());
        let how = (order, Purpose::Read, Clock::BeforeSearch);
        at_match::at_match(engine, template, how, |section, partition, hit, kinds| {
            let record = hit.record;
            if let Some(own) = &rival {
                let copy = TupleCopy::new(section.view(), record.reference, *kinds);
                if is_preceded(&copy.view(), own, order) {
                    return Ok(First::Preceded);
                }
            }
            if !Purpose::Take.passes_over(record.header) {
                let is_copied = copy.fill_short(section.view(), record, kinds);
                return Ok(First::Taken(
                    hold::enlist(engine, section, partition, hit, term)?,
                    is_copied,
                    None,
                ));
            }
            let lock = locks.on(partition.scope(), record);
            let Some(lock) =
                lock.filter(|lock| lock::only_locked(engine, section.view(), lock).is_some())
            else {
                return Ok(First::Passed);
            };
            let is_copied = copy.fill_short(section.view(), record, kinds);
            let taken = lock::take_locked(engine, section, partition, lock, record, term)?;
            // Frees last: a block that this section frees must not be filled in it again.
            lock::free_lock(engine, section, lock.place)?;
            Ok(First::Taken(taken, is_copied, Some(*lock)))
        })
    }

    /// As [`Part::take`], with everything shown that the transaction alone has read.
    #[cold]
    fn take_shown(
        &mut self,
        template: &[TemplateRef<'_>],
        order: Order,
        rival: Option<Number>,
        term: Term,
        copy: &mut TupleBuffer,
    ) -> Result<Option<(Enlisted, bool)>, Error> {
        let Self { engine, locks, writes, .. } = self;
        let engine: &Store = engine;
        let rival = rival.map(|number| writes.get(number).view());
        // Not if it is preceded: it would lose its lock, though it is not taken.
        let choose = |section: &Section<'_>, targets: &[Target<'_>]| {
            let chosen = at_match::chosen(engine, section, targets, order);
            let chosen = chosen.filter(|found| {
                !rival
                    .is_some_and(|writes| is_preceded(&found.copy(section).view(), &writes, order))
            });
            chosen.map(|found| found.place(targets)).into_iter().collect()
        };
        let copying = |view: &View<'_>, record: Record<'_>, kinds: &Kinds| {
            copy.fill_short(view, record, kinds)
        };
        Ok(take_at_once(engine, locks, template, term, choose, copying)?.pop())
    }

    /// Takes up to `at_most` matches, or none if there are fewer than `at_least`. Returns copies of the short ones.
    pub(super) fn take_many(
        &mut self,
        template: &[TemplateRef<'_>],
        at_least: usize,
        at_most: usize,
        term: Term,
    ) -> Result<Vec<(Enlisted, Option<TupleCopy>)>, Error> {
        let Self { engine, locks, .. } = self;
        let engine: &Store = engine;
        let choose = |section: &Section<'_>, targets: &[Target<'_>]| {
            let found: Vec<_> = bulk::found(engine, section, targets, at_most).collect();
            if found.len() < at_least {
                return Vec::new();
            }
            found.iter().map(|found| found.place(targets)).collect()
        };
        take_at_once(engine, locks, template, term, choose, TupleCopy::of_short)
    }
}

/// Takes what `choose` chooses at one moment: the number of the target, and the record. Returns also what `copying` makes of
/// each. What the transaction alone has read is shown to the search, all of it.
fn take_at_once<C>(
    store: &Store,
    locks: &mut Locks,
    template: &[TemplateRef<'_>],
    term: Term,
    choose: impl Fn(&Section<'_>, &[Target<'_>]) -> Vec<(usize, u32)>,
    mut copying: impl FnMut(&View<'_>, Record<'_>, &Kinds) -> C,
) -> Result<Vec<(Enlisted, C)>, Error> {
    let done = bulk::at_one_moment(store, template, Purpose::Take, |section, targets| {
        let is_here = |lock: &&Lock| {
            targets.iter().any(|one| partition::scope_of(one.shape) == lock.place.scope)
        };
        let mut shown = lock::show_own(store, section, locks.all().filter(is_here))?;
        let (mut taken, mut turned) = (Vec::new(), Vec::new());
        for (number, reference) in choose(section, targets) {
            let target = &targets[number];
            step::begin(section)?;
            let partition = Partition::of_shape(section.view(), target.shape);
            section.focus(partition.scope());
            let record = record::at(section.view(), reference);
            let copied = copying(section.view(), record, &target.kinds);
            // The lock may be gone with the transaction's time, and its block another's.
            let lock = locks.on(partition.scope(), record);
            let lock = lock.filter(|lock| hold::is_held(store, section, lock.place, List::Locks));
            let enlisted = if let Some(lock) = lock {
                shown.retain(|other| other.key() != lock.key());
                turned.push(*lock);
                lock::take_locked(store, section, partition, lock, record, term)?
            } else {
                hold::enlist(store, section, partition, Hit { record, place: None }, term)?
            };
            taken.push((enlisted, copied));
        }
        lock::hide_again(store, section, &shown)?;
        // Frees last: a block that this section frees must not be filled in it again.
        for lock in &turned {
            lock::free_lock(store, section, lock.place)?;
        }
        Ok((taken, turned))
    })?;
    let Some((taken, turned)) = done else { return Ok(Vec::new()) };
    for lock in &turned {
        locks.remove(lock);
    }
    Ok(taken)
}
