//! Comparing and hashing encoded values by rule M2, without decoding them.
//!
//! Both walk the same items, so that equal values hash alike. An unreadable value is the same as nothing but equal
//! bytes: these functions also meet bytes that another process damaged (rule C5).

use super::{DEPTH_MAX, Item, Reader};
use crate::{Field, Kind, hash};

/// Deepest walk: an entry is three items inside each other, its payload, the list and the map in it.
const LEVELS_MAX: usize = 3 * DEPTH_MAX;

/// Whether two encodings are of the same value.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    same_item(&mut Reader::new(a), &mut Reader::new(b), LEVELS_MAX) == Some(true)
}

/// Compares the next item of each, with `levels` of nesting allowed; `None` if one cannot be read.
fn same_item(a: &mut Reader<'_>, b: &mut Reader<'_>, levels: usize) -> Option<bool> {
    let (a_start, b_start) = (a.at(), b.at());
    let (a_item, b_item) = (a.item().ok()?, b.item().ok()?);
    Some(match (a_item, b_item) {
        (Item::Float(a), Item::Float(b)) => Field::Float(a).same(&Field::Float(b)),
        (Item::Decimal(a), Item::Decimal(b)) => a.compare(b).is_eq(),
        (Item::List(a_count), Item::List(b_count)) => {
            a_count == b_count && same_items(a, b, a_count, levels)?
        }
        // The keys are folded and sorted, so equal keys are at equal places.
        (Item::Map(_) | Item::OrderedMap(_), Item::Map(_) | Item::OrderedMap(_)) => {
            let (mut a_payload, mut b_payload) = (None, None);
            let (a, a_count) = pairs(a, a_item, &mut a_payload)?;
            let (b, b_count) = pairs(b, b_item, &mut b_payload)?;
            a_count == b_count && same_items(a, b, 2 * a_count, levels)?
        }
        (Item::Tuple(mut a), Item::Tuple(mut b)) | (Item::Entry(mut a), Item::Entry(mut b)) => {
            same_items(&mut a, &mut b, 1, levels)?
        }
        _ => a.since(a_start) == b.since(b_start),
    })
}

fn same_items(a: &mut Reader<'_>, b: &mut Reader<'_>, count: usize, levels: usize) -> Option<bool> {
    let levels = levels.checked_sub(1)?;
    for _ in 0..count {
        if !same_item(a, b, levels)? {
            return Some(false);
        }
    }
    Some(true)
}

/// The place and number of the pairs of a map. They stand behind its head, or in the payload of a map with an order,
/// which means nothing here.
fn pairs<'r, 'a>(
    reader: &'r mut Reader<'a>,
    item: Item<'a>,
    payload: &'r mut Option<Reader<'a>>,
) -> Option<(&'r mut Reader<'a>, usize)> {
    match item {
        Item::Map(count) => Some((reader, count)),
        Item::OrderedMap(inner) => {
            let inner = payload.insert(inner);
            let count = inner.expect_ordered_pairs().ok()?;
            Some((inner, count))
        }
        _ => None,
    }
}

/// The hash of an encoded value.
pub(crate) fn hash(encoding: &[u8]) -> u64 {
    hash_item(&mut Reader::new(encoding), LEVELS_MAX)
        .unwrap_or_else(|| hash::of_bytes(encoding, hash::kind_seed(Kind::Opaque)))
}

/// Hashes the next item, with `levels` of nesting allowed; `None` if it cannot be read.
fn hash_item(reader: &mut Reader<'_>, levels: usize) -> Option<u64> {
    let start = reader.at();
    Some(match reader.item().ok()? {
        Item::Null => hash::field(&Field::Null),
        Item::Bool(value) => hash::field(&Field::Bool(value)),
        Item::Int(value) => hash::field(&Field::Int(value)),
        Item::Float(value) => hash::field(&Field::Float(value)),
        Item::Str(text) => hash::field(&Field::Str(text)),
        Item::Bytes(bytes) => hash::field(&Field::Bytes(bytes)),
        Item::Decimal(value) => value.hash(),
        Item::Array(view) => {
            let encoding = reader.since(start);
            let (head, data) = encoding.split_at(encoding.len() - view.data().len());
            hash::array(head, data)
        }
        Item::List(count) => hash_items(reader, count, Kind::List, levels)?,
        item @ (Item::Map(_) | Item::OrderedMap(_)) => {
            let mut payload = None;
            let (pairs, count) = pairs(reader, item, &mut payload)?;
            hash_items(pairs, 2 * count, Kind::Map, levels)?
        }
        Item::Tuple(mut payload) => hash_items(&mut payload, 1, Kind::Tuple, levels)?,
        Item::Entry(mut payload) => hash_items(&mut payload, 1, Kind::Entry, levels)?,
        Item::BigInt(_) => hash::of_bytes(reader.since(start), hash::kind_seed(Kind::Int)),
        Item::Timestamp(_) => hash::of_bytes(reader.since(start), hash::kind_seed(Kind::Timestamp)),
        Item::Uuid(value) => hash::of_bytes(&value, hash::kind_seed(Kind::Uuid)),
        Item::Opaque(payload) => hash::of_bytes(payload.remaining(), hash::kind_seed(Kind::Opaque)),
        Item::Pattern(..) => return None,
    })
}

fn hash_items(reader: &mut Reader<'_>, count: usize, kind: Kind, levels: usize) -> Option<u64> {
    let levels = levels.checked_sub(1)?;
    let mut hash = hash::kind_seed(kind) ^ count as u64;
    for _ in 0..count {
        hash = hash::combine(hash, hash_item(reader, levels)?);
    }
    Some(hash)
}
