//! What the unit tests share.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use tupelo_shm::{CreateOptions, Segment};
use tupelo_tuple::Field;

use crate::{Engine, Limits};

/// An engine of its own over private memory.
pub(crate) fn engine(size_bytes: u64) -> Engine {
    let options = CreateOptions {
        reserve_bytes: Engine::reserve_bytes(size_bytes),
        initial_commit_bytes: 4096,
        create: true,
        fresh: false,
        mode: 0o600,
    };
    let segment = Segment::private(&options, &Engine::segment_layout(), |mapping| {
        Engine::initialise(mapping, &Limits { size_bytes, ..Limits::default() })
    });
    Engine::new(segment.unwrap()).unwrap()
}

/// The seed of this run, which is printed: `$TUPELO_SEED`, or a new one.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("TUPELO_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("TUPELO_SEED={seed}");
    seed
}

/// Fills the space with tuples of one bytes each, until the smallest finds no room.
pub(crate) fn fill(engine: &Engine) {
    for bytes in [60_000, 6_000, 600, 60, 6] {
        let bytes = vec![7; bytes];
        while engine.put(&[Field::Bytes(&bytes)]).is_ok() {}
    }
}
