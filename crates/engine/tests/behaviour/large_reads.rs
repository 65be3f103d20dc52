//! Reading large tuples while others take them (rules O4, O6): they are copied without a lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::support::{any, engine};
use tupelo_engine::{Engine, Error, Order};
use tupelo_tuple::{Field, Kind, TemplateRef, TupleView};

const ROUNDS: usize = 1_000;
const READS: usize = 100;

/// Whether each of its bytes is the same as the others.
fn is_whole(tuple: &TupleView<'_>) -> bool {
    let Some(Field::Bytes(bytes)) = tuple.field(0) else { panic!("{tuple:?}") };
    bytes.iter().all(|byte| *byte == bytes[0])
}

/// Runs `read` again and again, while another thread takes the oldest tuple, and puts another one, of about so many bytes,
/// that comes to its place.
fn beside_one_who_replaces(
    bytes: usize,
    read: impl Fn(&Arc<Engine>, &[TemplateRef<'_>]) -> usize + Sync,
) {
    let (engine, patterns) = (engine(16 << 20), [any(Kind::Bytes)]);
    let template = [TemplateRef::new(&patterns)];
    engine.put(&[Field::Bytes(&vec![0; bytes])]).unwrap();
    let (is_over, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|threads| {
        let reader = threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                seen.fetch_add(read(&engine, &template), Ordering::Relaxed);
            }
        });
        for (round, byte) in (0_usize..).zip((0..251).cycle()) {
            let is_enough = round >= ROUNDS && seen.load(Ordering::Relaxed) >= READS;
            if is_enough || reader.is_finished() {
                break;
            }
            if round >= ROUNDS {
                thread::yield_now();
            }
            let bytes = if round % 5 == 0 { bytes - bytes / 4 } else { bytes };
            let next = vec![byte; bytes];
            // Nothing between the two: what the reader has found is overwritten before it is copied.
            let taken = engine.try_take(&template, Order::Fifo, |_| Ok::<_, Error>(()));
            engine.put(&[Field::Bytes(&next)]).unwrap();
            assert_eq!(taken.unwrap(), Some(()));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    engine.check().unwrap();
}

#[test]
fn a_large_tuple_is_read_as_a_whole_whoever_takes_it_meanwhile_o4() {
    for bytes in [300, 3_000, 30_000, 100_000] {
        beside_one_who_replaces(bytes, |engine, template| {
            let read = engine.try_read(template, Order::Fifo, |tuple| {
                assert!(is_whole(&tuple));
                Ok::<_, Error>(())
            });
            usize::from(read.unwrap().is_some())
        });
    }
}

#[test]
fn so_it_is_by_a_scan_o6() {
    beside_one_who_replaces(100_000, |engine, _| {
        let mut scan = engine.scan(":bytes".parse().unwrap());
        let seen = scan.next_batch(8, |tuple| {
            assert!(is_whole(&tuple));
            Ok::<_, Error>(())
        });
        seen.unwrap().len()
    });
}
