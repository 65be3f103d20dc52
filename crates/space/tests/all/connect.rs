//! What can not be meant by who opens a space is refused, whatever is there.

use std::thread;

use crate::common::{ENGINES, Temporary};
use tupelo::{ConnectOptions, Error, Space, fields, template};
use tupelo_model::Limits;

/// Opens the space of `temporary`, and one that is not there.
fn refusals(temporary: &Temporary, options: &ConnectOptions) -> [String; 2] {
    let url = temporary.space.url();
    [url.to_owned(), format!("{url}-absent")].map(|url| match Space::connect(&url, options) {
        Err(Error::Misuse { problem, hint: Some(_) }) => problem,
        other => panic!("{url}: {other:?}"),
    })
}

#[test]
fn a_space_is_not_both_fresh_and_not_to_be_created() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        temporary.space.put(&fields!["job"]).unwrap();
        let options = ConnectOptions { create: false, fresh: true, ..ConnectOptions::default() };
        for problem in refusals(&temporary, &options) {
            assert!(problem.contains("fresh") && problem.contains("create"), "{problem}");
        }
        assert_eq!(temporary.connect_again().count(&[template!["job"]]), Ok(1));
    }
}

#[test]
fn a_space_holds_a_tuple_at_least_b1() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let options = ConnectOptions { tuples_max: Some(0), ..ConnectOptions::default() };
        for problem in refusals(&temporary, &options) {
            assert!(problem.contains("tuples_max is 0"), "{problem}");
        }
    }
}

/// The way out that an error names.
fn way_out<T>(result: Result<T, Error>) -> String {
    result.err().and_then(|error| error.hint()).unwrap_or_default()
}

#[test]
fn a_space_of_another_size_is_removed_by_a_call_that_may_remove_its_whole_file() {
    let file = Temporary::new("file", Limits::default());
    let plain = file.space.url();
    let orders = format!("{plain}?space=orders");
    Space::connect(&orders, &ConnectOptions::default()).unwrap();
    let other_size = |url: &str| Space::connect(url, &ConnectOptions::default()).map(drop);
    let whole = way_out(other_size(&format!("{plain}?size=16M")));
    assert!(whole.contains("remove the file with all its spaces with `tupelo rm URL`"), "{whole}");
    let one = way_out(other_size(&format!("{orders}&size=16M")));
    assert!(one.contains("remove the space with `tupelo rm URL`"), "{one}");
}

#[test]
fn too_many_spaces_in_a_file_are_told_with_the_call_that_removes_one_b2() {
    let refused = tupelo_engine::Error::LimitExceeded { what: "spaces in one file", limit: 1_024 };
    let hint = way_out::<()>(Err(refused.into()));
    assert!(hint.contains("`tupelo rm 'file:///srv/shop.tupelo?space=old'`"), "{hint}");
}

#[test]
fn spaces_of_two_files_are_told_what_they_may_be_called_in_one_o7() {
    let (one, other) =
        (Temporary::new("file", Limits::default()), Temporary::new("file", Limits::default()));
    let url = format!("{}?space=orders", one.space.url());
    let orders = Space::connect(&url, &ConnectOptions::default()).unwrap();
    let refused = orders.move_to(&other.space, &[template!["job"]]);
    assert!(refused.as_ref().is_err_and(|error| error.message().contains("are in two files")));
    let told = format!("its spaces {url} and {}?space={};", one.space.url(), other.space.name());
    let hint = way_out(refused);
    assert!(hint.contains(&told), "{hint}");
}

#[test]
fn all_who_open_a_space_at_once_have_the_same() {
    for engine in ENGINES {
        let url = format!("{engine}://test-opened-at-once-{}", std::process::id());
        for _ in 0..20 {
            let open = || Space::connect(&url, &ConnectOptions::default()).unwrap();
            let spaces: Vec<Space> = thread::scope(|scope| {
                let opens: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
                opens.into_iter().map(|open| open.join().unwrap()).collect()
            });
            for space in &spaces {
                space.put(&fields!["job"]).unwrap();
            }
            for space in &spaces {
                assert_eq!(space.count(&[template!["job"]]), Ok(4));
            }
            tupelo::remove(&url).unwrap();
        }
    }
}

#[test]
fn a_space_is_there_until_it_was_removed_or_the_handle_was_closed_c4() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let (space, other) = (&temporary.space, temporary.connect_again());
        assert_eq!(space.require_there(), Ok(()));
        other.close();
        assert!(matches!(other.require_there(), Err(Error::SpaceClosed { .. })));
        tupelo::remove(space.url()).unwrap();
        let refused = space.require_there().unwrap_err();
        assert!(matches!(refused, Error::SpaceRemoved { .. }), "{refused}");
    }
}
