//! A miss is not answered while somebody else cleans up (rule L5).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tupelo_crashtest::{Child, fork, shared_words};
use tupelo_shm::{CreateOptions, Directory, Section, Segment};
use tupelo_tuple::{Field, PatternRef, TemplateRef};

use crate::error::Error;
use crate::layout::head;
use crate::{ClaimTerms, Engine, Limits, Order};

const TUPLE: [Field<'static>; 1] = [Field::Int(7)];

/// An engine over shared memory that has no name any more.
fn shared() -> Arc<Engine> {
    let limits = Limits { size_bytes: 8 << 20, ..Limits::default() };
    let options = CreateOptions {
        reserve_bytes: Engine::reserve_bytes(limits.size_bytes),
        initial_commit_bytes: 0,
        create: true,
        fresh: true,
        mode: 0o600,
    };
    let (directory, layout) = (Directory::default(), Engine::segment_layout());
    let name = format!("tupelo-sweep-{}", std::process::id());
    let initialise = |mapping: &_| Engine::initialise(mapping, &limits);
    let segment = Segment::create_or_attach(&directory, &name, &options, &layout, initialise);
    directory.remove(&name).unwrap();
    Arc::new(Engine::new(segment.unwrap()).unwrap())
}

/// A process that has done `act` and goes on with nothing until it is killed, with what `act` gave it.
fn stays_after<R>(act: impl FnOnce() -> R) -> Child {
    let done = shared_words(1);
    let child = fork(|| {
        let _kept = act();
        done[0].store(1, Ordering::SeqCst);
        loop {
            std::thread::park();
        }
    });
    while done[0].load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    child
}

fn try_take(engine: &Engine) -> Result<Option<()>, Error> {
    let patterns = TUPLE.map(PatternRef::Actual);
    engine.try_take(&[TemplateRef::new(&patterns)], Order::Fifo, |_| Ok(()))
}

#[test]
fn a_miss_waits_for_a_sweeper_that_is_stopped_and_names_it_l5() {
    let engine = shared();
    engine.put(&TUPLE).unwrap();
    let sweeper =
        stays_after(|| Section::try_enter(&engine.memory, head::SWEEP_SCOPE).unwrap().unwrap());
    let claims = stays_after(|| {
        let patterns = TUPLE.map(PatternRef::Actual);
        let terms = ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
        let template = [TemplateRef::new(&patterns)];
        engine.try_claim(&template, Order::Fifo, &terms, |_| Ok::<_, Error>(())).unwrap().unwrap()
    });
    assert_eq!(try_take(&engine).unwrap(), None, "it is claimed");
    claims.kill();
    let stopped = sweeper.pid();
    let refused = try_take(&engine).unwrap_err();
    let named = matches!(&refused, Error::Memory(why) if **why == tupelo_shm::Error::Stalled { pid: stopped });
    assert!(named, "{refused:?}");
    sweeper.kill();
    assert_eq!(try_take(&engine).unwrap(), Some(()));
}
