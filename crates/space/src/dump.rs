//! What is in a space with what is left of its terms, for a copy elsewhere.

use tupelo_engine::LeaseTerms;
use tupelo_tuple::{Tuple, TupleView, template};

use crate::connect::Space;
use crate::error::Error;

/// A tuple of a space, and what a copy of it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Dumped {
    /// The tuple.
    pub tuple: Tuple,
    /// How long its lease goes on, and how long until it is visible.
    pub terms: LeaseTerms,
    /// Whether it is a dead letter (rule K5).
    pub is_dead: bool,
}

impl Space {
    /// All tuples of the space at one moment, in the order of age of each shape. Nobody can change the space meanwhile.
    ///
    /// Tuples that are claimed, or taken in open transactions, are among them, since their holders may give them back.
    /// So are tuples that are not visible yet, and dead letters.
    ///
    /// A server tells of visible tuples alone, and not of their leases.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceCorrupted`]; [`Error::LimitExceeded`] if a server has more tuples than one answer.
    pub fn dump(&self) -> Result<Vec<Dumped>, Error> {
        let Some(engine) = self.local() else {
            return self.read_all(&[template![..]], None, |tuple| {
                Ok(Dumped { tuple: owned(tuple)?, terms: LeaseTerms::default(), is_dead: false })
            });
        };
        let mut all = Vec::new();
        engine.each_kept(|kept, tuple| {
            // One whose lease has ended is gone, though nobody has come by to remove it.
            if let Some(terms) = kept.terms.left() {
                let (tuple, is_dead) = (owned(tuple)?, kept.attempts.is_dead);
                all.push(Dumped { tuple, terms, is_dead });
            }
            Ok::<(), Error>(())
        })?;
        Ok(all)
    }
}

fn owned(tuple: TupleView<'_>) -> Result<Tuple, Error> {
    tuple.to_tuple().map_err(|error| Error::SpaceCorrupted {
        problem: format!("a tuple does not decode: {error}"),
        hint: None,
    })
}
