//! Dead letters: tuples whose last attempt has failed (K5).
//!
//! They match nothing, and count against the limits. Their leases go on.

use crate::claims::Claimed;
use crate::events::EventKind;
use crate::space::Stored;
use crate::{Space, Template, Tuple};

/// What became of a dead tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterRecord {
    /// The tuple.
    pub tuple: Tuple,
    /// How many attempts have failed.
    pub attempts: usize,
    /// Why, the oldest first; `None` where the holder gave no reason: it was silent for too long.
    pub reasons: Vec<Option<String>>,
}

impl DeadLetterRecord {
    /// Whether both say the same, as far as holders gave reasons: engines word the others as they like.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let says_so =
            |(a, b): (&Option<String>, &Option<String>)| a.is_none() || b.is_none() || a == b;
        self.tuple == other.tuple
            && self.attempts == other.attempts
            && self.reasons.len() == other.reasons.len()
            && self.reasons.iter().zip(&other.reasons).all(says_so)
    }
}

impl Space {
    /// An attempt has failed: the tuple is back at its old place, or dead if that was the last attempt.
    pub(crate) fn fail(&mut self, claimed: Claimed, reason: Option<String>) {
        let Claimed { mut stored, attempts_max, .. } = claimed;
        stored.failures.push(reason);
        let was_last =
            attempts_max.is_some_and(|attempts_max| stored.failures.len() >= attempts_max);
        if !was_last {
            self.arrive(stored, Some(EventKind::Return));
            return;
        }
        self.publish(EventKind::Expire, &stored.tuple);
        if !stored.has_ended(self.now_ms) {
            let index = self.dead.partition_point(|older| older.place < stored.place);
            self.dead.insert(index, stored);
        }
    }

    /// The dead tuples that match, the oldest first.
    ///
    /// ```
    /// use tupelo_model::{ClaimTerms, Order, Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// space.put(tuple("job, 1"))?;
    /// let once = ClaimTerms { ttl_ms: 50, attempts_max: Some(1) };
    /// let (fence, ..) = space.try_claim(&template("job, _"), Order::Fifo, once).unwrap();
    /// space.abort(fence, "no disk")?;
    /// assert_eq!(space.count(&template("job, _")), 0);
    /// let [dead] = &space.dead(&template("job, _"))[..] else { unreachable!() };
    /// assert_eq!((dead.attempts, &dead.reasons[..]), (1, &[Some("no disk".to_owned())][..]));
    ///
    /// assert_eq!(space.requeue(&template("job, _")), 1);
    /// let (.., attempt) = space.try_claim(&template("job, _"), Order::Fifo, once).unwrap();
    /// assert_eq!(attempt, 1, "as if nobody had tried yet");
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    pub fn dead(&self, template: &Template) -> Vec<DeadLetterRecord> {
        let dead_letter = |stored: &Stored| DeadLetterRecord {
            tuple: stored.tuple.clone(),
            attempts: stored.failures.len(),
            reasons: stored.failures.clone(),
        };
        self.dead_matches(template).map(dead_letter).collect()
    }

    /// Puts the dead tuples that match back at their old places, with no attempts counted. Returns how many.
    pub fn requeue(&mut self, template: &Template) -> u64 {
        let places: Vec<u64> = self.dead_matches(template).map(|stored| stored.place).collect();
        let count = places.len() as u64;
        for place in places {
            self.revive(place);
        }
        count
    }

    /// Puts the dead tuple of a place back.
    pub(crate) fn revive(&mut self, place: u64) {
        let index = self.dead.iter().position(|stored| stored.place == place);
        let stored = self.dead.remove(index.expect("it was found in the same operation"));
        self.arrive(Stored { failures: Vec::new(), ..stored }, Some(EventKind::Put));
    }

    pub(crate) fn dead_matches(&self, template: &Template) -> impl Iterator<Item = &Stored> {
        self.dead.iter().filter(|stored| template.matches(&stored.tuple))
    }
}
