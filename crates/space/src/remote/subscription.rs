//! Subscriptions to spaces that are elsewhere (rules N1 to N3). Events come in batches, for which the server has credit.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tupelo_engine::{Event, EventKind, SubscribeTerms};
use tupelo_protocol::{AtEnd, Fault, Kept, Notifier, Operation, Pending, PickedUp, TemplateBytes};
use tupelo_tuple::{Field, TemplateRef, TupleView};

use super::scan::{kept_tuple, show};
use super::{Ask, collect, not_due};
use crate::connect::Space;
use crate::error::Error;

/// Events that the server may send at a time.
const CREDIT: usize = 256;
/// Longest wait in which no other thread can look at the events that have come.
const SLICE: Duration = Duration::from_millis(100);

/// A subscription that is elsewhere.
#[derive(Debug)]
pub(crate) struct RemoteSubscription {
    space: Space,
    terms: Terms,
    state: Mutex<State>,
    /// Told when a thread that has asked for events is done.
    changed: Condvar,
}

/// What is heard, as it is asked for.
#[derive(Debug)]
struct Terms {
    template: Vec<u8>,
    kinds: u32,
    events_max: usize,
    bytes_max: Option<usize>,
}

#[derive(Debug)]
struct State {
    /// The subscription itself, which ends with its session: then there is another one.
    kept: Arc<dyn Kept>,
    /// The number of the last event that has come, as it is told.
    last: u64,
    /// What is added to the numbers of the events that come.
    before: u64,
    /// Whether events were missed that nobody has counted, until the next one is told: then one counts for them.
    has_gap: bool,
    /// What has come and was not told yet.
    events: VecDeque<Come>,
    /// The request that waits for more.
    pending: Waits,
    /// Whether a thread has that, and waits.
    is_fetching: bool,
    /// Events that the visitor has refused since the last event that it was told: they count as missed.
    refused: u64,
}

/// An event that has come.
#[derive(Debug)]
struct Come {
    kind: EventKind,
    sequence: u64,
    missed: u64,
    tuple: Vec<u8>,
}

/// The request that waits for events, if one does.
type Waits = Option<Box<dyn Pending>>;

/// Why no events come.
struct Trouble {
    error: Error,
    /// Whether the subscription has ended with its session, and there can be another one.
    has_ended: bool,
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        let has_ended = fault.has(Fault::SESSION_ENDED);
        Self { error: fault.into(), has_ended }
    }
}

impl Terms {
    /// Has the space tell of what happens.
    fn subscribe(&self, space: &Space) -> Result<Arc<dyn Kept>, Error> {
        let Self { template, kinds, events_max, bytes_max } = self;
        let subscribe = Operation::Subscribe {
            template: TemplateBytes::of_encoding(template),
            kinds: *kinds,
            events_max: *events_max,
            bytes_max: *bytes_max,
        };
        let (found, kept) = space.remote()?.open(&subscribe, &mut |_| ControlFlow::Break(()))?;
        kept.map(Arc::from).ok_or_else(|| not_due(&subscribe, "a subscription", found))
    }
}

/// The kinds of `terms`, a bit each in their order.
fn bits_of(terms: &SubscribeTerms) -> u32 {
    let of_bits = |bits: u32| {
        let kinds = EventKind::ALL.into_iter().enumerate();
        let kinds = kinds.filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, kind)| kind);
        SubscribeTerms::new(kinds, terms.events_max()).with_bytes(terms.bytes_max())
    };
    (0..1 << EventKind::ALL.len()).find(|bits| of_bits(*bits) == *terms).unwrap_or_default()
}

impl RemoteSubscription {
    pub(crate) fn begin(
        space: &Space,
        template: &[TemplateRef<'_>],
        terms: &SubscribeTerms,
    ) -> Result<Self, Error> {
        let terms = Terms {
            template: TemplateBytes::encode(template)?,
            kinds: bits_of(terms),
            events_max: terms.events_max(),
            bytes_max: terms.bytes_max(),
        };
        let state = State {
            kept: terms.subscribe(space)?,
            last: 0,
            before: 0,
            has_gap: false,
            events: VecDeque::new(),
            pending: None,
            is_fetching: false,
            refused: 0,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Ok(Self { space: space.clone(), terms, state, changed })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`crate::Subscription::try_next`].
    pub(crate) fn try_next<R, E: From<Error>>(
        &self,
        visitor: impl FnOnce(Event<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        // No events are asked for when no caller waits: events that come then wait at the server, as many as its buffer
        // has.
        self.fetch(Some(Duration::ZERO), AtEnd::End)?;
        let mut state = self.state();
        let Some(Come { kind, sequence, missed, tuple }) = state.events.pop_front() else {
            return Ok(None);
        };
        let missed = missed + std::mem::take(&mut state.refused);
        drop(state);
        // Without the lock: a visitor may ask how many wait.
        let told = show(&tuple, |tuple| visitor(Event { kind, tuple, sequence, missed }));
        if told.is_err() {
            self.state().refused += missed + 1;
        }
        told.map(Some)
    }

    /// Waits until there may be an event.
    pub(crate) fn wait(&self, timeout: Option<Duration>, at_end: AtEnd) -> Result<bool, Error> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if let Some(left) = left.filter(|left| *left <= SLICE) {
                return self.fetch(Some(left), at_end);
            }
            if self.fetch(Some(SLICE), AtEnd::Nothing)? {
                return Ok(true);
            }
            self.space.require_open()?;
        }
    }

    /// How many events wait.
    pub(crate) fn waiting(&self) -> usize {
        let kept = Arc::clone(&self.state().kept);
        let there = Ask::Kept(&*kept, 0).count_of(&Operation::Waiting).unwrap_or_default();
        // What has come meanwhile is in one of the two.
        self.state().events.len() + usize::try_from(there).unwrap_or(usize::MAX)
    }

    /// Has a notifier told of events: at once if there are some, or another thread is about to have them.
    pub(crate) fn ring(&self, notifier: &dyn Notifier) -> Option<u32> {
        let mut state = self.state();
        if !state.events.is_empty() || state.is_fetching {
            return notifier.add(None);
        }
        // If it cannot be asked for, the next call finds out.
        let Ok(pending) = Self::pending(&mut state) else { return notifier.add(None) };
        let number = notifier.add(Some(&*pending));
        state.pending = Some(pending);
        number
    }

    /// The request that waits for events; begun if there is none.
    fn pending(state: &mut State) -> Result<Box<dyn Pending>, Trouble> {
        state.pending.take().map_or_else(|| begin(&*state.kept), Ok)
    }

    /// Waits for events, and keeps them. Returns whether there are some. One thread asks, others wait for it. No lock
    /// is held meanwhile, as the asking thread may need that of an interpreter.
    fn fetch(&self, timeout: Option<Duration>, at_end: AtEnd) -> Result<bool, Error> {
        let mut state = self.state();
        if state.is_fetching && state.events.is_empty() {
            let changed = self.changed.wait_timeout(state, timeout.unwrap_or(SLICE));
            state = changed.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.is_fetching || !state.events.is_empty() {
            return Ok(!state.events.is_empty());
        }
        let (kept, was_begun) = (Arc::clone(&state.kept), state.pending.is_some());
        let pending = Self::pending(&mut state);
        state.is_fetching = true;
        drop(state);
        let mut come_since = pending.map(|pending| come(pending, timeout, at_end));
        if was_begun && matches!(&come_since, Ok((None, Ok(events))) if events.is_empty()) {
            // An earlier call has ended that request, and the server had not said yet what became of it.
            come_since = begin(&*kept).map(|pending| come(pending, timeout, at_end));
        }
        let (pending, events) = come_since.unwrap_or_else(|trouble| (None, Err(trouble)));
        let has_ended = events.as_ref().is_err_and(|trouble| trouble.has_ended);
        let again = has_ended.then(|| self.terms.subscribe(&self.space));
        let mut state = self.state();
        state.is_fetching = false;
        state.pending = pending;
        self.changed.notify_all();
        match (events, again) {
            (_, Some(again)) => state.go_on(again?),
            (Ok(events), None) => state.extend(events),
            (Err(trouble), None) => return Err(trouble.error),
        }
        Ok(!state.events.is_empty())
    }
}

impl State {
    /// Goes on with another subscription: what happened before it began, nobody has counted.
    fn go_on(&mut self, kept: Arc<dyn Kept>) {
        self.kept = kept;
        self.before = self.last + 1;
        self.has_gap = true;
    }

    /// Adds events that have come, with the numbers by which they are told.
    fn extend(&mut self, events: Vec<Come>) {
        for mut event in events {
            event.sequence += self.before;
            event.missed += u64::from(std::mem::take(&mut self.has_gap));
            self.last = event.sequence;
            self.events.push_back(event);
        }
    }
}

/// Asks for events, as many as the server has credit for.
fn begin(kept: &dyn Kept) -> Result<Box<dyn Pending>, Trouble> {
    Ok(kept.wait(0, &Operation::Events { at_most: CREDIT })?)
}

/// Waits for the events of a request. Returns them, and the request if it is still to be answered.
///
/// The server takes events out of its subscription when it answers. So a request that is given up before may lose some
/// (rule N1).
fn come(
    pending: Box<dyn Pending>,
    timeout: Option<Duration>,
    at_end: AtEnd,
) -> (Waits, Result<Vec<Come>, Trouble>) {
    match pending.ready(timeout, at_end) {
        Ok(true) => {}
        Ok(false) => return ((!pending.has_ended()).then_some(pending), Ok(Vec::new())),
        Err(fault) => {
            let pending = fault.has(Fault::INTERRUPTED).then_some(pending);
            return (pending, Err(fault.into()));
        }
    }
    let mut head = None;
    let see = |tuple: TupleView<'_>| {
        Some(match head.take() {
            None => head_of(tuple).map(|read| {
                head = Some(read);
                None
            }),
            Some((kind, sequence, missed)) => {
                kept_tuple(tuple).map(|tuple| Some(Come { kind, sequence, missed, tuple }))
            }
        })
    };
    match collect(see, |visit| pending.pick_up(visit)) {
        Ok((PickedUp::Waits(pending), _)) => (Some(pending), Ok(Vec::new())),
        Ok((_, events)) => (None, Ok(events.into_iter().flatten().collect())),
        Err(error) => (None, Err(Trouble { error, has_ended: false })),
    }
}

/// What happened, its number, and how many were missed before it.
fn head_of(tuple: TupleView<'_>) -> Result<(EventKind, u64, u64), Error> {
    let mut fields = tuple.fields().map(|field| match field {
        Field::Int(number) => u64::try_from(number).ok(),
        _ => None,
    });
    let kind = fields.next().flatten();
    let kind = kind.and_then(|kind| EventKind::ALL.get(usize::try_from(kind).ok()?).copied());
    match (kind, fields.next().flatten(), fields.next().flatten()) {
        (Some(kind), Some(sequence), Some(missed)) => Ok((kind, sequence, missed)),
        _ => Err(Fault::protocol("an event is told by its kind and two numbers").into()),
    }
}
