//! Templates that span shapes, in wait nodes: the kinds that each field may have, and the image of the actuals.
//!
//! Nearly all templates of multi-shape waiters are like `("job", ...)`. A put that one of them may match looks at each.
//! In its encoding, which has to be decoded, a look costs ten puts. Here it is as for a template of one shape: where it
//! lies, by words. Not stored like this: names of an entry's fields, predicates, conditions, more than eight patterns,
//! and actuals that are not compared by words. Nor is the template for everything, so an entry matches none of these.
//!
//! | bytes | template |
//! |---:|---|
//! | 0 | for each of eight patterns the set of its kinds, 16 bits each |
//! | 16 | the image of the actuals; the fields in between are null |

use tupelo_shm::{CopyBuffer, View};
use tupelo_tuple::{Field, Form, Kind, KindSet, PatternRef, Template, TemplateRef, TupleView};

use super::{Candidate, FORM_BITS, matches_in_place, write_actuals};
use crate::store::key;
use crate::store::record::ImageBuffer;
use crate::store::registry::Kinds;
use crate::waiters::{FORM, TEMPLATE, TEMPLATE_BYTES, TEMPLATE_INLINE, WaitNode};

/// Number of the form.
pub(super) const SETS: u32 = 4;

/// Most patterns of such a template.
pub(super) const PATTERNS_MAX: usize = 8;
/// Bits of the set of a pattern's kinds; and how many sets are in a double word.
const SET_BITS: usize = 16;
const SETS_OF_DOUBLE: usize = 64 / SET_BITS;
/// Bytes of all sets, behind which the image begins.
const SETS_BYTES: usize = PATTERNS_MAX * SET_BITS / 8;

/// In the word of the form, above it: which patterns are actuals, how many there are, and whether further fields may follow.
const MASK: u32 = (1 << PATTERNS_MAX) - 1;
const COUNT_SHIFT: u32 = 16;
const COUNT: u32 = 0xf;
const REST: u32 = 1 << 20;
const _: () = assert!(MASK << FORM_BITS < 1 << COUNT_SHIFT && COUNT << COUNT_SHIFT < REST);
const _: () = assert!(PATTERNS_MAX <= COUNT as usize);

/// The kinds whose actuals are compared by words.
const IN_WORDS: KindSet = KindSet::of(Kind::Null)
    .or(KindSet::of(Kind::Bool))
    .or(KindSet::of(Kind::Int))
    .or(KindSet::of(Kind::Str))
    .or(KindSet::of(Kind::Bytes));

/// Stores `template` in this form, if it can be and there is room.
pub(crate) fn store(view: &View<'_>, node: WaitNode<'_>, template: &TemplateRef<'_>) -> bool {
    let patterns = template.patterns;
    let rest = match template.form {
        Form::Exact => 0,
        Form::Rest => REST,
        Form::Entry(_) => return false,
    };
    let has_form = (1..=PATTERNS_MAX).contains(&patterns.len())
        && template.condition.is_none()
        && patterns.iter().all(is_simple);
    if !has_form {
        return false;
    }
    let (at, room) = (view.offset_of(node) + TEMPLATE + SETS_BYTES, TEMPLATE_INLINE - SETS_BYTES);
    let Some(size) = write_actuals(view, at, room, patterns) else { return false };
    let mut sets = [0; PATTERNS_MAX / SETS_OF_DOUBLE];
    for (index, pattern) in patterns.iter().enumerate() {
        let set = u64::from(pattern.kinds().bits());
        sets[index / SETS_OF_DOUBLE] |= set << (index % SETS_OF_DOUBLE * SET_BITS);
    }
    for (index, double) in sets.into_iter().enumerate() {
        node.init64(TEMPLATE + 8 * index, double);
    }
    node.init(TEMPLATE_BYTES, u32::try_from(SETS_BYTES + size.bytes).unwrap_or(0));
    let count = u32::try_from(patterns.len()).unwrap_or(0);
    node.init(FORM, SETS | key::mask_of(patterns) << FORM_BITS | count << COUNT_SHIFT | rest);
    true
}

fn is_simple(pattern: &PatternRef<'_>) -> bool {
    match pattern {
        // One of an integer beyond 64 bits is none.
        PatternRef::Actual(Field::Encoded(_)) | PatternRef::Test(_) => false,
        PatternRef::Actual(field) => IN_WORDS.contains(field.kind()),
        PatternRef::Kinds(_) => true,
    }
}

/// Whether the record matches the template of `node`.
#[inline]
pub(super) fn matches(view: &View<'_>, node: WaitNode<'_>, record: Candidate<'_>) -> bool {
    let Some(stored) = Stored::of(view, node) else { return false };
    if record.class.is_some() || !stored.fits(record.kinds) {
        return false;
    }
    let matches = matches_in_place(view, stored.image(), stored.mask, record);
    matches.unwrap_or_else(|| stored.matches_copy(view, record))
}

/// Whether the template of `node` could match a record of `kinds`.
pub(super) fn may_match(view: &View<'_>, node: WaitNode<'_>, kinds: &Kinds) -> bool {
    // What is damaged may be for anything.
    let fits = |stored: Stored<'_>| kinds.class().is_none() && stored.fits(kinds.as_slice());
    Stored::of(view, node).is_none_or(fits)
}

/// The template of `node`; `None` if it is damaged.
pub(super) fn template(view: &View<'_>, node: WaitNode<'_>) -> Option<Template> {
    Stored::of(view, node)?.with_ref(view, |template| template.to_template().ok())?
}

/// A template where it lies, and what the word of its form says.
#[derive(Clone, Copy)]
struct Stored<'m> {
    node: WaitNode<'m>,
    start: usize,
    mask: u32,
    count: usize,
    is_rest: bool,
}

impl<'m> Stored<'m> {
    /// That of `node`; `None`, and a violation, if no such template is like this.
    fn of(view: &View<'_>, node: WaitNode<'m>) -> Option<Self> {
        let word = node.load(FORM);
        let (mask, count) = (word >> FORM_BITS & MASK, word >> COUNT_SHIFT & COUNT);
        let count = count as usize;
        if !(1..=PATTERNS_MAX).contains(&count) || mask >> count != 0 {
            view.violate();
            return None;
        }
        let start = view.offset_of(node) + TEMPLATE;
        Some(Self { node, start, mask, count, is_rest: word & REST != 0 })
    }

    /// Where the image of the actuals is.
    fn image(self) -> usize {
        self.start + SETS_BYTES
    }

    /// The kinds of pattern `index`.
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are those of one set")]
    fn set(self, index: usize) -> KindSet {
        let double = self.node.load64(TEMPLATE + 8 * (index / SETS_OF_DOUBLE));
        KindSet::from_bits((double >> (index % SETS_OF_DOUBLE * SET_BITS)) as u16)
    }

    /// Whether plain tuples of these kinds can match.
    fn fits(self, kinds: &[Kind]) -> bool {
        let is_long_enough =
            if self.is_rest { kinds.len() >= self.count } else { kinds.len() == self.count };
        let mut pairs = kinds.iter().take(self.count).enumerate();
        is_long_enough && pairs.all(|(index, kind)| self.set(index).contains(*kind))
    }

    /// As [`matches()`], for a record with an integer beyond its word.
    #[cold]
    fn matches_copy(self, view: &View<'_>, record: Candidate<'_>) -> bool {
        let mut copy = ImageBuffer::new();
        let tuple = copy.copy(view, record.reference, record.kinds);
        self.with_ref(view, |template| template.matches(&tuple)).unwrap_or(false)
    }

    /// Gives `use_ref` the template in its borrowed form. `None`, and a violation, if it is damaged.
    fn with_ref<R>(
        self,
        view: &View<'_>,
        use_ref: impl FnOnce(&TemplateRef<'_>) -> R,
    ) -> Option<R> {
        let mut buffer = CopyBuffer::new();
        let bytes = (self.node.load(TEMPLATE_BYTES) as usize).min(TEMPLATE_INLINE);
        let image = buffer.copy(view, self.image(), bytes.saturating_sub(SETS_BYTES));
        let kinds: [Kind; PATTERNS_MAX] =
            std::array::from_fn(|index| self.set(index).single().unwrap_or(Kind::Null));
        let actuals = TupleView::new(&kinds[..self.count], image, false);
        let pattern = |index: usize| {
            let set = self.set(index);
            if self.mask >> index & 1 == 0 {
                return Some(PatternRef::Kinds(set));
            }
            let kind = set.single().filter(|kind| IN_WORDS.contains(*kind));
            kind.and_then(|_| actuals.field(index)).map(PatternRef::Actual)
        };
        let patterns: Option<Vec<_>> = (0..self.count).map(pattern).collect();
        let Some(patterns) = patterns else {
            view.violate();
            return None;
        };
        let form = if self.is_rest { Form::Rest } else { Form::Exact };
        Some(use_ref(&TemplateRef { patterns: &patterns, form, condition: None }))
    }
}
