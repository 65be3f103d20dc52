//! Several spaces in one file: each has its own tuples, keys, subscriptions and limits.

use tupelo_engine::{Limits, Order, RequestKey, keyed};
use tupelo_journal::{
    Error, Journal, OpenOptions, SpaceOfFile, compact, copy, examine, remove_space, save, spaces_in,
};
use tupelo_tuple::encoding::encode_template_refs;
use tupelo_tuple::{fields, template};

use crate::{Place, contents, owned, take_job};

fn put(journal: &Journal, number: i64) {
    journal.engine().put(&fields!["job", number]).unwrap();
    journal.settle().unwrap();
}

fn job(number: i64) -> String {
    format!("(\"job\", {number})")
}

#[test]
fn each_space_of_a_file_has_its_own_tuples_after_the_memory_is_gone_c4() {
    let place = Place::new();
    let names = ["", "orders", "ä b"];
    let journals = names.map(|name| place.open_space(name));
    for (number, journal) in (1..).zip(&journals) {
        put(journal, number);
        put(journal, 10 * number);
    }
    assert_eq!(take_job(journals[1].engine()), Some(job(2)));
    journals[1].settle().unwrap();
    let there = |place: &Place| names.map(|name| contents(place.open_space(name).engine()));
    let expected = [vec![job(1), job(10)], vec![job(20)], vec![job(3), job(30)]];
    drop(journals);
    assert_eq!(there(&place), expected);
    place.forget_memory();
    assert_eq!(there(&place), expected);
    let space = |name: &str, tuples| SpaceOfFile { name: name.to_owned(), tuples };
    let listed = spaces_in(&place.file()).unwrap();
    assert_eq!(listed, [space("", 2), space("orders", 1), space("ä b", 2)]);
}

#[test]
fn a_space_has_its_own_limits_keys_and_subscriptions_c4_n1() {
    let place = Place::new();
    let limits = Limits { size_bytes: 32 << 20, tuples_max: Some(7), ..Limits::default() };
    let options = OpenOptions { limits, ..place.options() };
    let orders = Journal::open(&place.file(), "orders", &options).unwrap();
    let plain = place.open();
    let any = encode_template_refs(&[template![..]]).unwrap();
    let subscribed = [&orders, &plain].map(|one| one.subscribe("one", &any, 9).unwrap().unwrap());
    orders.engine().keep_keys().unwrap();
    let request = RequestKey { key: 5, who: 6, answer: 7 };
    keyed(request, || orders.engine().put(&fields!["job", 1])).unwrap();
    orders.flush().unwrap();
    drop((orders, plain));
    place.forget_memory();
    let (orders, plain) = (place.open_space("orders"), place.open());
    assert_eq!(orders.engine().limits().tuples_max, Some(7));
    assert_eq!(plain.engine().limits().tuples_max, None);
    let known = [&orders, &plain].map(|one| one.engine().answer_to(5, 6).unwrap());
    assert_eq!(known, [Some(7), None]);
    let waiting = [(&orders, subscribed[0]), (&plain, subscribed[1])];
    assert_eq!(waiting.map(|(one, own)| one.events_waiting(own.id, 0).unwrap()), [1, 0]);
    assert_ne!(orders.id(), plain.id());
}

#[test]
fn a_space_that_is_not_in_the_file_is_made_only_if_it_is_to_be() {
    let place = Place::new();
    drop(place.open());
    let options = OpenOptions { create: false, ..place.options() };
    let refused = Journal::open(&place.file(), "orders", &options).map(drop);
    assert_eq!(refused, Err(Error::NotFound { path: place.file() }));
    assert_eq!(spaces_in(&place.file()).unwrap().len(), 1);
}

#[test]
fn one_space_is_removed_and_the_others_stay() {
    let place = Place::new();
    let [plain, orders] = ["", "orders"].map(|name| place.open_space(name));
    put(&plain, 1);
    put(&orders, 2);
    let directory = place.options().directory;
    remove_space(&place.file(), "orders", &directory).unwrap();
    let refused = orders.engine().put(&fields!["job", 3]).unwrap_err().to_string();
    assert!(refused.contains("removed"), "{refused}");
    put(&plain, 4);
    let again = remove_space(&place.file(), "orders", &directory);
    assert_eq!(again, Err(Error::NotFound { path: place.file() }));
    drop((plain, orders));
    assert_eq!(contents(place.open_space("orders").engine()), [""; 0], "another one of this name");
    place.forget_memory();
    assert_eq!(contents(place.open().engine()), [job(1), job(4)]);
}

#[test]
fn a_space_that_begins_anew_leaves_the_others_as_they_are() {
    let place = Place::new();
    let [plain, orders] = ["", "orders"].map(|name| place.open_space(name));
    put(&plain, 1);
    put(&orders, 2);
    let options = OpenOptions { fresh: true, ..place.options() };
    let fresh = Journal::open(&place.file(), "orders", &options).unwrap();
    assert_eq!(contents(fresh.engine()), [""; 0]);
    drop((plain, orders, fresh));
    place.forget_memory();
    assert_eq!(contents(place.open().engine()), [job(1)]);
}

#[test]
fn a_copy_has_the_space_that_was_asked_for_or_the_whole_file() {
    let place = Place::new();
    let [plain, orders] = ["", "orders"].map(|name| place.open_space(name));
    put(&plain, 1);
    put(&orders, 2);
    let names = |file: &std::path::Path| {
        spaces_in(file).unwrap().into_iter().map(|space| space.name).collect::<Vec<_>>()
    };
    let [whole, one, saved] = ["whole", "one", "saved"].map(|name| place.directory.join(name));
    plain.copy_to(&whole).unwrap();
    orders.copy_to(&one).unwrap();
    assert_eq!([names(&whole), names(&one)], [vec!["", "orders"], vec!["orders"]]);
    let copy = Journal::open(&one, "orders", &place.options()).unwrap();
    let any = [template![..]];
    let taken = copy.engine().try_take(&any, Order::Fifo, owned).unwrap().unwrap();
    assert_eq!(taken.to_string(), job(2));
    let tuples = |only| examine(&place.file(), only).unwrap().tuples;
    assert_eq!([tuples(None), tuples(Some("")), tuples(Some("orders"))], [2, 1, 1]);
    assert_eq!(save(&place.file(), None, &saved).unwrap().tuples, 2);
    assert_eq!(names(&saved), ["", "orders"]);
    let saved = Journal::open(&saved, "orders", &place.options()).unwrap();
    assert_eq!(contents(saved.engine()), [job(2)]);
}

#[test]
fn what_can_be_read_is_saved_though_the_names_of_the_spaces_are_lost() {
    let place = Place::new();
    let [plain, orders] = ["", "orders"].map(|name| place.open_space(name));
    put(&plain, 1);
    put(&orders, 2);
    drop((plain, orders));
    let file = rusqlite::Connection::open(place.file()).unwrap();
    file.execute("UPDATE space SET when_full = 77", ()).unwrap();
    drop(file);
    let saved = place.directory.join("saved.tupelo");
    let refused = save(&place.file(), Some("orders"), &saved).unwrap_err();
    assert!(refused.to_string().contains("look at all of it, without ?space="), "{refused}");
    assert_eq!(save(&place.file(), None, &saved).unwrap().tuples, 2);
    let found = Journal::open(&saved, "space-2", &place.options()).unwrap();
    assert_eq!(contents(found.engine()), [job(2)]);
}

#[test]
fn a_file_without_the_space_that_needs_no_name_is_sound_and_copied_whole() {
    let place = Place::new();
    let orders = place.open_space("orders");
    put(&orders, 1);
    // In memory alone: it comes to the file, and so to the copy.
    orders.engine().put(&fields!["job", 2]).unwrap();
    let directory = place.options().directory;
    let found = examine(&place.file(), None).unwrap();
    assert_eq!((found.gaps, found.problems.len()), (0, 0));
    let [whole, none] = ["whole", "none"].map(|name| place.directory.join(name));
    copy(&place.file(), None, &whole, &directory).unwrap();
    assert_eq!(spaces_in(&whole).unwrap()[0].tuples, 2);
    let refused = copy(&place.file(), Some("parcels"), &none, &directory);
    assert_eq!(refused, Err(Error::NotFound { path: place.file() }));
    assert!(!none.exists());
    compact(&place.file(), &directory).unwrap();
    remove_space(&place.file(), "orders", &directory).unwrap();
    let found = examine(&place.file(), None).unwrap();
    assert_eq!((found.tuples, found.gaps, found.problems.len()), (0, 0, 0));
}

#[test]
fn a_file_has_a_limited_number_of_spaces_b2() {
    let place = Place::new();
    drop(place.open());
    // Rows are enough, and quicker than spaces.
    let file = rusqlite::Connection::open(place.file()).unwrap();
    let row = "WITH RECURSIVE n (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < 1024)
        INSERT INTO space SELECT n, 'space-' || n, zeroblob(16), 1, 0, 1, 16777216, NULL, 0 FROM n";
    file.execute(row, ()).unwrap();
    let refused = Journal::open(&place.file(), "one more", &place.options()).unwrap_err();
    let limit = tupelo_engine::Error::LimitExceeded { what: "spaces in one file", limit: 1_024 };
    assert_eq!(refused, Error::Engine(limit));
    file.execute("DELETE FROM space WHERE number = 1024", ()).unwrap();
    drop(file);
    Journal::open(&place.file(), "one more", &place.options()).unwrap();
}
