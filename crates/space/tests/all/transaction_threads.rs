//! A transaction belongs to the thread that began it; any other may ask how it stands, and disturbs nothing by it (X1).

use std::thread;
use std::time::Duration;

use crate::common::{ENGINES, Temporary};
use tupelo::{Error, Kind, fields, template};
use tupelo_model::Limits;

const MINUTE: Duration = Duration::from_secs(60);
const LOOKS: usize = 50_000;

#[test]
fn asking_in_other_threads_fails_no_call_of_the_owner() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let transaction = temporary.space.transaction(&[], MINUTE).unwrap();
        thread::scope(|scope| {
            let looks = scope.spawn(|| {
                for _ in 0..LOOKS {
                    assert!(transaction.is_open() && !transaction.is_ended());
                    assert!(format!("{transaction:?}").starts_with("Transaction"));
                }
            });
            let inside = transaction.at(0);
            let template = [template!["job", Kind::Int]];
            while !looks.is_finished() {
                assert_eq!(inside.count(&template), Ok(0));
            }
        });
    }
}

#[test]
fn how_a_transaction_stands_is_known_after_each_of_its_calls() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let space = &temporary.space;
        let stands = |transaction: &tupelo::Transaction| {
            let asked = || (transaction.is_open(), transaction.is_ended());
            assert_eq!(thread::scope(|scope| scope.spawn(asked).join().unwrap()), asked());
            asked()
        };
        let committed = space.transaction(&[], MINUTE).unwrap();
        committed.at(0).put(&fields!["job", 1]).unwrap();
        assert_eq!(stands(&committed), (true, false));
        committed.commit().unwrap();
        assert_eq!(stands(&committed), (false, true));
        assert!(committed.commit().is_err());

        let aborted = space.transaction(&[], MINUTE).unwrap();
        aborted.abort().unwrap();
        assert_eq!(stands(&aborted), (false, true));

        let over = space.transaction(&[], Duration::from_millis(1)).unwrap();
        while !over.at(0).is_over() {
            thread::yield_now();
        }
        let refused = over.at(0).put(&fields!["job", 2]).unwrap_err();
        assert!(matches!(refused, Error::Aborted { .. }), "{refused:?}");
        assert_eq!(stands(&over), (false, false));
    }
}
