//! Every call of the kernel that a process makes on its way to the disk: the process is killed there, or the call fails.

use std::thread;
use std::time::{Duration, Instant};

use tupelo_crashtest::{Exit, FileCall, TracedCalls, fork, phase, thorough};
use tupelo_tuple::fields;

use crate::script::{self, Progress, State};
use crate::{Place, contents};

/// Of so many calls, every day's run has one.
const SAMPLE: usize = 7;

/// What the memory has, and then what the file has.
fn require_legal(place: &Place, progress: &Progress, when: &str) {
    let found = State::of(place);
    progress.require_legal(&found, when);
    // With the last handle all of it came to the file.
    place.forget_memory();
    assert_eq!(State::of(place), found, "{when}, in the file");
}

/// Kills a process in front of call number `number`, and looks what it leaves. Returns whether there was such a call.
fn killed_at(number: usize) -> bool {
    let (place, progress) = (Place::new(), Progress::new());
    let calls = TracedCalls::start(|| (), |()| script::run(&place, &progress));
    for _ in 0..number {
        if calls.next_call().is_none() {
            return false;
        }
        calls.allow();
    }
    let Some(call) = calls.next_call() else { return false };
    calls.kill();
    require_legal(&place, &progress, &format!("killed at call {number}, {call:?}"));
    true
}

#[test]
fn a_process_killed_at_any_call_of_the_kernel_leaves_all_that_was_acknowledged_c1_c4() {
    let (first, step) = if thorough() { (0, 1) } else { (phase() % SAMPLE, SAMPLE) };
    let killed = (first..).step_by(step).take_while(|number| killed_at(*number)).count();
    assert!(killed * step > 100, "only {killed} calls");
}

/// Longest that another process is waited for, which may wait for a lock of the one that stands. It counts for no result.
const PATIENCE: Duration = Duration::from_millis(30);

/// Opens a new file in one process, and in another one while the first stands in front of call number `number`. Returns whether there
/// was such a call.
fn opened_at(number: usize) -> bool {
    let place = Place::new();
    let put = |number: i64| {
        let journal = place.open();
        journal.engine().put(&fields!["job", number]).unwrap();
        journal.settle().unwrap();
    };
    let calls = TracedCalls::start(|| (), |()| put(1));
    for _ in 0..number {
        if calls.next_call().is_none() {
            return false;
        }
        calls.allow();
    }
    if calls.next_call().is_none() {
        return false;
    }
    let other = fork(|| put(2));
    let until = Instant::now() + PATIENCE;
    while !other.has_ended() && Instant::now() < until {
        thread::yield_now();
    }
    calls.allow();
    while calls.next_call().is_some() {
        calls.allow();
    }
    assert_eq!(other.wait(), Exit::Done, "at call {number}");
    assert_eq!(contents(place.open().engine()).len(), 2, "at call {number}");
    true
}

#[test]
fn two_processes_that_open_a_new_file_at_once_have_one_space_c4() {
    let (first, step) = if thorough() { (0, 1) } else { (phase() % SAMPLE, SAMPLE) };
    let opened = (first..).step_by(step).take_while(|number| opened_at(*number)).count();
    assert!(opened * step > 100, "only {opened} calls");
}

/// How a call fails.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// This one, with an error of the device.
    Once,
    /// This and all that need room, until somebody was told twice.
    NoRoom,
}

/// Has a call on the files fail, the one with this number. Returns whether there was such a call.
fn refused_at(number: usize, failure: Failure) -> bool {
    let (place, progress) = (Place::new(), Progress::new());
    let calls = TracedCalls::start(|| (), |()| script::run(&place, &progress));
    let files = place.files();
    let (mut calls_so_far, mut is_refused) = (0, false);
    while let Some(call) = calls.next_call() {
        let file_call = calls.file_call(&call);
        let Some(file_call) = file_call.filter(|call| files.iter().any(|file| file == call.path()))
        else {
            calls.allow();
            continue;
        };
        let needs_room = matches!(file_call, FileCall::Write { .. } | FileCall::Truncate { .. });
        let fails = match failure {
            Failure::Once => calls_so_far == number,
            Failure::NoRoom => calls_so_far >= number && needs_room && progress.refused() < 2,
        };
        calls_so_far += 1;
        if fails {
            is_refused = true;
            progress.fail(&file_call);
            // For whoever looks at a failed test.
            eprintln!(
                "{failure:?} at call {number}: {:?} of {}",
                call.number,
                file_call.path().display()
            );
            calls.refuse(match failure {
                Failure::Once => rustix::io::Errno::IO.raw_os_error(),
                Failure::NoRoom => rustix::io::Errno::NOSPC.raw_os_error(),
            });
        } else {
            calls.allow();
        }
    }
    let when = format!("{failure:?} at call {number} of {calls_so_far}");
    assert_eq!(progress.acknowledged(), script::steps(), "{when}");
    place.forget_memory();
    assert_eq!(State::of(&place), State::after(script::steps()), "{when}");
    is_refused
}

#[test]
fn an_error_of_the_disk_at_any_call_is_told_or_made_good_and_work_goes_on_c4() {
    let (first, step) = if thorough() { (0, 1) } else { (phase() % SAMPLE, SAMPLE) };
    let numbers = || (first..).step_by(step);
    let refused = numbers().take_while(|number| refused_at(*number, Failure::Once)).count();
    assert!(refused * step > 50, "only {refused} calls");
}

#[test]
fn a_disk_without_room_from_any_call_on_is_told_and_work_goes_on_when_there_is_room_c4() {
    let (first, step) = if thorough() { (0, 1) } else { (phase() % SAMPLE, SAMPLE) };
    let numbers = || (first..).step_by(step);
    let refused = numbers().take_while(|number| refused_at(*number, Failure::NoRoom)).count();
    assert!(refused * step > 50, "only {refused} calls");
}
