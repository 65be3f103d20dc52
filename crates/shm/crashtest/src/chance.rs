//! The random choices of a run of tests, and its length. A choice is printed, with the variable that repeats it.

use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

/// Whether the environment variable `TUPELO_EVERY_INSTRUCTION` asks for the long run: a shorter one for every
/// day, the long one for every night.
pub fn thorough() -> bool {
    std::env::var_os("TUPELO_EVERY_INSTRUCTION").is_some()
}

/// The sample of the steps, or of the pairs of operations, that this run of the tests takes. It is the number in the
/// environment variable `TUPELO_PHASE`, else one drawn for this process. So runs with small samples come to everything
/// in time.
///
/// # Panics
///
/// If the variable is set to something else than a number.
pub fn phase() -> usize {
    static PHASE: OnceLock<usize> = OnceLock::new();
    *PHASE.get_or_init(|| {
        let phase = number("TUPELO_PHASE")
            .unwrap_or_else(|| usize::try_from(drawn() % PHASES).unwrap_or(0));
        eprintln!("run again with TUPELO_PHASE={phase}");
        phase
    })
}

/// Phases to draw from: more than any test has samples, and a number that can be typed.
const PHASES: u64 = 1_000_000;

/// The seed of a random test: the number in the environment variable `TUPELO_SEED`, else a new one with each call.
///
/// # Panics
///
/// If the variable is set to something else than a number.
pub fn seed() -> u64 {
    let seed = number("TUPELO_SEED").unwrap_or_else(drawn);
    eprintln!("run again with TUPELO_SEED={seed}");
    seed
}

/// How long an endless test goes on: the value of the environment variable `TUPELO_TORTURE_SECONDS`, if it is set.
///
/// # Panics
///
/// If the variable is set to something else than a number.
pub fn torture_time() -> Option<Duration> {
    number("TUPELO_TORTURE_SECONDS").map(Duration::from_secs)
}

fn drawn() -> u64 {
    RandomState::new().hash_one("tupelo")
}

/// The number in an environment variable.
fn number<N: FromStr>(variable: &str) -> Option<N> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}
