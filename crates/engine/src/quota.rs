//! The limit of tuples, in a space that has one (rule B1).
//!
//! Each stripe counts its tuples under its own lock. Who puts where they are limited locks the *quota*, before any stripe,
//! counts the tuples of all shapes, and then locks what it needs.
//!
//! The limit is never exceeded. While the quota is locked, no shape has more tuples than were counted: only a put makes
//! them more, and what is undone leads back to what was counted, since a stripe is counted while nobody is inside. So a
//! section counts once, however many it puts.
//!
//! Nobody counts for ever. Who counts may wait for whoever is inside of a stripe, with the quota locked: that one waits for
//! nothing but locks that come after the stripe's, and the quota's comes before. What was counted stays good, so each stripe
//! is waited for once. (Rejected: to give the quota up for the wait, and to begin anew. A put of many never ends then, if
//! others pause for less time than it takes.)

use tupelo_shm::{Section, View};

use crate::Engine;
use crate::engine;
use crate::error::{Error, Need};
use crate::layout::head;
use crate::registry;
use crate::stripe::{self, Stripe};
use crate::timers;

/// How many more tuples there may be, as long as the quota is locked; `None`: as many as fit.
pub(crate) type Places = Option<u64>;

impl Engine {
    /// Begins the section of a put: locks `scope`, and before that, where tuples are limited, the quota. `scope` is the lowest
    /// of the other locks that the section needs.
    #[inline(always)]
    pub(crate) fn begin_put(&self, scope: u32) -> Result<(Section<'_>, Places), Error> {
        if self.tuples_max == 0 {
            return Ok((Section::enter(&self.memory, scope)?, None));
        }
        self.begin_limited_put(scope)
    }

    /// As [`Engine::begin_put`], at a moment at which everything that was due in the stripe of `scope` has happened.
    #[inline(always)]
    pub(crate) fn enter_to_put(&self, scope: u32) -> Result<(Section<'_>, Places), Error> {
        if self.tuples_max == 0 {
            return Ok((self.enter(scope)?, None));
        }
        let (section, places) = self.begin_limited_put(scope)?;
        if timers::is_behind(Stripe::of_scope(section.view(), scope)) {
            return Err(Need::Time.into());
        }
        Ok((section, places))
    }

    #[cold]
    #[inline(never)]
    fn begin_limited_put(&self, scope: u32) -> Result<(Section<'_>, Places), Error> {
        let mut section = Section::enter(&self.memory, head::QUOTA_SCOPE)?;
        let tuples = self.count_tuples(section.view())?;
        section.enter_also(scope)?;
        Ok((section, Some(self.tuples_max.saturating_sub(tuples))))
    }

    /// Counts the tuples of the space for a section that has the quota alone, and has changed nothing.
    fn count_tuples(&self, view: &View<'_>) -> Result<u64, Error> {
        let mut tuples = 0;
        for shape in 0..registry::count(view) {
            tuples += match engine::tuples_settled_of(view, shape) {
                Some(settled) => settled,
                None => self.count_inside(shape)?,
            };
        }
        Ok(tuples)
    }

    /// Counts the tuples of a shape under the lock of its stripe: what a dead process has left there is undone first.
    #[cold]
    fn count_inside(&self, shape: u32) -> Result<u64, Error> {
        let section = Section::enter(&self.memory, stripe::scope_of(shape))?;
        Ok(engine::tuples_of(section.view(), shape))
    }

    /// Refuses `more` tuples than go in the same section, if there are fewer `places`. Asked before any of them is stored.
    #[inline]
    pub(crate) fn require_places(&self, places: Places, more: usize) -> Result<(), Error> {
        match places {
            Some(places) if places < more as u64 => Err(self.refuse_for_number(places)),
            _ => Ok(()),
        }
    }

    #[cold]
    fn refuse_for_number(&self, places: u64) -> Error {
        if self.anything_is_due() {
            return Need::Time.into();
        }
        self.full_of(self.tuples_max.saturating_sub(places))
    }
}
