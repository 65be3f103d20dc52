//! Operations that look first and then change, in one step: of any number of racers one wins (O8, O9).

use crate::bounds::Refusal;
use crate::transactions::View;
use crate::{LeaseTerms, Order, Space, Template, Tuple};

impl Space {
    /// Puts the tuple unless something matches `unless`; returns whether it put (O8).
    ///
    /// ```
    /// use tupelo_model::{Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// assert_eq!(space.put_if_absent(tuple("leader, 1"), &template("leader, _")), Ok(true));
    /// assert_eq!(space.put_if_absent(tuple("leader, 2"), &template("leader, _")), Ok(false));
    /// assert_eq!(space.read_all(&template("leader, _"), None), [tuple("leader, 1")]);
    /// ```
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if nothing matches and a limit is reached; the space is as it was.
    pub fn put_if_absent(&mut self, tuple: Tuple, unless: &Template) -> Result<bool, Refusal> {
        if self.present(unless) {
            return Ok(false);
        }
        self.put(tuple)?;
        Ok(true)
    }

    /// As [`Space::put_if_absent`], for a tuple on terms, as [`Space::put_leased`] has them (O8, L1, L3).
    ///
    /// # Errors
    ///
    /// As [`Space::put_if_absent`].
    pub fn put_if_absent_leased(
        &mut self,
        tuple: Tuple,
        unless: &Template,
        terms: LeaseTerms,
    ) -> Result<bool, Refusal> {
        if terms == LeaseTerms::default() {
            return self.put_if_absent(tuple, unless);
        }
        if self.present(unless) {
            return Ok(false);
        }
        self.put_leased(tuple, terms).map(|_| true)
    }

    /// Replaces a match by another tuple and returns the old one (O8); `None` if nothing matches. The
    /// new tuple is put as any other: as the youngest, and it serves blocked calls.
    ///
    /// ```
    /// use tupelo_model::{Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// space.put(tuple("counter, 7"))?;
    /// let old = space.try_swap(&template("counter, :int"), tuple("counter, 8"))?;
    /// assert_eq!(old, Some(tuple("counter, 7")));
    /// assert_eq!(space.read_all(&template("counter, _"), None), [tuple("counter, 8")]);
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if something matches and a limit does not admit the new tuple in its stead; the
    /// space is as it was.
    pub fn try_swap(&mut self, template: &Template, to: Tuple) -> Result<Option<Tuple>, Refusal> {
        let choices = self.choices(template, Order::Fifo, View::TAKE);
        let Some(place) = choices.first().map(|found| found.place) else { return Ok(None) };
        self.swap_at(place, to).map(Some)
    }

    /// Replaces the tuple at a place.
    pub(crate) fn swap_at(&mut self, place: u64, to: Tuple) -> Result<Tuple, Refusal> {
        self.admit(&[&to], 1)?;
        let old = self.take_at(place).tuple;
        self.add(to);
        Ok(old)
    }

    /// Whether there is a match, in the space or held by a claim, by an open transaction or by a waiter that has not
    /// returned yet. A held tuple may come back (O9). `wait_none` waits until this is false.
    ///
    /// ```
    /// use tupelo_model::{Reply, Space, Want, template, tuple};
    ///
    /// let mut space = Space::new();
    /// let ticket = space.wait(Want::Take, template("job, _"))?;
    /// space.put(tuple("job, 7"))?; // goes straight to who waits
    /// assert_eq!(space.count(&template("job, _")), 0);
    /// assert!(space.present(&template("job, _")));
    /// space.finish(ticket);
    /// assert!(!space.present(&template("job, _")));
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    pub fn present(&self, template: &Template) -> bool {
        self.found(template).chain(self.held()).any(|stored| template.matches(&stored.tuple))
    }
}
