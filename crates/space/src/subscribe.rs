//! Subscriptions: being told what happens to tuples (rules N1 to N3).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tupelo_engine::{Event, SubscribeTerms};
use tupelo_protocol::AtEnd;
use tupelo_shm::process::fork_generation;
use tupelo_tuple::TemplateRef;

use crate::connect::Space;
use crate::error::Error;
use crate::remote::subscription::RemoteSubscription;
use crate::resumed::{self, Resumed};
use crate::wait::{Lifted, lift};

/// A subscriber is told of each event of the tuples that match a template, once and in the space's order (rule N1).
/// Events that happen while it is busy wait for it, up to the size of its buffer; it is told how many it has missed
/// (N2). Dropped, it ends; it ends with its process, too.
///
/// ```
/// # use std::time::Duration;
/// # use tupelo::*;
/// # let space = Space::connect("mem://events", &ConnectOptions::default())?;
/// let alarms = [template!["alarm", Kind::Str]];
/// let terms = SubscribeTerms::new([EventKind::Put, EventKind::Take], 1024);
/// let subscription = space.subscribe(&alarms, &terms)?;
/// space.put(&fields!["alarm", "smoke"])?;
/// let told = subscription.next(Some(Duration::from_secs(1)), |event| {
///     Ok::<_, Error>((event.kind, event.tuple.to_tuple()?, event.sequence, event.missed))
/// })?;
/// let (kind, tuple, sequence, missed) = told.expect("it was put");
/// assert_eq!((kind, tuple.to_string().as_str()), (EventKind::Put, r#"("alarm", "smoke")"#));
/// assert_eq!((sequence, missed), (1, 0));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Subscription {
    space: Space,
    told: Arc<Told>,
    /// When it was made, as forks are counted: a child's copy of it is not the child's.
    fork_generation: u32,
}

/// Where its events wait, until its handle is closed. Locked for a moment only, never during a wait.
#[derive(Debug)]
pub(crate) struct Told(Mutex<Option<Arc<Inner>>>);

impl Told {
    fn inner(&self) -> Option<Arc<Inner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it; a caller that waits keeps it until it looks around.
    pub(crate) fn end(&self) {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(inner);
    }
}

/// Where events wait.
#[derive(Debug)]
pub(crate) enum Inner {
    /// In an engine here.
    Here(tupelo_engine::Subscription),
    /// Elsewhere.
    There(RemoteSubscription),
    /// In the file of the space.
    InFile(Resumed),
}

impl Space {
    /// Begins to be told of what happens to tuples that match: of everything after one moment of this call, and
    /// nothing before it (rule N3).
    ///
    /// # Errors
    ///
    /// * [`Error::Misuse`] for a buffer of no events, or no kinds of events.
    /// * [`Error::SpaceFull`] if there is no room for the buffer.
    /// * [`Error::LimitExceeded`] beyond [`EVENTS_MAX`](crate::EVENTS_MAX), [`EVENT_BYTES_MAX`](crate::EVENT_BYTES_MAX),
    ///   or at the maximum of subscriptions and blocked callers (B2).
    pub fn subscribe(
        &self,
        template: &[TemplateRef<'_>],
        terms: &SubscribeTerms,
    ) -> Result<Subscription, Error> {
        if terms.events_max() == 0 {
            return Err(Error::Misuse {
                problem: "a buffer for 0 events can hold none".into(),
                hint: Some("give how many may wait until the oldest are dropped, from 1 on".into()),
            });
        }
        if terms.is_empty() {
            return Err(Error::Misuse {
                problem: "no kind of event is to be heard".into(),
                hint: Some("give some of put, take, expire and return".into()),
            });
        }
        let inner = match self.local() {
            Some(engine) => Inner::Here(engine.subscribe(template, terms).map_err(|error| {
                Error::from(error).with_given("events in a buffer", terms.events_max()).with_given(
                    "bytes in a buffer of events",
                    terms.bytes_max().unwrap_or_default(),
                )
            })?),
            None => Inner::There(RemoteSubscription::begin(self, template, terms)?),
        };
        self.subscribed(inner)
    }

    /// A subscription that ends with this handle.
    fn subscribed(&self, inner: Inner) -> Result<Subscription, Error> {
        let told = Arc::new(Told(Mutex::new(Some(Arc::new(inner)))));
        self.inner.opened.add_subscription(&told);
        // Closed meanwhile: by who may have gone through what is open before.
        self.require_open()?;
        Ok(Subscription { space: self.clone(), told, fork_generation: fork_generation() })
    }

    /// As [`Space::subscribe`] to puts, with a name by which a later subscriber goes on: after a restart of the program, or of the
    /// machine. The events are in the file of the space, up to `keep` of them, and the numbers go on. To ask for an event is to be
    /// done with those before it. After a crash some events may come again.
    ///
    /// # Errors
    ///
    /// * [`Error::Unsupported`] if the space is kept in no file here.
    /// * [`Error::Misuse`] for other kinds of events, for a name or a number that can not be, and for a subscription of this name
    ///   that asks for other tuples.
    /// * [`Error::Storage`] if the file can not be written.
    pub fn subscribe_resumed(
        &self,
        template: &[TemplateRef<'_>],
        terms: &SubscribeTerms,
        (name, keep): (&str, u64),
    ) -> Result<Subscription, Error> {
        self.require_open()?;
        self.subscribed(Inner::InFile(Resumed::begin(self, template, terms, (name, keep))?))
    }

    /// Ends a subscription that was begun with a name, for good: its events are dropped. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the space is kept in no file here; [`Error::Storage`].
    pub fn unsubscribe(&self, name: &str) -> Result<bool, Error> {
        self.require_open()?;
        resumed::end(self, name)
    }
}

impl Subscription {
    /// The oldest event that waits, as `visitor` makes it; `None` if none does. Does not wait. An event that the visitor
    /// refuses is gone, too: it was told.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`], once, for tuples that are larger than the buffer: their events count as missed.
    /// [`Error::Misuse`] in a fork of the process that subscribed. The errors of the space. The error of `visitor`.
    pub fn try_next<R, E: From<Error>>(
        &self,
        visitor: impl FnOnce(Event<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        match &*self.inner()? {
            Inner::Here(inner) => {
                lift(inner.try_next(|event| visitor(event).map_err(Lifted::caller)))
            }
            Inner::There(inner) => inner.try_next(visitor),
            Inner::InFile(inner) => inner.try_next(visitor),
        }
    }

    /// As [`Subscription::try_next`], waiting for an event up to `timeout` (`None`: for ever).
    ///
    /// # Errors
    ///
    /// As [`Subscription::try_next`].
    pub fn next<R, E: From<Error>>(
        &self,
        timeout: Option<Duration>,
        visitor: impl FnOnce(Event<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let mut visitor = Some(visitor);
        let begin = Instant::now();
        loop {
            let once = |event: Event<'_>| match visitor.take() {
                Some(visitor) => visitor(event),
                None => unreachable!("a visitor is used for one event"),
            };
            if let Some(told) = self.try_next(once)? {
                return Ok(Some(told));
            }
            let left = timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            self.wait(left)?;
        }
    }

    /// Waits until there may be an event, or `timeout` has passed (`None`: for ever). Returns whether there may be:
    /// it may be woken in vain, so look and wait again.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceClosed`] if the handle was closed meanwhile; the errors of the memory.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        match &*self.inner()? {
            Inner::Here(inner) => Ok(inner.wait_while(timeout, || self.is_open())?),
            Inner::There(inner) => inner.wait(timeout, AtEnd::Look),
            Inner::InFile(inner) if inner.has_some() => Ok(true),
            Inner::InFile(inner) => Ok(inner.doorbell().wait_while(timeout, || self.is_open())?),
        }
    }

    /// As [`Subscription::wait`], by a caller that has more time than `part`
    /// ([`Waiter::wait_part`](crate::Waiter::wait_part)).
    ///
    /// # Errors
    ///
    /// As [`Subscription::wait`].
    pub fn wait_part(&self, part: Duration) -> Result<bool, Error> {
        match &*self.inner()? {
            Inner::Here(inner) => Ok(inner.wait_part(part, || self.is_open())?),
            Inner::There(inner) => inner.wait(Some(part), AtEnd::Nothing),
            Inner::InFile(inner) if inner.has_some() => Ok(true),
            Inner::InFile(inner) => Ok(inner.doorbell().wait_part(part, || self.is_open())?),
        }
    }

    /// The subscriber is done with all events that it was told of, also with the last one: it is not told of them when it comes
    /// again. Of no use to a subscription that cannot be resumed.
    pub fn done(&self) {
        if let Some(Inner::InFile(inner)) = self.inner().ok().as_deref() {
            inner.be_done();
        }
    }

    /// How many events wait; none, once the handle was closed.
    pub fn waiting(&self) -> usize {
        match self.inner().ok().as_deref() {
            Some(Inner::Here(inner)) => inner.waiting(),
            Some(Inner::There(inner)) => inner.waiting(),
            Some(Inner::InFile(inner)) => inner.waiting(),
            None => 0,
        }
    }

    fn is_open(&self) -> bool {
        self.space.require_open().is_ok()
    }

    /// Where its events wait.
    pub(crate) fn inner(&self) -> Result<Arc<Inner>, Error> {
        self.space.require_open()?;
        // First: in the child of a fork another thread of the parent may have had the lock.
        if self.fork_generation == fork_generation() {
            return self.told.inner().ok_or_else(|| self.space.closed_error());
        }
        Err(Error::Misuse {
            problem: "the subscription belongs to the process that this one was forked from".into(),
            hint: Some("subscribe in the process that listens".into()),
        })
    }
}
