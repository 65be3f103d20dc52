//! What becomes of a tuple that a transaction has taken and can not look at.

use std::sync::Arc;
use std::time::Duration;

use tupelo_tuple::{Field, PatternRef, TemplateRef};

use crate::base::error::Error;
use crate::index::find::Order;
use crate::operations::targets::TupleBuffer;
use crate::protocols::transaction::Transaction;
use crate::testing;

#[test]
fn a_take_that_fails_before_its_tuple_is_seen_takes_nothing_x5() {
    let engine = Arc::new(testing::engine(8 << 20));
    let bytes = vec![7; 60_000];
    engine.put(&[Field::Bytes(&bytes)]).unwrap();
    let patterns = [PatternRef::Actual(Field::Bytes(&bytes))];
    let template = [TemplateRef::new(&patterns)];
    let hour = Duration::from_secs(3600);
    let mut transaction = Transaction::begin([Arc::clone(&engine)], hour).unwrap();
    let (term, mut copy) = (transaction.term, TupleBuffer::new());
    let taken = transaction.parts[0].take(&template, Order::Fifo, None, term, &mut copy);
    let taken = taken.unwrap().unwrap();
    let refused = testing::beside_one_inside(&engine, || {
        transaction.visit_held(0, taken, &mut copy, None, |_| Ok::<_, Error>(()))
    });
    assert!(matches!(refused, Err(Error::Memory(_))), "{refused:?}");
    transaction.commit().unwrap();
    assert_eq!(engine.count(&template).unwrap(), 1);
    assert_eq!(engine.check().unwrap().held(), 0);
}
