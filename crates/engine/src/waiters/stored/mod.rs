//! Templates in wait nodes: what a put, perhaps of another process, compares its tuple with.
//!
//! A template whose fields are all actuals and formals of one kind is stored as the image of its actuals. A template
//! that spans shapes is stored as sets of kinds beside that image ([`sets`]). Both are compared field by field without
//! decoding. Any other is stored in its encoding.

pub(crate) mod sets;

use tupelo_shm::{CopyBuffer, GRANULE, Span, View};
use tupelo_tuple::{
    Class, Field, Form, Kind, KindSet, PatternRef, Template, TemplateRef, TupleView, image,
};

use self::sets::SETS;
use super::{FORM, TEMPLATE, TEMPLATE_BYTES, TEMPLATE_INLINE, WaitNode};
use crate::store::key;
use crate::store::record::{self, ImageBuffer};
use crate::store::registry::Kinds;

/// The image of the actuals; formals are null.
pub(crate) const ACTUALS: u32 = 0;
/// As `ACTUALS`, and some integer is beyond 64 bits.
const ACTUALS_WIDE: u32 = 1;
/// The encoding, in the wait node.
pub(crate) const ENCODED: u32 = 2;
/// The encoding, in a block of its own: the granule where it begins stands in the wait node.
pub(crate) const ENCODED_APART: u32 = 3;

/// The form is the low byte of its word; above it stands the set of fields that are actuals.
const FORM_BITS: u32 = 8;
/// Fields of a template that is stored as its actuals.
const FIELDS_MAX: usize = 16;

/// Stores `template` as its actuals, if it is of that form and they fit.
pub(crate) fn store_actuals(
    view: &View<'_>,
    node: WaitNode<'_>,
    template: &TemplateRef<'_>,
) -> bool {
    let patterns = template.patterns;
    let simple = |pattern: &PatternRef<'_>| match pattern {
        PatternRef::Actual(_) => true,
        PatternRef::Kinds(kinds) => kinds.single().is_some(),
        PatternRef::Test(_) => false,
    };
    if template.form != Form::Exact || patterns.len() > FIELDS_MAX || !patterns.iter().all(simple) {
        return false;
    }
    let at = view.offset_of(node) + TEMPLATE;
    let Some(size) = write_actuals(view, at, TEMPLATE_INLINE, patterns) else { return false };
    node.init(TEMPLATE_BYTES, u32::try_from(size.bytes).unwrap_or(0));
    let form = if size.wide { ACTUALS_WIDE } else { ACTUALS };
    node.init(FORM, form | key::mask_of(patterns) << FORM_BITS);
    true
}

/// Writes the image of the actuals among `patterns`, at most `FIELDS_MAX`, at `offset`; all others are null. `None`, and
/// nothing is written, if it has no room.
fn write_actuals(
    view: &View<'_>,
    offset: usize,
    room_bytes: usize,
    patterns: &[PatternRef<'_>],
) -> Option<image::Size> {
    let mut fields = [Field::Null; FIELDS_MAX];
    for (field, pattern) in fields.iter_mut().zip(patterns) {
        *field = pattern.actual().copied().unwrap_or(Field::Null);
    }
    let fields = fields.get(..patterns.len())?;
    let size = image::size(fields, 0);
    if size.bytes > room_bytes {
        return None;
    }
    record::write_fields(view, offset, fields, size);
    Some(size)
}

/// The granule where a long template begins, and its size in bytes.
pub(crate) fn apart(node: WaitNode<'_>) -> Option<(u32, usize)> {
    (node.load(FORM) == ENCODED_APART)
        .then(|| (node.load(TEMPLATE), node.load(TEMPLATE_BYTES) as usize))
}

/// A record that is compared with templates: its fields have `kinds`.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'k> {
    pub(crate) reference: u32,
    pub(crate) kinds: &'k [Kind],
    /// Its class, if it is an entry.
    pub(crate) class: Option<&'static Class>,
}

/// Whether the record matches the template of `node`.
pub(crate) fn matches(view: &View<'_>, node: WaitNode<'_>, record: Candidate<'_>) -> bool {
    let Candidate { reference, kinds, class } = record;
    let bytes = node.load(TEMPLATE_BYTES) as usize;
    match node.load(FORM) & ((1 << FORM_BITS) - 1) {
        // A template of plain tuples.
        ACTUALS | ACTUALS_WIDE if class.is_some() => false,
        form @ (ACTUALS | ACTUALS_WIDE) => {
            let (start, mask) = (view.offset_of(node) + TEMPLATE, node.load(FORM) >> FORM_BITS);
            if form == ACTUALS
                && let Some(matches) = matches_in_place(view, start, mask, record)
            {
                return matches;
            }
            let mut buffer = CopyBuffer::new();
            let image = buffer.copy(view, start, bytes.min(TEMPLATE_INLINE));
            let actuals = TupleView::new(kinds, image, form == ACTUALS_WIDE);
            record::matches_actuals(view, reference, &actuals, mask)
        }
        SETS => sets::matches(view, node, record),
        ENCODED => matches_encoded(view, view.offset_of(node) + TEMPLATE, bytes, record),
        ENCODED_APART => {
            let start = node.load(TEMPLATE) as usize * GRANULE;
            matches_encoded(view, start, bytes, record)
        }
        _ => {
            view.violate();
            false
        }
    }
}

/// Whether the fields in `mask` are those of the image at `template`, by the words of both where they lie: nearly all
/// templates fix nothing but integers and text. `None` if that does not tell.
#[inline]
fn matches_in_place(
    view: &View<'_>,
    template: usize,
    mask: u32,
    Candidate { reference, kinds, .. }: Candidate<'_>,
) -> Option<bool> {
    if record::shape_of(record::header(view, reference)).1 {
        // Some integer is beyond its word.
        return None;
    }
    let tuple = reference as usize * GRANULE + record::IMAGE;
    for index in record::bits(mask) {
        let (field, actual) = (word(view, tuple, index), word(view, template, index));
        let is_same = match kinds.get(index)? {
            Kind::Null => true,
            Kind::Bool | Kind::Int => field == actual,
            Kind::Str | Kind::Bytes => are_same_bytes(view, (tuple, field), (template, actual)),
            _ => return None,
        };
        if !is_same {
            return Some(false);
        }
    }
    Some(true)
}

/// Whether two images have the same text or bytes where the words of two fields say: in words, the last one padded with zeros.
#[expect(clippy::cast_possible_truncation, reason = "the low half of the word is the offset")]
fn are_same_bytes(
    view: &View<'_>,
    (tuple, field): (usize, u64),
    (template, actual): (usize, u64),
) -> bool {
    let bytes = (actual >> 32) as usize;
    // None is longer, unless it is damaged.
    if field >> 32 != actual >> 32 || bytes > TEMPLATE_INLINE {
        return false;
    }
    let (first, other) = (field as u32 as usize / 8, actual as u32 as usize / 8);
    (0..bytes.div_ceil(8))
        .all(|index| word(view, tuple, first + index) == word(view, template, other + index))
}

/// Double word number `index` of the image at `start`.
fn word(view: &View<'_>, start: usize, index: usize) -> u64 {
    let word: Span<'_, 8> = view.span(start + 8 * index);
    word.load64(0)
}

/// The template of `node`, whose lock the caller holds. `kinds` are those of the shape that it selects, if it selects one.
pub(crate) fn template(
    view: &View<'_>,
    node: WaitNode<'_>,
    kinds: Option<&Kinds>,
) -> Option<Template> {
    let (bytes, inside) = (node.load(TEMPLATE_BYTES) as usize, view.offset_of(node) + TEMPLATE);
    let mut buffer = CopyBuffer::new();
    let form = node.load(FORM) & ((1 << FORM_BITS) - 1);
    let start = match form {
        ENCODED => inside,
        ENCODED_APART => node.load(TEMPLATE) as usize * GRANULE,
        SETS => return sets::template(view, node),
        _ => {
            let (kinds, mask) = (kinds?.as_slice(), node.load(FORM) >> FORM_BITS);
            let image = buffer.copy(view, inside, bytes.min(TEMPLATE_INLINE));
            let actuals = TupleView::new(kinds, image, form == ACTUALS_WIDE);
            let pattern = |(index, kind): (usize, &Kind)| {
                let is_actual = index < FIELDS_MAX && mask >> index & 1 == 1;
                let actual = is_actual.then(|| actuals.field(index).map(PatternRef::Actual));
                actual.unwrap_or(Some(PatternRef::Kinds(KindSet::of(*kind))))
            };
            let patterns: Option<Vec<_>> = kinds.iter().enumerate().map(pattern).collect();
            return TemplateRef::new(&patterns?).to_template().ok();
        }
    };
    Template::decode(buffer.copy(view, start, bytes)).ok()
}

/// Whether the template of `node` could match a record of `kinds`.
pub(crate) fn may_match(view: &View<'_>, node: WaitNode<'_>, kinds: &Kinds) -> bool {
    let bytes = node.load(TEMPLATE_BYTES) as usize;
    let start = match node.load(FORM) & ((1 << FORM_BITS) - 1) {
        ENCODED => view.offset_of(node) + TEMPLATE,
        ENCODED_APART => node.load(TEMPLATE) as usize * GRANULE,
        SETS => return sets::may_match(view, node, kinds),
        // One of a single shape, which this one may be.
        _ => return true,
    };
    let mut buffer = CopyBuffer::new();
    let Ok(template) = Template::decode(buffer.copy(view, start, bytes)) else {
        view.violate();
        return true;
    };
    let fits = |refs: &[TemplateRef<'_>]| refs.iter().any(|one| kinds.fit(one));
    template.with_refs(fits).unwrap_or(true)
}

#[cold]
fn matches_encoded(view: &View<'_>, start: usize, bytes: usize, record: Candidate<'_>) -> bool {
    let (mut buffer, mut copy) = (CopyBuffer::new(), ImageBuffer::new());
    let tuple = copy.copy(view, record.reference, record.kinds).of_class(record.class);
    // Another process wrote it: what does not decode matches nothing.
    let Ok(template) = Template::decode(buffer.copy(view, start, bytes)) else {
        view.violate();
        return false;
    };
    let fits = |refs: &[TemplateRef<'_>]| refs.iter().any(|one| one.matches(&tuple));
    template.with_refs(fits).unwrap_or(false)
}

#[cfg(test)]
mod tests;
