//! Who is woken: by the signals that a put raises, whether or not their owners have gone to sleep by then.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use std::sync::Arc;

use tupelo_tuple::{Field, Kind, KindSet, PatternRef, TemplateRef};

use crate::base::signal;
use crate::base::want::Want;
use crate::waiters::SIGNAL;
use crate::{Engine, Waiter, testing};

const INT: PatternRef<'static> = PatternRef::Kinds(KindSet::of(Kind::Int));
const ANY: PatternRef<'static> = PatternRef::Kinds(KindSet::ALL);

fn queued(engine: &Arc<Engine>, patterns: &[PatternRef<'_>], want: Want) -> Waiter {
    engine.waiter(&[TemplateRef::new(patterns)], want).unwrap()
}

/// Which of the waiters would be, or have been, woken since the last look.
fn woken(waiters: &[Waiter]) -> Vec<usize> {
    let is_raised = |number: &usize| signal::take(waiters[*number].node().word(SIGNAL));
    (0..waiters.len()).filter(is_raised).collect()
}

#[test]
fn a_put_wakes_one_taker_and_the_readers_that_match_and_nobody_else_t4() {
    let engine = Arc::new(testing::engine(8 << 20));
    let key = |number| [PatternRef::Actual(Field::Int(number)), INT];
    let waiters = [
        queued(&engine, &key(1), Want::Take),
        queued(&engine, &[INT, INT], Want::Take),
        queued(&engine, &key(2), Want::Read),
        queued(&engine, &key(1), Want::Read),
        queued(&engine, &[INT, INT], Want::Read),
        queued(&engine, &[ANY, INT], Want::Read),
        queued(&engine, &[ANY, INT], Want::Take),
        queued(&engine, &[ANY, ANY], Want::Take),
        queued(&engine, &[ANY, ANY, ANY], Want::Read),
    ];
    assert_eq!(woken(&waiters), [], "nobody is served yet");
    let put = |first, second| engine.put(&[Field::Int(first), Field::Int(second)]).unwrap();
    put(1, 1);
    assert_eq!(woken(&waiters), [0, 3, 4, 5]);
    // The readers have what they waited for; of the takers the next in the wait queue is woken.
    for taker in [1, 6, 7] {
        put(3, 3);
        assert_eq!(woken(&waiters), [taker]);
    }
    put(3, 3);
    assert_eq!(woken(&waiters), []);
    put(2, 2);
    assert_eq!(woken(&waiters), [2]);
}
