//! Time, and what happens by itself when it passes (L1, L3, L4, K2, T6).
//!
//! There is no clock here: the caller of the model says how much time passes, to the millisecond.

use crate::claims::Fence;
use crate::events::EventKind;
use crate::leases::{Delayed, Lease, LeaseTicket};
use crate::order::{YOUNGEST, shape};
use crate::space::Stored;
use crate::transactions::TransactionTicket;
use crate::{Space, Tuple};

/// What happens by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A tuple becomes visible: the youngest of all.
    Appears(LeaseTicket),
    /// The lease of a visible or dead tuple ends.
    Ends(u64),
    /// A claim runs out.
    RunsOut(Fence),
    /// A transaction has been open for too long, and lets go of the tuple of this place (X5).
    IsReleased(TransactionTicket, u64),
}

/// An event that is due, with its moment in milliseconds.
pub(crate) type Due = (u64, Event);

impl Space {
    /// Lets time pass: everything that is due until then happens, in the order of its moments.
    ///
    /// ```
    /// use tupelo_model::{LeaseTerms, Reply, Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// let later = LeaseTerms { lease_ms: None, after_ms: Some(20) };
    /// space.put_leased(tuple("job, 1"), later)?;
    /// let Reply::Later(ticket) = space.take(template("job, _"))? else { unreachable!() };
    /// space.pass(19);
    /// assert!(!space.served(ticket));
    /// space.pass(1);
    /// assert_eq!(space.finish(ticket), tuple("job, 1"), "though nobody did anything (T6)");
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    pub fn pass(&mut self, ms: u64) {
        let end_ms = self.now_ms + ms;
        while let Some(due) = self.first_due(end_ms).into_iter().min_by_key(|(due_ms, _)| *due_ms) {
            self.happen(due);
        }
        self.arrived_at(end_ms);
    }

    /// All due events have happened.
    pub(crate) fn arrived_at(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.forget_ended();
    }

    /// The next due events until `end_ms`: of each shape the first, since between shapes there is no order.
    pub(crate) fn first_due(&self, end_ms: u64) -> Vec<Due> {
        let mut first: Vec<(&Tuple, Due)> = Vec::new();
        for (tuple, due) in self.moments().filter(|(_, (due_ms, _))| *due_ms <= end_ms) {
            match first.iter_mut().find(|(other, _)| shape(other) == shape(tuple)) {
                // Of one moment, the earlier put happens first.
                Some((_, earliest)) if due.0 < earliest.0 => *earliest = due,
                Some(_) => {}
                None => first.push((tuple, due)),
            }
        }
        first.into_iter().map(|(_, due)| due).collect()
    }

    fn moments(&self) -> impl Iterator<Item = (&Tuple, Due)> {
        let appear = |delayed: &'_ Delayed| (delayed.visible_ms, Event::Appears(delayed.ticket));
        let ends = |stored: &Stored| Some((stored.ends_ms()?, Event::Ends(stored.place)));
        let delayed = self.delayed.iter().map(move |delayed| (&delayed.tuple, appear(delayed)));
        let leased = self.tuples.iter().chain(&self.dead);
        let leased = leased.filter_map(move |stored| Some((&stored.tuple, ends(stored)?)));
        let claimed = self.claims.iter().map(|claimed| {
            (&claimed.stored.tuple, (claimed.ends_ms, Event::RunsOut(claimed.fence)))
        });
        let released = self.parts.iter().flat_map(|part| {
            let places = self.places_of(part.ticket);
            places.into_iter().map(|place| {
                let event = Event::IsReleased(part.ticket, place);
                (self.tuple_of(part.ticket, place), (part.ends_ms, event))
            })
        });
        delayed.chain(leased).chain(claimed).chain(released)
    }

    /// The moment has come.
    pub(crate) fn happen(&mut self, (due_ms, event): Due) {
        self.now_ms = due_ms;
        match event {
            Event::Appears(ticket) => self.appear(ticket),
            Event::Ends(place) if self.dead.iter().any(|stored| stored.place == place) => {
                self.dead.retain(|stored| stored.place != place);
            }
            Event::Ends(place) => {
                let stored = self.remove(place);
                self.publish(EventKind::Expire, &stored.tuple);
            }
            Event::RunsOut(fence) => {
                let claimed = self.end(fence).expect("it is due in this state");
                self.fail(claimed, None);
            }
            Event::IsReleased(ticket, place) => self.release(ticket, place),
        }
    }

    fn appear(&mut self, ticket: LeaseTicket) {
        let index = self.delayed.iter().position(|delayed| delayed.ticket == ticket);
        let delayed = self.delayed.remove(index.expect("it is due in this state"));
        let ends_ms = delayed.lease_ms.map(|lease_ms| self.now_ms + lease_ms);
        let place = self.next_place();
        let lease = Some(Lease { ticket, ends_ms });
        // It may be noticed later, in a space of a file.
        let ages = (place, YOUNGEST);
        let stored = Stored { ages, lease, ..Stored::new(place, delayed.tuple) };
        self.arrive(stored, Some(EventKind::Put));
    }
}
