//! Claims: a take that gives the tuple back unless it is confirmed (K1-K4).
//!
//! The holder is known by its fence. An operation with the fence of a claim that has ended changes nothing. Tuples that
//! are put under a claim are the holder's own until it is done: `done` brings them along.

use crate::bounds::Refusal;
use crate::events::EventKind;
use crate::space::Stored;
use crate::transactions::View;
use crate::waiting::Ticket;
use crate::{Order, Space, Template, Tuple};

/// The terms of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimTerms {
    /// How long the holder may be silent, in milliseconds.
    pub ttl_ms: u64,
    /// After so many failed attempts the tuple is dead (K5); `None`: never.
    pub attempts_max: Option<usize>,
}

/// The number of a claim: each is greater than all before it (K1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence(u64);

/// A tuple in the hands of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claimed {
    pub(crate) fence: Fence,
    pub(crate) stored: Stored,
    /// When the claim runs out.
    pub(crate) ends_ms: u64,
    pub(crate) attempts_max: Option<usize>,
}

/// The result of a claim: its fence, the tuple, and the number of this attempt, from 1.
pub type Grant = (Fence, Tuple, usize);

impl Space {
    /// Claims a match; `None` if nothing matches.
    ///
    /// ```
    /// use tupelo_model::{ClaimTerms, Order, Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// space.put_all(vec![tuple("job, 1"), tuple("job, 2")])?;
    /// let terms = ClaimTerms { ttl_ms: 50, attempts_max: None };
    /// let (fence, job, attempt) = space.try_claim(&template("job, _"), Order::Fifo, terms).unwrap();
    /// assert_eq!((job, attempt), (tuple("job, 1"), 1));
    /// assert_eq!(space.count(&template("job, _")), 1, "nobody else sees it");
    ///
    /// space.pass(50); // too long without a word: it is back at its old place
    /// assert!(space.done(fence, Vec::new()).is_err());
    /// let (_, job, attempt) = space.try_claim(&template("job, _"), Order::Fifo, terms).unwrap();
    /// assert_eq!((job, attempt), (tuple("job, 1"), 2));
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    pub fn try_claim(
        &mut self,
        template: &Template,
        order: Order,
        terms: ClaimTerms,
    ) -> Option<Grant> {
        let place = self.choices(template, order, View::TAKE).first()?.place;
        Some(self.claim_at(place, terms))
    }

    /// Claims the tuple at a place.
    pub(crate) fn claim_at(&mut self, place: u64, terms: ClaimTerms) -> Grant {
        let stored = self.remove(place);
        self.hold(stored, terms)
    }

    /// A take that waited and was served returns, with a claim instead of a tuple.
    ///
    /// # Panics
    ///
    /// If the call was not served, or has returned or given up before.
    pub fn finish_claim(&mut self, ticket: Ticket, terms: ClaimTerms) -> Grant {
        let stored = self.picked_up(ticket);
        self.hold(stored, terms)
    }

    fn hold(&mut self, stored: Stored, terms: ClaimTerms) -> Grant {
        self.fences += 1;
        let fence = Fence(self.fences);
        let grant = (fence, stored.tuple.clone(), stored.failures.len() + 1);
        let ClaimTerms { ttl_ms, attempts_max } = terms;
        self.claims.push(Claimed { fence, stored, ends_ms: self.now_ms + ttl_ms, attempts_max });
        grant
    }

    /// Consumes the tuple; at the same moment the tuples that were put under the claim appear, in their order
    /// (K2, K4).
    ///
    /// # Errors
    ///
    /// [`Refusal::ClaimLost`] if the claim has ended (K3); another [`Refusal`] if a limit does not admit the
    /// tuples: the claim goes on. In both cases the space is as it was.
    pub fn done(&mut self, fence: Fence, puts: Vec<Tuple>) -> Result<(), Refusal> {
        self.claimed_mut(fence)?;
        self.make_room(&puts.iter().collect::<Vec<_>>(), 1)?;
        let claimed = self.end(fence)?;
        self.publish(EventKind::Take, &claimed.stored.tuple);
        for tuple in puts {
            self.add(tuple);
        }
        Ok(())
    }

    /// The attempt has failed: the tuple is back at its old place (K2), or dead (K5).
    ///
    /// # Errors
    ///
    /// [`Refusal::ClaimLost`] if the claim has ended (K3).
    pub fn abort(&mut self, fence: Fence, reason: &str) -> Result<(), Refusal> {
        let claimed = self.end(fence)?;
        self.fail(claimed, Some(reason.to_owned()));
        Ok(())
    }

    /// Lets the claim run for so long from now (K2).
    ///
    /// # Errors
    ///
    /// [`Refusal::ClaimLost`] if the claim has ended (K3).
    pub fn extend(&mut self, fence: Fence, ttl_ms: u64) -> Result<(), Refusal> {
        let ends_ms = self.now_ms + ttl_ms;
        self.claimed_mut(fence)?.ends_ms = ends_ms;
        Ok(())
    }

    /// The claim has ended: its tuple has no holder.
    pub(crate) fn end(&mut self, fence: Fence) -> Result<Claimed, Refusal> {
        let index = self.claims.iter().position(|claimed| claimed.fence == fence);
        Ok(self.claims.remove(index.ok_or(Refusal::ClaimLost)?))
    }

    /// Whether a claim goes on.
    pub(crate) fn is_held(&self, fence: Fence) -> bool {
        self.claims.iter().any(|claimed| claimed.fence == fence)
    }

    fn claimed_mut(&mut self, fence: Fence) -> Result<&mut Claimed, Refusal> {
        let claimed = self.claims.iter_mut().find(|claimed| claimed.fence == fence);
        claimed.ok_or(Refusal::ClaimLost)
    }
}
