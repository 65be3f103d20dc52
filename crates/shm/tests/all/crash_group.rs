//! A commit over several segments happens in all or in none. That holds at whichever instruction its process is killed,
//! and its recoverers too, in whatever order they come (rules C1, O7, X1).

use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{LAYOUT, OPTIONS, Scratch};
use tupelo_crashtest::{Death, Experiment, Region, Script, shared_words, thorough};
use tupelo_shm::{Error, GRANULE, Memory, Section, Segment, commit_together};

/// The engine's part begins with two lock lines and two lines of words that they protect.
#[expect(clippy::cast_possible_truncation, reason = "17 MiB of lines")]
const LINES: u32 = (Memory::engine_base() / GRANULE) as u32;
const LOCKS: [u32; 2] = [LINES, LINES + 1];
const NAMES: [&str; 3] = ["a", "b", "the third one"];

/// Segments for one experiment; their words are zero.
struct Bench {
    memories: Vec<Memory>,
    regions: Vec<Region>,
    scratch: Scratch,
}

impl Bench {
    fn new(count: usize) -> Self {
        let scratch = Scratch::new();
        let memories: Vec<Memory> =
            NAMES[..count].iter().map(|name| open(&scratch, name, true)).collect();
        let end = Memory::engine_base() + 4096;
        // SAFETY: mapped as long as the process lives, and accessed by atomics only.
        let region = |memory: &Memory| unsafe { Region::new(memory.mapping().base(), end) };
        let regions = memories.iter().map(region).collect();
        Self { memories, regions, scratch }
    }

    fn experiment(&self) -> Experiment {
        let [first, rest @ ..] = &self.regions[..] else { unreachable!() };
        let all = rest.iter().fold(Experiment::new(*first), |all, one| all.with_region(*one));
        all.with_named_deaths()
    }

    /// A process that has changed all segments, and commits.
    fn worker(&self) -> Script<'_, Vec<Section<'_>>> {
        Script::new(|| change(&self.memories, 1), |sections| commit_together(sections).unwrap())
    }

    /// A process that settles the segments in this order.
    fn recoverer(&self, order: [usize; 2]) -> Script<'_, &[Memory]> {
        let register = || {
            for memory in &self.memories {
                memory.thread().unwrap();
            }
            &self.memories[..]
        };
        Script::new(register, move |memories| {
            for index in order {
                settle(&memories[index]);
            }
        })
    }

    /// Fails unless all segments have the same values in all words, and are as good as before. Returns the value.
    fn check(&self, backwards: bool) -> u32 {
        let mut order: Vec<&Memory> = self.memories.iter().collect();
        if backwards {
            order.reverse();
        }
        let mut values: Vec<u32> = Vec::new();
        for memory in order {
            settle(memory);
            values.extend(words(memory));
        }
        assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        // What one waited for is settled by now, whoever came first.
        for memory in &self.memories {
            settle(memory);
            assert!(memory.dead_slots().is_empty(), "all slots of the dead are free");
        }
        commit_together(&mut change(&self.memories, 100)).unwrap();
        let after = self.memories.iter().flat_map(words).collect::<Vec<_>>();
        assert!(after.iter().all(|value| *value == 100), "{after:?}");
        values[0]
    }
}

fn open(scratch: &Scratch, name: &str, create: bool) -> Memory {
    let end = Memory::engine_base() + 4096;
    let make = |mapping: &tupelo_shm::Mapping| Memory::initialise(mapping, end, 4096).map(drop);
    let options = tupelo_shm::CreateOptions { create, ..OPTIONS.clone() };
    let directory = scratch.directory();
    let segment = Segment::create_or_attach(&directory, name, &options, &LAYOUT, make).unwrap();
    Memory::new(segment.mapping().clone())
}

/// Gives all words of all memories the value, under two locks each.
fn change(memories: &[Memory], value: u32) -> Vec<Section<'_>> {
    let enter = |memory| {
        let mut section = Section::enter(memory, LOCKS[0]).unwrap();
        section.enter_also(LOCKS[1]).unwrap();
        for lock in LOCKS {
            section.focus(lock);
            let span = section.view().at::<GRANULE>(lock + 2);
            section.set_words([(span.place(0), value), (span.place(4), value)]);
        }
        section
    };
    memories.iter().map(enter).collect()
}

/// The protected words, after locking them.
fn words(memory: &Memory) -> Vec<u32> {
    let read = |lock: u32| {
        let section = Section::enter(memory, lock).unwrap();
        let span = section.view().at::<GRANULE>(lock + 2);
        [span.load(0), span.load(4)]
    };
    LOCKS.into_iter().flat_map(read).collect()
}

/// Does for the dead what the engine's sweep does.
fn settle(memory: &Memory) {
    for (slot, mut scopes) in memory.dead_slots() {
        scopes.extend(LOCKS.into_iter().filter(|scope| memory.is_locked_by(*scope, slot)));
        for scope in scopes {
            drop(Section::enter(memory, scope).unwrap());
        }
        if !memory.still_decides(slot).unwrap() {
            memory.free_slot(slot);
        }
    }
}

/// How often each value came up, counted across processes; and a third case.
struct Seen(&'static [AtomicU32]);

impl Seen {
    fn new() -> Self {
        Self(shared_words(3))
    }

    fn count(&self, case: u32) {
        self.0[case as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> [u32; 3] {
        std::array::from_fn(|case| self.0[case].load(Ordering::Relaxed))
    }
}

/// Kills a process that commits, everywhere; `at` each kill, and afterwards, the bench is checked.
fn kill_everywhere(bench: &Bench, at: impl Fn(Death)) {
    let seen = Seen::new();
    let run = |experiment: Experiment| {
        let summary = experiment.kill_at_every_instruction(&bench.worker(), |death| {
            at(death);
            let value = bench.check(death.steps.is_multiple_of(2));
            assert!(death.steps < death.of || value == 1);
            seen.count(value);
        });
        // The allocator's way depends on what the process did before.
        assert!(summary.missed < summary.kills / 4, "{summary:?}");
    };
    run(bench.experiment());
    let [before, after, _] = seen.counts();
    assert!(before > 3 && after > 3, "{before} before, {after} after");
}

#[test]
fn a_commit_over_two_segments_happens_in_both_or_in_none_c1() {
    let bench = Bench::new(2);
    kill_everywhere(&bench, |_| {});
}

#[test]
fn a_commit_over_three_segments_happens_in_all_or_in_none_x1() {
    let bench = Bench::new(3);
    kill_everywhere(&bench, |_| {});
}

#[test]
fn an_recoverer_finds_a_segment_by_its_name_and_also_when_the_name_is_gone_c1() {
    let bench = Bench::new(2);
    let path = bench.scratch.directory().path_of("a").unwrap();
    let aside = bench.scratch.path().join("aside");
    let put_aside = |_| {
        if path.exists() {
            std::fs::rename(&path, &aside).unwrap();
            // And with another segment in its place.
            open(&bench.scratch, "a", true);
        }
    };
    kill_everywhere(&bench, put_aside);
}

#[test]
fn recoverers_killed_at_any_instruction_leave_their_own_recoverers_the_same_work_c1() {
    let bench = Bench::new(2);
    let seen = Seen::new();
    for order in [[0, 1], [1, 0]] {
        let (kills, recoverer_kills) = if thorough() { (40, 60) } else { (12, 6) };
        let experiment = bench.experiment().with_kills(kills).with_recoverer_kills(recoverer_kills);
        let check = |first: Death, second: Death| {
            seen.count(bench.check((first.steps + second.steps).is_multiple_of(2)));
        };
        experiment.double_kill(&bench.worker(), &bench.recoverer(order), || true, check);
    }
    let [before, after, _] = seen.counts();
    assert!(before > 3 && after > 3, "{before} before, {after} after");
}

#[test]
fn the_slot_that_decided_stays_until_the_others_are_settled_c1() {
    let bench = Bench::new(2);
    let [first, second] = &bench.memories[..] else { unreachable!() };
    let seen = Seen::new();
    bench.experiment().kill_at_every_instruction(&bench.worker(), |_| {
        settle(first);
        if !first.dead_slots().is_empty() {
            seen.count(2);
            assert_eq!(words(first), [1; 4], "it has decided");
            settle(second);
            settle(first);
        }
        assert!(first.dead_slots().is_empty());
        bench.check(false);
    });
    assert!(seen.counts()[2] > 0);
}

#[test]
fn a_log_without_room_for_the_others_is_named_and_nothing_is_committed() {
    let bench = Bench::new(2);
    let [first, second] = &bench.memories[..] else { unreachable!() };
    let mut sections = [first, second].map(|memory| Section::enter(memory, LOCKS[0]).unwrap());
    for (section, words) in sections.iter_mut().zip([1, section_room(second)]) {
        let span = section.view().at::<GRANULE>(LOCKS[0] + 2);
        for value in 0..words {
            section.set(span, 0, u32::try_from(value).unwrap());
        }
    }
    assert_eq!(commit_together(&mut sections), Err((1, Error::LogFull)));
    drop(sections);
    assert_eq!(bench.check(false), 0);
}

fn section_room(memory: &Memory) -> usize {
    let room = memory.thread().unwrap().log_capacity();
    usize::try_from(room).unwrap()
}
