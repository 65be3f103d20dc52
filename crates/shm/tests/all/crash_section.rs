//! A section happens whole or not at all, at whichever instruction its process is killed, and its recoverer
//! too (rule C1).

use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{LAYOUT, OPTIONS, Scratch};
use tupelo_crashtest::{Experiment, Region, Script, shared_words, thorough};
use tupelo_shm::{GRANULE, Memory, Section, Segment};

/// What the kernel stores into the lock of a dead owner.
const OWNER_DIED: u32 = 0x4000_0000;
/// The engine's part begins with two lock lines and two lines of words that they protect.
#[expect(clippy::cast_possible_truncation, reason = "17 MiB of lines")]
const LINES: u32 = (Memory::engine_base() / GRANULE) as u32;
const LOCKS: [u32; 2] = [LINES, LINES + 1];
const WORDS: [u32; 2] = [LINES + 2, LINES + 3];

/// A segment for one experiment; its words are zero.
struct Bench {
    memory: Memory,
    region: Region,
    _scratch: Scratch,
}

impl Bench {
    fn new() -> Self {
        let scratch = Scratch::new();
        let end = Memory::engine_base() + 4096;
        let make = |mapping: &tupelo_shm::Mapping| Memory::initialise(mapping, end, 4096).map(drop);
        let segment =
            Segment::create_or_attach(&scratch.directory(), "a", &OPTIONS, &LAYOUT, make).unwrap();
        let memory = Memory::new(segment.mapping().clone());
        // SAFETY: mapped as long as `memory` lives, and accessed by atomics only.
        let region = unsafe { Region::new(memory.mapping().base(), end) };
        Self { memory, region, _scratch: scratch }
    }

    /// A process that is registered, and then does what is asked.
    fn script<'a>(&'a self, work: impl Fn(&Memory) + 'a) -> Script<'a, Memory> {
        let register = || {
            self.memory.thread().unwrap();
            self.memory.clone()
        };
        Script::new(register, move |memory| work(memory))
    }

    /// The word of a lock, as it is.
    fn lock_word(&self, lock: usize) -> u32 {
        self.memory.view().at::<GRANULE>(LOCKS[lock]).load(0)
    }

    /// The protected words, after locking them.
    fn words(&self, lock: usize) -> [u32; 4] {
        let section = Section::enter(&self.memory, LOCKS[lock]).unwrap();
        let span = section.view().at::<GRANULE>(WORDS[lock]);
        [0, 4, 8, 12].map(|at| span.load(at))
    }

    /// Fails unless both locks work and are left as they should be.
    fn check_locks(&self) {
        for scope in LOCKS {
            let mut section = Section::enter(&self.memory, scope).unwrap();
            let span = section.view().at::<GRANULE>(scope + 2);
            section.set(span, 60, 1);
            section.commit().unwrap();
            drop(section);
            let view = self.memory.view();
            assert!(view.begin_read(scope).is_some(), "readers may look again");
            assert_eq!(view.at::<GRANULE>(scope).load(0), 0, "the lock is free");
        }
    }
}

/// Sets all four words of a scope to `value`; the first goes through a value that must never be seen.
fn set_all(section: &mut Section<'_>, lock: usize, value: u32) {
    let span = section.view().at::<GRANULE>(WORDS[lock]);
    section.set(span, 0, 1000);
    for at in [0, 4, 8, 12] {
        section.set(span, at, value);
    }
}

/// How often each case came up, counted across processes.
struct Seen(&'static [AtomicU32]);

impl Seen {
    fn new() -> Self {
        Self(shared_words(4))
    }

    fn count(&self, case: usize) {
        self.0[case].fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self, case: usize) -> u32 {
        self.0[case].load(Ordering::Relaxed)
    }
}

#[test]
fn a_section_killed_at_any_instruction_happened_or_did_not() {
    let bench = Bench::new();
    let script = bench.script(|memory| {
        for value in 1..=2 {
            let mut section = Section::enter(memory, LOCKS[0]).unwrap();
            set_all(&mut section, 0, value);
            section.commit().unwrap();
        }
    });
    let (seen, died) = (Seen::new(), shared_words(1));
    let summary = Experiment::new(bench.region).kill_at_every_instruction(&script, |death| {
        let lock = bench.lock_word(0);
        assert!(lock == 0 || lock == OWNER_DIED, "the kernel tells, nobody has to wait: {lock:#x}");
        died[0].fetch_add(lock / OWNER_DIED, Ordering::Relaxed);
        let words = bench.words(0);
        assert!(words == [words[0]; 4] && words[0] <= 2, "{words:?}");
        assert!(death.steps < death.of || words[0] == 2);
        seen.count(words[0] as usize);
        bench.check_locks();
    });
    assert_eq!(summary.missed, 0);
    assert!(died[0].load(Ordering::Relaxed) as usize > summary.steps / 2);
    assert!((0..3).all(|case| seen.get(case) > 10));
}

#[test]
fn a_section_that_takes_itself_back_leaves_nothing_at_any_instruction() {
    let bench = Bench::new();
    let script = bench.script(|memory| {
        let mut section = Section::enter(memory, LOCKS[0]).unwrap();
        set_all(&mut section, 0, 1);
        drop(section);
    });
    let summary = Experiment::new(bench.region).kill_at_every_instruction(&script, |_| {
        assert_eq!(bench.words(0), [0; 4]);
        bench.check_locks();
    });
    assert_eq!(summary.missed, 0);
}

#[test]
fn a_section_over_two_scopes_happens_in_both_or_in_none() {
    let bench = Bench::new();
    let script = bench.script(|memory| {
        let mut section = Section::enter(memory, LOCKS[0]).unwrap();
        set_all(&mut section, 0, 1);
        section.enter_also(LOCKS[1]).unwrap();
        set_all(&mut section, 1, 1);
        section.focus(LOCKS[0]);
        section.add(section.view().at::<GRANULE>(WORDS[0]), 0, 0);
        section.commit().unwrap();
    });
    let seen = Seen::new();
    // A lock that is held but not pending is found by time, a millisecond each: so every third.
    let experiment = Experiment::new(bench.region).with_stride(if thorough() { 1 } else { 3 });
    let summary = experiment.kill_at_every_instruction(&script, |_| {
        let words = [bench.words(0), bench.words(1)];
        assert!(words == [[0; 4]; 2] || words == [[1; 4]; 2], "{words:?}");
        seen.count(words[0][0] as usize);
        bench.check_locks();
    });
    // The list of further locks is on the heap, and the allocator's way depends on what this process did
    // meanwhile; where a child took another way, it was killed at its end.
    assert!(summary.missed < summary.kills / 4, "{} of {} missed", summary.missed, summary.kills);
    assert!(seen.get(0) > 10 && seen.get(1) > 10);
}

#[test]
fn an_recoverer_killed_at_any_instruction_leaves_its_own_recoverer_the_same_work() {
    let bench = Bench::new();
    let worker = bench.script(|memory| {
        let mut section = Section::enter(memory, LOCKS[0]).unwrap();
        set_all(&mut section, 0, 1);
        section.commit().unwrap();
        set_all(&mut section, 0, 2);
    });
    let recoverer = bench.script(|memory| drop(Section::enter(memory, LOCKS[0]).unwrap()));
    let seen = Seen::new();
    let leaves_work = || bench.lock_word(0) & OWNER_DIED != 0;
    // The recoverer is killed some 500 times for each death of the worker.
    let experiment = Experiment::new(bench.region).with_stride(if thorough() { 1 } else { 307 });
    let summary = experiment.double_kill(&worker, &recoverer, leaves_work, |_, _| {
        let words = bench.words(0);
        assert!(words == [words[0]; 4] && words[0] <= 1, "{words:?}");
        seen.count(words[0] as usize);
        bench.check_locks();
    });
    // A recoverer that finds the lock before the kernel has told of the death sleeps once more: on a busy machine, a few do.
    assert!(summary.recoverers > 500 && summary.missed <= summary.kills / 100, "{summary:?}");
    assert!(seen.get(0) > 10 && seen.get(1) > 10);
}
