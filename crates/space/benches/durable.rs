//! What it costs that a space is kept in a file (`file://`), beside syncs of the same disk.
//!
//! Questions: how long does a put take that waits for the disk, beside one `fdatasync` of a page? How many such puts per second do
//! 64 threads, for which one sync counts? What does a put and take cost that waits for no disk, beside `shm://`? How long does it
//! take to fill the memory of a space from a file of a million tuples?
//!
//! The file lies in the directory `TUPELO_BENCH_DIRECTORY`, or else in that for temporary files: on a disk, and not in memory.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at a refusal"
)]
#![allow(clippy::cast_precision_loss, reason = "nanoseconds and counts are far below 2^52")]

mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{FLOAT, JOB, fresh, is, key, measure, put, report, report_asked, take, verdict};
use tupelo::{ConnectOptions, Durability, Space};

const PAGE: usize = 4096;
const SYNCS: u64 = 50;
const THREADS: u64 = 64;
const TIME: Duration = Duration::from_secs(3);
const PAIRS: u64 = 20_000;
const TUPLES: i64 = 1_000_000;
const BATCH: i64 = 10_000;

fn directory() -> PathBuf {
    std::env::var_os("TUPELO_BENCH_DIRECTORY").map_or_else(std::env::temp_dir, PathBuf::from)
}

fn url(name: &str) -> String {
    format!("file://{}/tupelo-bench-{name}-{}.tupelo", directory().display(), std::process::id())
}

/// How often many threads do something in a second. Each is given its number, and how often it has done it.
fn rate_of_many(threads: u64, work: impl Fn(i64, i64) + Sync) -> f64 {
    let (count, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for number in 0..threads {
            let (count, is_over, work) = (&count, &is_over, &work);
            scope.spawn(move || {
                for k in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    work(number.cast_signed(), k);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(TIME);
        is_over.store(true, Ordering::Relaxed);
    });
    count.load(Ordering::Relaxed) as f64 / TIME.as_secs_f64()
}

fn main() {
    println!("in {}", directory().display());
    let path = directory().join(format!("tupelo-bench-sync-{}", std::process::id()));
    let file = File::create(&path).unwrap();
    let sync = measure(SYNCS, || {
        file.write_all_at(&[7; PAGE], 0).unwrap();
        file.sync_data().unwrap();
    });
    std::fs::remove_file(&path).unwrap();
    let sync_ns = report("a page written over, and fdatasync", sync, sync.median);

    let durable = fresh(&url("puts"));
    let mut k = 0;
    let alone = measure(SYNCS, || {
        k += 1;
        put(&durable, key(-k), 1.5);
    });
    report_asked("a put on disk, of one thread alone", alone, sync_ns, 2.5);
    for threads in [4, THREADS] {
        let puts = rate_of_many(threads, |number, k| put(&durable, key(k * 64 + number), 1.5));
        let asked = (20.0 * 1e9 / sync_ns).min(100_000.0);
        let told = if threads == THREADS {
            verdict(&format!("at least {asked:.0}"), puts >= asked)
        } else {
            String::new()
        };
        println!("{:<62} {puts:>9.0} /s{told}", format!("puts on disk, of {threads} threads"));
    }
    let pairs = rate_of_many(THREADS, |number, _| {
        put(&durable, key(-100 - number), 1.5);
        assert!(take(&durable, &[JOB, is(key(-100 - number)), FLOAT]));
    });
    let name = format!("puts and takes on disk, of {THREADS} threads");
    println!("{name:<62} {pairs:>9.0} /s");
    tupelo::remove(&url("puts")).unwrap();

    let pair = |space: &Space| {
        measure(PAIRS, || {
            put(space, key(1), 1.5);
            assert!(take(space, &[JOB, is(key(1)), FLOAT]));
        })
    };
    let shared = fresh("shm://bench-durable");
    let shared_ns = pair(&shared).median;
    report("put and take, shm://", pair(&shared), shared_ns);
    tupelo::remove("shm://bench-durable").unwrap();
    let soon = fresh(&url("pairs")).with_sync(Durability::None);
    report_asked("put and take, file:// with sync=none", pair(&soon), shared_ns, 4.0);
    tupelo::remove(&url("pairs")).unwrap();

    reopening();
}

/// Fills the memory of a space from a file, as after a restart of the machine.
fn reopening() {
    let url = url("many");
    let space = fresh(&url);
    for first in (0..TUPLES / BATCH).map(|batch| batch * BATCH) {
        let tuples: Vec<_> =
            (first..first + BATCH).map(|k| tupelo::fields!["job", k, 1.5]).collect();
        space.put_all(&tuples.iter().collect::<Vec<_>>()).unwrap();
    }
    drop(space);
    // A copy has no memory.
    let path = url.strip_prefix("file://").unwrap();
    let copy = format!("{path}.copy");
    std::fs::copy(path, &copy).unwrap();
    let begin = Instant::now();
    let space = Space::connect(&format!("file://{copy}"), &ConnectOptions::default()).unwrap();
    let seconds = begin.elapsed().as_secs_f64();
    let told = verdict("at most 3.00 s", seconds <= 3.0);
    println!("{:<62} {seconds:>9.2} s{told}", "a file of a million tuples is opened");
    assert_eq!(space.count(&[tupelo::template![..]]).unwrap(), TUPLES.cast_unsigned());
    drop(space);
    tupelo::remove(&format!("file://{copy}")).unwrap();
    tupelo::remove(&url).unwrap();
}
