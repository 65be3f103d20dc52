//! What a visitor refuses goes back, unless the process said that it never would (rule V3).
//!
//! Alone in its file: what is said is said for the process.

use crate::support::engine;
use tupelo_engine::{Engine, Error, Order, represents};
use tupelo_tuple::{DType, Encoded, Field, Kind, KindSet, PatternRef, TemplateRef, array_head};

/// Whether the array of a space is still there after a take whose visitor fails.
fn is_back(engine: &Engine, bytes: u64) -> bool {
    let head = array_head(DType::U8, [bytes].into_iter()).unwrap();
    let body = vec![7; usize::try_from(bytes).unwrap()];
    engine.put(&[Field::Encoded(Encoded { kind: Kind::Array, head: &head, body: &body })]).unwrap();
    let patterns = [PatternRef::Kinds(KindSet::of(Kind::Array))];
    let template = [TemplateRef::new(&patterns)];
    let refused: Result<Option<()>, Error> =
        engine.try_take(&template, Order::Fifo, |_| Err(Error::Template("no".into())));
    refused.unwrap_err();
    engine.try_take(&template, Order::Fifo, |_| Ok::<(), Error>(())).unwrap().is_some()
}

#[test]
fn what_can_not_be_represented_goes_back_until_it_always_can_v3() {
    let engine = engine(1 << 20);
    assert!(is_back(&engine, 8));
    represents(KindSet::of(Kind::Timestamp));
    assert!(is_back(&engine, 8), "nothing was said of arrays");
    represents(KindSet::of(Kind::Array));
    assert!(!is_back(&engine, 8), "taken in one section");
    assert!(is_back(&engine, 8_000), "a large one is held in any case");
    engine.check().unwrap();
}
