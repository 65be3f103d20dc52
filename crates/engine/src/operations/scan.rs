//! `scan`: every match, lazily, in bounded memory (rule O6).

use std::collections::VecDeque;
use std::sync::Arc;

use tupelo_shm::View;
use tupelo_tuple::{Class, EncodeError, Template, TemplateRef, TupleView};

use crate::Engine;
use crate::base::error::Error;
use crate::base::layout::Layout;
use crate::operations::filtered::{self, has_condition};
use crate::operations::targets::TupleCopy;
use crate::operations::versioned_reference::{self, LargeCopy, Seen};
use crate::recovery::{enter, sweep};
use crate::store::partition::{self, FIRST, Partition};
use crate::store::record::{self, ImageBuffer, NEXT};
use crate::store::registry::{self, Kinds};
use crate::store::{self, Store, blocks};
use crate::time::bounded_lock;

/// A walk through the space that holds no lock between its steps. A tuple that is present throughout is
/// returned exactly once; one that comes or goes meanwhile may be returned or not, but never twice.
pub struct Scan {
    engine: Arc<Engine>,
    template: Template,
    /// The shape that is being walked.
    shape: u32,
    /// Where the walk is: the last record that was looked at, and its sequence number.
    last: Option<(u32, u64)>,
    /// What the last step found and was not returned yet. Large tuples among it are copied when it is their turn.
    left: VecDeque<Seen>,
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
pub(crate) const STEP_RECORDS: usize = 256;

/// As [`crate::Engine::scan`] says.
pub(crate) fn scan(engine: &Arc<Engine>, template: Template) -> Scan {
    let (engine, left) = (Arc::clone(engine), VecDeque::new());
    Scan { engine, template, shape: 0, last: None, left, comparison: None }
}

impl Scan {
    /// For a caller that has not asked for any of the tuples, and only compares with them. The scan skips tuples of
    /// another class, tuples whose image has more bytes, and shapes inside which a thread was stopped.
    #[must_use]
    pub fn for_comparison(mut self, class: Option<&'static Class>, image_bytes_max: usize) -> Self {
        self.comparison = Some(Comparison { class, image_bytes_max });
        self
    }

    /// The next matches, up to `at_most`; none at the end.
    ///
    /// # Errors
    ///
    /// What the memory says, and what `visitor` says of the first match; the scan then goes on behind it. If it fails on a
    /// later one, that is the first of the next batch, and shown to the visitor again.
    pub fn next_batch<R, E: From<Error>>(
        &mut self,
        at_most: usize,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let at_most = at_most.max(1);
        let mut results = Vec::new();
        while results.len() < at_most {
            if self.left.is_empty() {
                // What the last step found is a batch, however little.
                if !results.is_empty() || !self.step(at_most)? {
                    break;
                }
                continue;
            }
            match self.visit_next(results.is_empty(), &mut visitor) {
                Ok(result) => results.extend(result),
                Err(error) if results.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(results)
    }

    /// Gives the next one to `visitor`; `None` if it has gone since it was seen, or is no match. What fails on the way stays
    /// the next one; so does what the visitor fails on, unless it is the first of its batch.
    fn visit_next<R, E: From<Error>>(
        &mut self,
        is_first: bool,
        visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Option<R>, E> {
        let copy = match self.left.pop_front() {
            None => return Ok(None),
            Some(Seen::Copied(copy)) => copy,
            Some(Seen::Large(versioned_reference)) => {
                let copied = versioned_reference::copy_of_versioned_reference(
                    &self.engine,
                    &versioned_reference,
                );
                let copied = copied
                    .inspect_err(|_| self.left.push_front(Seen::Large(versioned_reference)))?;
                match copied {
                    Some(copy) if self.is_match(&copy)? => copy,
                    _ => return Ok(None),
                }
            }
        };
        let visited = visitor(copy.view());
        if visited.is_err() && !is_first {
            self.left.push_front(Seen::Copied(copy));
        }
        visited.map(Some)
    }

    /// Whether a tuple of a shape that fits is a match.
    fn is_match(&self, copy: &TupleCopy) -> Result<bool, Error> {
        let is_match = |refs: &[TemplateRef<'_>]| {
            fits(refs, copy)
                && (!has_condition(refs)
                    || filtered::filter_result(&self.engine, refs, &copy.view()))
        };
        self.template.with_refs(is_match).map_err(no_template)
    }

    /// One lock hold, and what it found in `left`; false behind the last shape.
    fn step(&mut self, at_most: usize) -> Result<bool, Error> {
        let engine = Arc::clone(&self.engine);
        let template = self.template.clone();
        let step = template.with_refs(|refs| self.step_with(&engine, refs, at_most));
        step.map_err(no_template)?
    }

    fn step_with(
        &mut self,
        store: &Store,
        template: &[TemplateRef<'_>],
        at_most: usize,
    ) -> Result<bool, Error> {
        let Some(kinds) = self.next_shape(store, template) else {
            return store::require_sound(store).map(|()| false);
        };
        let scope = partition::scope_of(self.shape);
        if self.comparison.is_some() && !bounded_lock::is_passable(store, scope)? {
            (self.shape, self.last) = (self.shape + 1, None);
            return Ok(true);
        }
        let mut section = enter::enter(store, scope)?;
        let partition = Partition::of_shape(section.view(), self.shape);
        if self.comparison.is_none() && self.last.is_none() && partition.hides_some() {
            drop(section);
            sweep::recall(store)?;
            section = enter::enter(store, scope)?;
        }
        let (mut seen, is_over) = self.walk(section.view(), template, &kinds, at_most);
        section.commit()?;
        drop(section);
        if has_condition(template) {
            seen.retain(|seen| match seen {
                Seen::Copied(copy) => filtered::filter_result(store, template, &copy.view()),
                Seen::Large(_) => true,
            });
        }
        self.left = seen;
        if is_over {
            (self.shape, self.last) = (self.shape + 1, None);
        }
        Ok(true)
    }

    /// Looks at the next records of the shape, under its lock, until `at_most` fit. Returns also whether these were the last.
    fn walk(
        &mut self,
        view: &View<'_>,
        template: &[TemplateRef<'_>],
        kinds: &Kinds,
        at_most: usize,
    ) -> (VecDeque<Seen>, bool) {
        let (image_bytes_max, large) = match self.comparison {
            // None of those is very large, and who only compares does not wait for the lock a second time.
            Some(of) => (of.image_bytes_max, LargeCopy::AtOnce),
            None => (usize::MAX, LargeCopy::Afterwards(ImageBuffer::SHORT_BYTES)),
        };
        let partition = Partition::of_shape(view, self.shape);
        let mut at = resume(view, &self.engine.layout, partition, self.last);
        let mut seen = VecDeque::new();
        for _ in 0..STEP_RECORDS {
            if at == 0 || seen.len() == at_most {
                break;
            }
            let header = record::header(view, at);
            let sequence = header.load64(record::SEQUENCE);
            if self.last.is_some_and(|(_, last)| sequence <= last) {
                // The list leads back into itself: nobody would see the end of it.
                view.violate();
                break;
            }
            self.last = Some((at, sequence));
            if record::image_bytes(header) <= image_bytes_max {
                match large.of(view, (self.shape, at), kinds) {
                    Seen::Copied(copy) if !fits(template, &copy) => {}
                    one => seen.push_back(one),
                }
            }
            at = header.load(NEXT);
        }
        (seen, at == 0)
    }

    /// Moves on to the next shape that can match, and returns its kinds.
    fn next_shape(&mut self, store: &Store, template: &[TemplateRef<'_>]) -> Option<Kinds> {
        let view = store.memory.view();
        while self.shape < registry::count(&view) {
            let kinds = registry::kinds_of(store, &view, self.shape)?;
            let is_meant = self.comparison.is_none_or(|of| of.class == kinds.class());
            if is_meant && template.iter().any(|one| kinds.fit(one)) {
                return Some(kinds);
            }
            (self.shape, self.last) = (self.shape + 1, None);
        }
        None
    }
}

/// The first record of a partition behind the last one that was looked at: of that, its reference and sequence number.
pub(crate) fn resume(
    view: &View<'_>,
    layout: &Layout,
    partition: Partition<'_>,
    last: Option<(u32, u64)>,
) -> u32 {
    let first = partition.page().load(FIRST);
    let Some((reference, sequence)) = last else { return first };
    let sequence_of = |reference| record::header(view, reference).load64(record::SEQUENCE);
    if is_listed(view, layout, partition, (reference, sequence)) {
        return record::header(view, reference).load(NEXT);
    }
    // It was taken: find the place again by its number.
    let mut at = first;
    for _ in 0..=partition.steps_max(view) {
        if at == 0 || sequence_of(at) > sequence {
            return at;
        }
        at = record::header(view, at).load(NEXT);
    }
    view.violate();
    0
}

/// Whether the fields of a tuple are those of a match.
fn fits(template: &[TemplateRef<'_>], copy: &TupleCopy) -> bool {
    template.iter().any(|one| one.without_condition().matches(&copy.view()))
}

fn no_template(error: EncodeError) -> Error {
    Error::Template(error.to_string().into())
}

/// Whether the record that was at this place, with this number, is still there in the lists.
pub(crate) fn is_listed(
    view: &View<'_>,
    layout: &Layout,
    partition: Partition<'_>,
    (reference, sequence): (u32, u64),
) -> bool {
    if !blocks::begins_at(view, layout, partition, reference) {
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
