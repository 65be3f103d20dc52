//! Who holds what a template matches: for who is told that nothing was there.

use std::time::Duration;

use tupelo_shm::View;
use tupelo_tuple::TemplateRef;

use crate::base::clock;
use crate::base::error::Error;
use crate::index::find::Purpose;
use crate::operations::filtered::Among;
use crate::operations::{bulk, targets};
use crate::protocols::claim;
use crate::store::Store;
use crate::store::extension::{self, HOLD_END_MS};
use crate::store::record::{self, STATE};

/// What holds a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// A claim (rule K1).
    Claim,
    /// An open transaction that has taken it (rule X2).
    Transaction,
    /// A call that takes or gives it just now.
    Call,
}

/// A tuple in somebody's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// What holds it.
    pub by: HeldBy,
    /// Whose that is; 0 if the process is not known any more, or has it for a moment only.
    pub pid: u32,
    /// How long it is held at most, if nobody extends that.
    pub expires_in: Option<Duration>,
}

/// As [`crate::Engine::holdings`] says.
pub(crate) fn holdings(store: &Store, template: &[TemplateRef<'_>]) -> Result<Vec<Holding>, Error> {
    let among = (Purpose::Read, Among::Held);
    let holdings = bulk::at_one_moment_among(store, template, among, |section, targets| {
        let view = section.view();
        let held = targets.iter().flat_map(|target| {
            let held = targets::held(store, section, target).into_iter();
            held.filter(|reference| target.admits(view, *reference))
        });
        Ok(held.map(|reference| holding(store, view, reference)).collect())
    });
    Ok(holdings?.unwrap_or_default())
}

fn holding(store: &Store, view: &View<'_>, reference: u32) -> Holding {
    let header = record::header(view, reference);
    let by = match header.load(STATE) {
        record::CLAIMED => HeldBy::Claim,
        record::ENLISTED => HeldBy::Transaction,
        _ => return Holding { by: HeldBy::Call, pid: 0, expires_in: None },
    };
    let end_ms = extension::of(view, header).map(|extension| extension.load64(HOLD_END_MS));
    Holding { by, pid: claim::holder_pid(store, header), expires_in: end_ms.map(clock::time_until) }
}
