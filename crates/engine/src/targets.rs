//! The shapes that an operation over all matches concerns, and locking them together (rules O5, O6).

use std::ops::Deref;

use tupelo_shm::{Section, View};
use tupelo_tuple::{PatternRef, TemplateRef, image};

use crate::Engine;
use crate::claim::list::{self, List};
use crate::error::Error;
use crate::find::{Found, Order, Purpose, Search, chosen, extreme};
use crate::layout::head;
use crate::put::Incoming;
use crate::record::{self, ImageBuffer};
use crate::registry::{self, Kinds};
use crate::stripe::{self, HELD, Stripe};
use crate::timers;
use crate::waiters::{self, Want, cells};
use tupelo_shm::{ENGINE_WORDS, ENGINE_WORDS_COUNT};

/// A shape, and the alternatives of a template that can match its tuples.
pub(crate) struct Target<'t> {
    pub(crate) shape: u32,
    pub(crate) kinds: Kinds,
    pub(crate) purpose: Purpose,
    /// Their patterns, field by field.
    alternatives: Vec<Patterns<'t>>,
}

/// The targets of one template, by shape number: the order in which locks are taken.
pub(crate) struct Targets<'t> {
    pub(crate) all: Vec<Target<'t>>,
    /// How many shapes there were: a new one since then may be a target too.
    shapes: u32,
}

impl Target<'_> {
    /// The matches in the stripe, oldest first, each once.
    pub(crate) fn matches(&self, view: &View<'_>, seed: u64) -> Vec<u32> {
        self.first_matches(view, seed, usize::MAX)
    }

    /// The oldest of them, `at_most` so many: no more are looked at than that takes.
    pub(crate) fn first_matches(&self, view: &View<'_>, seed: u64, at_most: usize) -> Vec<u32> {
        let stripe = Stripe::of_shape(view, self.shape);
        let of = |patterns: &[PatternRef<'_>]| -> Vec<u32> {
            Search::new(patterns, &self.kinds, seed, self.purpose)
                .matches(view, stripe)
                .take(at_most)
                .collect()
        };
        if let [one] = &self.alternatives[..] {
            return of(one);
        }
        let mut all: Vec<u32> =
            self.alternatives.iter().flat_map(|alternative| of(alternative)).collect();
        all.sort_unstable_by_key(|reference| {
            (record::header(view, *reference).load64(record::SEQUENCE), *reference)
        });
        all.dedup();
        all.truncate(at_most);
        all
    }

    /// The search for the only alternative; `None` if there are several.
    pub(crate) fn search(&self, seed: u64) -> Option<Search<'_>> {
        let [one] = &self.alternatives[..] else { return None };
        Some(Search::new(one, &self.kinds, seed, self.purpose))
    }

    /// As [`Target::pick`], with where it stands in an index, and whether to learn.
    pub(crate) fn find<'m>(
        &self,
        view: &View<'m>,
        order: Order,
        random: u64,
        seed: u64,
    ) -> Found<'m> {
        match self.search(seed) {
            Some(search) => search.pick(view, Stripe::of_shape(view, self.shape), order, random),
            None => Found::at(view, self.pick(view, order, random, seed), false),
        }
    }

    /// The match that `order` asks for among those of all alternatives, or 0.
    pub(crate) fn pick(&self, view: &View<'_>, order: Order, random: u64, seed: u64) -> u32 {
        if let Some(search) = self.search(seed) {
            return search
                .pick(view, Stripe::of_shape(view, self.shape), order, random)
                .reference();
        }
        let all = self.matches(view, seed);
        match order {
            Order::Fifo | Order::Any => all.first().copied().unwrap_or(0),
            Order::Lifo => all.last().copied().unwrap_or(0),
            Order::Random => {
                chosen(all.len(), random).and_then(|index| all.get(index).copied()).unwrap_or(0)
            }
            Order::Max(field) => extreme(view, self.kinds.as_slice(), all, field, true),
            Order::Min(field) => extreme(view, self.kinds.as_slice(), all, field, false),
        }
    }

    pub(crate) fn accepts(&self, view: &View<'_>, reference: u32, seed: u64) -> bool {
        self.alternatives.iter().any(|alternative| {
            Search::new(alternative, &self.kinds, seed, self.purpose)
                .accepts(view, record::at(view, reference))
        })
    }
}

/// The patterns of a template, field by field. (Not a `Cow`, which is invariant in what it borrows.)
enum Patterns<'t> {
    Given(&'t [PatternRef<'t>]),
    /// Those of a template of entries, put into the order of the fields.
    Resolved(Vec<PatternRef<'t>>),
}

impl<'t> Patterns<'t> {
    /// The patterns of a template that fits `kinds`.
    fn of(template: &TemplateRef<'t>, kinds: &Kinds) -> Option<Self> {
        match kinds.class() {
            None => Some(Self::Given(template.patterns)),
            Some(class) => template.resolved(class).map(Self::Resolved),
        }
    }
}

impl<'t> Deref for Patterns<'t> {
    type Target = [PatternRef<'t>];

    fn deref(&self) -> &[PatternRef<'t>] {
        match self {
            Self::Given(patterns) => patterns,
            Self::Resolved(patterns) => patterns,
        }
    }
}

/// A copy of a tuple: what bulk operations carry from the critical section to the sink.
pub(crate) struct TupleCopy {
    kinds: Kinds,
    image: Vec<u8>,
    wide: bool,
}

impl TupleCopy {
    pub(crate) fn new(view: &View<'_>, reference: u32, kinds: Kinds) -> Self {
        let mut buffer = ImageBuffer::new();
        let image = buffer.copy(view, reference, kinds.as_slice()).image().to_vec();
        let (_, wide) = record::shape_of(record::header(view, reference));
        Self { kinds, image, wide }
    }

    /// A copy of a tuple that is in no space.
    pub(crate) fn of(incoming: &Incoming<'_>) -> Self {
        let size = image::size(incoming.fields, 0);
        let mut image = ImageBytes(vec![0; size.bytes]);
        image::write(incoming.fields, 0, size.wide, &mut image);
        Self { kinds: incoming.kinds, image: image.0, wide: size.wide }
    }

    pub(crate) fn view(&self) -> tupelo_tuple::TupleView<'_> {
        tupelo_tuple::TupleView::new(self.kinds.as_slice(), &self.image, self.wide)
            .of_class(self.kinds.class())
    }
}

/// An image outside of the segment.
struct ImageBytes(Vec<u8>);

impl image::Write for ImageBytes {
    fn word(&mut self, index: usize, word: u64) {
        self.bytes(8 * index, &word.to_le_bytes());
    }

    fn bytes(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

impl Engine {
    /// The shapes that `template` can match.
    pub(crate) fn targets<'t>(
        &self,
        template: &'t [TemplateRef<'t>],
        purpose: Purpose,
    ) -> Targets<'t> {
        let view = self.memory.view();
        let shapes = registry::count(&view);
        let mut pairs = self.fitting(template);
        pairs.sort_by_key(|(_, shape)| *shape);
        let mut all: Vec<Target<'t>> = Vec::new();
        for (alternative, shape) in pairs {
            if let Some(last) = all.last_mut().filter(|last| last.shape == shape) {
                last.alternatives.extend(Patterns::of(alternative, &last.kinds));
            } else if let Some(kinds) = self.kinds_of(&view, shape) {
                let alternatives = Patterns::of(alternative, &kinds).into_iter().collect();
                all.push(Target { shape, kinds, purpose, alternatives });
            }
        }
        Targets { all, shapes }
    }

    /// Locks the stripes of `shapes`, ascending, at a moment at which everything due there has happened; `None`
    /// if there are none.
    pub(crate) fn lock_all(
        &self,
        shapes: impl IntoIterator<Item = u32>,
    ) -> Result<Option<Section<'_>>, Error> {
        let shapes: Vec<u32> = shapes.into_iter().collect();
        let Some((first, others)) = shapes.split_first() else { return Ok(None) };
        loop {
            let mut section = Section::enter(&self.memory, stripe::scope_of(*first))?;
            for shape in others {
                section.enter_also(stripe::scope_of(*shape))?;
            }
            let is_behind =
                |shape: &&u32| timers::is_behind(Stripe::of_shape(section.view(), **shape));
            let Some(late) = shapes.iter().find(is_behind) else { return Ok(Some(section)) };
            let scope = stripe::scope_of(*late);
            drop(section);
            self.catch_up(scope)?;
        }
    }

    /// As [`Engine::lock_all`], of at least one shape, in any order and perhaps several times.
    pub(crate) fn lock_shapes(
        &self,
        shapes: impl IntoIterator<Item = u32>,
    ) -> Result<Section<'_>, Error> {
        let mut shapes: Vec<u32> = shapes.into_iter().collect();
        shapes.sort_unstable();
        shapes.dedup();
        match self.lock_all(shapes)? {
            Some(section) => Ok(section),
            None => unreachable!("at least one shape is to be locked"),
        }
    }

    /// Locks the stripes of all targets, then the wide waiters.
    pub(crate) fn lock_with_wide(&self, targets: &Targets<'_>) -> Result<Section<'_>, Error> {
        let section = self.lock_all(targets.all.iter().map(|target| target.shape))?;
        let Some(mut section) = section else {
            return Ok(Section::enter(&self.memory, head::WIDE_SCOPE)?);
        };
        section.enter_also(head::WIDE_SCOPE)?;
        Ok(section)
    }

    /// Whether shapes were added since `targets` were listed.
    pub(crate) fn outdated(&self, targets: &Targets<'_>) -> bool {
        registry::count(&self.memory.view()) != targets.shapes
    }

    /// Whether a match of `target` is held by somebody: handed to a waiter that has not picked it up, or in
    /// the hands of a take. The section holds the stripe.
    pub(crate) fn holds_match(&self, section: &Section<'_>, target: &Target<'_>) -> bool {
        let view = section.view();
        if Stripe::of_shape(view, target.shape).page().load(HELD) == 0 {
            return false;
        }
        let is_match = |reference: u32| {
            reference != 0
                && record::shape_of(record::header(view, reference)).0 == target.shape
                && target.accepts(view, reference, self.seed)
        };
        let handed = (1..=cells::used(view)).any(|number| {
            let cell = waiters::cell(view, number);
            cell.load(waiters::WANT) == Want::Take.number() && is_match(cell.load(waiters::RECORD))
        });
        let stripe = Stripe::of_shape(view, target.shape);
        let mut hidden = [List::Claimed, List::Enlisted]
            .into_iter()
            .flat_map(|list| list::records(view, stripe, list));
        handed
            || hidden.any(|(reference, _)| target.accepts(view, reference, self.seed))
            || self.memory.slots().into_iter().any(|slot| {
                (0..ENGINE_WORDS_COUNT).any(|word| {
                    let reference = slot.load(ENGINE_WORDS + 4 * word);
                    reference != 0
                        && record::header(view, reference).load(record::STATE) == record::TAKEN
                        && is_match(reference)
                })
            })
    }
}
