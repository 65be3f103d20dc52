//! A section changes at most as many words as its log has room for, never half of them, and alone in its log (rule C1).

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::{LAYOUT, OPTIONS, Scratch};
use tupelo_shm::{Error, GRANULE, LOG_ENTRIES_MIN, Memory, Section, Segment};

#[expect(clippy::cast_possible_truncation, reason = "17 MiB of lines")]
const LOCK: u32 = (Memory::engine_base() / GRANULE) as u32;
const WORDS: u32 = LOCK + 1;

fn memory() -> (Memory, Scratch) {
    let scratch = Scratch::new();
    let end = Memory::engine_base() + 4096;
    let make = |mapping: &tupelo_shm::Mapping| Memory::initialise(mapping, end, 4096).map(drop);
    let segment =
        Segment::create_or_attach(&scratch.directory(), "a", &OPTIONS, &LAYOUT, make).unwrap();
    (Memory::new(segment.mapping().clone()), scratch)
}

/// Counts the first word up `times` times, then commits.
fn count_up(memory: &Memory, times: usize) -> Result<(), Error> {
    let mut section = Section::enter(memory, LOCK)?;
    let words = section.view().at::<GRANULE>(WORDS);
    for _ in 0..times {
        section.add(words, 0, 1);
    }
    // What is computed from words that were not stored leads nowhere.
    section.view().at::<GRANULE>(WORDS).init(4, 1);
    section.commit()
}

fn word(memory: &Memory, at: usize) -> u32 {
    let section = Section::enter(memory, LOCK).unwrap();
    section.view().at::<GRANULE>(WORDS).load(at)
}

#[test]
fn a_section_has_room_for_as_many_words_as_it_says() {
    let (memory, _scratch) = memory();
    assert_eq!(Section::enter(&memory, LOCK).unwrap().room(), LOG_ENTRIES_MIN);
    count_up(&memory, LOG_ENTRIES_MIN).unwrap();
    assert_eq!(word(&memory, 0) as usize, LOG_ENTRIES_MIN);
}

/// Stops at the fault where faults are looked for; elsewhere it is refused, and nothing is stored, not even
/// what needs no log.
#[test]
fn a_section_that_changes_more_than_it_has_room_for_changes_nothing_c1() {
    let (memory, _scratch) = memory();
    let too_many = || count_up(&memory, LOG_ENTRIES_MIN + 1);
    let outcome = catch_unwind(AssertUnwindSafe(too_many));
    if cfg!(debug_assertions) {
        outcome.unwrap_err();
    } else {
        assert_eq!(outcome.unwrap(), Err(Error::LogFull));
    }
    assert_eq!([word(&memory, 0), word(&memory, 4)], [0, 0]);
    count_up(&memory, 1).unwrap();
}

/// The sections that a thread has open in a segment share its log.
#[test]
fn a_section_is_refused_while_an_earlier_one_of_its_thread_has_changed_something_c1() {
    let (memory, _scratch) = memory();
    let outer = Section::try_enter(&memory, LOCK).unwrap().unwrap();
    let mut inner = Section::enter(&memory, LOCK + 2).unwrap();
    let words = inner.view().at::<GRANULE>(WORDS);
    inner.set(words, 0, 7);
    drop(outer);
    assert!(matches!(Section::enter(&memory, LOCK), Err(Error::Reentrant)));
    // The log is its own still: what it has changed is undone.
    drop(inner);
    assert_eq!(word(&memory, 0), 0);
    count_up(&memory, 1).unwrap();
}
