//! Reading large tuples while others take them (rules O4, O6): they are copied without a lock.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use support::{any, engine};
use tupelo_engine::{Engine, Error, Order};
use tupelo_tuple::{Field, Kind, TemplateRef, TupleView};

const ROUNDS: usize = 1_000;

fn put(engine: &Engine, byte: u8, bytes: usize) {
    engine.put(&[Field::Bytes(&vec![byte; bytes])]).unwrap();
}

/// Whether each of its bytes is the same as the others.
fn is_whole(tuple: &TupleView<'_>) -> bool {
    let Some(Field::Bytes(bytes)) = tuple.field(0) else { panic!("{tuple:?}") };
    bytes.iter().all(|byte| *byte == bytes[0])
}

/// Runs `read` again and again, while another thread takes the oldest tuple, and puts another one, of one size or another,
/// that comes to its place.
fn beside_one_who_replaces(read: impl Fn(&Arc<Engine>, &[TemplateRef<'_>]) -> usize + Sync) {
    let (engine, patterns) = (engine(16 << 20), [any(Kind::Bytes)]);
    let template = [TemplateRef::new(&patterns)];
    put(&engine, 0, 100_000);
    let is_over = AtomicBool::new(false);
    let count = thread::scope(|threads| {
        let reader = threads.spawn(|| {
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                count += read(&engine, &template);
            }
            count
        });
        for (round, byte) in (0..ROUNDS).zip((0..251).cycle()) {
            let taken = engine.try_take(&template, Order::Fifo, |tuple| {
                assert!(is_whole(&tuple));
                Ok::<_, Error>(())
            });
            assert!(taken.unwrap().is_some());
            let bytes = if round % 5 == 0 { 70_000 } else { 100_000 };
            put(&engine, byte, bytes);
        }
        is_over.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    assert!(count > 0, "the reader has seen none");
    engine.check().unwrap();
}

#[test]
fn a_large_tuple_is_read_as_a_whole_whoever_takes_it_meanwhile_o4() {
    beside_one_who_replaces(|engine, template| {
        let read = engine.try_read(template, Order::Fifo, |tuple| {
            assert!(is_whole(&tuple));
            Ok::<_, Error>(())
        });
        usize::from(read.unwrap().is_some())
    });
}

#[test]
fn so_it_is_by_a_scan_o6() {
    beside_one_who_replaces(|engine, _| {
        let mut scan = engine.scan(":bytes".parse().unwrap());
        let seen = scan.next_batch(8, |tuple| {
            assert!(is_whole(&tuple));
            Ok::<_, Error>(())
        });
        seen.unwrap().len()
    });
}
