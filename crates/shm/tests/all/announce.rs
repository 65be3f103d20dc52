//! What processes announce in a segment.

use tupelo_crashtest::{Exit, fork};
use tupelo_shm::Error;

use crate::common::{Scratch, open};

#[test]
fn what_a_process_announces_is_known_until_it_ends_l5() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let _segment = open(&directory, "film", 1).unwrap();
    let says = |what| directory.is_announced("film", what).unwrap();
    assert!(!says("film:render"));
    let own = directory.announce("film", "film:render").unwrap();
    let child = fork(|| {
        let _also = directory.announce("film", "film:render").unwrap();
        let other = directory.announce("film", "film:cut").unwrap();
        assert!(directory.is_announced("film", "film:cut").unwrap());
        // It ends without a word.
        std::mem::forget(other);
    });
    assert_eq!(child.wait(), Exit::Done);
    assert!(says("film:render") && !says("film:cut"));
    drop(own);
    assert!(!says("film:render"));
}

#[test]
fn nothing_is_announced_in_a_segment_that_is_not_there() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let announced = directory.announce("none", "film:render");
    assert!(matches!(announced, Err(Error::NotFound { .. })), "{announced:?}");
    assert!(matches!(directory.is_announced("none", "x"), Err(Error::NotFound { .. })));
}
