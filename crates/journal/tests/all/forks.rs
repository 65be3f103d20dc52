//! Children of a fork use the space as their parent does, and no connection of it.

use tupelo_crashtest::{Exit, fork};
use tupelo_tuple::{fields, template};

use crate::{Place, take_job};

#[test]
fn parent_and_children_bring_their_changes_to_the_file_while_others_fork_c4() {
    let place = Place::new();
    let journal = place.open();
    let children: Vec<_> = (0..4)
        .map(|child: i64| {
            let forked = fork(|| {
                for number in 0..50 {
                    journal.engine().put(&fields!["job", child * 50 + number]).unwrap();
                    journal.settle().unwrap();
                }
            });
            journal.engine().put(&fields!["parent", child]).unwrap();
            journal.settle().unwrap();
            forked
        })
        .collect();
    assert!(take_job(journal.engine()).is_some() || children.len() == 4);
    for child in children {
        assert_eq!(child.wait(), Exit::Done);
    }
    journal.settle().unwrap();
    let before = journal.engine().count(&[template![..]]).unwrap();
    drop(journal);
    place.forget_memory();
    assert_eq!(place.open().engine().count(&[template![..]]), Ok(before));
}

#[test]
fn a_fork_waits_for_no_lock_that_a_thread_of_the_parent_had() {
    let place = Place::new();
    let journal = place.open();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                journal.engine().put(&fields!["parent", 1]).unwrap();
                journal.settle().unwrap();
                journal.settle_later();
            }
        });
        for number in 0..20 {
            let child = fork(|| {
                journal.engine().put(&fields!["job", number]).unwrap();
                journal.settle().unwrap();
                journal.engine().put(&fields!["job", number]).unwrap();
                journal.settle_later();
                while !journal.is_settled() {
                    std::thread::yield_now();
                }
            });
            assert_eq!(child.wait(), Exit::Done);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(journal.engine().count(&[template!["job", tupelo_tuple::Kind::Int]]), Ok(40));
}
