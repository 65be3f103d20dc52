//! The keys of requests, for servers: what was answered outlives the server that has answered it.

use tupelo_engine::{Claim as HeldClaim, ClaimTerms};
use tupelo_tuple::TupleView;

use crate::claim::Claim;
use crate::connect::Space;
use crate::error::Error;
use crate::wait::{Lifted, lift};

impl Space {
    /// Tells the memory or the file in which the answers to keyed requests are kept from all others; `None` if they are kept nowhere, or elsewhere.
    /// See [`ConnectOptions::keeps_keys`](crate::ConnectOptions::keeps_keys).
    pub fn keeper(&self) -> Option<u64> {
        let engine = self.local().filter(|engine| engine.keeps_keys())?;
        // A file keeps them over all memories that are filled from it.
        let uuid = match &self.inner.journal {
            Some(journal) => journal.id(),
            None => engine.segment().identity().uuid,
        };
        let uuid = u128::from_be_bytes(uuid);
        #[expect(clippy::cast_possible_truncation, reason = "both halves are in it")]
        Some((uuid ^ uuid >> 64) as u64 >> 1)
    }

    /// What a request with this key was answered that had its effect; `None` if it has had none, or if nobody knows any more.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn answer_to(&self, key: u128, who: u64) -> Result<Option<u64>, Error> {
        Ok(self.engine()?.answer_to(key, who)?)
    }

    /// What a take with this key ([`crate::keyed_take`]) has found whose server has died since, shown to `visitor`, as a claim of this
    /// process on these terms. `None` if there is no such take, or if what it has found is not held any more.
    ///
    /// # Errors
    ///
    /// What the memory says. The error of `visitor`: the tuple is back.
    pub fn adopt_take<R, E: From<Error>>(
        &self,
        request: (u128, u64),
        terms: &ClaimTerms,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<(Claim, R)>, E> {
        let visitor = |tuple: TupleView<'_>| visitor(tuple).map_err(Lifted::caller);
        let adopted = lift(HeldClaim::adopt(self, request, visitor))?;
        Ok(adopted.map(|(claim, result)| (Claim::new(claim, terms), result)))
    }
}
