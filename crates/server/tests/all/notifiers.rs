//! One owner of many calls that wait at a server, without a thread for each.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::protocol::beside;
use crate::serving::Served;
use tupelo::{ConnectOptions, Error, Kind, Order, Outcome, Search, Space, TupleView, Visits, Want};
use tupelo::{Watch, template};
use tupelo_protocol::{FRAME_BYTES_MAX, Frames, Reply, Welcome};
use tupelo_server::Engine;
use tupelo_tuple::fields;

const MINUTE: Duration = Duration::from_secs(60);

fn keep(tuple: TupleView<'_>) -> Result<String, Error> {
    Ok(tuple.to_tuple()?.to_string())
}

/// Waits for a descriptor to be readable.
fn await_readable(fd: impl AsFd) {
    let minute = Timespec { tv_sec: 60, tv_nsec: 0 };
    let mut polled = [PollFd::new(&fd, PollFlags::IN)];
    assert_eq!(poll(&mut polled, Some(&minute)), Ok(1), "nothing has come within a minute");
}

/// A server that opens a space, and closes the connection at the first request.
fn leave_at_the_first_request(listener: &UnixListener) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut frames = Frames::new(FRAME_BYTES_MAX);
    let mut answers = Vec::new();
    let (server, requests_max) = ("a test".to_owned(), 8);
    Welcome { version: 1, server, frame_bytes_max: 1 << 20, requests_max, session: None }
        .write(&mut answers)
        .unwrap();
    let opened =
        Reply::Opened { id: 1, space: 0, when_full: tupelo::WhenFull::Error, keeper: None };
    let welcome_bytes = answers.len();
    opened.write(&mut answers).unwrap();
    let answers = [&answers[..welcome_bytes], &answers[welcome_bytes..], &[]];
    for answer in answers {
        while frames.next_frame().unwrap().is_none() {
            let mut buffer = [0; 4096];
            let bytes = stream.read(&mut buffer).unwrap();
            frames.add(&buffer[..bytes]);
        }
        stream.write_all(answer).unwrap();
    }
}

#[test]
fn a_descriptor_is_readable_when_one_of_many_waits_has_something_whoever_reads_it() {
    let served = Served::new(Engine::Mem, "unix");
    let (space, other) = (beside(&served), beside(&served));
    let notifier = space.notifier().unwrap();
    let mut waiters: Vec<_> =
        (0..100).map(|n| space.waiter(&[template!["job", n]], Want::Take).unwrap()).collect();
    let numbers: Vec<u32> = waiters.iter().map(|waiter| notifier.add(waiter)).collect();
    for (round, n) in [7, 90, 42].into_iter().enumerate() {
        while !notifier.listen() {
            notifier.drain();
        }
        other.put(&fields!["job", i64::try_from(n).unwrap()]).unwrap();
        if round == 1 {
            // Another thread of the process may have read it before the owner does.
            std::thread::scope(|scope| {
                scope.spawn(|| other.count(&[template!["job", 0]]).unwrap());
            });
        }
        let mut rung = Vec::new();
        while rung.is_empty() {
            await_readable(&notifier);
            rung = notifier.drain();
            while rung.is_empty() && !notifier.listen() {
                rung = notifier.drain();
            }
        }
        assert_eq!(rung, [numbers[n]]);
        notifier.remove(numbers[n]);
        // In its place one that never comes.
        let never = space.waiter(&[template!["never"]], Want::Read).unwrap();
        let waiter = std::mem::replace(&mut waiters[n], never);
        let Outcome::Done(job) = waiter.finish_now(keep).unwrap() else { panic!("it was told of") };
        assert_eq!(job, format!(r#"("job", {n})"#));
    }
    notifier.rest();
}

#[test]
fn a_watch_rings_again_for_each_put_after_it_was_told_of_the_last() {
    let served = Served::new(Engine::Mem, "unix");
    let space = beside(&served);
    let notifier = space.notifier().unwrap();
    let watch = space.watch(&[template!["job", Kind::Int]], Watch::Put).unwrap();
    let number = notifier.add(&watch);
    assert_eq!(notifier.add(&watch), number, "the same one");
    for n in 0..20 {
        space.put(&fields!["job", n]).unwrap();
        let mut rung = notifier.drain();
        while rung.is_empty() {
            notifier.sleep(MINUTE);
            rung = notifier.drain();
        }
        assert_eq!(rung, [number]);
    }
}

#[test]
fn a_lost_connection_rings_for_all_who_wait_by_it() {
    let name = format!("tupelo-leaves-{}.sock", std::process::id());
    let socket = std::env::temp_dir().join(name);
    let listener = UnixListener::bind(&socket).unwrap();
    let leaves = std::thread::spawn(move || leave_at_the_first_request(&listener));
    let url = format!("unix://{}?space=jobs", socket.display());
    let space = Space::connect(&url, &ConnectOptions::default()).unwrap();
    let notifier = space.notifier().unwrap();
    let waiter = space.waiter(&[template!["job", Kind::Int]], Want::Take).unwrap();
    let number = notifier.add(&waiter);
    leaves.join().unwrap();
    std::fs::remove_file(&socket).unwrap();
    let mut rung = notifier.drain();
    while rung.is_empty() {
        notifier.sleep(MINUTE);
        rung = notifier.drain();
    }
    assert_eq!(rung, [number]);
    let lost = waiter.finish_now(keep).unwrap_err();
    assert!(matches!(lost, Error::ConnectionLost { .. }), "{lost}");
}

#[test]
fn a_search_waits_in_spaces_here_and_at_servers_o10() {
    let (served, second) = (Served::new(Engine::Mem, "unix"), Served::new(Engine::Shm, "unix"));
    let here = Space::connect("mem://searched-beside", &ConnectOptions::default()).unwrap();
    let spaces = vec![here, beside(&served), beside(&second)];
    let search = Search::new(spaces.clone(), Visits::RoundRobin).unwrap();
    for place in [2, 0, 1] {
        let number = i64::try_from(place).unwrap();
        std::thread::scope(|scope| {
            let put = scope.spawn(|| spaces[place].put(&fields!["job", number]));
            let visitor = |place: usize, view: TupleView<'_>| Ok::<_, Error>((place, keep(view)?));
            let found = search.take(&[template!["job", Kind::Int]], Some(MINUTE), visitor).unwrap();
            assert_eq!(found.result, (place, format!(r#"("job", {place})"#)));
            put.join().unwrap().unwrap();
        });
    }
    let count: u64 = spaces.iter().map(|space| space.count(&[template![..]]).unwrap()).sum();
    assert_eq!(count, 0, "each was taken, and nothing else");
    tupelo::remove("mem://searched-beside").unwrap();
}

#[test]
fn one_wait_ends_another_of_the_same_space() {
    let served = Served::new(Engine::Mem, "unix");
    let space = beside(&served);
    let jobs = [template!["job", Kind::Int]];
    let place = space.waiter(&jobs, Want::Take).unwrap();
    let watch = space.watch(&[template!["finished"]], Watch::Put).unwrap();
    place.wakes(&watch).unwrap();
    for n in 0..2 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if n == 0 { space.put(&fields!["job", 1]) } else { space.put(&fields!["finished"]) }
            });
            while !watch.wait(Some(MINUTE)).unwrap() {}
        });
    }
    let Outcome::Done(job) = place.finish_now(keep).unwrap() else { panic!("it was put") };
    assert_eq!(job, r#"("job", 1)"#);
    let far = Space::connect("mem://no-server", &ConnectOptions::default()).unwrap();
    let here = far.watch(&jobs, Watch::Put).unwrap();
    assert!(matches!(watch.wakes(&here), Err(Error::Misuse { .. })));
    assert_eq!(space.try_take(&jobs, Order::Fifo, keep).unwrap(), None);
    tupelo::remove("mem://no-server").unwrap();
}

#[test]
fn a_call_has_its_answer_also_while_the_owner_of_a_notifier_reads_all_that_comes() {
    let served = Served::new(Engine::Mem, "unix");
    let space = beside(&served);
    let notifier = space.notifier().unwrap();
    let waiter = space.waiter(&[template!["never"]], Want::Take).unwrap();
    notifier.add(&waiter);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(notifier.drain(), [0_u32; 0]);
            }
        });
        for _ in 0..2_000 {
            assert_eq!(space.count(&[template![..]]), Ok(0));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
