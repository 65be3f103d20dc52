//! What another process may do between two instructions of one: it is let do so at each of them, or at every so manieth.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::shared::listener::Listener;
use crate::shared::{INT, contents, int, put, region, space, space_for, text};
use tupelo_crashtest::{Experiment, Script, shared_words, thorough};
use tupelo_engine::{ClaimTerms, Engine, Error, LeaseTerms, Order, Outcome, Want};
use tupelo_tuple::{Condition, Field, TemplateRef, TupleView};

/// Interruptions in an ordinary run.
const POINTS: usize = 60;
/// The same in a thorough one, evenly spread over some 50 000 instructions.
const POINTS_THOROUGH: usize = 5_000;

fn experiment(engine: &Engine) -> Experiment {
    let points = if thorough() { POINTS_THOROUGH } else { POINTS };
    Experiment::new(region(engine)).with_kills(points)
}

/// A script of a process that has looked at the space before.
fn script<'a, C>(
    engine: &'a Arc<Engine>,
    prepare: impl Fn() -> C + 'a,
    work: impl Fn(&mut C) + 'a,
) -> Script<'a, C> {
    let register = move || {
        engine.check().unwrap();
        prepare()
    };
    Script::new(register, work)
}

/// The second field: a visitor.
#[expect(clippy::unnecessary_wraps, reason = "visitors may fail")]
fn value(tuple: TupleView<'_>) -> Result<i64, Error> {
    match tuple.field(1) {
        Some(Field::Int(value)) => Ok(value),
        other => panic!("no such tuple was put: {other:?}"),
    }
}

fn count(words: &[AtomicU32], at: usize) -> u32 {
    words[at].load(Ordering::SeqCst)
}

/// Somebody puts two tuples at once, the first of which is for who waits; there is no room for the second, so neither
/// was put. Who waits gets the next one, which has another shape (T1, T6).
#[test]
fn who_waits_for_a_tuple_that_was_not_put_after_all_gets_the_next_whatever_its_shape() {
    let engine = space_for(8 << 20, Some(3));
    put(&engine, 1, 10);
    put(&engine, 1, 11);
    engine.put(&[Field::Str("a"), Field::Int(0)]).unwrap();
    assert_eq!(crate::shared::take(&engine, &[text("a"), INT]), Some("a,0".into()));
    let got = shared_words(1);
    let puts = script(
        &engine,
        || (),
        |()| {
            let two = [97, 98].map(|value| [Field::Int(3), Field::Int(value)]);
            assert!(matches!(
                engine.put_all(&two.each_ref().map(|one| &one[..])),
                Err(Error::SpaceFull(_))
            ));
            engine.put(&[Field::Str("a"), Field::Int(99)]).unwrap();
        },
    );
    let waits = script(
        &engine,
        || {
            let alternatives = [[int(3), INT], [text("a"), INT]];
            let templates = alternatives.each_ref().map(|one| TemplateRef::new(one));
            Some(engine.waiter(&templates, Want::Take).unwrap())
        },
        |waiter| {
            let value = waiter.take().unwrap().finish(value).unwrap();
            got[0].store(u32::try_from(value).unwrap(), Ordering::SeqCst);
        },
    );
    let summary = experiment(&engine).interrupt_at_every_instruction(&puts, &waits, |_| {
        engine.check().unwrap();
        assert_eq!(count(got, 0), 99);
        assert_eq!(contents(&engine), ["1,10", "1,11"]);
    });
    assert!(summary.interruptions > POINTS / 2, "{summary:?}");
}

/// A call whose time is over has got what was handed to it by then; if it got nothing, it has kept nothing from others (O3, T1).
#[test]
fn who_leaves_the_line_has_what_it_was_handed() {
    let engine = space(8 << 20);
    put(&engine, 1, 10);
    let got = shared_words(2);
    let leaves = script(
        &engine,
        || (),
        |()| {
            let patterns = [int(2), INT];
            let waiter = engine.waiter(&[TemplateRef::new(&patterns)], Want::Take).unwrap();
            let is_handed = waiter.last_wait(Some(Duration::ZERO), || true).unwrap();
            let has_it = is_handed && matches!(waiter.finish_now(value), Ok(Outcome::Done(20)));
            got[0].store(u32::from(has_it), Ordering::SeqCst);
        },
    );
    let puts = script(
        &engine,
        || (),
        |()| {
            put(&engine, 2, 20);
            let is_there = crate::shared::take(&engine, &[int(2), INT]).is_some();
            got[1].store(u32::from(is_there), Ordering::SeqCst);
        },
    );
    let seen = shared_words(2);
    let summary = experiment(&engine).interrupt_at_every_instruction(&leaves, &puts, |_| {
        engine.check().unwrap();
        assert_eq!(contents(&engine), ["1,10"]);
        assert_eq!(count(got, 0) + count(got, 1), 1, "one of the two has it");
        seen[0].fetch_add(count(got, 0), Ordering::SeqCst);
        seen[1].fetch_add(count(got, 1), Ordering::SeqCst);
    });
    assert!(summary.interruptions > POINTS / 2, "{summary:?}");
    assert!(
        count(seen, 0) > 0 && count(seen, 1) > 0,
        "it is in the wait queue for a part of the way"
    );
}

/// Who lets leases end lets the lock go between two that somebody hears of. A claim that begins there ends in time (L4, K2).
#[test]
fn a_claim_that_begins_while_leases_end_ends_in_time() {
    const TTL: Duration = Duration::from_millis(2);
    let engine = space(8 << 20);
    put(&engine, 1, 10);
    let listener = Listener::new(&engine, &[INT, INT], 64).unwrap();
    let terms = LeaseTerms { lease: Some(TTL), after: None };
    for value in 20..23 {
        engine.put_leased(&[Field::Int(2), Field::Int(value)], &terms).unwrap();
    }
    // The clock goes on while nobody comes by.
    std::thread::sleep(2 * TTL);
    let comes_by = script(
        &engine,
        || (),
        |()| {
            put(&engine, 4, 40);
        },
    );
    let claims = Script::new(
        || {
            // Not by a look at all there is: the leases are to end in the other process.
            assert_eq!(engine.when_full(), tupelo_engine::WhenFull::Error);
            assert_eq!(crate::shared::take(&engine, &[]), None);
        },
        |()| {
            let patterns = [int(1), INT];
            let terms = ClaimTerms { ttl: TTL, attempts_max: None };
            let template = [TemplateRef::new(&patterns)];
            let claimed = engine.try_claim(&template, Order::Fifo, &terms, value).unwrap();
            let (claim, value) = claimed.unwrap();
            assert_eq!(value, 10);
            std::mem::forget(claim);
        },
    );
    let summary = experiment(&engine).interrupt_at_every_instruction(&comes_by, &claims, |_| {
        std::thread::sleep(2 * TTL);
        assert_eq!(crate::shared::take(&engine, &[int(1), INT]), Some("1,10".into()));
        engine.check().unwrap();
    });
    assert!(summary.interruptions > POINTS / 2, "{summary:?}");
    drop(listener);
}

/// A large tuple is copied between two locks, and counts when it is there: others may have taken its place (B1).
#[test]
fn no_tuple_is_one_too_many_however_long_it_takes_to_copy_it() {
    let engine = space_for(8 << 20, Some(2));
    put(&engine, 1, 10);
    // The shape is there already, and the memory.
    let bytes = vec![7; 40_000];
    let large = || engine.put(&[Field::Int(2), Field::Bytes(&bytes)]);
    large().unwrap();
    assert!(crate::shared::take(&engine, &[int(2), crate::shared::BYTES]).is_some());
    let stored = shared_words(2);
    let note = |at: usize, put: Result<(), Error>| match put {
        Ok(()) => stored[at].store(1, Ordering::SeqCst),
        Err(Error::SpaceFull(_)) => stored[at].store(0, Ordering::SeqCst),
        Err(other) => panic!("{other}"),
    };
    let puts_large = script(&engine, || (), |()| note(0, large()));
    let puts_small =
        script(&engine, || (), |()| note(1, engine.put(&[Field::Int(3), Field::Int(30)])));
    let summary =
        experiment(&engine).interrupt_at_every_instruction(&puts_large, &puts_small, |_| {
            assert_eq!(count(stored, 0) + count(stored, 1), 1, "one of the two");
            assert_eq!(contents(&engine).len(), 2);
            engine.check().unwrap();
        });
    assert!(summary.interruptions > POINTS / 2, "{summary:?}");
}

/// A large tuple is read where everybody can take it: what is returned was there as a whole (O4, C5).
#[test]
fn who_reads_a_large_tuple_gets_it_as_it_was_or_the_one_that_came_to_its_place() {
    const LARGE_BYTES: usize = 100_000;
    let engine = space(8 << 20);
    put(&engine, 1, 10);
    let large =
        |byte| engine.put(&[Field::Int(2), Field::Bytes(&vec![byte; LARGE_BYTES])]).unwrap();
    let byte_of = |tuple: TupleView<'_>| match tuple.field(1) {
        Some(Field::Bytes(bytes)) => {
            // Compared in few instructions, so that most of the interruptions are in those of the read.
            assert!(bytes.len() == LARGE_BYTES && bytes[1..] == bytes[..LARGE_BYTES - 1], "torn");
            Ok::<_, Error>(u32::from(bytes[0]))
        }
        other => panic!("no such tuple was put: {other:?}"),
    };
    let patterns = [int(2), crate::shared::BYTES];
    let template = [TemplateRef::new(&patterns)];
    let got = shared_words(1);
    let reads = script(
        &engine,
        || large(1),
        |()| {
            let byte = engine.try_read(&template, Order::Fifo, byte_of).unwrap();
            got[0].store(byte.unwrap_or(0), Ordering::SeqCst);
        },
    );
    let replaces = script(
        &engine,
        || (),
        |()| {
            assert_eq!(engine.try_take(&template, Order::Fifo, byte_of).unwrap(), Some(1));
            large(2);
        },
    );
    let seen = shared_words(3);
    let summary = experiment(&engine).interrupt_at_every_instruction(&reads, &replaces, |_| {
        seen[count(got, 0) as usize].fetch_add(1, Ordering::SeqCst);
        assert_eq!(contents(&engine).len(), 2);
        engine.check().unwrap();
        assert_eq!(engine.try_take(&template, Order::Fifo, byte_of).unwrap(), Some(2));
    });
    assert!(summary.interruptions > POINTS / 2, "{summary:?}");
    assert!(count(seen, 1) > 0 && count(seen, 2) > 0, "it takes its time");
}

/// What is done first with one tuple and then with another takes its locks in the order of all others.
#[test]
fn who_watches_what_goes_in_a_limited_space_hinders_nobody_who_puts() {
    let engine = space_for(8 << 20, Some(8));
    put(&engine, 1, 10);
    put(&engine, 1, 11);
    engine.put(&[Field::Str("a"), Field::Int(0)]).unwrap();
    let watched = [[int(7), INT], [text("b"), INT]];
    let watched = watched.each_ref().map(|one| TemplateRef::new(one));
    let _watcher = engine.waiter(&watched, Want::Removal).unwrap();
    let patterns = [int(1), INT];
    let template = [TemplateRef::new(&patterns)];
    let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
    let swaps = || {
        engine.try_swap(&template, &[Field::Int(2), Field::Int(20)], value).unwrap().unwrap();
    };
    let claims = || {
        let claimed = engine.try_claim(&template, Order::Fifo, &terms, value);
        claimed.unwrap().unwrap().0.done(&[(&[Field::Int(2), Field::Int(20)]).into()]).unwrap();
    };
    let puts = script(&engine, || (), |()| engine.put(&[Field::Str("a"), Field::Int(1)]).unwrap());
    for (what, change) in [("swap", &swaps as &dyn Fn()), ("claim", &claims)] {
        let changes = script(&engine, || (), |()| change());
        let summary = experiment(&engine).interrupt_at_every_instruction(&changes, &puts, |_| {
            assert_eq!(contents(&engine).len(), 4, "{what}");
            engine.check().unwrap();
        });
        assert!(summary.interruptions > POINTS / 2, "{summary:?}");
    }
}

/// A large tuple is copied without the lock after it was claimed. If the claim runs out meanwhile, its memory may be
/// something else (K3, C5).
#[test]
fn a_claim_that_runs_out_while_its_tuple_is_copied_is_lost_and_nothing_else() {
    const TTL: Duration = Duration::from_millis(1);
    const COPY_BEGINS_BEFORE: usize = 8_000;
    let engine = space(8 << 20);
    let large = vec![b'a'; 100_000];
    // The memory of the second will be in the middle of what is put for both.
    engine.put(&[Field::Int(0), Field::Bytes(&vec![b'a'; 300_000])]).unwrap();
    engine.put(&[Field::Int(1), Field::Int(10), Field::Bytes(&large)]).unwrap();
    let patterns = [int(1), INT, crate::shared::BYTES];
    let template = [TemplateRef::new(&patterns)];
    let claims = script(
        &engine,
        || (),
        |()| {
            let terms = ClaimTerms { ttl: TTL, attempts_max: None };
            match engine.try_claim(&template, Order::Fifo, &terms, value) {
                Ok(claimed) => std::mem::forget(claimed),
                Err(Error::ClaimLost { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        },
    );
    let larger = vec![b'b'; 420_000];
    let takes = script(
        &engine,
        || (),
        |()| {
            // Not a sleep: who sleeps is taken for one who waits for the other.
            let begin = std::time::Instant::now();
            while begin.elapsed() < 3 * TTL {}
            let first = [int(0), crate::shared::BYTES];
            for template in [&template, &[TemplateRef::new(&first)]] {
                engine.try_take(template, Order::Fifo, |_| Ok::<_, Error>(())).unwrap();
            }
            engine.put(&[Field::Bytes(&larger)]).unwrap();
        },
    );
    // Most of the script is the copy; what is read before it decides.
    let experiment = experiment(&engine).with_first(COPY_BEGINS_BEFORE);
    let summary = experiment.interrupt_at_every_instruction(&claims, &takes, |_| {
        engine.check().unwrap();
    });
    assert!(summary.interruptions > POINTS / 2, "{summary:?}");
}

/// Who looks at what others hold meets references of other shapes, into memory that came after its own look began (C5).
#[test]
fn who_looks_at_what_is_held_is_not_disturbed_by_a_space_that_grows() {
    let engine = space(64 << 20);
    put(&engine, 1, 10);
    let patterns = [int(1), INT];
    let template = [TemplateRef::new(&patterns)];
    let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
    let (claim, _) = engine.try_claim(&template, Order::Fifo, &terms, value).unwrap().unwrap();
    let rare = [int(9), INT];
    let asks =
        script(&engine, || (), |()| assert!(!engine.present(&[TemplateRef::new(&rare)]).unwrap()));
    // Until what is put next is in new memory: the last eight extents are not for tuples.
    let extent = vec![b'a'; 60_000];
    while engine.check().unwrap().extents_free > 8 {
        engine.put(&[Field::Bytes(&extent), Field::Null]).unwrap();
    }
    let large = vec![b'a'; 4 << 20];
    let bytes = [crate::shared::BYTES];
    let grows = script(
        &engine,
        || (),
        |()| {
            engine.put(&[Field::Bytes(&large)]).unwrap();
            // It is in the hands of this thread for as long as it likes.
            let template = [TemplateRef::new(&bytes)];
            let taken = engine.try_take(&template, Order::Fifo, |_| {
                tupelo_crashtest::stop_this_process();
                Ok::<_, Error>(())
            });
            taken.unwrap().unwrap();
        },
    );
    let summary = experiment(&engine).interrupt_at_every_instruction(&asks, &grows, |_| {
        engine.check().unwrap();
    });
    assert!(summary.interruptions > POINTS / 2, "{summary:?}");
    claim.abort("").unwrap();
}

/// Whoever comes while a condition is judged does not wait for that: it is judged on a copy, outside of the lock (M9).
#[test]
fn nobody_waits_while_a_condition_is_judged() {
    let engine = space(8 << 20);
    put(&engine, 1, 10);
    put(&engine, 1, 11);
    // Longer than all the rest of the call.
    let condition = (0..40).map(|number| format!("f[1] + {number} > 10")).collect::<Vec<_>>();
    let condition = Condition::new(&condition.join(" && ")).unwrap();
    let [waited, interrupted] = [(); 2].map(|()| &shared_words(1)[0]);
    let takes = script(
        &engine,
        || (),
        |()| {
            let patterns = [INT, INT];
            let template =
                TemplateRef { condition: Some(&condition), ..TemplateRef::new(&patterns) };
            assert_eq!(engine.try_take(&[template], Order::Fifo, value).unwrap(), Some(11));
        },
    );
    let puts = script(&engine, || (), |()| put(&engine, 1, 12));
    let summary = experiment(&engine).interrupt_at_every_instruction(&takes, &puts, |stopped| {
        assert_eq!(contents(&engine), ["1,10", "1,12"]);
        waited.fetch_add(u32::from(stopped.waited), Ordering::SeqCst);
        interrupted.fetch_add(1, Ordering::SeqCst);
    });
    assert!(summary.interruptions > POINTS / 2, "{summary:?}");
    let [waited, interrupted] = [waited, interrupted].map(|word| word.load(Ordering::SeqCst));
    assert!(waited < interrupted / 4, "the other one waited {waited} times of {interrupted}");
}
