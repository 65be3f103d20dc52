//! What one turn of the journal brings to the file: the changes of many records, one beside the other.
//!
//! A tuple that is put and taken in one turn never comes to the file. What else happens to a tuple of this turn is done to it
//! here; what happens to one that is in the file is done there at once.

use std::collections::BTreeMap;

use tupelo_engine::{Attempts, Change, Kept, KeptTerms, RequestKey};
use tupelo_tuple::encoding::encode_tuple_view;

use crate::answers;
use crate::error::Error;
use crate::subscriptions::Listeners;
use crate::tables::{Row, Tables};

/// Changes that are on their way to the file.
#[derive(Debug)]
pub(crate) struct Batch<'w, 's> {
    tables: Tables<'w, 's>,
    /// What was put in this turn and is still there, by its id: SQLite appends what comes in this order.
    put: BTreeMap<u64, Row>,
    /// Larger than all ids so far, also of tuples that are gone.
    next_id: u64,
    /// Who is told of it.
    listeners: Listeners,
    /// What requests were answered.
    answered: Vec<RequestKey>,
}

impl<'w, 's> Batch<'w, 's> {
    /// Nothing yet.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn new(tables: Tables<'w, 's>) -> Result<Self, Error> {
        let listeners = Listeners::of(&tables)?;
        let (put, answered) = (BTreeMap::new(), Vec::new());
        Ok(Self { tables, put, next_id: 0, listeners, answered })
    }

    /// Where it goes, for what is written beside it.
    pub(crate) const fn tables(&self) -> &Tables<'w, 's> {
        &self.tables
    }

    /// Adds a change, which came after those that were added before.
    ///
    /// # Errors
    ///
    /// What SQLite says: nothing of the batch is in the file then.
    pub(crate) fn add(&mut self, change: &Change<'_>) -> Result<(), Error> {
        match change {
            Change::Put { id, tuple, terms } => {
                let mut image = Vec::new();
                // What is in a space was encoded before, or could be.
                encode_tuple_view(&mut image, *tuple).map_err(|error| Error::Storage {
                    path: self.tables.path().to_owned(),
                    problem: format!("tuple {id} cannot be encoded: {error}"),
                })?;
                self.note(*id);
                if terms.hidden_until_ns.is_none() {
                    self.listeners.tell(&self.tables, tuple, &image)?;
                }
                let kept = Kept { id: *id, terms: *terms, attempts: Attempts::default() };
                self.put.insert(*id, Row { kept, image });
                Ok(())
            }
            Change::Taken { id } => match self.put.remove(id) {
                Some(_) => Ok(()),
                None => self.tables.remove(*id),
            },
            Change::Visible { id, new_id, terms } => self.make_visible(*id, *new_id, *terms),
            Change::Lease { id, terms } => match self.put.get_mut(id) {
                Some(row) => {
                    row.kept.terms = *terms;
                    Ok(())
                }
                None => self.tables.set_terms(*id, *terms),
            },
            Change::Attempts { id, attempts } => match self.put.get_mut(id) {
                Some(row) => {
                    row.kept.attempts = attempts.clone();
                    Ok(())
                }
                None => self.tables.set_attempts(*id, attempts),
            },
            // Whoever brings it looks to the others ([`crate::together`]).
            Change::Shared { .. } => Ok(()),
            Change::Answered(request) => {
                self.answered.push(*request);
                Ok(())
            }
            other => Err(Error::Storage {
                path: self.tables.path().to_owned(),
                problem: format!("the file cannot keep {other:?}"),
            }),
        }
    }

    fn note(&mut self, id: u64) {
        self.next_id = self.next_id.max(id.saturating_add(1));
    }

    fn make_visible(&mut self, id: u64, new_id: u64, terms: KeptTerms) -> Result<(), Error> {
        self.note(new_id);
        if !self.listeners.is_empty() {
            let image = match self.put.get(&id) {
                Some(row) => Some(row.image.clone()),
                None => self.tables.image_of(id)?,
            };
            if let Some(image) = image {
                self.listeners.tell_of_image(&self.tables, &image)?;
            }
        }
        let Some(mut row) = self.put.remove(&id) else {
            return self.tables.rename(id, new_id, terms);
        };
        (row.kept.id, row.kept.terms) = (new_id, terms);
        self.put.insert(new_id, row);
        Ok(())
    }

    /// Writes what it has, and notes that everything up to this position of the journal is in the tables: if the transaction commits.
    ///
    /// # Errors
    ///
    /// What SQLite says.
    pub(crate) fn finish(self, position: u64) -> Result<(), Error> {
        let Self { tables, put, next_id, listeners, answered } = self;
        listeners.finish(&tables)?;
        answers::add(&tables, &answered)?;
        put.values().try_for_each(|row| tables.insert(row))?;
        tables.set_position(position, next_id)
    }
}
