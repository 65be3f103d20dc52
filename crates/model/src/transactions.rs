//! Transactions: operations that take effect together at commit, or not at all (X1-X7).
//!
//! A transaction has a part in each of its spaces: its puts and its takes. Its puts are visible to the transaction
//! alone, as younger than everything else (X2). Tuples that it has read stay at their places, and count the transaction
//! among their readers: others may read them and not take them (X3). When the transaction ends, it lets go of all its
//! tuples, the oldest of each shape first, and blocked callers get their matches (X4).

use crate::bounds::Refusal;
use crate::events::EventKind;
use crate::order::YOUNGEST;
use crate::space::Stored;
use crate::waiting::Want;
use crate::{Order, Space, Template, Tuple};

/// The number of a transaction in all its spaces, chosen by the caller that begins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionTicket(pub u64);

/// What an open transaction has done in one space.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) ticket: TransactionTicket,
    /// Its puts, the oldest first. The places say which is which, and nothing about age: at commit they get others.
    pub(crate) puts: Vec<Stored>,
    /// What it has put tuples on condition of: that none matches these, at the commit, too (O8).
    pub(crate) absent: Vec<Template>,
    /// Its takes.
    pub(crate) taken: Vec<Stored>,
    /// When it has been open for longer than its ttl.
    pub(crate) ends_ms: u64,
}

/// The caller that looks, and its purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    inside: Option<TransactionTicket>,
    want: Want,
}

impl View {
    /// A caller that reads.
    pub(crate) const READ: Self = Self::of_all(Want::Read);
    /// A caller that takes.
    pub(crate) const TAKE: Self = Self::of_all(Want::Take);

    /// The view of callers that are in no transaction.
    pub(crate) const fn of_all(want: Want) -> Self {
        Self { inside: None, want }
    }

    /// The view of a transaction (X6).
    pub(crate) const fn inside(ticket: TransactionTicket, want: Want) -> Self {
        Self { inside: Some(ticket), want }
    }

    /// Whether it may have the tuple: takers pass over what other transactions have read (X3, X4).
    fn admits(self, stored: &Stored) -> bool {
        self.want == Want::Read || stored.readers.iter().all(|reader| Some(*reader) == self.inside)
    }
}

impl Space {
    /// A transaction begins, which may be open for so long. It has the same number in all its spaces.
    ///
    /// ```
    /// use tupelo_model::{Order, Space, TransactionTicket, template, tuple};
    ///
    /// let mut space = Space::new();
    /// space.put_all(vec![tuple("account, 100"), tuple("rate, 2")])?;
    /// let ticket = TransactionTicket(1);
    /// space.begin(ticket, 50);
    /// assert!(space.try_take_inside(ticket, &template("account, _"), Order::Fifo)?.is_some());
    /// assert!(space.try_read_inside(ticket, &template("rate, _"), Order::Fifo)?.is_some());
    /// space.put_inside(ticket, tuple("account, 200"))?;
    ///
    /// assert_eq!(space.count(&template("account, _")), 0, "neither the old nor the new");
    /// assert_eq!(space.count(&template("rate, _")), 1, "others may read it");
    /// assert_eq!(space.try_take(&template("rate, _"), Order::Fifo), None, "and not take it");
    ///
    /// let mut undone = space.clone();
    /// undone.roll_back(ticket)?;
    /// assert_eq!(undone.read_all(&template("..."), None), [tuple("account, 100"), tuple("rate, 2")]);
    /// Space::commit(ticket, &mut [&mut space])?;
    /// assert_eq!(space.read_all(&template("..."), None), [tuple("rate, 2"), tuple("account, 200")]);
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    pub fn begin(&mut self, ticket: TransactionTicket, ttl_ms: u64) {
        let ends_ms = self.now_ms + ttl_ms;
        let (puts, absent, taken) = (Vec::new(), Vec::new(), Vec::new());
        self.parts.push(Part { ticket, puts, absent, taken, ends_ms });
    }

    /// Adds a tuple for the transaction alone, until it commits (X2).
    ///
    /// # Errors
    ///
    /// [`Refusal::TransactionAborted`] if the transaction has ended; [`Refusal::LimitExceeded`] at once. Whether there is
    /// room is known at commit.
    pub fn put_inside(&mut self, ticket: TransactionTicket, tuple: Tuple) -> Result<(), Refusal> {
        Self::admit_fields(&tuple)?;
        let place = self.next_place();
        let age = YOUNGEST + place;
        let stored = Stored { ages: (age, age), ..Stored::new(place, tuple) };
        self.part_mut(ticket)?.puts.push(stored);
        Ok(())
    }

    /// Adds a tuple for the transaction unless something matches `unless`: in its view, or held by others (O8, X1). Returns
    /// whether it has.
    ///
    /// # Errors
    ///
    /// As [`Space::put_inside`].
    pub fn put_if_absent_inside(
        &mut self,
        ticket: TransactionTicket,
        tuple: Tuple,
        unless: &Template,
    ) -> Result<bool, Refusal> {
        self.part_mut(ticket)?;
        let view = View::inside(ticket, Want::Read);
        if self.seen(unless, view).next().is_some() || self.is_held_by_others(ticket, unless) {
            return Ok(false);
        }
        self.put_inside(ticket, tuple)?;
        self.part_of(ticket).absent.push(unless.clone());
        Ok(true)
    }

    /// Takes a match for the transaction (X3): no other caller has it until the transaction ends.
    ///
    /// # Errors
    ///
    /// [`Refusal::TransactionAborted`] if the transaction has ended.
    pub fn try_take_inside(
        &mut self,
        ticket: TransactionTicket,
        template: &Template,
        order: Order,
    ) -> Result<Option<Tuple>, Refusal> {
        self.part_mut(ticket)?;
        let view = View::inside(ticket, Want::Take);
        let place = self.choices(template, order, view).first().map(|stored| stored.place);
        Ok(place.map(|place| self.take_inside(ticket, place)))
    }

    /// Copies a match for the transaction (X3): no other caller takes it until the transaction ends.
    ///
    /// # Errors
    ///
    /// [`Refusal::TransactionAborted`] if the transaction has ended.
    pub fn try_read_inside(
        &mut self,
        ticket: TransactionTicket,
        template: &Template,
        order: Order,
    ) -> Result<Option<Tuple>, Refusal> {
        self.part_mut(ticket)?;
        let view = View::inside(ticket, Want::Read);
        let place = self.choices(template, order, view).first().map(|stored| stored.place);
        Ok(place.map(|place| self.read_inside(ticket, place)))
    }

    /// Makes everything happen in all spaces of a transaction (X1). Its takes are gone, its reads may be taken, and its
    /// puts are there, in their order.
    ///
    /// # Errors
    ///
    /// [`Refusal::TransactionAborted`] if the transaction has ended; another [`Refusal`] if a space does not admit what
    /// was put: the transaction goes on. In both cases nothing has changed.
    pub fn commit(ticket: TransactionTicket, spaces: &mut [&mut Self]) -> Result<(), Refusal> {
        let with_room = spaces.iter().map(|space| space.with_room_for(ticket).swap_remove(0));
        let mut with_room: Vec<Self> = with_room.collect();
        with_room.iter_mut().try_for_each(|space| space.admit_commit(ticket))?;
        for (space, with_room) in spaces.iter_mut().zip(with_room) {
            **space = with_room;
            let (puts, locked) = space.consume(ticket);
            for place in locked {
                space.release(ticket, place);
            }
            for tuple in puts {
                space.add(tuple);
            }
        }
        Ok(())
    }

    /// Undoes the transaction here. Its takes are back at their places (X5), its reads may be taken, and its puts have
    /// never been.
    ///
    /// # Errors
    ///
    /// [`Refusal::TransactionAborted`] if the transaction has ended: that has happened before.
    pub fn roll_back(&mut self, ticket: TransactionTicket) -> Result<(), Refusal> {
        self.part_mut(ticket)?;
        for place in self.places_of(ticket) {
            self.release(ticket, place);
        }
        self.parts.retain(|part| part.ticket != ticket);
        Ok(())
    }
}

impl Space {
    /// The matches that the viewer may have, the oldest first; then the transaction's own puts.
    pub(crate) fn seen(&self, template: &Template, view: View) -> impl Iterator<Item = &Stored> {
        let own = self.parts.iter().filter(move |part| Some(part.ticket) == view.inside);
        let free = self.tuples.iter().filter(move |stored| view.admits(stored));
        let all = free.chain(own.flat_map(|part| &part.puts));
        all.filter(|stored| template.matches(&stored.tuple))
    }

    /// Takes the tuple at a place. There are no further events of the transaction's own puts (X2).
    pub(crate) fn take_inside(&mut self, ticket: TransactionTicket, place: u64) -> Tuple {
        let puts = &mut self.part_of(ticket).puts;
        if let Some(index) = puts.iter().position(|stored| stored.place == place) {
            return puts.remove(index).tuple;
        }
        let stored = self.remove(place);
        self.enlist(ticket, stored)
    }

    /// A tuple that is in no list is the transaction's.
    pub(crate) fn enlist(&mut self, ticket: TransactionTicket, stored: Stored) -> Tuple {
        let tuple = stored.tuple.clone();
        self.part_of(ticket).taken.push(stored);
        tuple
    }

    /// Copies the tuple at a place, which counts the transaction among its readers from now on.
    pub(crate) fn read_inside(&mut self, ticket: TransactionTicket, place: u64) -> Tuple {
        let own = self.part_of(ticket).puts.iter().find(|stored| stored.place == place);
        if let Some(own) = own {
            return own.tuple.clone();
        }
        let stored = self.tuples.iter_mut().find(|stored| stored.place == place);
        let stored = stored.expect("the place was found in the same operation");
        if !stored.readers.contains(&ticket) {
            stored.readers.push(ticket);
        }
        stored.tuple.clone()
    }

    /// This space, or its possible states after making room for a transaction's puts, when the transaction's takes are
    /// gone (B1). Not empty.
    pub(crate) fn with_room_for(&self, ticket: TransactionTicket) -> Vec<Self> {
        let Some(part) = self.parts.iter().find(|part| part.ticket == ticket) else {
            return vec![self.clone()];
        };
        let puts: Vec<&Tuple> = part.puts.iter().map(|stored| &stored.tuple).collect();
        self.with_room(&puts, part.taken.len())
    }

    /// Whether there is room for a transaction's puts, when its takes are gone (B1).
    pub(crate) fn admit_commit(&mut self, ticket: TransactionTicket) -> Result<(), Refusal> {
        let part = self.part_mut(ticket)?.clone();
        let puts: Vec<&Tuple> = part.puts.iter().map(|stored| &stored.tuple).collect();
        self.admit(&puts, part.taken.len())
    }

    /// Whether others have what a transaction has put tuples on condition of that there is none (O8).
    pub(crate) fn has_what_was_absent(&self, ticket: TransactionTicket) -> bool {
        let parts = self.parts.iter().filter(|part| part.ticket == ticket);
        let mut absent = parts.flat_map(|part| &part.absent);
        absent.any(|template| {
            self.tuples.iter().any(|stored| template.matches(&stored.tuple))
                || self.is_held_by_others(ticket, template)
        })
    }

    fn is_held_by_others(&self, ticket: TransactionTicket, template: &Template) -> bool {
        let own = |stored: &Stored| {
            let parts = self.parts.iter().filter(|part| part.ticket == ticket);
            parts.flat_map(|part| &part.taken).any(|taken| taken.place == stored.place)
        };
        self.held().any(|stored| template.matches(&stored.tuple) && !own(stored))
    }

    /// A transaction's takes are gone, with their events now (X7). Returns its puts, and the places of its reads.
    pub(crate) fn consume(&mut self, ticket: TransactionTicket) -> (Vec<Tuple>, Vec<u64>) {
        let index = self.parts.iter().position(|part| part.ticket == ticket);
        let part = self.parts.remove(index.expect("the transaction is open"));
        for stored in &part.taken {
            self.publish(EventKind::Take, &stored.tuple);
        }
        let puts = part.puts.into_iter().map(|stored| stored.tuple).collect();
        (puts, self.places_of(ticket))
    }

    /// The places of all takes and reads of a transaction, the oldest first.
    pub(crate) fn places_of(&self, ticket: TransactionTicket) -> Vec<u64> {
        let parts = self.parts.iter().filter(|part| part.ticket == ticket);
        let taken = parts.flat_map(|part| &part.taken);
        let read = self.tuples.iter().filter(|stored| stored.readers.contains(&ticket));
        let mut places: Vec<u64> = taken.chain(read).map(|stored| stored.place).collect();
        places.sort_unstable();
        places
    }

    /// The tuple that a transaction has taken from a place, or read there.
    pub(crate) fn tuple_of(&self, ticket: TransactionTicket, place: u64) -> &Tuple {
        let parts = self.parts.iter().filter(|part| part.ticket == ticket);
        let mut all = parts.flat_map(|part| &part.taken).chain(&self.tuples);
        let stored = all.find(|stored| stored.place == place);
        &stored.expect("the transaction has it").tuple
    }

    /// A transaction lets go of a tuple. A taken tuple is back at its place (X5). A read tuple goes to the oldest
    /// blocked take that waits for it, unless another transaction has read it, too (X4).
    pub(crate) fn release(&mut self, ticket: TransactionTicket, place: u64) {
        let mut taken = self.parts.iter_mut().filter(|part| part.ticket == ticket);
        let taken = taken.find_map(|part| {
            let index = part.taken.iter().position(|stored| stored.place == place)?;
            Some(part.taken.remove(index))
        });
        if let Some(stored) = taken {
            return self.arrive(stored, Some(EventKind::Return));
        }
        let locked = self.tuples.iter_mut().find(|stored| stored.place == place);
        let locked = locked.expect("the transaction has it");
        locked.readers.retain(|reader| *reader != ticket);
        if !locked.readers.is_empty() {
            return;
        }
        let waits = self.waits.iter();
        let index = waits.enumerate().find(|(_, wait)| wait.waits_for(Want::Take, &locked.tuple));
        if let Some((index, _)) = index {
            let stored = self.remove(place);
            self.waits[index].served = Some(stored);
        }
    }

    /// The transactions that have been open for too long are not there any more.
    pub(crate) fn forget_ended(&mut self) {
        let now_ms = self.now_ms;
        self.parts.retain(|part| part.ends_ms > now_ms);
    }

    fn part_mut(&mut self, ticket: TransactionTicket) -> Result<&mut Part, Refusal> {
        let part = self.parts.iter_mut().find(|part| part.ticket == ticket);
        part.ok_or(Refusal::TransactionAborted)
    }

    fn part_of(&mut self, ticket: TransactionTicket) -> &mut Part {
        self.part_mut(ticket).expect("the transaction is open")
    }
}
