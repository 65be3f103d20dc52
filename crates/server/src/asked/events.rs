//! Subscriptions (rules N1 to N3): events wait in the space, and go to the client as far as it has given credit.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tupelo::{Event, EventKind, Field, SubscribeTerms, Subscription, TupleRef, fields};
use tupelo_protocol::{Fault, Operation};

use super::{BATCH_BYTES_MAX, Found, not_for};
use crate::answers::Answer;
use crate::hosted::Hosted;
use crate::kept::Last;
use crate::quotas::InUse;
use crate::session::Session;

/// Events in one answer, whatever the credit.
const EVENTS_MAX: usize = 4096;

/// A subscription of a client.
pub(crate) struct HostedSubscription {
    subscription: Subscription,
    hosted: Rc<Hosted>,
    /// Its number at the notifier of the space.
    number: u32,
    /// The request that waits for events, and for how many.
    credit: Cell<Option<(u64, usize)>>,
    /// What was said instead of an event, behind others that were told first.
    refusal: RefCell<Option<Fault>>,
    /// The events that were told last.
    last: Last,
    _in_use: InUse,
}

impl Drop for HostedSubscription {
    fn drop(&mut self) {
        // First: the number may be another's as soon as the subscription has gone.
        self.hosted.unregister(self.number);
    }
}

/// The kinds of events that bits stand for.
fn kinds_of(bits: u32) -> Result<Vec<EventKind>, Fault> {
    if bits >= 1 << EventKind::ALL.len() {
        return Err(Fault::protocol(format!("{bits} are no kinds of events: there are four")));
    }
    let all = EventKind::ALL.into_iter().enumerate();
    Ok(all.filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, kind)| kind).collect())
}

/// What is to be subscription.
pub(super) fn terms(
    kinds: u32,
    events_max: usize,
    bytes_max: Option<usize>,
) -> Result<SubscribeTerms, Fault> {
    Ok(SubscribeTerms::new(kinds_of(kinds)?, events_max).with_bytes(bytes_max))
}

/// Does an operation on a subscription, which the request `kept` has left open.
pub(super) fn perform(
    session: &Session,
    (kept, subscription): (u64, &HostedSubscription),
    id: u64,
    operation: &Operation<'_>,
) -> Result<Option<Answer>, Fault> {
    match *operation {
        Operation::Waiting => Ok(Some(Answer::Done(subscription.subscription.waiting() as u64))),
        Operation::Events { at_most } => {
            if let Some(answer) = subscription.last.of(id) {
                return Ok(Some(answer));
            }
            session.require_room()?;
            if subscription.credit.get().is_some() {
                return Err(Fault::protocol("a request waits for events of this subscription"));
            }
            let at_most = at_most.clamp(1, EVENTS_MAX);
            if let Some(events) = subscription.batch(at_most)? {
                let answer = Answer::Found(Rc::new(events));
                subscription.last.note(session, id, &answer);
                return Ok(Some(answer));
            }
            subscription.credit.set(Some((id, at_most)));
            session.await_events(id, kept);
            Ok(None)
        }
        _ => Err(not_for(operation, "a subscription")),
    }
}

impl HostedSubscription {
    /// Has the session told of events of a subscription, which the request `id` leaves open.
    pub(super) fn new(
        session: &Session,
        hosted: &Rc<Hosted>,
        id: u64,
        subscription: Subscription,
    ) -> Result<Self, Fault> {
        let in_use = session.usage.begin_subscription()?;
        let number = hosted.register_subscription(&subscription, session.weak(), id)?;
        let (hosted, credit, refusal) = (Rc::clone(hosted), Cell::new(None), RefCell::default());
        let last = Last::default();
        Ok(Self { subscription, hosted, number, credit, refusal, last, _in_use: in_use })
    }

    /// The request that waits for events.
    pub(crate) fn waits(&self) -> Option<u64> {
        self.credit.get().map(|(id, _)| id)
    }

    /// Nobody waits for events any more.
    pub(crate) fn end_wait(&self) {
        self.credit.set(None);
    }

    /// The events that there are for the request that waits; `None` if there are none, or nobody waits.
    pub(crate) fn serve(&self, session: &Session) -> Option<(u64, Answer)> {
        let (id, at_most) = self.credit.get()?;
        let answer = match self.batch(at_most).transpose()? {
            Ok(events) => Answer::Found(Rc::new(events)),
            Err(fault) => Answer::Refused(fault),
        };
        self.credit.set(None);
        self.last.note(session, id, &answer);
        Some((id, answer))
    }

    /// Up to `at_most` events that wait, two tuples for each; `None` if none does.
    fn batch(&self, at_most: usize) -> Result<Option<Vec<u8>>, Fault> {
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        let mut found = Found::default();
        while found.count < 2 * at_most && found.bytes.len() < BATCH_BYTES_MAX {
            let told = self.subscription.try_next(|event: Event<'_>| {
                let kind = EventKind::ALL.iter().position(|kind| *kind == event.kind);
                let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
                let kind = number(kind.unwrap_or_default() as u64);
                let head: [Field<'_>; 3] =
                    fields![kind, number(event.sequence), number(event.missed)];
                found.add_ref(TupleRef { fields: &head, class: None })?;
                found.add(event.tuple)
            });
            match told {
                Ok(Some(())) => {}
                Ok(None) => break,
                Err(error) if found.count == 0 => return Err(error.into()),
                Err(error) => {
                    self.refusal.replace(Some(error.into()));
                    break;
                }
            }
        }
        if found.count == 0 { Ok(None) } else { Ok(Some(found.into_tuples()?)) }
    }
}
