//! `move_to` and `copy_to`: all matches from one space into another at one moment (rule O7).
//!
//! Both spaces are locked until both have changed, and change by one commit, whoever is killed when
//! ([`commit_together`]). So nobody sees a tuple in both or in neither.

use tupelo_shm::{Section, commit_together};
use tupelo_tuple::{Field, TemplateRef, TupleRef};

use crate::Engine;
use crate::base::error::{Error, Need};
use crate::base::layout::head;
use crate::index::find::Purpose;
use crate::operations::judged::{Among, Judged, Verdicts};
use crate::operations::targets::{Target, Targets, TupleCopy};
use crate::recovery::provide::Gathering;
use crate::recovery::quota::Places;
use crate::recovery::sweep::FirstLook;
use crate::store::registry::Kinds;
use crate::store::step;
use crate::store::stripe::{self, Stripe};
use crate::waiters::deliver::Delivery;

/// Whose resources a transfer found missing.
enum Missing {
    Source(Need),
    Target(Need),
}

impl Engine {
    /// Moves every match into `other`. Returns how many. Into the space itself: nothing changes.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`] of `other` and [`Engine::take_all`] of this space: nothing was moved.
    pub fn move_to(&self, other: &Self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        if self.is_same_space(other) {
            return self.count(template);
        }
        self.transfer(other, template, true)
    }

    /// Copies every match into `other`. Returns how many.
    ///
    /// # Errors
    ///
    /// As [`Engine::put`] of `other`: nothing was copied.
    pub fn copy_to(&self, other: &Self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        if !self.is_same_space(other) {
            return self.transfer(other, template, false);
        }
        self.copy_within(template)
    }

    /// Copies every match into this space.
    fn copy_within(&self, template: &[TemplateRef<'_>]) -> Result<u64, Error> {
        self.keep_time_for_wide()?;
        let lock = |targets: &Targets<'_>| {
            self.lock_all_to_put(targets.all.iter().map(|target| target.shape))
        };
        let which = (Purpose::Read, Among::Listed);
        let copied = self.at_one_moment_by(template, which, lock, |section, targets, places| {
            let (copies, _) = self.collect(section, targets, false)?;
            let shapes = targets.iter().map(|target| target.shape);
            step::count_anew(section, copies.len(), shapes)?;
            Ok((copies.len() as u64, self.store_copies(section, &copies, places)?))
        });
        let Some((count, stored)) = copied? else { return Ok(0) };
        stored.wake(self);
        Ok(count)
    }

    /// Whether `other` is an engine over this very space.
    pub fn is_same_space(&self, other: &Self) -> bool {
        self.segment().identity().uuid == other.segment().identity().uuid
    }

    fn transfer(
        &self,
        other: &Self,
        template: &[TemplateRef<'_>],
        remove: bool,
    ) -> Result<u64, Error> {
        other.keep_time_for_wide()?;
        let transferred = self.transfer_at_last(other, template, remove);
        self.return_log_reserve();
        other.return_log_reserve();
        transferred
    }

    /// Transfers, until nothing is missing.
    fn transfer_at_last(
        &self,
        other: &Self,
        template: &[TemplateRef<'_>],
        remove: bool,
    ) -> Result<u64, Error> {
        self.judging(template, &mut Verdicts::default(), |verdicts| {
            self.transfer_judged(other, (template, verdicts), remove)
        })
    }

    fn transfer_judged(
        &self,
        other: &Self,
        template: (&[TemplateRef<'_>], &Verdicts),
        remove: bool,
    ) -> Result<Judged<u64>, Error> {
        let mut first_look = FirstLook::default();
        loop {
            match self.transfer_once(other, template, (remove, &mut first_look)) {
                Ok(Some(judged)) => return Ok(judged),
                Ok(None) => {}
                Err((Error::Need(_), Some(Missing::Source(need)))) => {
                    self.provide(need, Gathering::Waits)?;
                }
                Err((Error::Need(_), Some(Missing::Target(need)))) => {
                    other.provide(need, Gathering::Waits)?;
                }
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// One attempt; `None` if the shapes changed meanwhile, or what the dead held, or if the target has got new shapes.
    fn transfer_once(
        &self,
        other: &Self,
        (template, verdicts): (&[TemplateRef<'_>], &Verdicts),
        (remove, first_look): (bool, &mut FirstLook),
    ) -> Result<Option<Judged<u64>>, (Error, Option<Missing>)> {
        let purpose = if remove { Purpose::Take } else { Purpose::Read };
        let targets = self.targets_judged(template, purpose, verdicts);
        let known = targets.all.iter().map(|target| other.find_shape(&target.kinds));
        let known: Vec<Option<u32>> = known.collect();
        let mut shapes: Vec<u32> = known.iter().flatten().copied().collect();
        shapes.sort_unstable();
        if targets.all.is_empty() {
            self.require_sound().map_err(|error| (error, None))?;
            return Ok((!self.outdated(&targets)).then_some(Judged::Done(0)));
        }
        let both = self.lock_both(other, &targets, &shapes);
        let (mut both, places) = both.map_err(|error| (error, None))?;
        if self.outdated(&targets) {
            return Ok(None);
        }
        if first_look.needs_recall(both[0].view(), &targets) {
            drop(both);
            self.recall().map_err(|error| (error, None))?;
            return Ok(None);
        }
        let [from, into] = &mut both;
        if let Some(unknown) = verdicts.missing(self, from, &targets.all, Among::Listed) {
            return Ok(Some(Judged::Unknown(unknown)));
        }
        let new = self.new_shapes(from, &targets, &known);
        if !new.is_empty() {
            drop(both);
            for kinds in &new {
                other.shape(kinds).map_err(in_target)?;
            }
            return Ok(None);
        }
        let (copies, removed) = self.collect(from, &targets.all, remove).map_err(in_source)?;
        other.require_may_hold(copies.len()).map_err(in_target)?;
        step::count_anew(into, copies.len(), shapes.iter().copied()).map_err(in_target)?;
        let stored = other.store_copies(into, &copies, places).map_err(in_target)?;
        commit_together(&mut both).map_err(|(index, error)| match index {
            0 => in_source(error.into()),
            _ => in_target(error.into()),
        })?;
        drop(both);
        removed.wake(self);
        stored.wake(other);
        Ok(Some(Judged::Done(copies.len() as u64)))
    }

    /// The shapes of matches that the other space does not know, of which `known` are the numbers there. One that nothing
    /// comes of is not made: it would be there for good.
    fn new_shapes(
        &self,
        from: &Section<'_>,
        targets: &Targets<'_>,
        known: &[Option<u32>],
    ) -> Vec<Kinds> {
        let unknown = targets.all.iter().zip(known).filter(|(_, shape)| shape.is_none());
        unknown
            .filter(|(target, _)| !target.first_matches(from.view(), self.seed, 1).is_empty())
            .map(|(target, _)| target.kinds)
            .collect()
    }

    /// Locks both spaces, always in the same order, whichever way the transfer goes. Returns the places in the other one, too.
    fn lock_both<'a>(
        &'a self,
        other: &'a Self,
        targets: &Targets<'_>,
        shapes: &[u32],
    ) -> Result<([Section<'a>; 2], Places), Error> {
        let own: Vec<u32> = targets.all.iter().map(|target| target.shape).collect();
        if self.segment().identity().uuid < other.segment().identity().uuid {
            let from = self.lock_entirely(&own)?;
            let (into, places) = other.lock_entirely_to_put(shapes)?;
            Ok(([from, into], places))
        } else {
            let (into, places) = other.lock_entirely_to_put(shapes)?;
            Ok(([self.lock_entirely(&own)?, into], places))
        }
    }

    /// Locks the stripes of `shapes`, and whatever a change in them may need. A section
    /// over one space asks for the rest when it needs it; one that has locks of another space by then could
    /// wait for somebody who waits for these.
    pub(crate) fn lock_entirely(&self, shapes: &[u32]) -> Result<Section<'_>, Error> {
        match self.lock_all(shapes.iter().copied())? {
            Some(section) => lock_rest(section),
            None => lock_rest(Section::enter(&self.memory, head::WIDE_SCOPE)?),
        }
    }

    /// As [`Engine::lock_entirely`], for a put: see [`Engine::begin_put`].
    pub(crate) fn lock_entirely_to_put(
        &self,
        shapes: &[u32],
    ) -> Result<(Section<'_>, Places), Error> {
        let (section, places) = match self.lock_all_to_put(shapes.iter().copied())? {
            Some(locked) => locked,
            None => self.begin_put(head::WIDE_SCOPE)?,
        };
        Ok((lock_rest(section)?, places))
    }

    fn collect<'m>(
        &'m self,
        section: &mut Section<'m>,
        targets: &[Target<'_>],
        remove: bool,
    ) -> Result<(Vec<TupleCopy>, Delivery), Error> {
        let (mut copies, mut wakes) = (Vec::new(), Delivery::default());
        let shapes = targets.iter().map(|target| target.shape);
        step::count_anew(section, usize::MAX, shapes.filter(|_| remove))?;
        for target in targets {
            let stripe = Stripe::of_shape(section.view(), target.shape);
            section.focus(stripe.scope());
            for reference in target.matches(section.view(), self.seed) {
                step::begin(section)?;
                copies.push(TupleCopy::new(section.view(), reference, target.kinds));
                if remove {
                    wakes.join(self.remove(section, stripe, reference, target.kinds.as_slice())?);
                }
            }
        }
        Ok((copies, wakes))
    }

    fn store_copies<'m>(
        &'m self,
        section: &mut Section<'m>,
        copies: &[TupleCopy],
        places: Places,
    ) -> Result<Delivery, Error> {
        self.require_places(places, copies.len())?;
        let mut wakes = Delivery::default();
        for copy in copies {
            let fields: Vec<Field<'_>> = copy.view().fields().collect();
            let class = copy.view().class();
            let incoming = self.incoming(TupleRef { fields: &fields, class })?;
            if incoming.kinds.as_slice() != copy.view().kinds() {
                // Its shape is not the one that was locked for it.
                return Err(self.damaged("a tuple has other fields than its shape says"));
            }
            let shape = self.shape(&incoming.kinds)?;
            step::begin(section)?;
            section.focus(stripe::scope_of(shape));
            wakes.join(self.store(section, &incoming, shape)?.0);
        }
        Ok(wakes)
    }
}

/// Locks what comes behind all stripes.
fn lock_rest(mut section: Section<'_>) -> Result<Section<'_>, Error> {
    for scope in [head::WIDE_SCOPE, head::ARENA_SCOPE] {
        if !section.holds(scope) {
            section.enter_also(scope)?;
        }
    }
    Ok(section)
}

fn in_source(error: Error) -> (Error, Option<Missing>) {
    let missing = if let Error::Need(need) = error { Some(Missing::Source(need)) } else { None };
    (error, missing)
}

fn in_target(error: Error) -> (Error, Option<Missing>) {
    let missing = if let Error::Need(need) = error { Some(Missing::Target(need)) } else { None };
    (error, missing)
}
