//! Maps: pairs that are sorted by their keys, and the order in which they were given, if that is another one.
//!
//! The order is carried, and means nothing: maps of the same pairs are equal, match each other and hash alike.

use super::{Value, ValueError};

/// A map, its pairs sorted by the encoded bytes of their keys (rule V4).
///
/// Keys that match each other are one key, so a key is kept *folded*. Folding turns -0.0 into 0.0 and every NaN into
/// one, and removes the zeros at the end of a decimal. A map as a key loses its order. Equal maps then have equal bytes
/// up to their order, whichever of the keys came first.
#[derive(Clone, Debug, Default)]
pub struct Map {
    pairs: Vec<(Value, Value)>,
    /// The place in `pairs` of the first pair of the order, of the second, and so on. `None` if `pairs` is the order.
    order: Option<Box<[u32]>>,
}

impl Map {
    /// A map of `pairs`, in any order; it has no order of its own.
    ///
    /// # Errors
    ///
    /// [`ValueError::Duplicate`] if two keys match each other, [`ValueError::Key`] if a key is nested too deeply.
    pub fn new(pairs: impl IntoIterator<Item = (Value, Value)>) -> Result<Self, ValueError> {
        Ok(Self { order: None, ..Self::in_order(pairs)? })
    }

    /// A map of `pairs` that comes back in their order, as a dict of Python does (rule V3).
    ///
    /// # Errors
    ///
    /// As [`Map::new`].
    pub fn in_order(pairs: impl IntoIterator<Item = (Value, Value)>) -> Result<Self, ValueError> {
        let mut keyed = Vec::new();
        for (place, (key, value)) in pairs.into_iter().enumerate() {
            // Encoded once before folding, which recurses and needs a depth that was checked.
            key.encode().map_err(ValueError::Key)?;
            let key = key.into_folded();
            keyed.push((key.encode().map_err(ValueError::Key)?, key, value, place));
        }
        keyed.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        if let Some(twice) = keyed.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ValueError::Duplicate { key: twice[0].1.to_string() });
        }
        let is_sorted = keyed.is_sorted_by_key(|(.., place)| *place);
        let order = if is_sorted { None } else { inverse(keyed.iter().map(|(.., place)| *place)) };
        let pairs = keyed.into_iter().map(|(_, key, value, _)| (key, value)).collect();
        Ok(Self { pairs, order })
    }

    /// The pairs, sorted.
    pub fn pairs(&self) -> &[(Value, Value)] {
        &self.pairs
    }

    /// The pairs, sorted.
    pub fn into_pairs(self) -> Vec<(Value, Value)> {
        self.pairs
    }

    /// The pairs in the order in which they were given to [`Map::in_order`].
    pub fn ordered(&self) -> impl ExactSizeIterator<Item = &(Value, Value)> + Clone {
        let place = |index| match &self.order {
            Some(order) => order[index] as usize,
            None => index,
        };
        (0..self.pairs.len()).map(move |index| &self.pairs[place(index)])
    }

    /// The places of the pairs in [`Map::pairs`], in their order; `None` if that is the order.
    pub(crate) fn order(&self) -> Option<&[u32]> {
        self.order.as_deref()
    }

    /// A map of pairs that are known to be sorted, folded and distinct.
    pub(crate) const fn from_canonical(pairs: Vec<(Value, Value)>) -> Self {
        Self { pairs, order: None }
    }

    /// The same pairs, in another order: the first one is at the place that `order` says first. The result is `None` if
    /// `order` does not have each place once, or is that of the sorted pairs.
    pub(crate) fn with_order(self, order: Box<[u32]>) -> Option<Self> {
        let mut is_there = vec![false; self.pairs.len()];
        for place in &order {
            let first = is_there.get_mut(*place as usize).filter(|is_there| !**is_there)?;
            *first = true;
        }
        let is_whole = order.len() == self.pairs.len() && !order.is_sorted();
        is_whole.then_some(Self { order: Some(order), ..self })
    }

    /// As a part of a key, where maps have no order.
    pub(super) fn folded(self) -> Self {
        let fold = |(key, value): (Value, Value)| (key, value.into_folded());
        Self::from_canonical(self.pairs.into_iter().map(fold).collect())
    }
}

/// What leads back from the places of a permutation; `None` for one of more elements than are ever encoded.
fn inverse(places: impl ExactSizeIterator<Item = usize>) -> Option<Box<[u32]>> {
    let mut order = vec![0; places.len()];
    for (sorted, place) in places.enumerate() {
        order[place] = u32::try_from(sorted).ok()?;
    }
    Some(order.into())
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.pairs == other.pairs
    }
}

impl Eq for Map {}
