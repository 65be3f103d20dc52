//! A look at all that a template concerns, at one moment (rules O5, O6). Its shapes are locked together, no shape has
//! come meanwhile, and tuples that the dead held are back (rule L5).

use tupelo_shm::{Section, View};

use crate::base::error::Error;
use crate::operations::targets::{self, Targets};
use crate::recovery::sweep;
use crate::store::partition::Partition;
use crate::store::{self, Store};

/// Locks that are held at one moment.
pub(crate) trait Locked<'m> {
    /// A view of the space that is looked at.
    fn view(&self) -> &View<'m>;
}

impl<'m> Locked<'m> for Section<'m> {
    fn view(&self) -> &View<'m> {
        Section::view(self)
    }
}

impl<'m, P> Locked<'m> for (Section<'m>, P) {
    fn view(&self) -> &View<'m> {
        self.0.view()
    }
}

/// Whether a look at all of one moment has yet to be preceded by [`sweep::recall`]. Asked under the locks: what a
/// process held that died inside of one of them is known only when the next one to lock has undone what it did there.
#[derive(Default)]
struct FirstLook {
    is_over: bool,
}

impl FirstLook {
    /// Whether tuples of `targets` are hidden, at the first look: then its locks are given up, what the dead held is
    /// recalled, and the look begins anew.
    fn needs_recall(&mut self, view: &View<'_>, targets: &Targets<'_>) -> bool {
        let hides = |shape| Partition::of_shape(view, shape).hides_some();
        !std::mem::replace(&mut self.is_over, true)
            && targets.all.iter().any(|target| hides(target.shape))
    }
}

/// How a moment is looked at.
pub(crate) struct Look<T, L> {
    /// Lists the targets, as they are known now.
    pub(crate) targets: T,
    /// Locks them together; `None` if there are none.
    pub(crate) lock: L,
    /// Whether what the dead held is to be back before.
    pub(crate) recalls: bool,
}

/// Locks the targets and gives them to `act`. It does so again if a shape was added meanwhile, if dead threads held
/// some of the targets, and if `act` returns `None`. Returns `None` if there are no targets.
///
/// # Errors
///
/// What `lock` and `act` say, and what the memory says.
pub(crate) fn at_moment<'e, 't, S: Locked<'e>, R, E: From<Error>>(
    store: &Store,
    how: &Look<impl Fn() -> Targets<'t>, impl Fn(&Targets<'t>) -> Result<Option<S>, E>>,
    mut act: impl FnMut(S, &Targets<'t>) -> Result<Option<R>, E>,
) -> Result<Option<R>, E> {
    let mut first_look = FirstLook::default();
    loop {
        let targets = (how.targets)();
        let locked = (how.lock)(&targets)?;
        // A shape that came meanwhile may hold matches that are older than this moment.
        if targets::outdated(store, &targets) {
            continue;
        }
        let Some(locked) = locked else {
            store::require_sound(store)?;
            return Ok(None);
        };
        if how.recalls && first_look.needs_recall(locked.view(), &targets) {
            drop(locked);
            sweep::recall(store)?;
            continue;
        }
        if let Some(result) = act(locked, &targets)? {
            return Ok(Some(result));
        }
    }
}
