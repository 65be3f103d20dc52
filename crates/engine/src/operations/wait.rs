//! The waiting side: registering and sleeping (rules O3, T3, T6). What was waited for is picked up in
//! [`crate::operations::wait::finish`], and the line is left in [`crate::operations::wait::leave`].

pub(crate) mod again;
pub(crate) mod filtered;
mod finish;
pub(crate) mod leave;
pub(crate) mod notifier;
pub(crate) mod room;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::time::Duration;

use tupelo_shm::process::{self, fork_generation};
use tupelo_shm::{Section, Span, clock};
use tupelo_tuple::{PatternRef, TemplateRef};

use crate::Engine;
use crate::base::error::Error;
use crate::base::layout::{NODE_BYTES, head};
use crate::base::signal;
use crate::base::want::Want;
use crate::index::find::{Order, Purpose, Search};
use crate::index::links;
use crate::operations::filtered::{FilterResults, has_condition};
use crate::operations::targets::{self, Targets};
use crate::operations::wait::again::Again;
use crate::operations::wait::filtered::OwnLook;
use crate::operations::{at_match, take};
use crate::recovery::{abandoned, enter, node_memory, provide, sweep};
use crate::store::partition::{self, Partition};
use crate::store::registry::{self, Kinds};
use crate::store::{self, key};
use crate::waiters::events::ring::Ring;
use crate::waiters::hand_off::{self, HandOffDeadline};
use crate::waiters::{
    RECORD, SCOPE, SIGNAL, SLICE, TICKET, WANT, chain, deliver, node, nodes, spin, stored,
    timer_leader, wake,
};

/// What became of a call that waits for what is not there.
#[derive(Debug)]
pub enum Outcome<R> {
    /// There was a match.
    Done(R),
    /// There was none: the caller is in the wait queue for one.
    Waits(Waiter),
}

/// A blocked caller's place in the wait queue. Dropped, it gives up: a tuple already handed over goes back with its
/// identity, age and place (rule T5).
pub struct Waiter {
    pub(crate) engine: Arc<Engine>,
    pub(crate) number: u32,
    pub(crate) want: Want,
    pub(crate) done: AtomicBool,
    /// Whether it is handed nothing any more.
    pub(crate) has_ended: AtomicBool,
    /// When it was made, as forks are counted: a child's copy of it is not the child's.
    pub(crate) fork_generation: u32,
    /// If it looks for a match itself, as its template has a condition.
    pub(crate) own_look: Option<Box<OwnLook>>,
    /// If it may have what it is handed for a time only.
    pub(crate) again: Option<Box<Again>>,
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiter")
            .field("number", &self.number)
            .field("want", &self.want)
            .finish_non_exhaustive()
    }
}

/// As [`crate::Engine::waiter`] says.
pub(crate) fn waiter(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    want: Want,
) -> Result<Waiter, Error> {
    waiter_for(engine, template, want, None)
}

/// As [`crate::Engine::claimant`] says.
pub(crate) fn claimant(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    ttl: Duration,
) -> Result<Waiter, Error> {
    waiter_for(engine, template, Want::Take, Some(HandOffDeadline::For(ttl)))
}

/// As [`crate::Engine::waiter`], for one that may have what it is handed for a time only.
pub(crate) fn waiter_for(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    want: Want,
    deadline: Option<HandOffDeadline>,
) -> Result<Waiter, Error> {
    if has_condition(template) {
        let filter_results = FilterResults::default();
        return filtered::filtered_waiter(engine, template, want, deadline, filter_results);
    }
    waiter_with(engine, template, want, deadline, |_| Ok(()))
}

/// As [`crate::Engine::waiter`]; `prepare` makes its wait node ready for others to find.
pub(crate) fn waiter_with(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    want: Want,
    deadline: Option<HandOffDeadline>,
    prepare: impl FnOnce(u32) -> Result<(), Error>,
) -> Result<Waiter, Error> {
    let mut waiter = waiter_in(engine, node_memory::claim_node(engine)?, want);
    node_memory::store_template(engine, waiter.node(), template)?;
    if let Some(deadline) = deadline {
        hand_off::write(waiter.node(), deadline);
        waiter.again = Again::new(template)?;
    }
    prepare(waiter.number)?;
    waiter.join_queue(template)?;
    if waiter.record() != 0 {
        // It was there already. Nobody else tells this waiter, which would sleep a slice first.
        wake::notify(engine, waiter.number);
    }
    Ok(waiter)
}

/// A waiter in a wait node that was got for it, not in the wait queue yet. Dropped, it gives the wait node back.
fn waiter_in(engine: &Arc<Engine>, number: u32, want: Want) -> Waiter {
    let engine = Arc::clone(engine);
    let fork_generation = fork_generation();
    let [done, has_ended] = [false; 2].map(AtomicBool::new);
    let (own_look, again) = (None, None);
    let waiter = Waiter { engine, number, want, done, has_ended, fork_generation, own_look, again };
    waiter.node().init(WANT, want.number());
    waiter.node().init64(TICKET, store::next_ticket(&waiter.engine));
    waiter
}

/// Joins the wait queue to take a match of `template`. The partition of `section` has none. This happens in the same section if a
/// wait node is at hand and the template is short, as for callers that wait often and briefly.
pub(crate) fn wait_in<'m>(
    engine: &'m Arc<Engine>,
    mut section: Section<'m>,
    partition: Partition<'m>,
    search: &Search<'_>,
) -> Result<Waiter, Error> {
    let template = &TemplateRef::new(search.patterns);
    let number = chain::has_table(partition).then(|| nodes::cached_node(engine)).flatten();
    let own = number.map(|number| waiter_in(engine, number, Want::Take));
    let Some(own) = own else {
        section.finish()?;
        return waiter(engine, std::slice::from_ref(template), Want::Take);
    };
    if !stored::store_actuals(section.view(), own.node(), template) {
        section.finish()?;
        // Only now: it may need a lock to give its wait node back.
        drop(own);
        return waiter(engine, std::slice::from_ref(template), Want::Take);
    }
    let filed = own.file_in(&mut section, partition, search);
    let filed = filed.and_then(|()| Ok(section.finish()?));
    filed.map(|()| own)
}

impl Waiter {
    /// What it waits for.
    pub fn want(&self) -> Want {
        self.want
    }

    pub(crate) fn join_queue(&self, template: &[TemplateRef<'_>]) -> Result<(), Error> {
        match template {
            [one] if let Some(kinds) = Kinds::of_template(one) => self.register(one, &kinds),
            _ => self.register_multi_shape(template),
        }
    }

    fn register(&self, template: &TemplateRef<'_>, kinds: &Kinds) -> Result<(), Error> {
        let engine = &*self.engine;
        let first = match template.patterns.first() {
            Some(PatternRef::Actual(first)) => Some(first),
            _ => None,
        };
        let shape = registry::shape(engine, kinds, first)?;
        let scope = partition::scope_of(shape);
        let search = Search::new(template.patterns, kinds, engine.seed, self.purpose());
        let learn = provide::retry(engine, || {
            let mut section = enter::enter(engine, scope)?;
            let partition = Partition::of_shape(section.view(), shape);
            let learn = self.register_in(&mut section, partition, &search)?;
            section.commit()?;
            Ok(learn)
        })?;
        take::learn_if(engine, learn, scope)
    }

    /// Takes what there is, or links the wait node: in one section, so no put comes between. Returns by which fields the
    /// search has shown that an index pays, else 0.
    fn register_in<'m>(
        &'m self,
        section: &mut Section<'m>,
        partition: Partition<'m>,
        search: &Search<'_>,
    ) -> Result<u32, Error> {
        if self.wants_tuple() {
            let found = search.pick(section.view(), partition, Order::Fifo, 0);
            if let Some(hit) = found.hit {
                self.node().init(SCOPE, partition.scope());
                self.accept(section, partition, hit.record.reference)?;
                return Ok(found.learn);
            }
        }
        self.file_in(section, partition, search)?;
        Ok(0)
    }

    /// Links the wait node.
    fn file_in<'m>(
        &self,
        section: &mut Section<'m>,
        partition: Partition<'m>,
        search: &Search<'_>,
    ) -> Result<(), Error> {
        let tag_of = |mask| key::tag_of_patterns(search.patterns, mask, self.engine.seed);
        chain::file(&self.engine, section, partition, self.number, search.key.mask, tag_of)
    }

    pub(crate) fn purpose(&self) -> Purpose {
        if self.want == Want::Take { Purpose::Take } else { Purpose::Read }
    }

    /// Whether it takes or copies what is there when it joins the wait queue. One that looks itself does not.
    fn wants_tuple(&self) -> bool {
        self.own_look.is_none() && matches!(self.want, Want::Take | Want::Read)
    }

    /// Hands a match that is in the lists over to this waiter's own wait node.
    pub(crate) fn accept<'m>(
        &'m self,
        section: &mut Section<'m>,
        partition: Partition<'m>,
        reference: u32,
    ) -> Result<(), Error> {
        let reference = if self.want == Want::Take {
            links::unlink(section, partition, reference);
            reference
        } else {
            deliver::copy_record(&self.engine, section, partition, reference)?
        };
        deliver::hand_over(&self.engine, section, partition, self.number, reference);
        Ok(())
    }

    fn register_multi_shape(&self, template: &[TemplateRef<'_>]) -> Result<(), Error> {
        let engine = &*self.engine;
        if self.wants_tuple() || self.want == Want::Events {
            return provide::retry(engine, || {
                while !self.register_in_all(&targets::targets(engine, template, self.purpose()))? {}
                Ok(())
            });
        }
        let mut section = Section::enter(&engine.memory, head::MULTI_SHAPE_SCOPE)?;
        if self.want == Want::Room {
            chain::file_for_room(&mut section, self.number);
        } else {
            chain::file_multi_shape(&mut section, self.number);
        }
        Ok(section.commit()?)
    }

    /// Takes what there is, or links the wait node. All partitions that can have a match are locked meanwhile, so that
    /// no put comes between, nor part of a larger step. Returns whether the targets were all that there are.
    fn register_in_all(&self, targets: &Targets<'_>) -> Result<bool, Error> {
        let engine = &*self.engine;
        let mut section = targets::lock_with_multi_shape(engine, targets)?;
        let targets_of_match = if self.wants_tuple() { &targets.all[..] } else { &[] };
        if let Some(found) = at_match::chosen(engine, &section, targets_of_match, Order::Fifo) {
            if targets::outdated(engine, targets) {
                return Ok(false);
            }
            let partition = Partition::of_shape(section.view(), found.target.shape);
            section.focus(partition.scope());
            self.node().init(SCOPE, head::MULTI_SHAPE_SCOPE);
            self.accept(&mut section, partition, found.reference)?;
            section.commit()?;
            return Ok(true);
        }
        chain::file_multi_shape(&mut section, self.number);
        // Pairs with the fence where a shape is published: either we see the new shape here, or whoever puts
        // a tuple of it sees that somebody is inside the lock of the multi-shape waiters.
        fence(Ordering::SeqCst);
        if targets::outdated(engine, targets) {
            return Ok(false);
        }
        section.commit()?;
        Ok(true)
    }

    /// Waits until a tuple is this waiter's, or what it watches for happened, or `timeout` passed (`None`:
    /// for ever). Returns whether it happened; if not, the place in the wait queue is kept. A watch may also be woken in vain.
    ///
    /// # Errors
    ///
    /// What the memory says; the waiter stays registered.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        self.wait_while(timeout, || true)
    }

    /// As [`Waiter::wait`], for as long as `goes_on` says so, which is asked each time that the waiter looks around.
    ///
    /// # Errors
    ///
    /// As [`Waiter::wait`].
    pub fn wait_while(
        &self,
        timeout: Option<Duration>,
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, Error> {
        self.wait_for(timeout, true, goes_on)
    }

    /// As [`Waiter::wait_while`], by a caller who has more time than `part`, and does something else before it waits again.
    /// The end of a part is no answer, so it does not wait for a process that was stopped while it cleaned up (rule L5).
    ///
    /// # Errors
    ///
    /// As [`Waiter::wait`].
    pub fn wait_part(&self, part: Duration, goes_on: impl Fn() -> bool) -> Result<bool, Error> {
        self.wait_for(Some(part), false, goes_on)
    }

    fn wait_for(
        &self,
        timeout: Option<Duration>,
        is_all: bool,
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, Error> {
        if self.own_look.is_some() {
            return self.wait_and_look(timeout, is_all, goes_on);
        }
        self.wait_for_signal(timeout, is_all, goes_on)
    }

    /// As [`Waiter::wait_while`], but for what the waiter may find itself. `is_all` says whether `timeout` is all the time
    /// that the caller has.
    pub(crate) fn wait_for_signal(
        &self,
        timeout: Option<Duration>,
        is_all: bool,
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, Error> {
        if self.happened() || self.is_served_again()? {
            return Ok(true);
        }
        Section::end_cohort(&self.engine.memory);
        let begin_ns = clock::monotonic_ns();
        let deadline_ns = timeout.map(|timeout| begin_ns.saturating_add(nanoseconds(timeout)));
        let processor = process::processor();
        let spun = spin::spin(self.signal(), begin_ns, deadline_ns, || self.happened());
        if let Some(now_ns) = spun {
            spin::learn(now_ns - begin_ns, self.signal(), processor);
            return Ok(true);
        }
        let slept = self.sleep(deadline_ns, is_all, goes_on);
        timer_leader::resign(&self.engine, self.number);
        let happened = slept?;
        spin::learn(clock::monotonic_ns() - begin_ns, self.signal(), processor);
        Ok(happened)
    }

    fn sleep(
        &self,
        deadline_ns: Option<u64>,
        is_all: bool,
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, Error> {
        loop {
            let now_ns = clock::monotonic_ns();
            let left_ns = deadline_ns.map(|deadline| deadline.saturating_sub(now_ns));
            if left_ns == Some(0) {
                // What is due at this moment has happened in time, and what the dead held comes to those in the wait queue (rule L5).
                timer_leader::run_due_timers(&self.engine, self.number)?;
                if is_all {
                    sweep::recall(&self.engine)?;
                } else {
                    sweep::sweep_if_due(&self.engine)?;
                }
                return self.look();
            }
            let slice = left_ns.map_or(SLICE, |left| SLICE.min(Duration::from_nanos(left)));
            let slice = timer_leader::sleep_until_due(&self.engine, self.number, slice);
            let slept_out = signal::sleep(self.signal(), slice);
            if self.happened() || self.is_served_again()? {
                return Ok(true);
            }
            timer_leader::run_due_timers(&self.engine, self.number)?;
            if slept_out {
                if self.look()? {
                    return Ok(true);
                }
                sweep::sweep_if_due(&self.engine)?;
                if self.is_watch() {
                    // Whoever was killed between what it did and its signal has told nobody.
                    return Ok(true);
                }
            }
            if !goes_on() {
                return Ok(false);
            }
        }
    }

    /// Whether a signal is there, and not one that was meant for the wait node's last owner.
    ///
    /// That of a tuple stays. To take it would fetch the line from the processor of the put once more, and whoever gets
    /// the tuple has no use for the signal.
    fn happened(&self) -> bool {
        let signal = self.signal();
        if self.is_watch() {
            return signal::take(signal);
        }
        let is_there = || self.record() != 0;
        signal::is_raised(signal) && (is_there() || signal::take(signal) && is_there())
    }

    /// Joins the wait queue again if it has lost what it was handed. Returns whether it found something there.
    fn is_served_again(&self) -> Result<bool, Error> {
        if self.own_look.is_some() {
            // Whoever looks itself does so by each look.
            return Ok(false);
        }
        self.rejoin_if_lost()?;
        Ok(self.again.is_some() && self.record() != 0)
    }

    pub(crate) fn is_watch(&self) -> bool {
        let watches = matches!(self.want, Want::Put | Want::Removal | Want::Room | Want::Events);
        watches || self.own_look.is_some()
    }

    /// Looks for a tuple under the lock: one whose put died before it could signal, or is about to.
    fn look(&self) -> Result<bool, Error> {
        store::require_sound(&self.engine)?;
        if self.is_watch() {
            return Ok(self.happened());
        }
        let scope = self.node().load(SCOPE);
        if scope != 0 {
            // Locking settles what a dead put left behind.
            drop(Section::enter(&self.engine.memory, scope)?);
        }
        Ok(self.record() != 0)
    }

    pub(crate) fn node(&self) -> Span<'_, NODE_BYTES> {
        node(&self.engine.memory.view(), self.number)
    }

    fn signal(&self) -> &AtomicU32 {
        self.node().word(SIGNAL)
    }

    pub(crate) fn record(&self) -> u32 {
        self.node().load(RECORD)
    }

    /// The number of its wait node.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether something has happened to it: a tuple is there, or was lost, or, for a watch, a signal.
    pub fn is_ready(&self) -> bool {
        self.record() != 0
            || hand_off::has_lost(self.node())
            || self.is_watch() && signal::is_raised(self.signal())
            || self.has_events()
    }

    /// Whether it is a subscription that has something to tell.
    pub(crate) fn has_events(&self) -> bool {
        let view = self.engine.memory.view();
        self.want == Want::Events
            && Ring::of(&view, node(&view, self.number)).is_some_and(Ring::has_something)
    }

    /// Takes the signal of a watch. Returns whether there was one.
    pub(crate) fn acknowledge(&self) -> bool {
        self.is_watch() && signal::take(self.signal())
    }

    /// Makes a signal for this waiter wake `other`'s owner: one caller then sleeps on several waiters.
    pub fn wakes(&self, other: &Self) {
        self.node().init(crate::waiters::WAKES, other.number);
    }

    /// Gives the wait node back.
    pub(crate) fn release(&self) {
        self.done.store(true, Ordering::Relaxed);
        abandoned::give_node_back(&self.engine, self.number, self.want);
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
