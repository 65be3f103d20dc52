//! Subscriptions: being told what happens to tuples, once and in order (N1-N3).

use std::collections::VecDeque;
use std::fmt;

use crate::{Space, Template, Tuple};

/// What happened to a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// The tuple is visible: it was put, or became visible, or was put back from the dead.
    Put,
    /// A caller has the tuple for good.
    Take,
    /// The tuple is gone, and no caller has it: its lease ended, or the last attempt at it failed.
    Expire,
    /// The tuple is visible again: a claim of it failed.
    Return,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Put, Self::Take, Self::Expire, Self::Return];
}

impl fmt::Display for EventKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Put => "put",
            Self::Take => "take",
            Self::Expire => "expire",
            Self::Return => "return",
        })
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// The tuple.
    pub tuple: Tuple,
    /// Its number among the events of the subscription, from 1; dropped events count.
    pub sequence: u64,
    /// How many were dropped between the previous event and this one.
    pub missed: u64,
}

/// Whose subscription it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubscriptionTicket(u64);

/// A subscription.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subscription {
    ticket: SubscriptionTicket,
    template: Template,
    on: Vec<EventKind>,
    buffer: usize,
    /// What waits, with the number of each.
    pub(crate) waiting: VecDeque<(EventKind, Tuple, u64)>,
    /// How many events there have been.
    happened: u64,
    /// The number of the last event that was picked up.
    picked_up: u64,
}

impl Space {
    /// Begins to be told of what happens to tuples that match, from now on (N3).
    ///
    /// ```
    /// use tupelo_model::{EventKind, Order, Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// space.put(tuple("n, 0"))?;
    /// let ticket = space.subscribe(template("n, _"), &[EventKind::Put, EventKind::Take], 2);
    /// space.put(tuple("n, 1"))?;
    /// space.put(tuple("n, 2"))?;
    /// space.try_take(&template("n, _"), Order::Fifo);
    ///
    /// let events = space.events(ticket);
    /// assert_eq!((events[0].kind, &events[0].tuple), (EventKind::Put, &tuple("n, 2")));
    /// assert_eq!((events[0].sequence, events[0].missed), (2, 1), "the oldest was dropped (N2)");
    /// assert_eq!((events[1].kind, &events[1].tuple), (EventKind::Take, &tuple("n, 0")));
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    pub fn subscribe(
        &mut self,
        template: Template,
        on: &[EventKind],
        buffer: usize,
    ) -> SubscriptionTicket {
        let ticket = SubscriptionTicket(self.next_place());
        let on = on.to_vec();
        let waiting = VecDeque::new();
        self.subscriptions.push(Subscription {
            ticket,
            template,
            on,
            buffer,
            waiting,
            happened: 0,
            picked_up: 0,
        });
        ticket
    }

    /// Picks up all events that wait, the oldest first.
    pub fn events(&mut self, ticket: SubscriptionTicket) -> Vec<Event> {
        let Some(subscription) = self.subscriptions.iter_mut().find(|one| one.ticket == ticket)
        else {
            return Vec::new();
        };
        let mut events = Vec::new();
        while let Some((kind, tuple, sequence)) = subscription.waiting.pop_front() {
            let missed = sequence - subscription.picked_up - 1;
            subscription.picked_up = sequence;
            events.push(Event { kind, tuple, sequence, missed });
        }
        events
    }

    /// All events that wait, which stay; `None` if some were dropped, or there is no such subscription.
    pub(crate) fn events_so_far(&self, ticket: SubscriptionTicket) -> Option<Vec<Event>> {
        let subscription = self.subscriptions.iter().find(|one| one.ticket == ticket)?;
        let waiting = subscription.waiting.iter();
        let events = waiting.map(|(kind, tuple, sequence)| Event {
            kind: *kind,
            tuple: tuple.clone(),
            sequence: *sequence,
            missed: 0,
        });
        let is_whole = subscription.waiting.len() as u64 == subscription.happened;
        is_whole.then(|| events.collect())
    }

    /// Ends a subscription.
    pub fn unsubscribe(&mut self, ticket: SubscriptionTicket) {
        self.subscriptions.retain(|subscription| subscription.ticket != ticket);
    }

    /// Tells every subscription of the event of a tuple; of too many events the oldest are dropped (N2).
    pub(crate) fn publish(&mut self, kind: EventKind, tuple: &Tuple) {
        let listens =
            |one: &&mut Subscription| one.on.contains(&kind) && one.template.matches(tuple);
        for subscription in self.subscriptions.iter_mut().filter(listens) {
            subscription.happened += 1;
            subscription.waiting.push_back((kind, tuple.clone(), subscription.happened));
            if subscription.waiting.len() > subscription.buffer {
                subscription.waiting.pop_front();
            }
        }
    }
}
