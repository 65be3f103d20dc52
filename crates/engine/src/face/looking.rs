//! What the space may hold, what is in it, and who has it.

use tupelo_tuple::{Class, Shape, TemplateRef};

use crate::Engine;
use crate::base::error::Error;
use crate::inspect::blocked::{self, Blocked};
#[cfg(any(test, feature = "full-check"))]
use crate::inspect::check::{self, Report};
use crate::inspect::holdings::{self, Holding};
use crate::inspect::names::{self, ShapeNames};
use crate::inspect::stat::{self, Stat};
use crate::recovery::full::{self, Limits, WhenFull};
use crate::recovery::sweep;
use crate::store::classes;

impl Engine {
    /// The callers that wait to take or to read a tuple. Each did so at some moment of the call. Who looks itself, as
    /// its template has a condition, is none of them.
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn blocked(&self) -> Result<Vec<Blocked>, Error> {
        blocked::blocked(self)
    }

    /// Checks the whole space while nobody else can change it. Takes about a microsecond per tuple and index. For tests: only
    /// with the feature `full-check`.
    ///
    /// # Errors
    ///
    /// [`tupelo_shm::Error::Corrupted`], naming the first contradiction that was found; what the locks say.
    #[cfg(any(test, feature = "full-check"))]
    pub fn check(&self) -> Result<Report, Error> {
        check::check(self)
    }

    /// The matches of `template` that somebody holds and may give back, at one moment (rule O9).
    ///
    /// # Errors
    ///
    /// What the memory says.
    pub fn holdings(&self, template: &[TemplateRef<'_>]) -> Result<Vec<Holding>, Error> {
        holdings::holdings(self, template)
    }

    /// What is in the space. Who died in it is cleaned up after first, as far as there is room for what comes back.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] if the space is damaged.
    pub fn stat(&self) -> Result<Stat, Error> {
        stat::stat(self)
    }

    /// The shapes that have tuples, with how many: what a template that matched nothing is compared with. Waits for no
    /// lock: whoever was stopped in the middle of a shape that the template has nothing to do with is not in the way.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] if the space is damaged.
    pub fn shapes_present(&self) -> Result<Vec<(Shape, u64)>, Error> {
        stat::shapes_present(self)
    }

    /// The tuples of each shape by their name, the first field where that is a text. At most about `tuples_max` tuples of
    /// a shape are looked at. Each figure is right at some moment of the call, or nearly: others come and go meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] if the space is damaged.
    pub fn names(&self, tuples_max: u64) -> Result<Vec<ShapeNames>, Error> {
        names::names(self, tuples_max)
    }

    /// As [`Engine::names`], of all shapes: those whose tuples have no name are told without any.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] if the space is damaged.
    pub fn names_of_all(&self, tuples_max: u64) -> Result<Vec<ShapeNames>, Error> {
        names::of_all(self, tuples_max)
    }

    /// How many tuples there are that nobody finds now: they are held, dead, or not visible yet. Waits for no lock.
    ///
    /// # Errors
    ///
    /// As [`Engine::shapes_present`].
    pub fn count_unseen(&self) -> Result<u64, Error> {
        stat::count_unseen(self)
    }

    /// What the space may hold, as it was created. The size is the one that it was rounded up to.
    pub fn limits(&self) -> Limits {
        full::limits(self)
    }

    /// What becomes of a put for which there is no room: as the space was created.
    pub fn when_full(&self) -> WhenFull {
        full::when_full(self)
    }

    /// Cleans up after every process and thread that is dead by now, and gives memory back to the system that was free
    /// at the last sweep, too. Does nothing if another thread is at it already.
    ///
    /// # Errors
    ///
    /// What the memory says; what was done stays done.
    pub fn sweep(&self) -> Result<(), Error> {
        sweep::sweep(self)
    }

    /// The classes in the space that have this name, each once.
    pub fn classes_named(&self, name: &str) -> Vec<&'static Class> {
        classes::classes_named(self, name)
    }
}
