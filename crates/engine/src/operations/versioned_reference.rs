//! Copying a match for who leaves it where it is (rule O4): a short one while it is found, a large one afterwards.
//!
//! Nobody waits for the copy of a large tuple. One that is too large for an optimistic copy is found under the lock and
//! copied without it. The copy counts if the tuple is still there then. As long as a record is listed its image stays
//! as it is, and what comes to its place after it has another number. So the copy is of the moment at which it was
//! found.

use tupelo_shm::View;

use crate::base::error::Error;
use crate::operations::scan::is_listed;
use crate::operations::targets::TupleCopy;
use crate::recovery::enter;
use crate::store::partition::{self, Partition};
use crate::store::registry::Kinds;
use crate::store::{Store, record};

/// How often somebody may take what was found before it is copied. Whoever loses so often is among those who take large
/// tuples without a pause: then they wait for one copy, for otherwise there might never be one.
const ATTEMPTS: u32 = 4;

/// The largest image that is copied while nobody else must come between, or nobody else can: it takes a microsecond.
pub(crate) const TRIED_BYTES_MAX: usize = 32 << 10;

/// When a large tuple is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LargeCopy {
    /// After the critical section, if it is still there: what has more bytes than that.
    Afterwards(usize),
    /// In it.
    AtOnce,
}

/// What was found in a critical section.
pub(crate) enum Seen {
    Copied(TupleCopy),
    Large(VersionedReference),
}

/// A large tuple that was found, by what tells it from any other that may come to its place.
pub(crate) struct VersionedReference {
    shape: u32,
    reference: u32,
    sequence: u64,
    image_bytes: usize,
    is_wide: bool,
    kinds: Kinds,
}

impl LargeCopy {
    /// What is known in the critical section of the tuple at `reference`, of a shape with `kinds`.
    pub(crate) fn of(self, view: &View<'_>, (shape, reference): (u32, u32), kinds: &Kinds) -> Seen {
        let header = record::header(view, reference);
        let image_bytes = record::image_bytes(header);
        let is_large = matches!(self, Self::Afterwards(above_bytes) if image_bytes > above_bytes);
        if !is_large {
            return Seen::Copied(TupleCopy::new(view, reference, *kinds));
        }
        let ((_, is_wide), sequence) = (record::shape_of(header), header.load64(record::SEQUENCE));
        Seen::Large(VersionedReference {
            shape,
            reference,
            sequence,
            image_bytes,
            is_wide,
            kinds: *kinds,
        })
    }
}

/// A copy of what `find` finds, in a section of its own; `None` if it finds nothing. It is called again if that
/// was taken before it was copied.
pub(crate) fn copy_match(
    store: &Store,
    mut find: impl FnMut(LargeCopy) -> Result<Option<Seen>, Error>,
) -> Result<Option<TupleCopy>, Error> {
    for _ in 0..ATTEMPTS {
        match find(LargeCopy::Afterwards(TRIED_BYTES_MAX))? {
            None => return Ok(None),
            Some(Seen::Copied(copy)) => return Ok(Some(copy)),
            Some(Seen::Large(versioned_reference)) => {
                if let Some(copy) = copy_of_versioned_reference(store, &versioned_reference)? {
                    return Ok(Some(copy));
                }
            }
        }
    }
    match find(LargeCopy::AtOnce)? {
        Some(Seen::Copied(copy)) => Ok(Some(copy)),
        _ => Ok(None),
    }
}

/// A copy of a tuple that was seen in a section that is over; `None` if it has gone since.
pub(crate) fn copy_of_versioned_reference(
    store: &Store,
    versioned_reference: &VersionedReference,
) -> Result<Option<TupleCopy>, Error> {
    let copy = versioned_reference.copy(&store.memory.view());
    let mut section = enter::enter(store, partition::scope_of(versioned_reference.shape))?;
    let partition = Partition::of_shape(section.view(), versioned_reference.shape);
    let found = (versioned_reference.reference, versioned_reference.sequence);
    let is_there = is_listed(section.view(), &store.layout, partition, found);
    if is_there && copy.is_none() {
        // What is there can be copied, unless its size is wrong.
        section.view().violate();
    }
    section.commit()?;
    Ok(copy.filter(|_| is_there))
}

impl VersionedReference {
    /// What lies there now; `None` if it is seen on the way that this is something else.
    fn copy(&self, view: &View<'_>) -> Option<TupleCopy> {
        let is_same =
            || record::header(view, self.reference).load64(record::SEQUENCE) == self.sequence;
        let place = (self.reference, self.image_bytes);
        let image = record::copy_large_image(view, place, is_same)?;
        Some(TupleCopy::of_image(self.kinds, image.into(), self.is_wide))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

    use std::sync::Arc;

    use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef, TupleView};

    use super::*;
    use crate::index::find::Order;
    use crate::{Engine, testing};

    const LARGE_BYTES: usize = 100_000;
    const AFTERWARDS: LargeCopy = LargeCopy::Afterwards(TRIED_BYTES_MAX);
    const REFUSED: Error = Error::LimitExceeded { what: "refused by the visitor", limit: 0 };
    const ANY: [PatternRef<'_>; 1] = [PatternRef::Kinds(KindSet::of(Kind::Bytes))];

    fn put(engine: &Engine, byte: u8) {
        engine.put(&[Field::Bytes(&vec![byte; LARGE_BYTES])]).unwrap();
    }

    fn take(engine: &Engine) {
        let template = [TemplateRef::new(&ANY)];
        let taken = engine.try_take(&template, Order::Fifo, |_| Ok::<_, Error>(())).unwrap();
        assert_eq!(taken, Some(()));
    }

    /// The byte that a tuple consists of.
    fn byte_of(tuple: &TupleView<'_>) -> u8 {
        let Some(Field::Bytes(bytes)) = tuple.field(0) else { panic!("{tuple:?}") };
        assert!(bytes.len() == LARGE_BYTES && bytes.iter().all(|byte| *byte == bytes[0]));
        bytes[0]
    }

    /// Copies the oldest tuple. Each time that it was found, and no lock is held, `meanwhile` happens. Returns also how
    /// each copy was to be made.
    fn copied(engine: &Engine, meanwhile: impl Fn(usize)) -> (Option<u8>, Vec<LargeCopy>) {
        let mut looks = Vec::new();
        let copy = copy_match(engine, |large| {
            let mut section = crate::recovery::enter::enter(engine, partition::scope_of(0))?;
            let first = Partition::of_shape(section.view(), 0).page().load(partition::FIRST);
            let kinds = crate::store::registry::kinds_of(engine, section.view(), 0).unwrap();
            let seen = (first != 0).then(|| large.of(section.view(), (0, first), &kinds));
            section.commit()?;
            drop(section);
            looks.push(large);
            meanwhile(looks.len());
            Ok(seen)
        });
        (copy.unwrap().map(|copy| byte_of(&copy.view())), looks)
    }

    #[test]
    fn nobody_is_kept_out_while_a_large_tuple_is_copied_and_it_counts_if_it_is_still_there_o4() {
        let engine = testing::engine(16 << 20);
        put(&engine, 1);
        // A put, and a take of another tuple, go on beside it.
        let beside = |_| {
            put(&engine, 2);
            engine.put(&[Field::Bytes(b"short")]).unwrap();
        };
        assert_eq!(copied(&engine, beside), (Some(1), vec![AFTERWARDS]));
    }

    #[test]
    fn what_was_taken_before_it_was_copied_is_looked_for_again_o4() {
        let engine = testing::engine(16 << 20);
        put(&engine, 1);
        let replaced = |look| {
            if look == 1 {
                // The next one comes to the same place.
                take(&engine);
                put(&engine, 2);
            }
        };
        assert_eq!(copied(&engine, replaced), (Some(2), vec![AFTERWARDS; 2]));
        let taken = |look| {
            if look == 1 {
                take(&engine);
            }
        };
        assert_eq!(copied(&engine, taken), (None, vec![AFTERWARDS; 2]));
    }

    #[test]
    fn a_tuple_that_was_held_and_came_back_is_still_the_same_o4() {
        let engine = Arc::new(testing::engine(16 << 20));
        put(&engine, 1);
        let there_and_back = |_| {
            let back = engine
                .try_take(&[TemplateRef::new(&ANY)], Order::Fifo, |_| Err::<(), Error>(REFUSED));
            assert!(matches!(back, Err(Error::LimitExceeded { .. })));
        };
        assert_eq!(copied(&engine, there_and_back), (Some(1), vec![AFTERWARDS]));
    }

    #[test]
    fn who_loses_it_to_others_again_and_again_copies_it_where_they_have_to_wait_o4() {
        let engine = testing::engine(16 << 20);
        put(&engine, 0);
        let replaced = |look| {
            if look <= ATTEMPTS as usize {
                take(&engine);
                put(&engine, u8::try_from(look).unwrap());
            }
        };
        let (byte, looks) = copied(&engine, replaced);
        assert_eq!(byte, Some(4));
        assert_eq!(looks.last(), Some(&LargeCopy::AtOnce));
        assert_eq!(looks.len(), ATTEMPTS as usize + 1);
    }

    #[test]
    fn a_scan_copies_a_large_tuple_when_it_is_its_turn_o6() {
        let engine = Arc::new(testing::engine(16 << 20));
        (1..=4).for_each(|byte| put(&engine, byte));
        let mut scan = engine.scan(":bytes".parse().unwrap());
        let mut seen = Vec::new();
        let batch = scan.next_batch(10, |tuple| {
            seen.push(byte_of(&tuple));
            if seen.len() == 1 {
                // This one and the next: the step has seen both.
                take(&engine);
                take(&engine);
            }
            Ok::<_, Error>(())
        });
        assert_eq!((batch.unwrap().len(), seen), (3, vec![1, 3, 4]));
    }

    #[test]
    fn a_tuple_that_the_visitor_of_a_scan_refuses_comes_again_unless_it_is_the_first_o6() {
        let engine = Arc::new(testing::engine(16 << 20));
        (1..=3).for_each(|byte| put(&engine, byte));
        let mut scan = engine.scan(":bytes".parse().unwrap());
        let mut next = |refused| {
            scan.next_batch(10, |tuple| match byte_of(&tuple) {
                byte if byte == refused => Err(REFUSED),
                byte => Ok(byte),
            })
        };
        assert!(matches!(next(1), Err(Error::LimitExceeded { .. })));
        assert_eq!(next(3).unwrap(), [2]);
        assert_eq!(next(0).unwrap(), [3]);
        assert_eq!(next(0).unwrap(), []);
    }
}
