//! The side of the subscriber: beginning, taking events out, waiting for more, ending.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tupelo_shm::{CopyBuffer, Section};
use tupelo_tuple::{Template, TemplateRef, TupleView};

use crate::Engine;
use crate::base::error::Error;
use crate::base::want::Want;
use crate::operations::filtered::{self, has_condition};
use crate::operations::wait::{self, Waiter};
use crate::recovery::{node_memory, sweep};
use crate::store::registry::{self, Kinds};
use crate::store::{self, Store};
use crate::waiters::events::ring::{self, Ring, Waiting, scope_of};
use crate::waiters::events::{EventKind, SubscribeTerms};
use crate::waiters::{EVENT_KINDS, node, timer_leader};

/// Most events that may wait for a subscriber (rule B2).
pub const EVENTS_MAX: usize = 1 << 20;
/// Most bytes of a ring: its places are 32 bits.
pub const EVENT_BYTES_MAX: usize = 1 << 30;
/// Room for an event, in bytes, if nothing else is said: what nearly all tuples are well below.
const EVENT_BYTES_USUAL: usize = 256;
/// Bytes of the smallest ring. Few events have room for a tuple that is larger than most.
const BYTES_MIN: usize = 16 << 10;

/// Somebody who is told what happens to the tuples that match a template. Dropped, it ends.
#[derive(Debug)]
pub struct Subscription {
    waiter: Waiter,
    /// If its template has a condition (rule M9), which nobody else evaluates: whoever puts writes down what fits the
    /// fields.
    filter: Option<Box<Filter>>,
    /// Events that its visitor has refused since the last one that it was told of: they count as missed.
    refused: AtomicU64,
}

/// What a subscription looks at itself.
#[derive(Debug)]
struct Filter {
    template: Template,
    passed: Mutex<Passed>,
}

/// The events that did not hold the condition.
#[derive(Debug, Default)]
struct Passed {
    count: u64,
    /// Events that were dropped since the last one that was told.
    missed: u64,
}

/// An event that was taken out.
struct Taken<'b> {
    waiting: Waiting,
    kinds: Kinds,
    image: &'b [u8],
}

/// Something that happened to a tuple.
#[derive(Clone, Copy, Debug)]
pub struct Event<'t> {
    /// What.
    pub kind: EventKind,
    /// A copy of the tuple.
    pub tuple: TupleView<'t>,
    /// Its number among the events of the subscription, from 1, those that were dropped counted.
    pub sequence: u64,
    /// How many were dropped between this and the one before, or refused by the visitor.
    pub missed: u64,
}

impl Taken<'_> {
    fn event(&self) -> Event<'_> {
        let tuple = TupleView::new(self.kinds.as_slice(), self.image, self.waiting.wide);
        let tuple = tuple.of_class(self.kinds.class());
        let Waiting { kind, sequence, missed, .. } = self.waiting;
        Event { kind, tuple, sequence, missed }
    }
}

impl Filter {
    /// `None` for no template at all.
    fn new(template: &[TemplateRef<'_>]) -> Result<Option<Self>, Error> {
        let owned: Result<Vec<_>, _> = template.iter().map(TemplateRef::to_template).collect();
        let owned = owned.map_err(|error| Error::Template(error.to_string().into()))?;
        let template = owned.into_iter().reduce(Template::or);
        Ok(template.map(|template| Self { template, passed: Mutex::default() }))
    }

    fn accepts(&self, store: &Store, tuple: &TupleView<'_>) -> Result<bool, Error> {
        let filtered =
            self.template.with_refs(|template| filtered::filter_result(store, template, tuple));
        filtered.map_err(|error| Error::Template(error.to_string().into()))
    }
}

impl Passed {
    /// The event as it is numbered among those that hold the condition, and those that were dropped: nobody knows
    /// whether these held it.
    fn numbered<'t>(&self, event: Event<'t>) -> Event<'t> {
        let (sequence, missed) = (event.sequence - self.count, event.missed + self.missed);
        Event { sequence, missed, ..event }
    }
}

/// As [`crate::Engine::subscribe`] says.
pub(crate) fn subscribe(
    engine: &Arc<Engine>,
    template: &[TemplateRef<'_>],
    terms: &SubscribeTerms,
) -> Result<Subscription, Error> {
    let (events_max, bytes) = room_for(terms)?;
    let fields: Vec<TemplateRef<'_>> = template.iter().map(|one| one.without_condition()).collect();
    let filter = if has_condition(template) { Filter::new(template)? } else { None };
    let waiter = wait::waiter_with(engine, &fields, Want::Events, None, |number| {
        node(&engine.memory.view(), number).init(EVENT_KINDS, terms.kinds);
        node_memory::add_ring(engine, number, events_max, bytes)
    })?;
    Ok(Subscription { waiter, filter: filter.map(Box::new), refused: AtomicU64::new(0) })
}

/// How many events may wait, and in how many bytes.
fn room_for(terms: &SubscribeTerms) -> Result<(u32, usize), Error> {
    let events_max = terms.events_max;
    if events_max > EVENTS_MAX {
        return Err(Error::LimitExceeded { what: "events in a buffer", limit: EVENTS_MAX });
    }
    let bytes = terms.bytes_max.unwrap_or(events_max * EVENT_BYTES_USUAL);
    if bytes > EVENT_BYTES_MAX {
        let what = "bytes in a buffer of events";
        return Err(Error::LimitExceeded { what, limit: EVENT_BYTES_MAX });
    }
    Ok((u32::try_from(events_max.max(1)).unwrap_or(u32::MAX), bytes.max(BYTES_MIN)))
}

impl Subscription {
    /// Takes the oldest event out and gives it to `visitor`; `None` if none waits. Does not wait. What the visitor refuses
    /// is gone, too, and counts among what was missed before the next one (rule N2).
    ///
    /// Of a template with a condition, the oldest that holds it among those that wait as it begins; those before are gone.
    ///
    /// # Errors
    ///
    /// [`Error::EventTooLarge`] once for tuples that were larger than the buffer: they count as missed. What the
    /// memory says, and what `visitor` says.
    pub fn try_next<R, E: From<Error>>(
        &self,
        visitor: impl FnOnce(Event<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        if !self.has_something()? {
            return Ok(None);
        }
        let mut buffer = CopyBuffer::new();
        let Some(filter) = &self.filter else {
            let taken = self.take_first(&mut buffer)?;
            return taken.map(|taken| self.show(taken.event(), visitor)).transpose();
        };
        // Held for as long as it looks, so that of two threads none numbers its event before the other's.
        let mut passed = filter.passed.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..self.waiting().max(1) {
            let Some(taken) = self.take_first(&mut buffer)? else { break };
            let event = passed.numbered(taken.event());
            if filter.accepts(&self.waiter.engine, &event.tuple)? {
                passed.missed = 0;
                // A visitor may let another thread go on that comes here too, or come here itself.
                drop(passed);
                return self.show(event, visitor).map(Some);
            }
            passed.count += 1;
            passed.missed = event.missed;
        }
        Ok(None)
    }

    /// Gives an event to the visitor, and notes it if that refuses it.
    fn show<R, E>(
        &self,
        event: Event<'_>,
        visitor: impl FnOnce(Event<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let missed = event.missed + self.refused.swap(0, Ordering::Relaxed);
        visitor(Event { missed, ..event }).inspect_err(|_| {
            self.refused.fetch_add(missed + 1, Ordering::Relaxed);
        })
    }

    /// Whether something waits for it, or has gone wrong.
    fn has_something(&self) -> Result<bool, Error> {
        if self.waiter.has_events() {
            return Ok(true);
        }
        let engine = &*self.waiter.engine;
        // What is due has happened by now, if nobody else saw to it. Who keeps the time after that is one who waits.
        let kept = timer_leader::run_due_timers(engine, self.waiter.number());
        timer_leader::resign(engine, self.waiter.number());
        kept?;
        // Nor must it be somebody else who sees that the holder of a tuple has died (rule L5).
        sweep::sweep_if_due(engine)?;
        if self.waiter.has_events() {
            return Ok(true);
        }
        store::require_sound(engine).map(|()| false)
    }

    /// Takes the oldest event out; `None` if another thread was faster.
    fn take_first<'b>(&self, buffer: &'b mut CopyBuffer) -> Result<Option<Taken<'b>>, Error> {
        let (engine, number) = (&*self.waiter.engine, self.waiter.number());
        let scope = scope_of(node(&engine.memory.view(), number));
        let mut section = Section::enter(&engine.memory, scope)?;
        let own = node(section.view(), number);
        let Some(ring) = Ring::of(section.view(), own) else {
            return Err(store::damaged(engine, "a subscription has no ring"));
        };
        let Some(waiting) = ring.first(section.view()) else {
            let too_large = ring.take_too_large(&mut section);
            section.finish()?;
            let Some(bytes) = too_large else { return Ok(None) };
            let (max_bytes, enough_bytes) = (ring.bytes() as u64, ring::bytes_for(bytes));
            return Err(Error::EventTooLarge { bytes: bytes.into(), max_bytes, enough_bytes });
        };
        let image = waiting.copy(buffer, section.view());
        let Some(kinds) = registry::kinds_of(engine, section.view(), waiting.shape) else {
            return Err(store::damaged(engine, "an event names a shape that does not exist"));
        };
        ring.remove_first(&mut section)?;
        section.finish()?;
        Ok(Some(Taken { waiting, kinds, image }))
    }

    /// Waits until there may be an event, or `timeout` has passed (`None`: for ever). Returns whether there may be.
    ///
    /// # Errors
    ///
    /// What the memory says; the subscription goes on.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        self.wait_while(timeout, || true)
    }

    /// As [`Subscription::wait`], as long as `goes_on` says so, which is asked whenever the caller looks around.
    ///
    /// # Errors
    ///
    /// As [`Subscription::wait`].
    pub fn wait_while(
        &self,
        timeout: Option<Duration>,
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, Error> {
        self.has_events_after(|waiter| waiter.wait_while(timeout, goes_on))
    }

    /// As [`Subscription::wait`], by a caller who has more time than `part` ([`Waiter::wait_part`]).
    ///
    /// # Errors
    ///
    /// As [`Subscription::wait`].
    pub fn wait_part(&self, part: Duration, goes_on: impl Fn() -> bool) -> Result<bool, Error> {
        self.has_events_after(|waiter| waiter.wait_part(part, goes_on))
    }

    /// Whether there may be an event: now, or after that wait.
    fn has_events_after(
        &self,
        wait: impl FnOnce(&Waiter) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let happened = self.waiter.has_events() || wait(&self.waiter)?;
        Ok(happened || self.waiter.has_events())
    }

    /// Its place in the wait queue, for a notifier.
    pub fn waiter(&self) -> &Waiter {
        &self.waiter
    }

    /// How many events wait.
    pub fn waiting(&self) -> usize {
        let view = self.waiter.engine.memory.view();
        let ring = Ring::of(&view, node(&view, self.waiter.number()));
        ring.map_or(0, |ring| ring.count() as usize)
    }

    /// Ends it, as dropping does, and says whether that went well.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn end(self) -> Result<(), Error> {
        self.waiter.give_up()
    }
}
