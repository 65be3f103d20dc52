//! What a file keeps (rule C4).

use std::time::Duration;

use tupelo_engine::{
    ANSWERS_RESTORED_MAX, ClaimTerms, Error, LeaseTerms, Limits, Order, RequestKey, keyed,
};
use tupelo_journal::{Journal, OpenOptions, is_of_file};
use tupelo_tuple::{Kind, Tuple, Value, fields, template};

use crate::{Place, contents, owned, take_job};

#[test]
fn what_was_settled_is_there_after_the_memory_is_gone_in_its_order_c4_t2() {
    let place = Place::new();
    let journal = place.open();
    for number in 1..=5 {
        journal.engine().put(&fields!["job", number]).unwrap();
    }
    assert_eq!(take_job(journal.engine()).as_deref(), Some(r#"("job", 1)"#));
    journal.settle().unwrap();
    assert!(journal.is_settled());
    drop(journal);
    place.forget_memory();
    let journal = place.open();
    let left: Vec<String> = (2..=5).map(|number| format!("(\"job\", {number})")).collect();
    assert_eq!(contents(journal.engine()), left);
    // And so on: ids go on behind those that were given.
    journal.engine().put(&fields!["job", 6]).unwrap();
    assert_eq!(take_job(journal.engine()).as_deref(), Some(r#"("job", 2)"#));
    journal.flush().unwrap();
    drop(journal);
    place.forget_memory();
    assert_eq!(contents(place.open().engine()).len(), 4);
}

#[test]
fn all_kinds_of_values_come_back_as_they_were_v3_c4() {
    let place = Place::new();
    let journal = place.open();
    let list = Value::List(vec![Value::Int(1), Value::Tuple(vec![Value::Null, Value::Bool(true)])]);
    let bytes = Value::Bytes(vec![0, 255]);
    let tuple: Tuple =
        [list, bytes, Value::Float(-0.0), Value::Int(i64::MIN)].into_iter().collect();
    tuple.with_ref(|tuple| journal.engine().put(tuple)).unwrap().unwrap();
    let large = vec![7_u8; 300_000];
    journal.engine().put(&fields!["large", large.as_slice()]).unwrap();
    let before = contents(journal.engine());
    drop(journal);
    place.forget_memory();
    assert_eq!(contents(place.open().engine()), before);
}

#[test]
fn a_space_of_a_file_is_one_for_all_who_open_it_and_stays_without_them() {
    let place = Place::new();
    let one = place.open();
    one.engine().put(&fields!["job", 1]).unwrap();
    let other = place.open();
    assert!(std::sync::Arc::ptr_eq(&one, &other), "one per process");
    drop((one, other));
    // The memory is there still, and goes on.
    assert_eq!(contents(place.open().engine()), [r#"("job", 1)"#]);
}

#[test]
fn a_claim_is_over_when_the_memory_is_gone_and_its_attempts_are_kept_c4_k5() {
    let place = Place::new();
    let mut journal = place.open();
    for number in 1..=3 {
        journal.engine().put(&fields!["job", number]).unwrap();
    }
    let terms = ClaimTerms { ttl: Duration::from_secs(60), attempts_max: Some(2) };
    let claim = |journal: &Journal, number: i64| {
        let template = [template!["job", number]];
        let claimed = journal.engine().try_claim(&template, Order::Fifo, &terms, owned).unwrap();
        claimed.unwrap().0
    };
    claim(&journal, 1).abort("no paper").unwrap();
    let fence = claim(&journal, 2).fence();
    for reason in ["first", "second"] {
        claim(&journal, 3).abort(reason).unwrap();
    }
    let held = claim(&journal, 2);
    claim(&journal, 1).done(&[]).unwrap();
    journal.flush().unwrap();
    place.forget_memory();
    let old = std::mem::replace(&mut journal, place.open());
    // What was claimed is back, whatever becomes of its holder; what was done with is not.
    drop((held, old));
    assert_eq!(contents(journal.engine()), [r#"("job", 2)"#]);
    let again = claim(&journal, 2);
    assert!(again.fence() > fence, "fences go on (rule K1)");
    assert_eq!(again.attempt(), 2);
    let dead = journal.engine().dead(&[template!["job", Kind::Int]], |_, dead_letter| {
        let reasons = dead_letter.reasons.iter().map(|attempt| attempt.reason.clone());
        Ok::<_, Error>(reasons.collect::<Vec<_>>())
    });
    assert_eq!(dead.unwrap(), [["first", "second"]]);
}

#[test]
fn a_lease_goes_on_over_a_restart_and_one_that_ended_meanwhile_is_gone_l1_c4() {
    let place = Place::new();
    let journal = place.open();
    let terms = |lease_s| LeaseTerms { lease: Some(Duration::from_secs_f64(lease_s)), after: None };
    journal.engine().put_leased(&fields!["job", 1], &terms(3600.0)).unwrap();
    journal.engine().put_leased(&fields!["job", 2], &terms(0.05)).unwrap();
    journal.flush().unwrap();
    // As a machine that is switched off: nobody is there to see the end of the lease.
    let file = place.directory.join("off.tupelo");
    for suffix in ["", "-wal"] {
        let from = format!("{}{suffix}", place.file().display());
        std::fs::copy(from, format!("{}{suffix}", file.display())).unwrap();
    }
    let template = [template!["job", 2]];
    while journal.engine().count(&template).unwrap() > 0 {
        std::thread::yield_now();
    }
    let journal = Journal::open(&file, "", &place.options()).unwrap();
    assert_eq!(contents(journal.engine()), [r#"("job", 1)"#]);
}

#[test]
fn a_fresh_space_begins_empty_and_who_has_the_old_one_can_change_nothing_any_more() {
    let place = Place::new();
    let old = place.open();
    old.engine().put(&fields!["job", 1]).unwrap();
    old.settle().unwrap();
    let options = OpenOptions { fresh: true, ..place.options() };
    let fresh = Journal::open(&place.file(), "", &options).unwrap();
    assert_eq!(contents(fresh.engine()), [""; 0]);
    let problem = old.engine().put(&fields!["job", 2]).unwrap_err().to_string();
    assert!(problem.contains("the space was removed"), "{problem}");
    drop((old, fresh));
    place.forget_memory();
    assert_eq!(contents(place.open().engine()), [""; 0]);
}

#[test]
fn a_copy_of_a_file_is_another_space() {
    let place = Place::new();
    let journal = place.open();
    journal.engine().put(&fields!["job", 1]).unwrap();
    journal.settle().unwrap();
    let copy = place.directory.join("copy.tupelo");
    for suffix in ["", "-wal"] {
        let from = format!("{}{suffix}", place.file().display());
        std::fs::copy(from, format!("{}{suffix}", copy.display())).unwrap();
    }
    let copied = Journal::open(&copy, "", &place.options()).unwrap();
    assert_eq!(take_job(copied.engine()).as_deref(), Some(r#"("job", 1)"#));
    copied.settle().unwrap();
    assert_eq!(contents(journal.engine()), [r#"("job", 1)"#]);
    journal.engine().put(&fields!["job", 2]).unwrap();
    journal.settle().unwrap();
}

#[test]
fn the_memory_of_a_file_is_told_from_a_space_with_a_name() {
    let place = Place::new();
    let _journal = place.open();
    let memory = place.options().directory.list().unwrap();
    assert_eq!(memory.len(), 1);
    assert!(is_of_file(&memory[0].name), "{}", memory[0].name);
    for name in ["jobs", "file-jobs", "file-1-2-3-4", "file-"] {
        assert!(!is_of_file(name), "{name}");
    }
}

#[test]
fn more_than_the_ring_holds_is_put_and_taken_by_one_program_alone() {
    let place = Place::new();
    let journal = place.open();
    // The ring of this space has 4 MiB.
    let text = "x".repeat(1000);
    for number in 0..5_000 {
        journal.engine().put(&fields!["job", number]).unwrap();
        journal.engine().put(&fields!["text", text.as_str()]).unwrap();
        let template = [template!["text", Kind::Str]];
        assert!(journal.engine().try_take(&template, Order::Fifo, owned).unwrap().is_some());
    }
    journal.flush().unwrap();
    drop(journal);
    place.forget_memory();
    assert_eq!(place.open().engine().count(&[template![..]]), Ok(5_000));
}

#[test]
fn a_copy_made_while_others_write_is_a_space_of_its_own_with_what_was_settled() {
    let place = Place::new();
    let journal = place.open();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                journal.engine().put(&fields!["other", 1]).unwrap();
                journal.settle().unwrap();
            }
        });
        for number in 1..=5_i64 {
            journal.engine().put(&fields!["job", number]).unwrap();
            let copy = place.directory.join(format!("copy-{number}.tupelo"));
            journal.copy_to(&copy).unwrap();
            let copied = Journal::open(&copy, "", &place.options()).unwrap();
            let jobs = copied.engine().count(&[template!["job", Kind::Int]]);
            assert_eq!(jobs, Ok(number.unsigned_abs()));
            assert!(take_job(copied.engine()).is_some());
            copied.settle().unwrap();
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(journal.engine().count(&[template!["job", Kind::Int]]), Ok(5));
    let again = journal.copy_to(&place.directory.join("copy-1.tupelo")).unwrap_err().to_string();
    assert!(again.contains("File exists"), "{again}");
}

#[test]
fn the_file_shrinks_with_what_is_in_it_c4() {
    let place = Place::new();
    let limits = Limits { size_bytes: 128 << 20, ..Limits::default() };
    let journal =
        Journal::open(&place.file(), "", &OpenOptions { limits, ..place.options() }).unwrap();
    let bytes = || -> u64 {
        place.files().iter().map(|file| std::fs::metadata(file).map_or(0, |file| file.len())).sum()
    };
    let padding = [7_u8; 1_000];
    let mut most = 0;
    // Twice, so that pages which were given back are taken again.
    for _ in 0..2 {
        for number in 0..40 {
            let tuples: Vec<_> = (0..1_000)
                .map(|k| fields!["job", number * 1_000 + k, padding.as_slice()])
                .collect();
            journal.engine().put_all(&tuples.iter().collect::<Vec<_>>()).unwrap();
            journal.settle().unwrap();
        }
        most = most.max(bytes());
        let template = [template!["job", Kind::Int, Kind::Bytes]];
        let take = || journal.engine().take_all(&template, Some(1_000), |_| Ok::<_, Error>(()));
        while !take().unwrap().is_empty() {
            journal.settle().unwrap();
        }
    }
    for number in 0..20 {
        journal.engine().put(&fields!["job", number]).unwrap();
        journal.settle().unwrap();
    }
    assert!(most > 40_000_000, "{most}");
    assert!(
        bytes() < 16 << 20,
        "{} of {most} bytes are left, and nearly nothing is in it",
        bytes()
    );
    drop(journal);
    place.forget_memory();
    assert_eq!(place.open().engine().count(&[template!["job", Kind::Int]]), Ok(20));
}

fn request(number: u64) -> RequestKey {
    RequestKey { key: u128::MAX - u128::from(number), who: 3 + number, answer: u64::MAX - number }
}

fn is_known(journal: &Journal, number: u64) -> bool {
    let RequestKey { key, who, answer } = request(number);
    let known = journal.engine().answer_to(key, who).unwrap();
    assert!(known.is_none_or(|known| known == answer), "{number}: {known:?}");
    known.is_some()
}

fn put_keyed(journal: &Journal, number: u64) {
    let tuple = fields!["job", i64::try_from(number).unwrap()];
    keyed(request(number), || journal.engine().put(&tuple)).unwrap();
}

#[test]
fn a_key_comes_to_the_file_with_its_put_and_is_known_after_the_memory_is_gone_c3_c4() {
    let place = Place::new();
    let journal = place.open();
    journal.engine().keep_keys().unwrap();
    put_keyed(&journal, 1);
    assert_eq!(take_job(journal.engine()).as_deref(), Some(r#"("job", 1)"#));
    journal.settle().unwrap();
    put_keyed(&journal, 2);
    journal.settle().unwrap();
    let id = journal.id();
    drop(journal);
    place.forget_memory();
    let journal = place.open();
    assert_eq!(contents(journal.engine()), [r#"("job", 2)"#]);
    assert_eq!([1, 2, 3].map(|number| is_known(&journal, number)), [true, true, false]);
    drop(journal);
    // Also in a space that begins anew: what was put has been there.
    let fresh = OpenOptions { fresh: true, ..place.options() };
    let journal = Journal::open(&place.file(), "", &fresh).unwrap();
    assert_eq!((contents(journal.engine()), is_known(&journal, 2)), (Vec::new(), true));
    assert_eq!(journal.id(), id);
}

#[test]
fn the_file_keeps_the_newest_keys_b2() {
    let place = Place::new();
    let journal = place.open();
    journal.engine().keep_keys().unwrap();
    let kept = ANSWERS_RESTORED_MAX as u64;
    // Some by some, then more at once than are kept.
    for number in 0..20 {
        put_keyed(&journal, number);
        journal.settle().unwrap();
    }
    (20..kept + 10).for_each(|number| put_keyed(&journal, number));
    journal.flush().unwrap();
    put_keyed(&journal, kept + 10);
    journal.flush().unwrap();
    drop(journal);
    let bytes: i64 = rusqlite::Connection::open(place.file())
        .and_then(|file| {
            file.query_row("SELECT sum(length(entries)) FROM answered", (), |row| row.get(0))
        })
        .unwrap();
    assert!(bytes <= 2 * 32 * i64::try_from(kept).unwrap(), "{bytes}");
    place.forget_memory();
    let journal = place.open();
    assert!((11..=kept + 10).all(|number| is_known(&journal, number)));
    assert!((0..11).all(|number| !is_known(&journal, number)));
}
