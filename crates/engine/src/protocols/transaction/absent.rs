//! What a transaction has put because nothing matched (`put_if_absent`, rule O8). Others may put a match before it commits. So the
//! commit looks again, in its own step, and the transaction comes to nothing if there is one.

use smallvec::SmallVec;
use tupelo_shm::Section;
use tupelo_tuple::{Template, TemplateRef};

use crate::base::error::Error;
use crate::index::find::Purpose;
use crate::operations::bulk;
use crate::operations::filtered::Among;
use crate::operations::targets::{self, Target};
use crate::operations::wait::filtered::owned;
use crate::protocols::transaction::part::Part;
use crate::store::partition;

/// Templates that one part of a transaction may have: each is looked for at the commit.
const ABSENT_MAX: usize = 64;

impl Part {
    /// Whether the space has a match of `unless`, or a held one, that the transaction has not taken itself.
    pub(super) fn is_present(&self, unless: &[TemplateRef<'_>]) -> Result<bool, Error> {
        let engine = &*self.engine;
        let among = (Purpose::Read, Among::Held);
        let present = bulk::at_one_moment_among(engine, unless, among, |section, targets| {
            Ok(targets.iter().any(|target| self.has_match(section, target)))
        });
        Ok(present?.unwrap_or(false))
    }

    fn has_match(&self, section: &Section<'_>, target: &Target<'_>) -> bool {
        let engine = &*self.engine;
        let scope = partition::scope_of(target.shape);
        let is_own =
            |one: u32| self.held().any(|place| (place.scope, place.reference) == (scope, one));
        !target.first_matches(section.view(), engine.seed, 1).is_empty()
            || targets::held(engine, section, target).into_iter().any(|one| !is_own(one))
    }

    /// Notes that nothing may match `unless` at the commit.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] for more than [`ABSENT_MAX`] alternatives in all.
    pub(super) fn require_absent(&mut self, unless: &[TemplateRef<'_>]) -> Result<(), Error> {
        let known = self.absent.as_ref().map_or(0, |absent| absent.alternatives().len());
        if known + unless.len() > ABSENT_MAX {
            let what = "templates of put_if_absent in one transaction";
            return Err(Error::LimitExceeded { what, limit: ABSENT_MAX });
        }
        let new = owned(unless)?;
        self.absent = self.absent.take().into_iter().chain(new).reduce(Template::or);
        Ok(())
    }

    /// Adds to `shapes` those that matches of what has to be absent may have, as they are known now.
    pub(super) fn add_shapes_of_absent(&self, shapes: &mut SmallVec<[u32; 2]>) {
        self.with_absent(|absent| {
            let targets = targets::targets(&self.engine, absent, Purpose::Read);
            shapes.extend(targets.all.iter().map(|target| target.shape));
        });
        shapes.sort_unstable();
        shapes.dedup();
    }

    /// Whether nothing matches that has to be absent. For the step of the commit, when what the transaction has taken is gone, and
    /// what it puts is not there yet.
    pub(super) fn is_absent(&self, section: &Section<'_>) -> bool {
        let is_absent = self.with_absent(|absent| {
            let targets = targets::targets(&self.engine, absent, Purpose::Read);
            // A shape that is not locked was added since: its tuples come after this step.
            let locked = |target: &&Target<'_>| section.holds(partition::scope_of(target.shape));
            !targets.all.iter().filter(locked).any(|target| self.has_match(section, target))
        });
        is_absent.unwrap_or(true)
    }

    fn with_absent<R>(&self, look: impl FnOnce(&[TemplateRef<'_>]) -> R) -> Option<R> {
        let absent = self.absent.as_ref()?;
        // It was encoded before: as the template of the call.
        absent.with_refs(look).ok()
    }
}
