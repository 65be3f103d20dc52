//! The shapes of a space: which combinations of arity and kinds have been seen, and where they live.
//!
//! A template in which every field has one kind selects one shape, found by its signature. Any other
//! template selects every shape that fits. Shapes are only ever added: an entry is filled, then published
//! by one store into the directory, so finding needs no lock. A shape of entries has their class, too.
//!
//! The directory is a hash table that is at most half full. A longer one is filled beside it, and then published by one
//! store, too. Whoever looks into the shorter one meanwhile finds all that was there when it began.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use tupelo_shm::{Section, Span, View, headroom};
use tupelo_tuple::few::{self, Ask};
use tupelo_tuple::image::ARITY_MAX;
use tupelo_tuple::{Class, Field, Form, Kind, PatternRef, Shape, TemplateRef, TupleRef, hash};

use crate::base::error::{Error, ManyShapes};
use crate::base::layout::{
    self, DIRECTORY_BITS_MAX, DIRECTORY_BITS_MIN, PAGE, SHAPE_BYTES, SHAPES_COUNT_MAX, SHAPES_KEPT,
    SHAPES_MAX, head,
};
use crate::base::refusable;
use crate::store::key::{Key, Tagger};
use crate::store::partition::{self, Partition};
use crate::store::{Store, classes, registry};

/// The entry of a shape.
type Entry<'m> = Span<'m, SHAPE_BYTES>;
const ARITY: usize = 0;
/// Bytes of the names of the class; 0 of a shape of plain tuples.
const CLASS_BYTES: usize = 4;
const KINDS: usize = 8;
const _: () = assert!(KINDS + ARITY_MAX <= SHAPE_BYTES);

/// The number of shapes, in the registry's line.
const COUNT: usize = 0;
/// The directory is the table with as many entries, as a power of two. 0: the shortest.
const BITS: usize = 4;
/// How the first field of tuples begins that are Tupelo's own.
const OWN: &str = "tupelo.";

/// The kinds of a shape's fields, and the class if it is of entries.
#[derive(Clone, Copy)]
pub(crate) struct Kinds {
    each: [Kind; ARITY_MAX],
    all: Summary,
}

/// How many kinds there are.
const KINDS_COUNT: u64 = Kind::ALL.len() as u64;
const _: () = assert!(2 * KINDS_COUNT.pow(12) < 1 << (64 - ShapeCache::NUMBER_BITS));

/// Marks the packed kinds of entries, so that they are never those of plain tuples.
const OF_CLASS: u64 = 1 << 63;
/// Stands among the kinds that there are for a class whose entries this process may be unable to represent.
const UNCERTAIN: u32 = 1 << 31;

/// What is known of the kinds all together. Apart from them, so that a loop over fields keeps it in registers.
#[derive(Clone, Copy)]
struct Summary {
    len: usize,
    /// See [`Summary::packed()`].
    packed: u64,
    /// Which kinds there are, a bit each.
    set: u32,
    /// The number of the class of entries; 0 of plain tuples. Not a reference, for which there is no room: a put
    /// moves all this about.
    class: u32,
}

impl Summary {
    const NONE: Self = Self { len: 0, packed: 1, set: 0, class: 0 };

    /// Arity and kinds in 48 bits, for up to 12 fields: distinct for distinct shapes. They are the digits of a number
    /// that begins with 1.
    #[inline(always)]
    fn packed(&self) -> Option<u64> {
        (self.len <= 12).then_some(self.packed)
    }

    /// These are kinds of entries of `class`, if there is one.
    #[inline(always)]
    fn set_class(&mut self, class: Option<&'static Class>) {
        if let Some(class) = class {
            self.class = class.number();
            self.packed |= OF_CLASS;
            self.set |= if class.is_constructible() { 0 } else { UNCERTAIN };
        }
    }

    /// Adds the kind of the next field.
    #[inline(always)]
    fn add(&mut self, kind: Kind) {
        self.len += 1;
        self.packed = self.packed.wrapping_mul(KINDS_COUNT).wrapping_add(kind as u64);
        self.set |= 1 << kind as u32;
    }
}

impl Kinds {
    /// No kinds: the shape of the empty tuple.
    #[inline]
    pub(crate) const fn new() -> Self {
        Self { each: [Kind::Null; ARITY_MAX], all: Summary::NONE }
    }

    /// The kinds that every match of `template` has, if they are the same for all matches.
    #[inline]
    pub(crate) fn of_template(template: &TemplateRef<'_>) -> Option<Self> {
        let mut kinds = Self::new();
        kinds.select(&template.without_condition(), 0).map(|_| kinds)
    }

    /// Becomes, from none, the kinds that every match of `template` has, and returns their key. Returns `None` if the
    /// kinds are not the same for all matches, or if the template has a condition, which is not evaluated here. It is
    /// done in place, because a copy of bytes that were just written one at a time would stall.
    #[inline(always)]
    pub(crate) fn select(&mut self, template: &TemplateRef<'_>, seed: u64) -> Option<Key> {
        if template.form != Form::Exact
            || template.patterns.len() > ARITY_MAX
            || template.condition.is_some()
        {
            return None;
        }
        let mut selection =
            Selection { each: &mut self.each, all: Summary::NONE, tagger: Tagger::new(seed) };
        let is_one_shape = few::each(template.patterns, &mut selection);
        let Selection { all, tagger, .. } = selection;
        self.all = all;
        is_one_shape.then(|| tagger.key())
    }

    /// Becomes, from none, the kinds of `fields`, as far as there is room, and shows each to `also`.
    #[inline(always)]
    pub(crate) fn read(&mut self, fields: &[Field<'_>], mut also: impl FnMut(&Field<'_>)) {
        let mut all = Summary::NONE;
        for (field, place) in fields.iter().zip(&mut self.each) {
            *place = field.kind();
            all.add(*place);
            also(field);
        }
        self.all = all;
    }

    /// Adds the kind of the next field, if there is room.
    fn push(&mut self, kind: Kind) {
        if let Some(place) = self.each.get_mut(self.all.len) {
            *place = kind;
            self.all.add(kind);
        }
    }

    /// Whether the visitor may be unable to represent a tuple of these kinds.
    #[inline]
    pub(crate) fn are_refusable(&self) -> bool {
        self.all.set & (u32::from(refusable::refusable()) | UNCERTAIN) != 0
    }

    /// The kinds, one per field.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[Kind] {
        // Never the whole array; but with a panic here the compiler would slice long before it is needed.
        self.each.get(..self.all.len).unwrap_or(&self.each)
    }

    /// Becomes the kinds of entries of `class`, if there is one.
    #[inline(always)]
    pub(crate) fn set_class(&mut self, class: Option<&'static Class>) {
        self.all.set_class(class);
    }

    /// The class, if they are the kinds of entries.
    #[inline]
    pub(crate) fn class(&self) -> Option<&'static Class> {
        if self.all.class == 0 { None } else { Class::with_number(self.all.class) }
    }

    /// The shape, for people and programs.
    pub(crate) fn to_shape(self) -> Shape {
        Shape { kinds: self.as_slice().to_vec(), class: self.class() }
    }

    /// Whether these are the same kinds, of the same class if of any.
    pub(crate) fn are(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice() && self.all.class == other.all.class
    }

    /// Whether tuples of these kinds can match `template`, as far as kinds, arity and class tell (M1, M3, M7).
    pub(crate) fn fit(&self, template: &TemplateRef<'_>) -> bool {
        let fit = |patterns: &[PatternRef<'_>]| {
            let mut pairs = patterns.iter().zip(&self.each);
            pairs.all(|(pattern, kind)| pattern.kinds().contains(*kind))
        };
        match self.class() {
            None => template.accepts_arity(self.all.len) && fit(template.patterns),
            Some(class) => template.resolved(class).is_some_and(|patterns| fit(&patterns)),
        }
    }

    pub(crate) fn signature(&self) -> u64 {
        let step = |hash, kind: &Kind| hash::combine(hash, 1 + *kind as u64);
        let kinds = self.as_slice().iter().fold(self.all.len as u64, step);
        self.class().map_or(kinds, |class| hash::combine(kinds, class.names_hash()))
    }
}

/// The kinds that patterns ask for, and the key of their actuals, while they are looked at one by one.
struct Selection<'k> {
    each: &'k mut [Kind; ARITY_MAX],
    all: Summary,
    tagger: Tagger,
}

impl Ask<PatternRef<'_>> for Selection<'_> {
    /// Whether the pattern asks for one kind.
    #[inline(always)]
    fn ask(&mut self, index: usize, pattern: &PatternRef<'_>) -> bool {
        let kind = match pattern {
            PatternRef::Actual(field) => {
                self.tagger.fix(index, field);
                Some(field.kind())
            }
            PatternRef::Kinds(kinds) => kinds.single(),
            PatternRef::Test(test) => {
                self.tagger.restrict();
                test.kinds().single()
            }
        };
        let (Some(kind), Some(place)) = (kind, self.each.get_mut(index)) else { return false };
        *place = kind;
        self.all.add(kind);
        true
    }
}

/// What this process found in the directory: packed kinds and shape number in one word, so that a reader
/// never sees half an entry.
pub(crate) struct ShapeCache([AtomicU64; Self::ENTRIES]);

impl ShapeCache {
    const ENTRIES: usize = 256;
    const NUMBER_BITS: u32 = 16;

    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(u64::MAX) }; Self::ENTRIES])
    }

    #[inline]
    fn place(&self, packed: u64) -> &AtomicU64 {
        let hash = packed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        &self.0[hash as usize]
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "sixteen bits are meant")]
    fn find(&self, packed: u64) -> Option<u32> {
        // Relaxed: the shape was published before any process could cache it.
        let entry = self.place(packed).load(Ordering::Relaxed);
        (entry >> Self::NUMBER_BITS == packed)
            .then_some(entry as u32 & ((1 << Self::NUMBER_BITS) - 1))
    }

    fn remember(&self, packed: u64, shape: u32) {
        let entry = packed << Self::NUMBER_BITS | u64::from(shape);
        self.place(packed).store(entry, Ordering::Relaxed);
    }
}

const _: () = assert!(SHAPES_MAX <= 1 << ShapeCache::NUMBER_BITS);

fn entry<'m>(view: &View<'m>, shape: u32) -> Entry<'m> {
    view.span(layout::shape(shape))
}

/// The kinds of shape `shape`, without the class, and how many bytes of names that has; `None` if its entry is
/// damaged.
fn kinds_in(view: &View<'_>, shape: u32) -> Option<(Kinds, usize)> {
    if shape as usize >= SHAPES_MAX {
        view.violate();
        return None;
    }
    let entry = entry(view, shape);
    let len = entry.load(ARITY) as usize;
    if len > ARITY_MAX {
        view.violate();
        return None;
    }
    let mut kinds = Kinds::new();
    for index in 0..len {
        let word = entry.load(KINDS + index / 4 * 4);
        kinds.push(Kind::from_number(word.to_le_bytes()[index % 4])?);
    }
    Some((kinds, entry.load(CLASS_BYTES) as usize))
}

/// How many shapes the space has.
pub(crate) fn count(view: &View<'_>) -> u32 {
    let line: Span<'_, 64> = view.span(head::REGISTRY);
    // Acquire pairs with the Release in `publish`: entries below the count are filled.
    line.word(COUNT).load(Ordering::Acquire).min(SHAPES_COUNT_MAX)
}

/// The kinds of shape `shape`, and its class if it has one; `None` if its entry is damaged.
pub(crate) fn kinds_of(store: &Store, view: &View<'_>, shape: u32) -> Option<Kinds> {
    let (mut kinds, class_bytes) = kinds_in(view, shape)?;
    if class_bytes != 0 {
        let class = classes::class(store, view, shape, class_bytes)?;
        if class.arity() != kinds.all.len {
            view.violate();
            return None;
        }
        kinds.set_class(Some(class));
    }
    Some(kinds)
}

/// The class of shape `shape`, if it is of entries.
pub(crate) fn class_of(store: &Store, view: &View<'_>, shape: u32) -> Option<&'static Class> {
    let entry = (shape as usize) < SHAPES_MAX;
    let class_bytes = if entry { self::entry(view, shape).load(CLASS_BYTES) } else { 0 };
    if class_bytes == 0 { None } else { classes::class(store, view, shape, class_bytes as usize) }
}

/// The number of the shape with these kinds, if the space has it.
#[inline]
pub(crate) fn find_shape(store: &Store, kinds: &Kinds) -> Option<u32> {
    if let Some(shape) = kinds.all.packed().and_then(|packed| store.shape_cache.find(packed)) {
        return Some(shape);
    }
    // A copy, so that the caller knows that its kinds stay what they are.
    find_shape_in_directory(store, &{ *kinds })
}

/// The number of the shape of `tuple`, if this process has met it before. Shows each field to `also`. Keeps nothing
/// of the kinds, so that where they are known when the caller is compiled, the shape's place is.
#[inline(always)]
pub(crate) fn shape_known(
    store: &Store,
    tuple: TupleRef<'_>,
    mut also: impl FnMut(&Field<'_>),
) -> Option<u32> {
    let mut all = Summary::NONE;
    for field in tuple.fields {
        all.add(field.kind());
        also(field);
    }
    all.set_class(tuple.class);
    all.packed().and_then(|packed| store.shape_cache.find(packed))
}

#[cold]
fn find_shape_in_directory(store: &Store, kinds: &Kinds) -> Option<u32> {
    let view = store.memory.view();
    if let Some(class) = kinds.class() {
        return classes::shape_met(store, &view, class, kinds);
    }
    let shape = probe(store, &view, kinds).ok()?;
    if let Some(packed) = kinds.all.packed() {
        store.shape_cache.remember(packed, shape);
    }
    Some(shape)
}

/// The number of the shape with these kinds; adds it if it is new. Tuples whose first field is `first` are to be put into
/// it, or waited for, if that is known.
///
/// # Errors
///
/// [`Error::TooManyShapes`] if the space has its maximum of shapes.
#[inline]
pub(crate) fn shape(store: &Store, kinds: &Kinds, first: Option<&Field<'_>>) -> Result<u32, Error> {
    if let Some(shape) = find_shape(store, kinds) {
        return Ok(shape);
    }
    let is_own = matches!(first, Some(Field::Str(text)) if text.starts_with(OWN));
    add_shape(store, kinds, if is_own { SHAPES_MAX } else { SHAPES_MAX - SHAPES_KEPT })
}

/// Adds a shape, if there are fewer than `at_most`.
#[cold]
fn add_shape(store: &Store, kinds: &Kinds, at_most: usize) -> Result<u32, Error> {
    // Before the lock: it reads files.
    headroom::refresh();
    let section = Section::enter(&store.memory, head::REGISTRY_SCOPE)?;
    finish_last(store, section.view());
    lengthen_directory(store, section.view())?;
    let place = match probe(store, section.view(), kinds) {
        Ok(shape) => return Ok(shape),
        Err(place) => place,
    };
    let shape = count(section.view());
    let (Some(place), true) = (place, (shape as usize) < at_most) else {
        drop(section);
        return Err(too_many(store, at_most));
    };
    commit_pages(store, layout::shape(shape), SHAPE_BYTES)?;
    commit_pages(store, layout::partition(shape), layout::PARTITION_BYTES)?;
    let names = kinds.class().map_or(&[][..], Class::encoding);
    if !names.is_empty() {
        commit_pages(store, layout::class(shape), layout::CLASS_PAGE_BYTES)?;
    }
    let view = section.view();
    view.copy_in(layout::class(shape), names);
    let entry = entry(view, shape);
    for (index, chunk) in kinds.as_slice().chunks(4).enumerate() {
        let word = chunk.iter().rev().fold(0, |word, kind| word << 8 | *kind as u32);
        entry.init(KINDS + 4 * index, word);
    }
    entry.init(ARITY, u32::try_from(kinds.all.len).unwrap_or(0));
    // Also 0: who died here before may have left another.
    entry.init(CLASS_BYTES, u32::try_from(names.len()).unwrap_or(0));
    Partition::of_shape(view, shape).page().init(partition::SHAPE, shape);
    publish(view, place, shape);
    Ok(shape)
}

/// Says of which tuples the space has the most shapes.
fn too_many(store: &Store, limit: usize) -> Error {
    let view = store.memory.view();
    let mut groups: HashMap<(usize, u32), usize> = HashMap::new();
    for kinds in (0..count(&view)).filter_map(|shape| kinds_of(store, &view, shape)) {
        *groups.entry((kinds.all.len, kinds.all.class)).or_default() += 1;
    }
    let most = groups.into_iter().max_by_key(|(group, count)| (*count, *group));
    let ((arity, class), count) = most.unwrap_or_default();
    let class = if class == 0 { None } else { Class::with_number(class) };
    Error::TooManyShapes(Box::new(ManyShapes { limit, count, arity, class }))
}

/// Fills a longer table for the directory if the next shape would make it more than half full.
fn lengthen_directory(store: &Store, view: &View<'_>) -> Result<(), Error> {
    let (shapes, bits) = (count(view), directory_bits(view));
    if shapes < 1 << (bits - 1) || bits == DIRECTORY_BITS_MAX {
        return Ok(());
    }
    let longer = bits + 1;
    commit_pages(store, layout::directory_table(longer), layout::directory_bytes(longer))?;
    for shape in 0..shapes {
        // Who died here before has entered some.
        let place =
            kinds_of(store, view, shape).map(|kinds| probe_table(store, view, &kinds, longer));
        if let Some(Err(Some(place))) = place {
            enter(view, place, shape);
        }
    }
    let line: Span<'_, 64> = view.span(head::REGISTRY);
    // Release pairs with the Acquire in `directory_bits`: the table is filled.
    line.word(BITS).store(longer, Ordering::Release);
    Ok(())
}

/// The table that is the directory, by the number of its entries, as a power of two.
fn directory_bits(view: &View<'_>) -> u32 {
    let line: Span<'_, 64> = view.span(head::REGISTRY);
    line.word(BITS).load(Ordering::Acquire).clamp(DIRECTORY_BITS_MIN, DIRECTORY_BITS_MAX)
}

fn commit_pages(store: &Store, offset: usize, bytes: usize) -> Result<(), Error> {
    let pages = offset / PAGE * PAGE..(offset + bytes).next_multiple_of(PAGE);
    Ok(store.memory.mapping().commit(pages)?)
}

/// The shapes whose tuples can match `template`, as far as kinds and arity tell.
pub(crate) fn fitting_shapes(
    store: &Store,
    view: &View<'_>,
    template: &TemplateRef<'_>,
) -> Vec<u32> {
    if let Some(kinds) = Kinds::of_template(template) {
        return find_shape(store, &kinds).into_iter().collect();
    }
    let fits = |shape: &u32| kinds_of(store, view, *shape).is_some_and(|kinds| kinds.fit(template));
    if let Form::Entry(named) = template.form {
        let mut shapes = classes::shapes_named(store, view, named.class());
        shapes.retain(fits);
        return shapes;
    }
    (0..count(view)).filter(fits).collect()
}

/// Looks `kinds` up in the directory: the shape, or else the offset of the free place where it belongs, if any.
fn probe(store: &Store, view: &View<'_>, kinds: &Kinds) -> Result<u32, Option<usize>> {
    probe_table(store, view, kinds, directory_bits(view))
}

/// As [`probe`], in the table that has `1 << bits` entries.
fn probe_table(
    store: &Store,
    view: &View<'_>,
    kinds: &Kinds,
    bits: u32,
) -> Result<u32, Option<usize>> {
    let (signature, entries) = (kinds.signature(), 1 << bits);
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are enough")]
    let start = signature as usize % entries;
    for step in 0..entries {
        let place = layout::directory(bits, (start + step) % entries);
        let number = directory_word(view, place).load(Ordering::Acquire);
        if number == 0 {
            return Err(Some(place));
        }
        if kinds_of(store, view, number - 1).is_some_and(|found| found.are(kinds)) {
            return Ok(number - 1);
        }
    }
    Err(None)
}

/// Enters the last shape into the directory, if whoever counted it died before that.
fn finish_last(store: &Store, view: &View<'_>) {
    let Some(last) = count(view).checked_sub(1) else { return };
    if let Some(Err(Some(place))) =
        kinds_of(store, view, last).map(|kinds| probe(store, view, &kinds))
    {
        enter(view, place, last);
    }
}

/// The shape with these kinds, as the directory has it.
pub(crate) fn listed_as(store: &Store, view: &View<'_>, kinds: &Kinds) -> Option<u32> {
    probe(store, view, kinds).ok()
}

/// Makes a filled entry findable: counts it, then enters it into the directory.
///
/// Not undone, so without the log. Others find a shape without the lock, and may have stored tuples under its number by
/// the time that an undo would give the number away again. In this order, whoever found the shape in the directory also
/// counts it. Killed in between, [`finish_last`] enters it.
fn publish(view: &View<'_>, place: usize, shape: u32) {
    let line: Span<'_, 64> = view.span(head::REGISTRY);
    // Release pairs with the Acquire in `count` and `probe`: the entry is filled.
    line.word(COUNT).store(shape + 1, Ordering::Release);
    // Pairs with the fence of a multi-shape waiter that joins the wait queue: it sees the new shape, or whoever puts the
    // first tuple of it sees the waiter.
    fence(Ordering::SeqCst);
    enter(view, place, shape);
}

fn enter(view: &View<'_>, place: usize, shape: u32) {
    directory_word(view, place).store(shape + 1, Ordering::Release);
}

/// The entry of the directory at offset `place`.
fn directory_word<'m>(view: &View<'m>, place: usize) -> &'m AtomicU32 {
    let pair: Span<'m, 8> = view.span(place & !7);
    pair.word(place & 7)
}

/// How many shapes the directory has.
pub(crate) fn listed(view: &View<'_>) -> u32 {
    let bits = directory_bits(view);
    let is_taken = |index: &usize| {
        directory_word(view, layout::directory(bits, *index)).load(Ordering::Acquire) != 0
    };
    u32::try_from((0..1 << bits).filter(is_taken).count()).unwrap_or(u32::MAX)
}

/// Every pair of an alternative and a shape that it can match, each shape in the order of its birth.
pub(crate) fn fitting<'t>(
    store: &Store,
    template: &'t [TemplateRef<'t>],
) -> Vec<(&'t TemplateRef<'t>, u32)> {
    let view = store.memory.view();
    let pairs = template.iter().flat_map(|alternative| {
        registry::fitting_shapes(store, &view, alternative)
            .into_iter()
            .map(move |shape| (alternative, shape))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests;
