//! Leases of tuples that are elsewhere (rules L1 to L3).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tupelo_engine::LeaseTerms;
use tupelo_protocol::{Fault, Found, Kept, Operation, TemplateBytes, Term, Tuples};
use tupelo_tuple::{TemplateRef, TupleRef};

use super::{Ask, encoded, not_due, put_terms};
use crate::connect::Space;
use crate::error::Error;

impl Space {
    /// As [`Space::put_leased`], and as [`Space::put_if_absent_leased`].
    #[cold]
    #[inline(never)]
    pub(crate) fn put_leased_remotely(
        &self,
        tuple: TupleRef<'_>,
        terms: &LeaseTerms,
        unless: Option<&[TemplateRef<'_>]>,
    ) -> Result<Option<Arc<dyn Kept>>, Error> {
        let tuple = encoded(std::iter::once(tuple))?;
        let unless = unless.map(TemplateBytes::encode).transpose()?;
        let put = Operation::PutLeased {
            tuple: Tuples::of_encoding(&tuple),
            terms: put_terms(terms),
            unless: unless.as_deref().map(TemplateBytes::of_encoding),
        };
        self.patiently(|| {
            let (found, kept) = self.remote()?.open(&put, &mut |_| ControlFlow::Break(()))?;
            match (kept, found) {
                (Some(kept), _) => Ok(Some(kept.into())),
                (None, Found::Nothing) if unless.is_some() => Ok(None),
                (None, found) => Err(not_due(&put, "a lease", found)),
            }
        })
    }
}

/// How long the tuple will stay; `None`: for ever.
pub(crate) fn expires_in(lease: &dyn Kept) -> Result<Option<Duration>, Error> {
    let left = Operation::Term(Term::Left);
    match lease.call(0, &left, &mut |_| ControlFlow::Break(()))? {
        Found::Count(nanoseconds) => Ok(Some(Duration::from_nanos(nanoseconds))),
        Found::Nothing => Ok(None),
        found => Err(not_due(&left, "a time", found)),
    }
}

/// Moves the end of a lease or a claim.
pub(crate) fn change(kept: &dyn Kept, term: Term) -> Result<(), Error> {
    Ask::Kept(kept, 0).count_of(&Operation::Term(term)).map(drop)
}

/// Whether the open object has ended with its connection, for sure.
pub(crate) fn is_gone(fault: &Fault) -> bool {
    fault.code == tupelo_protocol::code::CONNECTION_LOST
        && !fault.has(Fault::MAY_HAVE_HAPPENED | Fault::INTERRUPTED)
}
