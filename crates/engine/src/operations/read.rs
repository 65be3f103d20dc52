//! `try_read` and `read_or_wait`: copying a match without storing anything in shared memory (rules O1, O3, O4).
//!
//! A reader notes the stripe's sequence, finds and copies, and checks that the sequence is the same and
//! even: then nobody was inside meanwhile and all it saw belongs together. What it sees in a race may be
//! garbage; views bound every access, walks are bounded by the number of records, and the copy is used
//! only after the check. After a few failed attempts it takes the lock.

use std::sync::Arc;

use tupelo_tuple::{TemplateRef, TupleView};

use crate::base::error::Error;
use crate::base::sink::sink_once;
use crate::index::find::{Order, Purpose, Search};
use crate::operations::judged::{Verdicts, has_condition};
use crate::operations::sighting::TRIED_BYTES_MAX;
use crate::operations::targets::Target;
use crate::operations::wait::Outcome;
use crate::store::record::{self, ImageBuffer};
use crate::store::registry::Kinds;
use crate::store::stripe::{self, HELD, Stripe};
use crate::waiters::Want;
use crate::{Engine, time};

/// Attempts without the lock. A section is about as long as an attempt: whoever fails more often than this
/// is among constant writers, and waits less in the queue for the lock.
const ATTEMPTS: u32 = 4;

/// What a lookup that finds nothing says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Miss {
    /// That there is nothing, also nothing that a dead process holds (rule L5).
    Final,
    /// Only that its caller should get in line.
    Preliminary,
}

impl Engine {
    /// Copies a match and gives it to `sink`; `None` if nothing matches. Does not wait.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `sink` says.
    #[inline(always)]
    pub fn try_read<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let mut kinds = Kinds::new();
        if let [one] = template
            && let Some(key) = kinds.select(one, self.seed)
        {
            let Some(shape) = self.find_shape(&kinds) else {
                return Ok(self.require_sound().map(|()| None)?);
            };
            let search = Search::by_key(one.patterns, &kinds, key, self.seed, Purpose::Read);
            return self.read_from(shape, &search, (order, Miss::Final), sink);
        }
        TemplateRef::apart(template, move |template| self.read_wide(template, order, sink))
    }

    /// Copies a match and gives it to `sink`, as [`Engine::try_read`]; if nothing matches, gets in line for one.
    ///
    /// What a dead process holds is not looked for: it comes to whoever is in line (rule L5).
    ///
    /// # Errors
    ///
    /// As [`Engine::try_read`] and [`Engine::waiter`].
    #[inline]
    pub fn read_or_wait<R, E: From<Error>>(
        self: &Arc<Self>,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        let mut kinds = Kinds::new();
        let read = if let [one] = template
            && let Some(key) = kinds.select(one, self.seed)
        {
            match self.find_shape(&kinds) {
                Some(shape) => {
                    let search =
                        Search::by_key(one.patterns, &kinds, key, self.seed, Purpose::Read);
                    self.read_from(shape, &search, (order, Miss::Preliminary), sink)?
                }
                None => None,
            }
        } else {
            let read =
                move |template: &[TemplateRef<'_>]| self.read_wide_or_wait(template, order, sink);
            return TemplateRef::apart(template, read);
        };
        match read {
            Some(result) => Ok(Outcome::Done(result)),
            None => TemplateRef::apart(template, move |template| {
                Ok(Outcome::Waits(self.waiter(template, Want::Read)?))
            }),
        }
    }

    /// As [`Engine::read_or_wait`], whatever the template.
    #[cold]
    fn read_wide_or_wait<R, E: From<Error>>(
        self: &Arc<Self>,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Outcome<R>, E> {
        if has_condition(template) {
            return self.read_judged_or_wait(template, order, sink);
        }
        match self.read_wide(template, order, sink)? {
            Some(result) => Ok(Outcome::Done(result)),
            None => Ok(Outcome::Waits(self.waiter(template, Want::Read)?)),
        }
    }

    #[inline(always)]
    fn read_from<R, E: From<Error>>(
        &self,
        shape: u32,
        search: &Search<'_>,
        (order, miss): (Order, Miss),
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let view = self.memory.view();
        let stripe = Stripe::of_shape(&view, shape);
        let random = self.random_for(order);
        let mut buffer = ImageBuffer::new();
        for _ in 0..ATTEMPTS {
            let Some(sequence) = view.begin_read(stripe.scope()) else {
                std::hint::spin_loop();
                continue;
            };
            let found = search.pick(&view, stripe, order, random);
            if time::is_behind(stripe) {
                // What was found may have ended, and what was not may be there.
                self.catch_up(stripe.scope())?;
                continue;
            }
            let Some(hit) = found.hit else {
                if view.unchanged(stripe.scope(), sequence) && !view.violated() {
                    if miss == Miss::Final && stripe.page().load(HELD) != 0 {
                        self.recall()?;
                        break;
                    }
                    self.learn_if(found.learn, stripe.scope(), search.key.mask)?;
                    return Ok(None);
                }
                view.forgive();
                continue;
            };
            let bytes = record::image_bytes(hit.record.header);
            if bytes > ImageBuffer::SHORT_BYTES {
                // Whether that is its size is known before anything is allocated for it.
                if !view.unchanged(stripe.scope(), sequence) || view.violated() {
                    view.forgive();
                    continue;
                }
                if bytes > TRIED_BYTES_MAX {
                    break;
                }
            }
            let tuple = buffer.copy_sized(&view, hit.record, bytes, search.kinds);
            if view.unchanged(stripe.scope(), sequence) && !view.violated() {
                let result = sink(tuple)?;
                self.learn_if(found.learn, stripe.scope(), search.key.mask)?;
                return Ok(Some(result));
            }
            view.forgive();
        }
        search.apart(move |search| self.read_locked(shape, search, (order, miss), sink))
    }

    /// Reads under the lock: after lost races, and what is too large to be copied optimistically.
    #[cold]
    #[inline(never)]
    fn read_locked<R, E: From<Error>>(
        &self,
        shape: u32,
        search: &Search<'_>,
        (order, miss): (Order, Miss),
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let Some(kinds) = self.kinds_of(&self.memory.view(), shape) else {
            return Err(self.damaged("a shape that was found does not exist").into());
        };
        let scope = stripe::scope_of(shape);
        let copy = self.copy_match(|large| {
            let mut section = self.enter(scope)?;
            let stripe = Stripe::of_shape(section.view(), shape);
            let random = self.random_for(order);
            let mut found = search.pick(section.view(), stripe, order, random);
            if found.hit.is_none() && miss == Miss::Final && stripe.hides_some() {
                // Known only now, perhaps: locking has undone what a process left here that died inside.
                drop(section);
                self.recall()?;
                section = self.enter(scope)?;
                found = search.pick(section.view(), stripe, order, random);
            }
            let place = found.hit.map(|hit| (shape, hit.record.reference));
            let seen = place.map(|place| large.of(section.view(), place, &kinds));
            section.commit()?;
            drop(section);
            self.learn_if(found.learn, scope, search.key.mask)?;
            Ok(seen)
        })?;
        copy.map(|copy| sink(copy.view())).transpose()
    }

    /// Reads from the first shape that has a match; a miss is confirmed as in `take_wide`.
    #[cold]
    fn read_wide<R, E: From<Error>>(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        if has_condition(template) {
            return self.read_judged(template, order, &mut Verdicts::default(), sink);
        }
        let mut pour = sink_once(sink);
        if matches!(order, Order::Max(_) | Order::Min(_)) {
            return self.read_extreme(template, order, pour);
        }
        let (mut recalled, mut rounds) = (false, 0);
        loop {
            for target in &self.targets(template, Purpose::Read).all {
                let class = target.kinds.class();
                let read = match target.search(self.seed) {
                    Some(search) => {
                        let with_class = |tuple: TupleView<'_>| pour(tuple.of_class(class));
                        self.read_from(target.shape, &search, (order, Miss::Final), with_class)?
                    }
                    None => self.read_from_union(target, order, &mut pour)?,
                };
                if read.is_some() {
                    return Ok(read);
                }
            }
            if !recalled && self.recall_matches_of(template)? {
                recalled = true;
            } else if !self.matches_now(template, Purpose::Read, &mut rounds)? {
                return Ok(None);
            }
        }
    }

    /// Reads from a shape that several alternatives of a template can match.
    fn read_from_union<R, E: From<Error>>(
        &self,
        target: &Target<'_>,
        order: Order,
        sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let copy = self.copy_match(|large| {
            let mut section = self.enter(stripe::scope_of(target.shape))?;
            let reference = target.pick(section.view(), order, self.random(), self.seed);
            let place = (target.shape, reference);
            let seen = (reference != 0).then(|| large.of(section.view(), place, &target.kinds));
            section.commit()?;
            Ok(seen)
        })?;
        copy.map(|copy| sink(copy.view())).transpose()
    }

    /// Every pair of an alternative and a shape that it can match, each shape in the order of its birth.
    pub(crate) fn fitting<'t>(
        &self,
        template: &'t [TemplateRef<'t>],
    ) -> Vec<(&'t TemplateRef<'t>, u32)> {
        let view = self.memory.view();
        let pairs = template.iter().flat_map(|alternative| {
            self.fitting_shapes(&view, alternative)
                .into_iter()
                .map(move |shape| (alternative, shape))
        });
        pairs.collect()
    }
}
