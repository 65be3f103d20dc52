//! Moving and copying between two spaces (O7).

use crate::bounds::Refusal;
use crate::transactions::View;
use crate::{Space, Template, Tuple};

impl Space {
    /// Moves all matches that can be taken to another space in one step and returns their number. They are new there:
    /// they take the last places, in their order, and serve blocked calls.
    ///
    /// ```
    /// use tupelo_model::{Space, template, tuple};
    ///
    /// let (mut inbox, mut archive) = (Space::new(), Space::new());
    /// inbox.put_all(vec![tuple("mail, 1"), tuple("mail, 2"), tuple("note, 3")])?;
    /// assert_eq!(inbox.move_to(&mut archive, &template("mail, _")), Ok(2));
    /// assert_eq!(inbox.read_all(&template("..."), None), [tuple("note, 3")]);
    /// assert_eq!(archive.count(&template("mail, _")), 2);
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if the other space does not admit them all; both spaces are as they were.
    pub fn move_to(&mut self, other: &mut Self, template: &Template) -> Result<u64, Refusal> {
        let tuples = self.seen(template, View::TAKE).map(|stored| stored.tuple.clone()).collect();
        let count = other.receive(tuples)?;
        self.take_all(template, None);
        Ok(count)
    }

    /// As [`Self::move_to`], but the matches stay here as well.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if the other space does not admit them all; both spaces are as they were.
    pub fn copy_to(&self, other: &mut Self, template: &Template) -> Result<u64, Refusal> {
        let tuples: Vec<Tuple> = self.read_all(template, None);
        other.receive(tuples)
    }

    /// Adds what comes from another space. Nothing is dropped for it.
    fn receive(&mut self, tuples: Vec<Tuple>) -> Result<u64, Refusal> {
        self.admit(&tuples.iter().collect::<Vec<_>>(), 0)?;
        let count = tuples.len() as u64;
        for tuple in tuples {
            self.add(tuple);
        }
        Ok(count)
    }
}
