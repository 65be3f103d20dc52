//! Places in the wait queue that are elsewhere.

use std::ops::ControlFlow;

use tupelo_engine::ClaimTerms;
use tupelo_protocol::{Fault, Pending, PickedUp};
use tupelo_tuple::TupleView;

use crate::error::Error;
use crate::wait::{Outcome, Want};

/// A place in the wait queue elsewhere, or a watch.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    pub(crate) pending: Box<dyn Pending>,
    /// `None` for a watch.
    pub(crate) want: Option<Want>,
    /// The terms of a claim.
    claim: Option<ClaimTerms>,
    /// Whether a transaction waits.
    pub(crate) is_inside: bool,
    /// The template, as it was sent.
    template: Vec<u8>,
}

impl Elsewhere {
    /// A watch.
    pub(crate) fn watch(pending: Box<dyn Pending>) -> Self {
        Self { pending, want: None, claim: None, is_inside: false, template: Vec::new() }
    }

    /// A place in the wait queue for a match.
    pub(crate) fn for_tuple(pending: Box<dyn Pending>, want: Want, template: Vec<u8>) -> Self {
        Self { pending, want: Some(want), claim: None, is_inside: false, template }
    }

    /// A place in the wait queue to claim a match.
    pub(crate) fn for_claim(
        pending: Box<dyn Pending>,
        terms: &ClaimTerms,
        template: Vec<u8>,
    ) -> Self {
        let (want, claim) = (Some(Want::Take), Some(*terms));
        Self { pending, want, claim, is_inside: false, template }
    }

    /// A place in the wait queue for a match that a transaction takes.
    pub(crate) fn for_inside(pending: Box<dyn Pending>) -> Self {
        let want = Some(Want::Take);
        Self { pending, want, claim: None, is_inside: true, template: Vec::new() }
    }

    /// Whether a tuple that is handed over is claimed on these terms.
    pub(crate) fn is_claim(&self, terms: &ClaimTerms) -> bool {
        self.claim.as_ref() == Some(terms)
    }

    /// The place, and the template that it is for.
    pub(crate) fn into_parts(self) -> (Box<dyn Pending>, Vec<u8>) {
        (self.pending, self.template)
    }

    /// The template; the place is given up.
    pub(crate) fn into_template(self) -> Vec<u8> {
        self.template
    }

    /// What `visitor` makes of the tuple that it was handed, if it was.
    pub(crate) fn pick_up<R, E: From<Error>>(
        self,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R, Self>, E> {
        let (mut visitor, mut result) = (Some(visitor), None);
        let mut visit = |tuple: TupleView<'_>| {
            let Some(visitor) = visitor.take() else { return ControlFlow::Break(()) };
            let made = visitor(tuple);
            let is_refused = made.is_err();
            result = Some(made);
            if is_refused { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let Self { pending, want, claim, is_inside, template } = self;
        let picked_up = pending.pick_up(&mut visit).map_err(Error::from)?;
        match (picked_up, result) {
            (PickedUp::Waits(pending), _) => {
                Ok(Outcome::Waits(Self { pending, want, claim, is_inside, template }))
            }
            (_, Some(result)) => result.map(Outcome::Done),
            (_, None) => Err(Error::from(Fault::protocol("an answer without a tuple")).into()),
        }
    }
}
