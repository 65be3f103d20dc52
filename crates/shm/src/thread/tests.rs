//! Who is taken for dead, and who comes late.

use std::cell::RefCell;

use tupelo_crashtest::{Exit, fork};

use super::*;
use crate::section::Section;
use crate::segment::{CreateOptions, Segment};
use crate::superblock::Layout;

/// A lock in the engine's part.
fn scope() -> u32 {
    u32::try_from(table::ENGINE_BASE / crate::access::GRANULE).unwrap()
}

fn memory() -> Arc<Memory> {
    let end = Memory::engine_base() + 4096;
    let options = CreateOptions {
        reserve_bytes: end,
        initial_commit_bytes: 4096,
        create: true,
        fresh: false,
        mode: 0o600,
    };
    let layout = Layout { minor: 0, abi_hash: 0, features_incompatible: 0, features_compatible: 0 };
    let segment = Segment::private(&options, &layout, |mapping| {
        Memory::initialise(mapping, end, 4096).map(drop)
    });
    Arc::new(Memory::new(Arc::clone(segment.unwrap().mapping())))
}

#[test]
fn a_slot_that_another_thread_got_while_the_system_was_asked_is_of_the_living_c1() {
    let memory = memory();
    let slot = memory.thread().unwrap().slot();
    let (own, start_time) = identity(slot).unwrap();
    assert!(!is_dead(slot));
    assert!(is_dead_by(slot, |_, _| false), "as the system says");
    let becomes = |tid: u32, start_time: u64| {
        vacate(slot);
        slot.init64(START_TIME, start_time);
        slot.word(TID).store(tid, Ordering::Release);
    };
    assert!(
        !is_dead_by(slot, |_, _| {
            becomes(own + 1, 1);
            false
        }),
        "another number"
    );
    becomes(own, start_time);
    assert!(
        !is_dead_by(slot, |_, _| {
            becomes(own, start_time + 1);
            false
        }),
        "the same again"
    );
    becomes(own, LEFT);
    assert!(has_left(slot) && is_dead_by(slot, |_, _| unreachable!("it said so itself")));
    becomes(own, start_time);
}

#[test]
fn a_process_is_known_by_its_number_and_nobody_by_one_that_is_free() {
    let memory = memory();
    let own = memory.thread().unwrap().participant();
    assert_eq!(memory.pid_of_participant(own), std::process::id());
    for nobody in [own + 1, u32::MAX] {
        assert_eq!(memory.pid_of_participant(nobody), 0);
    }
}

struct UsesItAtTheEnd(Arc<Memory>, Arc<AtomicU32>);

impl Drop for UsesItAtTheEnd {
    fn drop(&mut self) {
        let numbers = [(); 3].map(|()| self.0.thread().map_or(0, |thread| thread.slot_number()));
        let is_one = numbers.iter().all(|number| *number == numbers[0]);
        self.1.store(if is_one { numbers[0] } else { 0 }, Ordering::SeqCst);
    }
}

thread_local! {
    static LATE: RefCell<Option<UsesItAtTheEnd>> = const { RefCell::new(None) };
}

#[test]
fn a_destructor_that_comes_after_all_others_has_one_slot_which_is_swept() {
    let (memory, number) = (memory(), Arc::new(AtomicU32::new(0)));
    let late = UsesItAtTheEnd(Arc::clone(&memory), Arc::clone(&number));
    let uses = Arc::clone(&memory);
    let thread = std::thread::spawn(move || {
        // Made first, so destroyed last.
        LATE.with(|place| *place.borrow_mut() = Some(late));
        uses.thread().unwrap();
    });
    thread.join().unwrap();
    assert_ne!(number.load(Ordering::SeqCst), 0, "the same each time");
    // The system may still be at it.
    while memory.dead_slots().is_empty() {
        std::thread::yield_now();
    }
    assert!(memory.somebody_died(), "though it had nothing in its hands");
}

#[test]
fn what_the_program_has_left_that_this_process_was_before_is_of_the_dead_l5() {
    let memory = memory();
    let thread = memory.thread().unwrap();
    let (slot, view) = (thread.slot(), memory.view());
    let entry = participant_entry(&view, thread.participant() as usize);
    let (own, me) = (identity(slot).unwrap(), ProcessId::current());
    let becomes = |(tid, start_time): (u32, u64)| {
        slot.init64(START_TIME, start_time);
        slot.word(TID).store(tid, Ordering::Release);
    };
    assert!(!Memory::clone(&memory).somebody_died(), "another handle of the same program");
    // As it would be: the earlier program's first thread had the number of this one's.
    entry.init64(PROGRAM, process::program() + 1);
    becomes((me.pid, me.start_time));
    let later = Memory::clone(&memory);
    assert!(later.somebody_died());
    let dead = memory.participants().into_iter().filter(|process| !process.alive);
    assert!(dead.map(|process| process.number).eq([thread.participant()]));
    assert!(has_left(slot) && is_dead(slot));
    assert_eq!(start_time_of(&view, thread.slot_number(), me.pid), 0, "of who has its number now");
    let fork_generation = process::fork_generation();
    assert_ne!(later.participant(fork_generation).unwrap(), thread.participant());
    becomes(own);
}

#[test]
fn a_thread_that_had_a_slot_at_the_same_addresses_before_gets_one_in_the_new_mapping() {
    let alone = fork(|| {
        let mut places = Vec::new();
        for _ in 0..20 {
            let memory = memory();
            places.push(memory.mapping().base());
            assert_eq!(memory.slots_used(), 0, "the mapping is new");
            drop(Section::enter(&memory, scope()).unwrap());
            let thread = memory.thread().unwrap();
            assert_eq!(identity(thread.slot()).unwrap().0, futex::thread_id());
            assert_eq!((thread.slot_number(), memory.slots_used() > 0), (1, true));
        }
        places.sort_unstable();
        places.dedup();
        assert!(places.len() < 20, "no address came twice, so nothing was shown");
    });
    assert_eq!(alone.wait(), Exit::Done);
}

#[test]
fn a_thread_may_outlive_what_it_has_used() {
    let thread = std::thread::spawn(|| {
        for _ in 0..3 {
            drop(Section::enter(&memory(), scope()).unwrap());
        }
    });
    thread.join().unwrap();
}
