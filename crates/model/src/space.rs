//! The list, and the loop: a space with its tuples, and what happens when a tuple arrives.
//!
//! The other modules of this crate build on the three private steps at the end of this file. A tuple *arrives*: at its
//! place, or at a call that waits for it. A tuple is *found*. A tuple is *removed*.

use crate::bounds::{Limits, Refusal};
use crate::claims::Claimed;
use crate::events::{EventKind, Subscription};
use crate::leases::{Delayed, Lease};
use crate::scan::OpenScan;
use crate::transactions::{Part, TransactionTicket};
use crate::waiting::{Wait, Want};
use crate::{Template, Tuple};

/// A space: a multiset of tuples, and the calls that wait for one.
///
/// There is one caller and there are no threads, so every operation happens at one moment (O1). Each result is the
/// space's own copy, given away (V2).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space {
    /// The tuples that anybody may have, the oldest first (T2). Equal tuples are two tuples.
    pub(crate) tuples: Vec<Stored>,
    /// The calls that have not returned yet, in the order in which they came (T3).
    pub(crate) waits: Vec<Wait>,
    /// The claimed tuples (K1).
    pub(crate) claims: Vec<Claimed>,
    /// The tuples whose last attempt has failed, the oldest first (K5).
    pub(crate) dead: Vec<Stored>,
    /// The tuples that are not visible yet (L3).
    pub(crate) delayed: Vec<Delayed>,
    /// The subscriptions (N1).
    pub(crate) subscriptions: Vec<Subscription>,
    /// The scans that are under way (O6).
    pub(crate) scans: Vec<OpenScan>,
    /// What open transactions have done here (X2, X3).
    pub(crate) parts: Vec<Part>,
    pub(crate) limits: Limits,
    /// How many tuples and calls there have been: the next one's place.
    pub(crate) arrivals: u64,
    /// How many there had been when ages began to compare across shapes (T2).
    pub(crate) ages_since: Option<u64>,
    /// The age of tuples that come together, in an order that is open.
    pub(crate) together: Option<u64>,
    /// How many claims there have been: the last one's fence (K1).
    pub(crate) fences: u64,
    /// The time, in milliseconds (L4). It passes when the program says so: see `time.rs`.
    pub(crate) now_ms: u64,
}

/// A tuple in the space, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Identity and age in one: a smaller place is an older tuple, and no two tuples of a space ever
    /// have the same. A tuple that goes back to the space goes back to this place (T5).
    pub place: u64,
    /// Its age among the tuples of other shapes, from the oldest that it may be to the youngest (T2).
    pub(crate) ages: (u64, u64),
    /// The tuple.
    pub tuple: Tuple,
    /// Its lease, if it was put on terms (L1).
    pub(crate) lease: Option<Lease>,
    /// Why earlier attempts at it have failed, the oldest first (K5); `None` for an attempt without a reason.
    pub(crate) failures: Vec<Option<String>>,
    /// The open transactions that have read it: no other caller may take it (X3).
    pub(crate) readers: Vec<TransactionTicket>,
}

impl Stored {
    /// A tuple as it is put: no lease, and no attempts.
    pub(crate) fn new(place: u64, tuple: Tuple) -> Self {
        Self {
            place,
            ages: (place, place),
            tuple,
            lease: None,
            failures: Vec::new(),
            readers: Vec::new(),
        }
    }
}

impl Space {
    /// An empty space with the default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty space with these limits (B1).
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds a tuple as the youngest (O2). Equal tuples are kept side by side.
    ///
    /// ```
    /// use tupelo_model::{Order, Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// space.put(tuple("job, 7"))?;
    /// assert_eq!(space.count(&template("job, :int")), 1);
    /// assert_eq!(space.try_take(&template("job, :int"), Order::Fifo), Some(tuple("job, 7")));
    /// assert_eq!(space.count(&template("job, :int")), 0);
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if a limit is reached; the space is as it was.
    pub fn put(&mut self, tuple: Tuple) -> Result<(), Refusal> {
        self.make_room(&[&tuple], 0)?;
        self.add(tuple);
        Ok(())
    }

    /// Adds several tuples at one moment, in their order: all of them, or none (O5). Returns how many.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if a limit does not admit them all; the space is as it was.
    pub fn put_all(&mut self, tuples: Vec<Tuple>) -> Result<usize, Refusal> {
        self.make_room(&tuples.iter().collect::<Vec<_>>(), 0)?;
        let count = tuples.len();
        for tuple in tuples {
            self.add(tuple);
        }
        Ok(count)
    }

    /// A tuple comes, the youngest of all.
    pub(crate) fn add(&mut self, tuple: Tuple) {
        let place = self.next_place();
        let age = self.together.unwrap_or(place);
        let stored = Stored { ages: (age, age), ..Stored::new(place, tuple) };
        self.arrive(stored, Some(EventKind::Put));
    }

    /// The place behind all others.
    pub(crate) fn next_place(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// A tuple comes to its place, or to a call that waits for it (T3). Every matching waiting read gets a copy, and
    /// the oldest matching waiting take gets the tuple. If its lease ended while it was held, the tuple is gone (L1).
    /// The event `told` is none if the tuple comes back from a call that had no effect (T5).
    pub(crate) fn arrive(&mut self, stored: Stored, event: Option<EventKind>) {
        if stored.has_ended(self.now_ms) {
            self.publish(EventKind::Expire, &stored.tuple);
            return;
        }
        if let Some(kind) = event {
            self.publish(kind, &stored.tuple);
        }
        self.update_scans(&stored);
        for read in self.waits.iter_mut().filter(|wait| wait.waits_for(Want::Read, &stored.tuple)) {
            read.served = Some(stored.clone());
        }
        let take = self.waits.iter_mut().find(|wait| wait.waits_for(Want::Take, &stored.tuple));
        if let Some(take) = take {
            take.served = Some(stored);
        } else {
            let index = self.tuples.partition_point(|older| older.place < stored.place);
            self.tuples.insert(index, stored);
        }
    }

    /// The tuples that match, the oldest first. The loop. (Whether a tuple matches is said by the template
    /// itself, which has never received of a space: M1-M8.)
    pub(crate) fn found(&self, template: &Template) -> impl Iterator<Item = &Stored> {
        self.tuples.iter().filter(|stored| template.matches(&stored.tuple))
    }

    /// Removes the tuple at a place for good: a caller takes it.
    pub(crate) fn take_at(&mut self, place: u64) -> Stored {
        let stored = self.remove(place);
        self.publish(EventKind::Take, &stored.tuple);
        stored
    }

    /// Removes the tuple at a place, where one was found before.
    pub(crate) fn remove(&mut self, place: u64) -> Stored {
        let index = self.index_of(place);
        let mut stored = self.tuples.remove(index);
        self.update_scans(&stored);
        stored.readers.clear();
        stored
    }

    /// The tuple at a place, where one was found before.
    pub(crate) fn at(&self, place: u64) -> &Stored {
        &self.tuples[self.index_of(place)]
    }

    fn index_of(&self, place: u64) -> usize {
        let index = self.tuples.iter().position(|stored| stored.place == place);
        index.expect("the place was found in the same operation")
    }
}
