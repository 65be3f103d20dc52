//! Calls that wait (O3, T3-T6).
//!
//! A real `take` blocks its caller. Here there is no caller to block: a call without a match gets a [`Ticket`], its
//! place in the queue. Later puts serve the queue; the caller asks whether its ticket was served, and returns with the
//! tuple or gives up.

use crate::bounds::Refusal;
use crate::events::EventKind;
use crate::space::Stored;
use crate::transactions::View;
use crate::{Order, Space, Template, Tuple};

/// A waiting call's use of its match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Remove it.
    Take,
    /// Copy it.
    Read,
}

/// A call's place in the queue of waiting calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// The result of a blocking operation: its tuple, or a ticket.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A match, at once.
    Now(Tuple),
    /// Nothing matched yet.
    Later(Ticket),
}

/// A call that waits, or that was served and has not returned yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wait {
    ticket: Ticket,
    want: Want,
    template: Template,
    /// The tuple that serves it. A take *holds* it; a read has a copy.
    pub(crate) served: Option<Stored>,
}

impl Wait {
    /// Whether an arriving tuple is what this call still waits for.
    pub(crate) fn waits_for(&self, want: Want, tuple: &Tuple) -> bool {
        self.want == want && self.served.is_none() && self.template.matches(tuple)
    }

    /// The tuple that it holds, if it is a take that was served.
    pub(crate) fn holds_mut(&mut self) -> Option<&mut Stored> {
        self.served.as_mut().filter(|_| self.want == Want::Take)
    }
}

impl Space {
    /// Takes the oldest match, or waits for one (O3).
    ///
    /// ```
    /// use tupelo_model::{Reply, Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// let Reply::Later(first) = space.take(template("job, _"))? else { unreachable!() };
    /// let Reply::Later(second) = space.take(template("job, _"))? else { unreachable!() };
    /// space.put(tuple("job, 1"))?;
    /// assert!(space.served(first), "first come, first served (T3)");
    /// assert!(!space.served(second), "one tuple serves one take (T1)");
    ///
    /// space.cancel(first); // it had no effect (T5): the tuple is there for the next
    /// assert_eq!(space.finish(second), tuple("job, 1"));
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if too many wait already (B2).
    pub fn take(&mut self, template: Template) -> Result<Reply, Refusal> {
        match self.try_take(&template, Order::Fifo) {
            Some(tuple) => Ok(Reply::Now(tuple)),
            None => self.wait(Want::Take, template).map(Reply::Later),
        }
    }

    /// Copies the oldest match, or waits for one (O3).
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if too many wait already (B2).
    pub fn read(&mut self, template: Template) -> Result<Reply, Refusal> {
        match self.try_read(&template, Order::Fifo) {
            Some(tuple) => Ok(Reply::Now(tuple)),
            None => self.wait(Want::Read, template).map(Reply::Later),
        }
    }

    /// Joins the queue behind all others. If something matches already, the call is served at once.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if too many wait already (B2).
    pub fn wait(&mut self, want: Want, template: Template) -> Result<Ticket, Refusal> {
        let choices = self.choices(&template, Order::Fifo, View::of_all(want));
        let choice = choices.first().map(|found| found.place);
        self.wait_for(want, template, choice)
    }

    /// Joins the queue; `choice` is the place of the match that serves the call at once, if there is one.
    pub(crate) fn wait_for(
        &mut self,
        want: Want,
        template: Template,
        choice: Option<u64>,
    ) -> Result<Ticket, Refusal> {
        self.admit_wait()?;
        let served = choice.map(|place| match want {
            Want::Take => self.remove(place),
            Want::Read => self.at(place).clone(),
        });
        let ticket = Ticket(self.next_place());
        self.waits.push(Wait { ticket, want, template, served });
        Ok(ticket)
    }

    /// Whether the call was served: it can return with its tuple.
    pub fn served(&self, ticket: Ticket) -> bool {
        self.waits.iter().any(|wait| wait.ticket == ticket && wait.served.is_some())
    }

    /// The call returns with its tuple, which is its own from now on.
    ///
    /// # Panics
    ///
    /// If the call was not served, or has returned or given up before.
    pub fn finish(&mut self, ticket: Ticket) -> Tuple {
        let wants_to_take = self.served_by(Want::Take).any(|(served, _)| served == ticket);
        let stored = self.picked_up(ticket);
        if wants_to_take {
            self.publish(EventKind::Take, &stored.tuple);
        }
        stored.tuple
    }

    /// The result of a call.
    pub(crate) fn picked_up(&mut self, ticket: Ticket) -> Stored {
        assert!(self.served(ticket), "only a call that was served can return");
        self.leave(ticket).expect("asserted above")
    }

    /// The call gives up: its time is over, or it was interrupted. It had no effect (T5): a tuple that it held already
    /// goes back to its place, where it serves other blocked calls.
    pub fn cancel(&mut self, ticket: Ticket) {
        let want = self.waits.iter().find(|wait| wait.ticket == ticket).map(|wait| wait.want);
        if let (Some(Want::Take), Some(stored)) = (want, self.leave(ticket)) {
            self.arrive(stored, None);
        }
    }

    /// Held tuples that may come back (O9): those of takes that have not returned yet, claimed tuples, and tuples that
    /// open transactions have taken.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Stored> {
        let handed = self.served_by(Want::Take).map(|(_, stored)| stored);
        let claimed = self.claims.iter().map(|claimed| &claimed.stored);
        handed.chain(claimed).chain(self.parts.iter().flat_map(|part| &part.taken))
    }

    /// The tuples of the served calls with this want, and their tickets.
    pub(crate) fn served_by(&self, want: Want) -> impl Iterator<Item = (Ticket, &Stored)> {
        let waits = self.waits.iter().filter(move |wait| wait.want == want);
        waits.filter_map(|wait| Some((wait.ticket, wait.served.as_ref()?)))
    }

    /// Leaves the queue with the tuple that the call was served.
    fn leave(&mut self, ticket: Ticket) -> Option<Stored> {
        let index = self.waits.iter().position(|wait| wait.ticket == ticket)?;
        self.waits.remove(index).served
    }
}
