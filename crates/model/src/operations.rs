//! Operations that answer at once: one tuple, several, or how many (O4, O6).
//!
//! `take` removes, `read` copies; apart from that they are the same, and so are their plural forms.

use crate::transactions::View;
use crate::{Order, Space, Template, Tuple};

impl Space {
    /// Removes and returns a match, by default the oldest of its shape (O4, T1, T2); `None` if nothing
    /// matches.
    ///
    /// ```
    /// use tupelo_model::{Order, Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// space.put_all(vec![tuple("job, 1"), tuple("job, 2"), tuple("job, 3")])?;
    /// assert_eq!(space.try_take(&template("job, _"), Order::Fifo), Some(tuple("job, 1")));
    /// assert_eq!(space.try_take(&template("job, _"), Order::Lifo), Some(tuple("job, 3")));
    /// assert_eq!(space.try_take(&template("task, _"), Order::Fifo), None);
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    pub fn try_take(&mut self, template: &Template, order: Order) -> Option<Tuple> {
        let place = self.choices(template, order, View::TAKE).first()?.place;
        Some(self.take_at(place).tuple)
    }

    /// Returns a copy of the match that [`Self::try_take`] would remove if no transaction had read it (O4, X3); `None`
    /// if nothing matches.
    pub fn try_read(&self, template: &Template, order: Order) -> Option<Tuple> {
        self.choices(template, order, View::READ).first().map(|stored| stored.tuple.clone())
    }

    /// How many tuples match (O6). Tuples that others hold are not seen (O9).
    pub fn count(&self, template: &Template) -> u64 {
        self.found(template).count() as u64
    }

    /// Copies of all matches, or of the `limit` oldest (O6).
    pub fn read_all(&self, template: &Template, limit: Option<usize>) -> Vec<Tuple> {
        let limit = limit.unwrap_or(usize::MAX);
        self.found(template).take(limit).map(|stored| stored.tuple.clone()).collect()
    }

    /// Removes and returns all matches, or the `limit` oldest, in one step (O6). Does not wait.
    pub fn take_all(&mut self, template: &Template, limit: Option<usize>) -> Vec<Tuple> {
        let limit = limit.unwrap_or(usize::MAX);
        let places: Vec<u64> =
            self.seen(template, View::TAKE).take(limit).map(|stored| stored.place).collect();
        places.into_iter().map(|place| self.take_at(place).tuple).collect()
    }

    /// Removes and returns at most `at_most` matches, the oldest, if there are `at_least` so many; else
    /// `None`, and nothing is removed.
    ///
    /// ```
    /// use tupelo_model::{Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// space.put(tuple("job, 1"))?;
    /// assert_eq!(space.try_take_many(&template("job, _"), 2, 2), None);
    /// space.put(tuple("job, 2"))?;
    /// let both = vec![tuple("job, 1"), tuple("job, 2")];
    /// assert_eq!(space.try_take_many(&template("job, _"), 2, 2), Some(both));
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    pub fn try_take_many(
        &mut self,
        template: &Template,
        at_least: usize,
        at_most: usize,
    ) -> Option<Vec<Tuple>> {
        if self.seen(template, View::TAKE).count() < at_least {
            return None;
        }
        Some(self.take_all(template, Some(at_most)))
    }
}
