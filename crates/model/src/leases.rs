//! Tuples that disappear by themselves, or appear (L1-L3).
//!
//! What happens when the time has come is said in `time.rs`.

use crate::bounds::Refusal;
use crate::events::EventKind;
use crate::space::Stored;
use crate::{Space, Tuple};

/// The time from which and until which a tuple is visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseTerms {
    /// How long it stays once it is visible (L1), in milliseconds; `None`: for ever.
    pub lease_ms: Option<u64>,
    /// How long until it is visible (L3), in milliseconds; `None`: it is at once.
    pub after_ms: Option<u64>,
}

/// Whose lease it is: no two tuples of a space have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseTicket(u64);

/// The lease of a tuple.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lease {
    pub(crate) ticket: LeaseTicket,
    /// When the tuple disappears; `None`: never.
    pub(crate) ends_ms: Option<u64>,
}

/// A tuple that is not visible yet (L3). It gets its place when it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Delayed {
    pub(crate) tuple: Tuple,
    pub(crate) ticket: LeaseTicket,
    pub(crate) visible_ms: u64,
    /// How long its lease will be, from then on.
    pub(crate) lease_ms: Option<u64>,
}

impl Stored {
    /// Whether its lease has ended at this moment.
    pub(crate) fn has_ended(&self, now_ms: u64) -> bool {
        self.ends_ms().is_some_and(|ends_ms| ends_ms <= now_ms)
    }

    /// When its lease ends, if it does.
    pub(crate) fn ends_ms(&self) -> Option<u64> {
        self.lease.as_ref()?.ends_ms
    }
}

impl Space {
    /// Adds a tuple that is visible from one moment to another (L1, L3). The length of the lease counts from the first
    /// moment.
    ///
    /// ```
    /// use tupelo_model::{LeaseTerms, Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// space.put_leased(tuple("news, 1"), LeaseTerms { lease_ms: Some(50), after_ms: Some(20) })?;
    /// assert_eq!(space.count(&template("news, _")), 0, "it is not visible yet");
    /// space.pass(20);
    /// assert_eq!(space.count(&template("news, _")), 1);
    /// space.pass(50);
    /// assert_eq!(space.count(&template("news, _")), 0, "its lease has ended");
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if a limit is reached; the space is as it was.
    pub fn put_leased(&mut self, tuple: Tuple, terms: LeaseTerms) -> Result<LeaseTicket, Refusal> {
        self.make_room(&[&tuple], 0)?;
        Ok(self.add_leased(tuple, terms))
    }

    /// Adds several tuples on the same terms at one moment: all of them, or none (O5). Returns how many.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if a limit does not admit them all; the space is as it was.
    pub fn put_all_leased(
        &mut self,
        tuples: Vec<Tuple>,
        terms: LeaseTerms,
    ) -> Result<usize, Refusal> {
        self.make_room(&tuples.iter().collect::<Vec<_>>(), 0)?;
        let count = tuples.len();
        for tuple in tuples {
            self.add_leased(tuple, terms);
        }
        Ok(count)
    }

    fn add_leased(&mut self, tuple: Tuple, terms: LeaseTerms) -> LeaseTicket {
        let LeaseTerms { lease_ms, after_ms } = terms;
        let place = self.next_place();
        let ticket = LeaseTicket(place);
        if let Some(after_ms) = after_ms {
            let visible_ms = self.now_ms + after_ms;
            self.delayed.push(Delayed { tuple, ticket, visible_ms, lease_ms });
        } else {
            let ends_ms = lease_ms.map(|lease_ms| self.now_ms + lease_ms);
            let lease = Some(Lease { ticket, ends_ms });
            let stored = Stored { lease, ..Stored::new(place, tuple) };
            self.arrive(stored, Some(EventKind::Put));
        }
        ticket
    }

    /// Lets a tuple stay for so long from now, or from when it is visible; `None`: for ever (L2).
    ///
    /// # Errors
    ///
    /// [`Refusal::LeaseExpired`] if it is not there any more: its lease has ended, or it was taken.
    pub fn renew(&mut self, ticket: LeaseTicket, lease_ms: Option<u64>) -> Result<(), Refusal> {
        if let Some(delayed) = self.delayed.iter_mut().find(|delayed| delayed.ticket == ticket) {
            delayed.lease_ms = lease_ms;
            return Ok(());
        }
        let ends_ms = lease_ms.map(|lease_ms| self.now_ms + lease_ms);
        self.lease_mut(ticket)?.ends_ms = ends_ms;
        Ok(())
    }

    /// Removes a tuple (L2).
    ///
    /// # Errors
    ///
    /// [`Refusal::LeaseExpired`] if the tuple is gone, or held.
    pub fn cancel_lease(&mut self, ticket: LeaseTicket) -> Result<(), Refusal> {
        if let Some(index) = self.delayed.iter().position(|delayed| delayed.ticket == ticket) {
            self.delayed.remove(index);
            return Ok(());
        }
        let is_its =
            |stored: &Stored| stored.lease.as_ref().is_some_and(|one| one.ticket == ticket);
        if !self.tuples.iter().chain(&self.dead).any(is_its) {
            return Err(Refusal::LeaseExpired);
        }
        let now_ms = self.now_ms;
        self.lease_mut(ticket)?.ends_ms = Some(now_ms);
        self.pass(0);
        Ok(())
    }

    /// Whether a tuple's lease ends at all.
    ///
    /// # Errors
    ///
    /// As [`Self::renew`].
    pub fn lease_ends(&mut self, ticket: LeaseTicket) -> Result<bool, Refusal> {
        if let Some(delayed) = self.delayed.iter().find(|delayed| delayed.ticket == ticket) {
            return Ok(delayed.lease_ms.is_some());
        }
        Ok(self.lease_mut(ticket)?.ends_ms.is_some())
    }

    /// The lease of a tuple that is visible, held or dead.
    fn lease_mut(&mut self, ticket: LeaseTicket) -> Result<&mut Lease, Refusal> {
        let now_ms = self.now_ms;
        let free = self.tuples.iter_mut().chain(&mut self.dead);
        let claimed = self.claims.iter_mut().map(|claimed| &mut claimed.stored);
        let handed = self.waits.iter_mut().filter_map(|wait| wait.holds_mut());
        let enlisted = self.parts.iter_mut().flat_map(|part| &mut part.taken);
        let stored = free.chain(claimed).chain(handed).chain(enlisted).find(|stored| {
            let is_its = stored.lease.as_ref().is_some_and(|lease| lease.ticket == ticket);
            is_its && !stored.has_ended(now_ms)
        });
        stored.and_then(|stored| stored.lease.as_mut()).ok_or(Refusal::LeaseExpired)
    }
}
