//! Steps over several spaces of one file: on disk each is there as a whole, or not at all (rules X1, O7, C4).

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tupelo_crashtest::{Child, Exit, fork, kill_this_process, seed, shared_words};
use tupelo_engine::{CreateOptions, Engine, Limits, Transaction};
use tupelo_journal::{Error, Journal, remove_space};
use tupelo_shm::{HowRemoved, Segment};
use tupelo_tuple::{Kind, fields, template};

use crate::{Place, contents};

const NAMES: [&str; 3] = ["", "orders", "done"];

fn open(place: &Place) -> [Arc<Journal>; 3] {
    NAMES.map(|name| place.open_space(name))
}

fn put_in_both(one: &Journal, other: &Journal, number: i64) {
    let both = [one, other].map(|journal| Arc::clone(journal.engine()));
    let mut transaction = Transaction::begin(both, Duration::from_secs(3600)).unwrap();
    transaction.put(0, &fields!["job", number]).unwrap();
    transaction.put(1, &fields!["job", number]).unwrap();
    transaction.commit().unwrap();
}

fn jobs(engine: &Engine) -> u64 {
    engine.count(&[template!["job", Kind::Int]]).unwrap()
}

/// The segment of a space, whose name has the id of the space.
fn forget_memory_of(place: &Place, id: [u8; 16]) {
    let id = format!("{:032x}", u128::from_be_bytes(id));
    for entry in std::fs::read_dir(place.directory.join("memory")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().contains(&id) {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn whoever_waits_for_one_space_brings_what_it_shares_with_the_others_x1_c4() {
    let place = Place::new();
    let [plain, orders, done] = open(&place);
    put_in_both(&plain, &orders, 1);
    // Over another one: all of them are brought.
    put_in_both(&orders, &done, 2);
    done.settle().unwrap();
    assert!([&plain, &orders, &done].iter().all(|journal| journal.is_settled()));
    put_in_both(&plain, &done, 3);
    assert_eq!(plain.engine().move_to(done.engine(), &[template!["job", 1]]), Ok(1));
    drop((plain, orders, done));
    place.forget_memory();
    let counts = open(&place).map(|journal| jobs(journal.engine()));
    assert_eq!(counts, [1, 2, 3]);
}

#[test]
fn what_is_in_one_space_alone_waits_for_no_other_c4() {
    let place = Place::new();
    let [plain, orders, _] = open(&place);
    orders.engine().put(&fields!["job", 1]).unwrap();
    plain.engine().put(&fields!["job", 2]).unwrap();
    let drain = orders.engine().try_drain().unwrap().unwrap();
    plain.settle().unwrap();
    assert!(plain.is_settled() && !orders.is_settled());
    drop(drain);
}

#[test]
fn a_step_over_two_spaces_waits_for_no_third_one_c4() {
    let place = Place::new();
    let [plain, orders, done] = open(&place);
    put_in_both(&plain, &orders, 1);
    done.engine().put(&fields!["job", 2]).unwrap();
    let drain = done.engine().try_drain().unwrap().unwrap();
    plain.settle().unwrap();
    assert!(orders.is_settled() && !done.is_settled());
    drop(drain);
    // A chain: whoever brings the first brings all.
    put_in_both(&plain, &orders, 3);
    put_in_both(&orders, &done, 4);
    plain.settle().unwrap();
    assert!(orders.is_settled() && done.is_settled());
}

/// A memory of the next generation, which a process has left that was killed while it filled it.
fn leave_memory_of_next_generation(place: &Place, id: [u8; 16], generation: u64) {
    let file = std::fs::metadata(place.file()).unwrap();
    let (id, device) = (u128::from_be_bytes(id), file.dev());
    let name = format!("file-{id:032x}-{:x}-{device:x}-{:x}", generation + 1, file.ino());
    let limits = Limits { size_bytes: 16 << 20, ..Limits::default() };
    let create = CreateOptions {
        reserve_bytes: Engine::reserve_bytes_journalled(limits.size_bytes, 4 << 20),
        ..CreateOptions::default()
    };
    let directory = place.options().directory;
    let made =
        Segment::create_or_attach(&directory, &name, &create, &Engine::segment_layout(), |map| {
            Engine::initialise_journalled(map, &limits, 4 << 20)
        });
    drop(made.unwrap());
}

#[test]
fn memory_that_was_left_half_filled_is_never_that_of_a_space_whose_memory_was_given_up_c4() {
    let place = Place::new();
    let [plain, orders, done] = open(&place);
    plain.engine().put(&fields!["job", 1]).unwrap();
    plain.settle().unwrap();
    let (id, lost) = (plain.id(), orders.id());
    drop((plain, orders, done));
    leave_memory_of_next_generation(&place, id, 1);
    let child = fork(|| {
        let [plain, orders, _] = open(&place);
        put_in_both(&plain, &orders, 2);
        kill_this_process()
    });
    assert!(matches!(child.wait(), Exit::Killed(_)));
    forget_memory_of(&place, lost);
    let refused = place.open().flush();
    assert!(matches!(refused, Err(Error::TakenOver { .. })), "{refused:?}");
    assert_eq!(contents(place.open().engine()), [r#"("job", 1)"#]);
}

#[test]
fn to_flush_a_space_whose_memory_was_given_up_is_refused_c4() {
    let place = Place::new();
    let journal = place.open();
    journal.engine().put(&fields!["job", 1]).unwrap();
    journal.engine().retire(HowRemoved::Removed);
    let refused = journal.flush();
    assert!(refused.is_err(), "the put is on no disk: {refused:?}");
}

#[test]
fn a_space_that_is_removed_while_somebody_writes_to_another_takes_nothing_of_it_x1_c4() {
    let place = Place::new();
    let [plain, orders, done] = open(&place);
    put_in_both(&plain, &orders, 1);
    put_in_both(&orders, &done, 2);
    let drain = done.engine().try_drain().unwrap().unwrap();
    std::thread::scope(|scope| {
        let removed =
            scope.spawn(|| remove_space(&place.file(), "orders", &place.options().directory));
        while orders.engine().try_drain().is_ok_and(|drain| drain.is_some()) {
            std::thread::yield_now();
        }
        drop(drain);
        removed.join().unwrap().unwrap();
    });
    plain.settle().unwrap();
    done.settle().unwrap();
    drop((plain, orders, done));
    place.forget_memory();
    assert_eq!(contents(place.open().engine()), [r#"("job", 1)"#]);
    assert_eq!(contents(place.open_space("done").engine()), [r#"("job", 2)"#]);
}

#[test]
fn a_step_whose_other_half_was_lost_with_its_memory_has_not_happened_x1_c4() {
    let place = Place::new();
    let orders = open(&place)[1].id();
    let child = fork(|| {
        let [plain, orders, _] = open(&place);
        plain.engine().put(&fields!["job", 1]).unwrap();
        plain.settle().unwrap();
        assert_eq!(plain.engine().move_to(orders.engine(), &[template!["job", 1]]), Ok(1));
        // What was in memory alone, too, though no other space has a part of it.
        plain.engine().put(&fields!["job", 2]).unwrap();
        kill_this_process()
    });
    assert!(matches!(child.wait(), Exit::Killed(_)));
    forget_memory_of(&place, orders);
    let (plain, done) = (place.open(), place.open_space("done"));
    done.engine().put(&fields!["job", 5]).unwrap();
    done.settle().unwrap();
    let refused = plain.flush();
    assert!(matches!(refused, Err(Error::TakenOver { .. })), "{refused:?}");
    assert_eq!(contents(place.open_space("orders").engine()), [""; 0]);
    drop(plain);
    assert_eq!(contents(place.open().engine()), [r#"("job", 1)"#]);
    assert_eq!(contents(place.open_space("done").engine()), [r#"("job", 5)"#]);
}

#[test]
fn a_removed_space_takes_nothing_of_the_others_with_it_x1_c4() {
    let place = Place::new();
    let [plain, orders, _] = open(&place);
    put_in_both(&plain, &orders, 1);
    remove_space(&place.file(), "orders", &place.options().directory).unwrap();
    plain.settle().unwrap();
    drop((plain, orders));
    place.forget_memory();
    assert_eq!(contents(place.open().engine()), [r#"("job", 1)"#]);
}

/// Workers at once, and tokens that they move between the spaces.
const WORKERS: usize = 3;
const TOKENS: i64 = 20;

/// Moves tokens on, and counts what was acknowledged. Never ends.
fn work(place: &Place, worker: usize, moved: &AtomicU32) {
    let journals = open(place);
    let mut random = fastrand::Rng::with_seed(seed() ^ worker as u64);
    loop {
        let (from, to) = (random.usize(0..3), random.usize(0..3));
        let template = [template!["token", random.i64(0..TOKENS)]];
        if from == to {
            continue;
        }
        let count = journals[from].engine().move_to(journals[to].engine(), &template).unwrap();
        if count > 0 {
            journals[random.choice([from, to]).unwrap()].settle().unwrap();
            moved.fetch_add(1, Ordering::Relaxed);
        } else {
            // What one space has alone is brought by itself.
            journals[from].engine().put(&fields!["alone", 1]).unwrap();
            journals[from].settle().unwrap();
        }
    }
}

/// Kills all workers at some moment, again and again. Each token is in one space, whatever is left.
fn kill_all(forgets_memory: bool) {
    let place = Place::new();
    let journals = open(&place);
    for number in 0..TOKENS {
        journals[0].engine().put(&fields!["token", number]).unwrap();
    }
    drop(journals);
    let moved = &shared_words(1)[0];
    for round in 0..6 {
        let place = &place;
        let children: Vec<_> = (0..WORKERS)
            .map(|worker| fork(move || work(place, round * WORKERS + worker, moved)))
            .collect();
        let until = moved.load(Ordering::Relaxed) + 30 + 17 * u32::try_from(round).unwrap();
        // Whoever has ended before is no worker, and says why below.
        while moved.load(Ordering::Relaxed) < until && !children.iter().any(Child::has_ended) {
            std::thread::yield_now();
        }
        for child in children {
            let exit = child.kill();
            assert!(matches!(exit, Exit::Killed(_)), "{exit:?}");
        }
        if forgets_memory {
            place.forget_memory();
        }
        let journals = open(place);
        for number in 0..TOKENS {
            let count = |journal: &Arc<Journal>| {
                journal.engine().count(&[template!["token", number]]).unwrap()
            };
            let counts: Vec<u64> = journals.iter().map(count).collect();
            assert_eq!(counts.iter().sum::<u64>(), 1, "token {number}: {counts:?}");
        }
    }
}

#[test]
fn each_tuple_that_moves_is_in_one_space_after_all_were_killed_and_the_memory_is_gone_x1_c4() {
    kill_all(true);
}

#[test]
fn each_tuple_that_moves_is_in_one_space_after_all_were_killed_and_the_memory_goes_on_x1_c4() {
    kill_all(false);
}
