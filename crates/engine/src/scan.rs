//! `scan`: every match, lazily, in bounded memory (rule O6).

use std::collections::VecDeque;
use std::sync::Arc;

use tupelo_shm::View;
use tupelo_tuple::{Class, EncodeError, Template, TemplateRef, TupleView};

use crate::Engine;
use crate::blocks;
use crate::error::Error;
use crate::layout::Layout;
use crate::record::{self, NEXT};
use crate::registry::{self, Kinds};
use crate::stripe::{self, FIRST, Stripe};
use crate::targets::TupleCopy;

/// A walk through the space that holds no lock between its steps. A tuple that is present throughout is
/// returned exactly once; one that comes or goes meanwhile may be returned or not, but never twice.
pub struct Scan {
    engine: Arc<Engine>,
    template: Template,
    /// The shape that is being walked.
    shape: u32,
    /// Where the walk is: the last record that was looked at, and its sequence number.
    last: Option<(u32, u64)>,
    /// Matches of the last step that were not returned yet: the sink failed before it came to them.
    left: VecDeque<TupleCopy>,
    /// What it is restricted to, if nobody has asked for the tuples.
    comparison: Option<Comparison>,
}

/// What is looked at by who only compares.
#[derive(Clone, Copy)]
struct Comparison {
    /// The class itself, and none that is derived of it; `None` for what is no entry.
    class: Option<&'static Class>,
    /// The largest image that is copied.
    image_bytes_max: usize,
}

/// Records that are looked at while the lock is held: about 20 us.
const STEP_RECORDS: usize = 256;

impl Engine {
    /// Begins a scan.
    pub fn scan(self: &Arc<Self>, template: Template) -> Scan {
        let (engine, left) = (Arc::clone(self), VecDeque::new());
        Scan { engine, template, shape: 0, last: None, left, comparison: None }
    }
}

impl Scan {
    /// For who has not asked for any one of the tuples, and only compares with them: passes over those of another class, those
    /// whose image has more bytes, and shapes in the middle of which somebody was stopped.
    #[must_use]
    pub fn for_comparison(mut self, class: Option<&'static Class>, image_bytes_max: usize) -> Self {
        self.comparison = Some(Comparison { class, image_bytes_max });
        self
    }

    /// The next matches, up to `at_most`; none at the end.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `sink` says of the first match; the scan then goes on behind it. If it fails on a
    /// later one, that is the first of the next batch, and shown to the sink again.
    pub fn next_batch<R, E: From<Error>>(
        &mut self,
        at_most: usize,
        mut sink: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let at_most = at_most.max(1);
        while self.left.is_empty() {
            let Some(copies) = self.step(at_most)? else { return Ok(Vec::new()) };
            self.left = copies.into();
        }
        let mut results = Vec::new();
        while results.len() < at_most
            && let Some(copy) = self.left.pop_front()
        {
            match sink(copy.view()) {
                Ok(result) => results.push(result),
                Err(error) if results.is_empty() => return Err(error),
                Err(_) => {
                    self.left.push_front(copy);
                    break;
                }
            }
        }
        Ok(results)
    }

    /// One lock hold; `None` behind the last shape.
    fn step(&mut self, at_most: usize) -> Result<Option<Vec<TupleCopy>>, Error> {
        let engine = Arc::clone(&self.engine);
        let template = self.template.clone();
        let step = template.with_refs(|refs| self.step_with(&engine, refs, at_most));
        step.map_err(|error: EncodeError| Error::Template(error.to_string().into()))?
    }

    fn step_with(
        &mut self,
        engine: &Engine,
        template: &[TemplateRef<'_>],
        at_most: usize,
    ) -> Result<Option<Vec<TupleCopy>>, Error> {
        let Some(kinds) = self.next_shape(engine, template) else {
            return engine.require_sound().map(|()| None);
        };
        let scope = stripe::scope_of(self.shape);
        if self.comparison.is_some() && !engine.is_passable(scope)? {
            (self.shape, self.last) = (self.shape + 1, None);
            return Ok(Some(Vec::new()));
        }
        let mut section = engine.enter(scope)?;
        let stripe = Stripe::of_shape(section.view(), self.shape);
        if self.comparison.is_none() && self.last.is_none() && stripe.hides_some() {
            drop(section);
            engine.recall()?;
            section = engine.enter(scope)?;
        }
        let mut at = self.resume(section.view(), stripe);
        let fits = |tuple: &TupleView<'_>| {
            template.iter().any(|one| one.without_condition().matches(tuple))
        };
        let image_bytes_max = self.comparison.map_or(usize::MAX, |of| of.image_bytes_max);
        let mut copies = Vec::new();
        for _ in 0..STEP_RECORDS {
            if at == 0 || copies.len() == at_most {
                break;
            }
            let header = record::header(section.view(), at);
            let sequence = header.load64(record::SEQUENCE);
            if self.last.is_some_and(|(_, last)| sequence <= last) {
                // The list leads back into itself: nobody would see the end of it.
                section.view().violate();
                break;
            }
            self.last = Some((at, sequence));
            let is_copied = record::image_bytes(header) <= image_bytes_max;
            let copy = is_copied.then(|| TupleCopy::new(section.view(), at, kinds));
            copies.extend(copy.filter(|copy| fits(&copy.view())));
            at = header.load(NEXT);
        }
        section.commit()?;
        drop(section);
        if template.iter().any(|one| one.condition.is_some()) {
            copies.retain(|copy| engine.verdict(template, &copy.view()));
        }
        if at == 0 {
            (self.shape, self.last) = (self.shape + 1, None);
        }
        Ok(Some(copies))
    }

    /// Moves on to the next shape that can match, and returns its kinds.
    fn next_shape(&mut self, engine: &Engine, template: &[TemplateRef<'_>]) -> Option<Kinds> {
        let view = engine.memory.view();
        while self.shape < registry::count(&view) {
            let kinds = engine.kinds_of(&view, self.shape)?;
            let is_meant = self.comparison.is_none_or(|of| of.class == kinds.class());
            if is_meant && template.iter().any(|one| kinds.fit(one)) {
                return Some(kinds);
            }
            (self.shape, self.last) = (self.shape + 1, None);
        }
        None
    }

    /// The first record behind the last one that was looked at.
    fn resume(&self, view: &View<'_>, stripe: Stripe<'_>) -> u32 {
        let first = stripe.page().load(FIRST);
        let Some((reference, sequence)) = self.last else { return first };
        let sequence_of = |reference| record::header(view, reference).load64(record::SEQUENCE);
        if is_listed(view, &self.engine.layout, stripe, (reference, sequence)) {
            return record::header(view, reference).load(NEXT);
        }
        // It was taken: find the place again by its number.
        let mut at = first;
        for _ in 0..=stripe.steps_max(view) {
            if at == 0 || sequence_of(at) > sequence {
                return at;
            }
            at = record::header(view, at).load(NEXT);
        }
        view.violate();
        0
    }
}

/// Whether the record that was at this place, with this number, is still there in the lists.
pub(crate) fn is_listed(
    view: &View<'_>,
    layout: &Layout,
    stripe: Stripe<'_>,
    (reference, sequence): (u32, u64),
) -> bool {
    if !blocks::begins_at(view, layout, stripe, reference) {
        return false;
    }
    let block = blocks::start(view, reference);
    block.load(record::STATE) == record::LIVE && block.load64(record::SEQUENCE) == sequence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use tupelo_tuple::Field;

    #[test]
    fn who_only_compares_does_not_wait_for_who_is_stopped_among_what_nobody_asked_for() {
        let engine = Arc::new(testing::engine(8 << 20));
        engine.put(&[Field::Str("log")]).unwrap();
        let compared = testing::beside_one_inside(&engine, || {
            let mut scan = engine.scan(":str".parse().unwrap()).for_comparison(None, 1_000);
            scan.next_batch(1, |_| Ok::<_, Error>(()))
        });
        assert_eq!(compared.unwrap(), []);
    }
}
