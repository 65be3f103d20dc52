//! The harness itself: it finds what it is for, and says where.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(unsafe_code, reason = "the memory of an experiment is named by its address")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use tupelo_crashtest::{Exit, Experiment, Region, Script, fork, kill_this_process, shared_words};

/// A page that all processes of an experiment share.
fn page() -> (&'static [AtomicU32], Region) {
    let words = shared_words(1024);
    // SAFETY: one page, mapped for ever, accessed by atomics only.
    let region = unsafe { Region::new(words.as_ptr().cast_mut().cast(), 4096) };
    (words, region)
}

#[test]
fn a_process_killed_at_every_instruction_leaves_every_state_it_goes_through() {
    let (words, region) = page();
    let seen = shared_words(16);
    words[0].store(7, Ordering::Relaxed);
    let script = Script::new(
        || (),
        |()| {
            for value in 8..12 {
                words[0].store(value, Ordering::Relaxed);
            }
        },
    );
    let summary = Experiment::new(region).kill_at_every_instruction(&script, |death| {
        let value = words[0].load(Ordering::Relaxed);
        assert!((7..12).contains(&value) && (value == 11 || death.steps < death.of));
        seen[value as usize].fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!((summary.missed, summary.kills), (0, summary.steps));
    assert!(seen[7..12].iter().all(|count| count.load(Ordering::Relaxed) > 0));
    assert_eq!(words[0].load(Ordering::Relaxed), 7, "the memory is as before");
}

#[test]
fn a_state_that_lasts_for_one_instruction_is_found_and_named() {
    let (words, region) = page();
    let error = catch_unwind(AssertUnwindSafe(|| {
        let script = Script::new(
            || (),
            |()| {
                words[0].store(1, Ordering::Relaxed);
                words[1].store(1, Ordering::Relaxed);
            },
        );
        Experiment::new(region).kill_at_every_instruction(&script, |_| {
            let values = [0, 1].map(|index: usize| words[index].load(Ordering::Relaxed));
            assert!(values[0] == values[1], "half done");
        });
    }))
    .unwrap_err();
    let message = error.downcast_ref::<String>().unwrap();
    assert!(message.contains("half done") && message.contains("steps: "), "{message}");
}

/// Three by three: each of them in its own experiment, and each pair in one of nine.
#[test]
fn experiments_of_all_phases_kill_at_every_instruction_and_at_every_pair() {
    let (words, region) = page();
    let script =
        |word: usize| Script::new(|| (), move |()| words[word].store(1, Ordering::Relaxed));
    let (worker, recoverer) = (script(0), script(1));
    let deaths = shared_words(64 * 64);
    let of = |experiment: Experiment| {
        experiment.double_kill(
            &worker,
            &recoverer,
            || true,
            |first, second| {
                deaths[first.steps * 64 + second.steps].fetch_add(1, Ordering::Relaxed);
            },
        )
    };
    let all = of(Experiment::new(region));
    let count = || deaths.iter().filter(|pair| pair.load(Ordering::Relaxed) > 0).count();
    let (pairs, max) = (count(), all.steps.div_ceil(3));
    for is_centred in [false, true] {
        for pair in deaths {
            pair.store(0, Ordering::Relaxed);
        }
        let sparse = || Experiment::new(region).with_stride(3).with_recoverer_kills(max);
        let sparse = || if is_centred { sparse().centred() } else { sparse() };
        of(sparse().with_phase(0));
        assert!(count() * 3 < pairs, "{} of {pairs} in one phase", count());
        for phase in 1..9 {
            of(sparse().with_phase(phase));
        }
        assert_eq!(count(), pairs);
    }
}

#[test]
fn the_recoverer_is_killed_at_every_instruction_too() {
    let (words, region) = page();
    let seen = shared_words(16);
    let worker = Script::new(|| (), |()| words[0].store(1, Ordering::Relaxed));
    let recoverer = Script::new(
        || (),
        |()| {
            if words[0].load(Ordering::Relaxed) == 1 {
                words[1].store(1, Ordering::Relaxed);
                words[0].store(2, Ordering::Relaxed);
            }
        },
    );
    let leaves_work = || words[0].load(Ordering::Relaxed) == 1;
    let summary =
        Experiment::new(region).double_kill(&worker, &recoverer, leaves_work, |_, second| {
            let state = words[0].load(Ordering::Relaxed) * 2 + words[1].load(Ordering::Relaxed);
            assert!(second.steps < second.of || state == 0 || state == 5, "{state}");
            seen[state as usize].fetch_add(1, Ordering::Relaxed);
        });
    let counts: Vec<u32> = seen.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    assert!(summary.recoverers > 0 && summary.missed == 0);
    assert!(counts[0] > 0 && counts[2] > 0 && counts[3] > 0 && counts[5] > 0, "{counts:?}");
    assert_eq!(counts.iter().filter(|&&count| count > 0).count(), 4);
}

#[test]
fn each_pass_of_a_loop_is_killed_in_its_turn() {
    const ROUNDS: u32 = 40;
    let (words, region) = page();
    let seen = shared_words(ROUNDS as usize + 1);
    let script = Script::new(
        || (),
        |()| {
            for _ in 0..ROUNDS {
                words[0].fetch_add(1, Ordering::Relaxed);
            }
        },
    );
    let summary = Experiment::new(region).kill_at_every_instruction(&script, |_| {
        seen[words[0].load(Ordering::Relaxed) as usize].fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!((summary.missed, summary.kills), (0, summary.steps));
    assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) > 0));
}

/// Of hundreds of instructions two are seen by others; that a lock is the process's own, in its own memory, the kernel sees.
#[test]
fn deaths_that_are_told_apart_leave_all_that_deaths_leave() {
    const OWNER_DIED: u32 = 0x4000_0000;
    let (words, region) = page();
    let lock = &words[0];
    let (seen, seen_apart) = (shared_words(5), shared_words(5));
    let script = Script::new(
        || (pending_lock(), std::process::id()),
        |&mut (pending, tid)| {
            let compute = || (0..100_u32).fold(1, |all, one| std::hint::black_box(all ^ one));
            // SAFETY: the slot is this thread's own. The kernel reads it when the thread ends.
            let set = |address: usize| unsafe { pending.write_volatile(address) };
            compute();
            lock.store(tid, Ordering::Relaxed);
            compute();
            set(lock.as_ptr().addr());
            compute();
            set(0);
            compute();
            lock.store(0, Ordering::Relaxed);
        },
    );
    let run = |experiment: Experiment, seen: &[AtomicU32]| {
        experiment.kill_at_every_instruction(&script, |death| {
            let left = match lock.load(Ordering::Relaxed) {
                0 => 0,
                OWNER_DIED => 1,
                tid if tid == death.pid => 2,
                _ => 3,
            };
            seen[left].fetch_add(1, Ordering::Relaxed);
        })
    };
    let every = run(Experiment::new(region), seen);
    let apart = run(Experiment::new(region).with_named_deaths(), seen_apart);
    let found = |seen: &[AtomicU32]| {
        seen.iter().map(|count| count.load(Ordering::Relaxed) > 0).collect::<Vec<_>>()
    };
    assert_eq!(found(seen), [true, true, true, false, false]);
    assert_eq!(found(seen_apart), found(seen));
    assert_eq!((apart.missed, apart.kills), (0, 5), "before all, and after each change");
    assert!(every.kills > 400);
}

/// Across a border of pages, by another address, and by the kernel.
#[test]
fn what_is_changed_is_told_apart_wherever_it_lies() {
    const PAGE: usize = 4096;
    // SAFETY: a name that ends, and no flags.
    let file = unsafe { libc::memfd_create(c"experiment".as_ptr(), 0) };
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::ftruncate(file, 2 * 4096) }, 0);
    let map = || {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (none, how) = (std::ptr::null_mut(), libc::MAP_SHARED);
        // SAFETY: the system chooses addresses that nobody uses.
        let place = unsafe { libc::mmap(none, 2 * PAGE, access, how, file, 0) };
        assert_ne!(place, libc::MAP_FAILED);
        place.cast::<u8>()
    };
    let base = map();
    // SAFETY: mapped for ever, and used by the processes of the experiment alone.
    let region = unsafe { Region::new(base, 2 * PAGE) };
    let script = Script::new(
        || (),
        |()| {
            // SAFETY: inside the two pages.
            let border = unsafe { base.add(PAGE - 4) };
            // SAFETY: as above; eight bytes at any address.
            unsafe { border.cast::<u64>().write_unaligned(u64::MAX) };
            let again = map();
            // SAFETY: the first byte of what was just mapped.
            unsafe { again.write_volatile(1) };
            // SAFETY: no memory is involved.
            unsafe { libc::getppid() };
        },
    );
    let seen = shared_words(4);
    let summary =
        Experiment::new(region).with_named_deaths().kill_at_every_instruction(&script, |_| {
            // SAFETY: two pages, which nobody writes to now.
            let bytes = unsafe { std::slice::from_raw_parts(base, 2 * PAGE) };
            let [first, before, behind] = [0, PAGE - 1, PAGE].map(|at| bytes[at]);
            assert_eq!(before, behind, "one instruction");
            seen[usize::from(first != 0) + usize::from(before != 0)]
                .fetch_add(1, Ordering::Relaxed);
        });
    let seen: Vec<u32> = seen.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    assert_eq!((summary.missed, summary.steps), (0, 5), "the beginning and four changes");
    assert_eq!(seen, [1, 2, 3, 0], "and the end");
}

/// The slot of this thread in which the kernel, when it dies, finds the address of a lock.
fn pending_lock() -> *mut usize {
    let (mut head, mut bytes) = (std::ptr::null_mut::<usize>(), 0_usize);
    // SAFETY: writes two words, into local variables.
    unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut bytes) };
    assert_eq!((head.is_null(), bytes), (false, 24));
    // SAFETY: the head of this thread is three words.
    let offset = unsafe { head.add(1) };
    // SAFETY: the offset of a lock from its entry, which others would use for mutexes that are robust.
    unsafe { offset.write_volatile(0) };
    // SAFETY: as above.
    unsafe { head.add(2) }
}

#[test]
fn a_child_reports_its_panic_and_its_signal() {
    assert_eq!(fork(|| ()).wait(), Exit::Done);
    assert_eq!(fork(|| std::process::abort()).wait(), Exit::Killed(6));
    let Exit::Panicked(message) = fork(|| panic!("for {}", "a reason")).wait() else {
        panic!("a panic is no other end");
    };
    assert!(message.contains("for a reason") && message.contains("harness.rs"), "{message}");
}

#[test]
fn another_process_comes_between_any_two_instructions() {
    let (words, region) = page();
    let seen = shared_words(4);
    let worker = Script::new(
        || (),
        |()| {
            let before = words[0].load(Ordering::Relaxed);
            words[0].store(before + 1, Ordering::Relaxed);
        },
    );
    let other = Script::new(
        || (),
        |()| {
            words[0].fetch_add(1, Ordering::Relaxed);
        },
    );
    let experiment = Experiment::new(region);
    let summary = experiment.interrupt_at_every_instruction(&worker, &other, |interruption| {
        assert!(!interruption.waited);
        seen[words[0].load(Ordering::Relaxed) as usize].fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!((summary.missed, summary.interruptions), (0, summary.steps));
    let seen: Vec<u32> = seen.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    let all = u32::try_from(summary.steps).unwrap() + 1;
    assert!(
        seen[0] == 0 && seen[1] > 0 && seen[2] > seen[1] && seen[3] == 0,
        "one is lost between"
    );
    assert_eq!(seen[1] + seen[2], all);
}

#[test]
fn the_ends_of_a_script_come_before_what_is_between_if_asked_for() {
    let (words, region) = page();
    let order = shared_words(64);
    let worker =
        Script::new(|| (), |()| (1..6).for_each(|value| words[0].store(value, Ordering::Relaxed)));
    let other = Script::new(|| (), |()| ());
    let experiment = Experiment::new(region).with_kills(3).with_phase(1).with_ends_first();
    let summary = experiment.interrupt_at_every_instruction(&worker, &other, |interruption| {
        let count = order[0].fetch_add(1, Ordering::Relaxed) as usize;
        order[1 + count]
            .store(u32::try_from(interruption.instructions).unwrap(), Ordering::Relaxed);
    });
    let order: Vec<u32> = order.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    let all = u32::try_from(summary.steps).unwrap() + 1;
    let between = &order[3..=order[0] as usize];
    assert_eq!(order[1..3], [1, all]);
    assert!(between.len() > 1 && between.is_sorted(), "{order:?}");
    assert!(between.iter().all(|one| (2..all).contains(one)), "{order:?}");
}

#[test]
fn who_waits_for_the_first_goes_on_after_it() {
    let (words, region) = page();
    let worker = Script::new(
        || (),
        |()| {
            words[0].store(1, Ordering::Release);
            words[0].store(2, Ordering::Release);
            words[0].store(3, Ordering::Release);
        },
    );
    let other = Script::new(
        || (),
        |()| {
            while words[0].load(Ordering::Acquire) != 3 {
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
            words[1].store(1, Ordering::Relaxed);
        },
    );
    let experiment = Experiment::new(region);
    let summary = experiment.interrupt_at_every_instruction(&worker, &other, |interruption| {
        assert_eq!((words[0].load(Ordering::Relaxed), words[1].load(Ordering::Relaxed)), (3, 1));
        assert!(interruption.waited || interruption.instructions + 8 > interruption.of);
    });
    assert_eq!(summary.missed, 0);
}

#[test]
fn another_process_may_die_of_its_script() {
    let (words, region) = page();
    let worker = Script::new(|| (), |()| words[0].store(1, Ordering::Relaxed));
    let other = Script::new(|| (), |()| kill_this_process());
    let summary = Experiment::new(region).interrupt_at_every_instruction(&worker, &other, |_| {
        assert_eq!(words[0].load(Ordering::Relaxed), 1);
    });
    assert!(summary.interruptions > 0);
}
