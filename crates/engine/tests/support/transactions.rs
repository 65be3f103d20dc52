//! What the tests of transactions share: one on an engine of `("job", number)`, and what it does there.

use std::sync::Arc;
use std::time::Duration;

use tupelo_engine::{Engine, Order, Transaction};
use tupelo_tuple::{PatternRef, TemplateRef};

use super::{any_job, engine, job, number};

/// No test takes so long.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) fn begin(engine: &Arc<Engine>) -> Transaction {
    Transaction::begin(vec![Arc::clone(engine)], LONG).unwrap()
}

pub(crate) fn jobs(numbers: impl IntoIterator<Item = i64>) -> Arc<Engine> {
    let engine = engine(16 << 20);
    numbers.into_iter().for_each(|number| engine.put(&job(number)).unwrap());
    engine
}

pub(crate) fn take(transaction: &mut Transaction, patterns: &[PatternRef<'_>]) -> Option<i64> {
    transaction.try_take(0, &[TemplateRef::new(patterns)], Order::Fifo, number).unwrap()
}

pub(crate) fn take_in(transaction: &mut Transaction, order: Order) -> Option<i64> {
    transaction.try_take(0, &[TemplateRef::new(&any_job())], order, number).unwrap()
}

pub(crate) fn read(transaction: &mut Transaction, patterns: &[PatternRef<'_>]) -> Option<i64> {
    transaction.try_read(0, &[TemplateRef::new(patterns)], Order::Fifo, number).unwrap()
}

/// What is there for everybody.
pub(crate) fn contents(engine: &Engine) -> Vec<i64> {
    engine.check().unwrap();
    engine.read_all(&[TemplateRef::new(&any_job())], None, number).unwrap()
}
