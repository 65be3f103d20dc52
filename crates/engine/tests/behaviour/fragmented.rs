//! Small tuples that are left of many keep no memory that others could have (rule B1).

use std::sync::Arc;
use std::time::Duration;

use crate::support::{any, engine, job, number, this_job};
use tupelo_engine::{Engine, Error, LeaseTerms, Order, Want};
use tupelo_tuple::{Field, Kind, PatternRef, TemplateRef};

/// Fills the space with jobs. Returns how many they are.
fn fill(engine: &Engine) -> i64 {
    let put = |key: &i64| match engine.put(&job(*key)) {
        Ok(()) => true,
        Err(Error::SpaceFull(_)) => false,
        Err(error) => panic!("{error}"),
    };
    i64::try_from((0..i64::MAX).take_while(put).count()).unwrap()
}

fn take(engine: &Engine, key: i64) -> Option<i64> {
    let template = this_job(key);
    engine.try_take(&[TemplateRef::new(&template)], Order::Fifo, number).unwrap()
}

/// Takes all jobs but each of `every`.
fn thin_out(engine: &Engine, jobs: i64, every: i64) {
    let gone = (0..jobs).filter(|key| key % every != 0);
    gone.for_each(|key| assert_eq!(take(engine, key), Some(key)));
}

/// The jobs that are there, in their order.
fn keys(engine: &Engine) -> Vec<i64> {
    let patterns = [PatternRef::Actual(Field::Str("job")), any(Kind::Int)];
    engine.read_all(&[TemplateRef::new(&patterns)], None, number).unwrap()
}

/// Puts tuples of so many bytes until the space is full. Returns how many.
fn fill_with(engine: &Engine, bytes: usize) -> u64 {
    let bytes = vec![7; bytes];
    (0..u64::MAX).take_while(|_| engine.put(&[Field::Bytes(&bytes)]).is_ok()).count() as u64
}

fn free_bytes(engine: &Engine) -> u64 {
    let stat = engine.stat().unwrap();
    stat.bytes_max - stat.bytes_used
}

#[test]
fn what_small_tuples_have_left_is_had_by_others_b1() {
    let engine = engine(16 << 20);
    let jobs = fill(&engine);
    thin_out(&engine, jobs, 300);
    let before = engine.stat().unwrap();
    assert!(before.bytes_used > 15 << 20, "each extent has a job left");
    let put = fill_with(&engine, 30 << 10);
    // All but what the index over the jobs had grown to.
    assert!(put > 400, "{put}");
    assert!(free_bytes(&engine) < 1 << 20);
    let left: Vec<i64> = (0..jobs).filter(|key| key % 300 == 0).collect();
    assert_eq!(keys(&engine), left, "in their order");
    engine.check().unwrap();
    // All that finds them finds them at their new places.
    for key in left {
        assert_eq!(take(&engine, key), Some(key));
    }
    engine.check().unwrap();
}

#[test]
fn an_extent_is_emptied_into_a_small_slab_and_not_the_other_way_round_b1() {
    let (thinned, small) = (engine(8 << 20), engine(8 << 20));
    // Another shape, with which the numbers share an extent.
    for engine in [&thinned, &small] {
        engine.put(&[Field::Null]).unwrap();
    }
    (0..21).for_each(|key| small.put(&[Field::Int(key)]).unwrap());
    // The first 31 are in the shared extent, the next 512 in one of their own.
    (0..31 + 512).for_each(|key| thinned.put(&[Field::Int(key)]).unwrap());
    let pattern = [any(Kind::Int)];
    let template = [TemplateRef::new(&pattern)];
    for (order, count) in [(Order::Fifo, 30), (Order::Lifo, 492)] {
        for _ in 0..count {
            let taken = thinned.try_take(&template, order, |_| Ok::<_, Error>(()));
            assert_eq!(taken.unwrap(), Some(()));
        }
    }
    let extents = |engine: &Engine| fill_with(engine, 60_000);
    assert_eq!(extents(&thinned), extents(&small));
    assert_eq!(thinned.count(&template).unwrap(), 21);
    thinned.check().unwrap();
}

#[test]
fn what_somebody_holds_and_what_has_a_lease_stays_where_it_is_b1() {
    let engine = engine(8 << 20);
    let jobs = fill(&engine);
    let (first, template) = (take(&engine, 0).unwrap(), this_job(-1));
    let waiter = engine.waiter(&[TemplateRef::new(&template)], Want::Take).unwrap();
    engine.put(&job(-1)).unwrap();
    let hour = LeaseTerms { lease: Some(Duration::from_secs(3600)), after: None };
    let terms = tupelo_engine::ClaimTerms { ttl: Duration::from_secs(3600), attempts_max: None };
    let template = this_job(300);
    let claimed = engine.try_claim(&[TemplateRef::new(&template)], Order::Fifo, &terms, number);
    thin_out(&engine, jobs, 300);
    let lease = engine.put_leased(&job(-2), &hour).unwrap();
    let mut transaction =
        tupelo_engine::Transaction::begin([Arc::clone(&engine)], Duration::from_secs(3600))
            .unwrap();
    let template = this_job(600);
    transaction.try_read(0, &[TemplateRef::new(&template)], Order::Fifo, number).unwrap();
    assert!(fill_with(&engine, 30 << 10) > 200);
    engine.check().unwrap();
    engine.cancel(&lease).unwrap();
    transaction.commit().unwrap();
    let (claim, _) = claimed.unwrap().unwrap();
    claim.done(&[]).unwrap();
    assert_eq!(waiter.finish(number).unwrap(), -1);
    assert_eq!((first, take(&engine, 600)), (0, Some(600)));
    engine.check().unwrap();
}

#[test]
fn a_scan_goes_on_behind_what_was_moved_o6() {
    let engine = engine(8 << 20);
    let jobs = fill(&engine);
    thin_out(&engine, jobs, 300);
    let mut scan = engine.scan("(\"job\", :int)".parse().unwrap());
    let mut seen: Vec<i64> = scan.next_batch(5, number).unwrap();
    assert!(fill_with(&engine, 30 << 10) > 200);
    loop {
        let batch = scan.next_batch(1_000, number).unwrap();
        if batch.is_empty() {
            break;
        }
        seen.extend(batch);
    }
    assert_eq!(seen, (0..jobs).filter(|key| key % 300 == 0).collect::<Vec<_>>());
}

#[test]
fn a_tuple_that_finds_no_piece_is_told_that_the_memory_is_fragmented_b1() {
    let engine = engine(8 << 20);
    let part = vec![7; 60 << 10];
    let put = |key: i64| engine.put(&[Field::Int(key), Field::Bytes(&part)]).is_ok();
    let put = (0..i64::MAX).take_while(|key| put(*key)).count();
    for key in (0..i64::try_from(put).unwrap()).step_by(2) {
        let patterns = [PatternRef::Actual(Field::Int(key)), any(Kind::Bytes)];
        let gone =
            engine.try_take(&[TemplateRef::new(&patterns)], Order::Fifo, |_| Ok::<_, Error>(()));
        assert_eq!(gone.unwrap(), Some(()));
    }
    let stat = engine.stat().unwrap();
    assert!(stat.largest_free_bytes < free_bytes(&engine), "{stat:?}");
    let large = vec![7; usize::try_from(stat.largest_free_bytes).unwrap() + 1];
    let refused = engine.put(&[Field::Bytes(&large)]).unwrap_err().to_string();
    assert!(refused.contains("fragmented"), "{refused}");
    let fits = usize::try_from(stat.largest_free_bytes).unwrap() - 200;
    engine.put(&[Field::Bytes(&large[..fits])]).unwrap();
}

#[test]
fn a_step_that_needs_more_small_slabs_than_are_left_is_refused_b1() {
    let engine = engine(1 << 20);
    // Each shape begins with a slab of a shared extent. What is left of that is too little for many tuples at once.
    let [two, three] = [vec![Field::Str("fills"); 2], vec![Field::Str("fills"); 3]];
    engine.put(&two).unwrap();
    for fields in [two, three] {
        for at_once in [256, 1] {
            let tuples = vec![&fields[..]; at_once];
            let refused = loop {
                if let Err(error) = engine.put_all(&tuples) {
                    break error;
                }
            };
            assert!(matches!(refused, Error::SpaceFull(_)), "{refused:?}");
        }
    }
    engine.check().unwrap();
}

#[test]
fn the_figures_count_no_tuple_whose_lease_is_over_l1() {
    let engine = engine(8 << 20);
    let brief = LeaseTerms { lease: Some(Duration::from_millis(1)), after: None };
    engine.put_leased(&job(1), &brief).unwrap();
    engine.put(&job(2)).unwrap();
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_millis(10) {
        std::thread::yield_now();
    }
    let stat = engine.stat().unwrap();
    assert_eq!((stat.tuples, stat.shapes[0].leased), (1, 0));
}
