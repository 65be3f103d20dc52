//! Processes that are killed while they put, take and bring changes to the file (rules C1 to C4).

use std::sync::atomic::{AtomicU32, Ordering};

use tupelo_crashtest::{Exit, fork, shared_words};
use tupelo_engine::Order;
use tupelo_tuple::{Kind, Value, fields, template};

use crate::{Place, owned};

/// Processes that put and take at once.
const WORKERS: usize = 4;
/// Puts of one of them in one round, at most.
const PUTS_MAX: usize = 2_000;

/// What each worker was told of its puts and takes, in memory that survives it: 0 nothing, then what follows.
const PUT_BEGUN: u32 = 1;
const PUT: u32 = 2;
const TAKEN: u32 = 3;

/// Puts numbers of its own, takes any numbers, and notes what it was told. Never ends.
fn work(place: &Place, notes: &[AtomicU32], round: usize, worker: usize) {
    let journal = place.open();
    let engine = journal.engine();
    let first = (round * WORKERS + worker) * PUTS_MAX;
    for number in first..first + PUTS_MAX {
        notes[number].store(PUT_BEGUN, Ordering::Relaxed);
        engine.put(&fields!["job", i64::try_from(number).unwrap()]).unwrap();
        journal.settle().unwrap();
        // Not over what another one may have noted who has taken it.
        let put =
            notes[number].compare_exchange(PUT_BEGUN, PUT, Ordering::Relaxed, Ordering::Relaxed);
        assert!(matches!(put, Ok(_) | Err(TAKEN)));
        if number % 3 == 0 {
            let template = [template!["job", Kind::Int]];
            let taken = engine.try_take(&template, Order::Fifo, owned).unwrap();
            journal.settle().unwrap();
            if let Some(taken) = taken {
                let before = notes[number_of(&taken)].swap(TAKEN, Ordering::Relaxed);
                assert_ne!(before, TAKEN, "{taken} was taken twice");
            }
        }
    }
    loop {
        std::thread::park();
    }
}

fn number_of(tuple: &tupelo_tuple::Tuple) -> usize {
    let Value::Int(number) = tuple[1] else { panic!("{tuple}") };
    usize::try_from(number).unwrap()
}

/// What must be there, and must not: takes under way when their process was killed may have gone either way.
fn require_legal(place: &Place, notes: &[AtomicU32], rounds: usize) {
    let journal = place.open();
    let there = journal.engine().read_all(&[template!["job", Kind::Int]], None, owned).unwrap();
    let mut is_there = vec![false; notes.len()];
    for tuple in &there {
        let number = number_of(tuple);
        assert!(!is_there[number], "{tuple} is there twice");
        is_there[number] = true;
        let note = notes[number].load(Ordering::Relaxed);
        assert_ne!(note, 0, "{tuple} was never put");
        assert_ne!(note, TAKEN, "{tuple} was taken, and is there again");
    }
    let is_lost = |(number, note): &(usize, &AtomicU32)| {
        note.load(Ordering::Relaxed) == PUT && !is_there[*number]
    };
    // Each process was in the middle of one take at most, which nobody was told of.
    let lost = notes.iter().enumerate().filter(is_lost).count();
    assert!(lost <= rounds * WORKERS, "{lost} puts are lost");
}

/// Kills all workers at some moment, in each of several rounds, and looks what is there when the space is opened again.
fn kill_all(rounds: usize, forgets_memory: bool) {
    let place = Place::new();
    let notes = shared_words(rounds * WORKERS * PUTS_MAX);
    for round in 0..rounds {
        let place = &place;
        let children: Vec<_> =
            (0..WORKERS).map(|worker| fork(move || work(place, notes, round, worker))).collect();
        // Each round is longer than the last: as many puts are known to have returned.
        let begun = round * WORKERS * PUTS_MAX;
        let puts = || {
            let round = &notes[begun..begun + WORKERS * PUTS_MAX];
            round.iter().filter(|note| note.load(Ordering::Relaxed) >= PUT).count()
        };
        while puts() < 20 + 37 * round {
            std::thread::yield_now();
        }
        for child in children {
            assert!(matches!(child.kill(), Exit::Killed(_)));
        }
        if forgets_memory {
            place.forget_memory();
        }
        require_legal(place, notes, round + 1);
    }
}

#[test]
fn after_all_processes_were_killed_and_the_memory_is_gone_what_was_acknowledged_counts_c2_c4() {
    kill_all(8, true);
}

#[test]
fn after_all_processes_were_killed_the_memory_goes_on_and_comes_to_the_file_c1_c4() {
    kill_all(8, false);
}
