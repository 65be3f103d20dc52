//! Subscriptions that outlive their subscribers: what is kept of their events (rules N1, N2).

use tupelo_engine::LeaseTerms;
use tupelo_tuple::encoding::{Decoded, Reader, encode_template_refs};
use tupelo_tuple::{Kind, fields, template};

use crate::{Place, take_job};
use tupelo_journal::{Error, Journal, KeptEvent, Subscribed};

fn jobs() -> Vec<u8> {
    encode_template_refs(&[template!["job", Kind::Int]]).unwrap()
}

/// The numbers of the events that wait, and their tuples.
fn events(journal: &Journal, listener: Subscribed, after: u64) -> Vec<(u64, String)> {
    journal.flush().unwrap();
    let shown = |event: KeptEvent| {
        let tuple = Decoded::read(&mut Reader::new(&event.image)).unwrap();
        (event.number, tuple.to_image().view().to_tuple().unwrap().to_string())
    };
    journal.events(listener, after, 100).unwrap().into_iter().map(shown).collect()
}

fn told(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, String)> {
    numbers.into_iter().map(|number| (number, format!("(\"job\", {number})"))).collect()
}

#[test]
fn numbers_go_on_after_a_restart_and_events_that_nobody_is_done_with_are_there_again_n1_c4() {
    let place = Place::new();
    let journal = place.open();
    journal.engine().put(&fields!["job", 0]).unwrap(); // before: it is not heard (N3)
    let listener = journal.subscribe("one", &jobs(), 100).unwrap().unwrap();
    assert_eq!(listener.told, 0);
    for number in 1..=3 {
        journal.engine().put(&fields!["job", number]).unwrap();
        journal.engine().put(&fields!["other", number]).unwrap();
    }
    // Also of a tuple that never comes to the file.
    journal.engine().put(&fields!["job", 4]).unwrap();
    while take_job(journal.engine()).is_some() {}
    assert_eq!(events(&journal, listener, 0), told(1..=4));
    journal.acknowledge(listener, 2).unwrap();
    drop(journal);
    place.forget_memory();
    let journal = place.open();
    let again = journal.subscribe("one", &jobs(), 100).unwrap().unwrap();
    assert_eq!((again.id, again.told), (listener.id, 2));
    journal.engine().put(&fields!["job", 5]).unwrap();
    assert_eq!(events(&journal, again, again.told), told(3..=5));
    assert_eq!(journal.events_waiting(again.id, 2), Ok(3));
}

#[test]
fn no_more_events_are_kept_than_the_subscriber_has_said_n2() {
    let place = Place::new();
    let journal = place.open();
    let listener = journal.subscribe("one", &jobs(), 3).unwrap().unwrap();
    for number in 1..=10 {
        journal.engine().put(&fields!["job", number]).unwrap();
    }
    assert_eq!(events(&journal, listener, 0), told(8..=10));
}

#[test]
fn a_tuple_that_is_put_for_later_is_heard_when_it_is_visible_l3_n1() {
    let place = Place::new();
    let journal = place.open();
    let listener = journal.subscribe("one", &jobs(), 3).unwrap().unwrap();
    let after = Some(std::time::Duration::from_millis(20));
    let terms = LeaseTerms { lease: None, after };
    journal.engine().put_leased(&fields!["job", 2], &terms).unwrap();
    journal.engine().put(&fields!["job", 1]).unwrap();
    assert_eq!(events(&journal, listener, 0), told(1..=1));
    let template = [template!["job", 2]];
    while journal.engine().count(&template).unwrap() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(events(&journal, listener, 0), told(1..=2));
}

#[test]
fn a_name_belongs_to_one_template_until_it_is_ended() {
    let place = Place::new();
    let journal = place.open();
    journal.subscribe("one", &jobs(), 3).unwrap().unwrap();
    let all = encode_template_refs(&[template![..]]).unwrap();
    assert_eq!(journal.subscribe("one", &all, 3), Ok(None));
    assert_eq!(journal.unsubscribe("one"), Ok(true));
    assert_eq!(journal.unsubscribe("one"), Ok(false));
    assert!(journal.subscribe("one", &all, 3).unwrap().is_some());
}

#[test]
fn the_next_subscriber_of_a_name_goes_on_and_the_one_before_is_told_so_n1() {
    let place = Place::new();
    let journal = place.open();
    let before = journal.subscribe("one", &jobs(), 9).unwrap().unwrap();
    for number in 1..=3 {
        journal.engine().put(&fields!["job", number]).unwrap();
    }
    assert_eq!(events(&journal, before, 0), told(1..=3));
    journal.acknowledge(before, 1).unwrap();
    let next = journal.subscribe("one", &jobs(), 9).unwrap().unwrap();
    let is_over = |error: &Error| matches!(error, Error::SubscriptionOver { .. });
    assert!(journal.events(before, 1, 100).is_err_and(|error| is_over(&error)));
    assert!(journal.acknowledge(before, 3).is_err_and(|error| is_over(&error)));
    assert_eq!(events(&journal, next, next.told), told(2..=3));
    journal.acknowledge(next, 3).unwrap();
    assert_eq!(events(&journal, next, 3), []);
    journal.unsubscribe("one").unwrap();
    assert!(journal.events(next, 3, 100).is_err_and(|error| is_over(&error)));
}
