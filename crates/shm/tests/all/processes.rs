//! Who is alive, and sleeping until woken: between real processes.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use tupelo_crashtest::{Exit, end_this_thread, fork, shared_words};
use tupelo_shm::futex::{self, Wake};
use tupelo_shm::process::{self, ProcessId};
use tupelo_shm::{Mapping, clock};

#[test]
fn a_process_is_alive_until_it_dies_also_while_it_is_stopped() {
    let words = shared_words(2);
    let child = fork(|| {
        let me = ProcessId::current();
        words[1].store(u32::try_from(me.start_time).unwrap(), Ordering::Relaxed);
        words[0].store(me.pid, Ordering::Release);
        loop {
            thread::park();
        }
    });
    while words[0].load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    let (pid, start_time) = (child.pid(), u64::from(words[1].load(Ordering::Relaxed)));
    assert_eq!(words[0].load(Ordering::Relaxed), pid);
    assert!(start_time > 0 && process::is_alive(pid, start_time));
    child.signal(libc::SIGSTOP);
    assert!(process::is_alive(pid, start_time), "stopped is not dead");
    assert!(!process::is_alive(pid, start_time + 1), "another process had that number");
    child.signal(libc::SIGKILL);
    // Nobody has waited for it: first it ends, then it stays a zombie.
    while process::is_alive(pid, start_time) {
        thread::yield_now();
    }
    assert!(fs::exists(format!("/proc/{pid}")).unwrap(), "a zombie, and dead all the same");
    assert_eq!(child.wait(), Exit::Killed(9));
    assert!(!process::is_alive(pid, start_time));
}

#[test]
fn a_thread_is_alive_until_it_ends_though_its_process_goes_on() {
    let (tell, told) = std::sync::mpsc::channel();
    let (finish, finished) = std::sync::mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        let tid = futex::thread_id();
        tell.send((tid, process::thread_start_time(tid))).unwrap();
        let _ = finished.recv();
    });
    let (tid, start_time) = told.recv().unwrap();
    assert_ne!(tid, std::process::id());
    assert!(start_time > 0 && process::thread_is_alive(tid, start_time));
    drop(finish);
    thread.join().unwrap();
    while process::thread_is_alive(tid, start_time) {
        // The kernel takes the thread away a moment after `join` returns.
        thread::yield_now();
    }
    assert!(process::is_alive(std::process::id(), ProcessId::current().start_time));
}

#[test]
fn a_process_is_alive_until_its_last_thread_ends_not_its_first_l5() {
    let words = shared_words(2);
    let child = fork(|| {
        let me = ProcessId::current();
        words[1].store(u32::try_from(me.start_time).unwrap(), Ordering::Relaxed);
        let (tell, told) = std::sync::mpsc::channel();
        thread::spawn(move || {
            tell.send(()).unwrap();
            loop {
                thread::park();
            }
        });
        told.recv().unwrap();
        words[0].store(me.pid, Ordering::Release);
        end_this_thread();
    });
    while words[0].load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    let (pid, start_time) = (child.pid(), u64::from(words[1].load(Ordering::Relaxed)));
    while process::thread_is_alive(pid, start_time) {
        thread::yield_now();
    }
    assert!(process::is_alive(pid, start_time), "its second thread goes on");
    assert_eq!(process::thread_start_time(pid), start_time);
    child.signal(libc::SIGKILL);
    while process::is_alive(pid, start_time) {
        thread::yield_now();
    }
    assert_eq!(child.wait(), Exit::Killed(9));
}

#[test]
fn a_forked_child_is_a_process_of_its_own() {
    let _mapping = Mapping::private(4096).unwrap();
    let parent = ProcessId::current();
    let generation = process::fork_generation();
    let child = fork(|| {
        assert_eq!(process::fork_generation(), generation + 1);
        assert_ne!(ProcessId::current().pid, parent.pid);
        assert!(ProcessId::current().start_time >= parent.start_time);
        let grandchild = fork(|| assert_eq!(process::fork_generation(), generation + 2));
        assert_eq!(grandchild.wait(), Exit::Done);
    });
    assert_eq!(child.wait(), Exit::Done);
    assert_eq!(process::fork_generation(), generation);
}

#[test]
fn a_sleeper_in_another_process_is_woken() {
    let words = shared_words(2);
    let child = fork(|| {
        words[1].store(1, Ordering::Release);
        while words[0].load(Ordering::Acquire) == 0 {
            futex::wait(&words[0], 0, None);
        }
    });
    while words[1].load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    // Until it sleeps there is nobody to wake, and to wake is not to be too early: the word decides.
    while futex::wake(&words[0], 1) == 0 {
        thread::yield_now();
    }
    words[0].store(1, Ordering::Release);
    futex::wake(&words[0], u32::MAX);
    assert_eq!(child.wait(), Exit::Done);
}

#[test]
fn a_sleep_says_why_it_ended() {
    let word = AtomicU32::new(5);
    assert_eq!(futex::wait(&word, 4, None), Wake::Changed);
    let begin = clock::monotonic_ns();
    assert_eq!(futex::wait(&word, 5, Some(Duration::from_millis(20))), Wake::TimedOut);
    assert!(clock::monotonic_ns() - begin >= 20_000_000);
    assert_eq!(futex::wait(&word, 4, Some(Duration::MAX)), Wake::Changed);
    assert_eq!(futex::wake(&word, 1), 0);
    let word = Arc::new(word);
    let sleeper = thread::spawn({
        let word = Arc::clone(&word);
        move || futex::wait(&word, 5, None)
    });
    while futex::wake(&word, 1) == 0 {
        thread::yield_now();
    }
    assert_eq!(sleeper.join().unwrap(), Wake::Woken);
}

/// The kernel's part of C1: it names the dead owner of the lock that was pending, and nothing else.
#[test]
#[allow(unsafe_code, reason = "tells the kernel about a lock")]
fn a_lock_that_was_pending_when_its_owner_was_killed_is_marked() {
    const OWNER_DIED: u32 = 0x4000_0000;
    const WAITERS: u32 = 0x8000_0000;
    for (waiters, cleared) in [(0, false), (WAITERS, false), (0, true)] {
        let words = shared_words(2);
        let child = fork(|| {
            let head = futex::robust_head();
            // SAFETY: the head is this thread's own, asked for in this process.
            unsafe { futex::set_pending(head, &words[0]) };
            words[0].store(futex::thread_id() | waiters, Ordering::Relaxed);
            if cleared {
                // SAFETY: as above.
                unsafe { futex::clear_pending(head) };
            }
            words[1].store(1, Ordering::Release);
            loop {
                thread::park();
            }
        });
        while words[1].load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        let pid = child.pid();
        assert_eq!(child.kill(), Exit::Killed(9));
        let expected = if cleared { pid } else { OWNER_DIED | waiters };
        assert_eq!(words[0].load(Ordering::Relaxed), expected);
    }
}
