//! A value may be as large as the space (V1, B1): nearly all of its bytes are for it, and one that is larger is refused.

use crate::common::{ENGINES, Temporary, keep};
use tupelo::{ConnectOptions, Error, Field, Kind, Order, Space, Tuple, fields, template, tuple};

const SIZE_BYTES: usize = 8 << 20;
/// What the space needs beside one value: its shapes and indexes, and what is left over of an extent.
const OTHER_BYTES: usize = 512 << 10;

/// Puts so many bytes, and takes them again if there was room; says whether there was.
fn fits(space: &Space, bytes: &[u8]) -> bool {
    match space.put(&[Field::Str("large"), Field::Bytes(bytes)]) {
        Ok(()) => {
            let large = [template!["large", Kind::Bytes]];
            let taken: Tuple = space.try_take(&large, Order::Fifo, keep).unwrap().unwrap();
            assert_eq!(taken, tuple!["large", bytes.to_vec()]);
            true
        }
        Err(Error::SpaceFull { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

/// The most bytes of `all` that fit, found by halving, and one byte more, which does not.
fn most_that_fit(space: &Space, all: &[u8]) -> usize {
    let (mut fitting, mut refused) = (0, all.len());
    while refused - fitting > 1 {
        let middle = fitting.midpoint(refused);
        if fits(space, &all[..middle]) { fitting = middle } else { refused = middle }
    }
    fitting
}

#[test]
fn nearly_the_whole_space_is_one_value_and_one_byte_more_is_refused_b1() {
    let all: Vec<u8> = (0..SIZE_BYTES).map(|byte| u8::try_from(byte % 251).unwrap()).collect();
    for engine in ENGINES {
        let options = ConnectOptions { size_bytes: SIZE_BYTES as u64, ..ConnectOptions::default() };
        let temporary = Temporary::with(engine, &options);
        let space = &temporary.space;
        space.put(&fields!["small", 1]).unwrap();
        let most = most_that_fit(space, &all);
        assert!(most >= all.len() - OTHER_BYTES, "{most} bytes at most");
        // Nothing is lost of the room by all that was refused, and nothing of what is there.
        assert!(fits(space, &all[..most]));
        assert_eq!(space.count(&[template!["small", Kind::Int]]).unwrap(), 1);
    }
}

#[test]
fn a_value_larger_than_the_space_is_refused_for_good_b1() {
    for engine in ENGINES {
        let options = ConnectOptions { size_bytes: SIZE_BYTES as u64, ..ConnectOptions::default() };
        let temporary = Temporary::with(engine, &options);
        let bytes = vec![7; 2 * SIZE_BYTES];
        let refused = temporary.space.put(&[Field::Bytes(&bytes)]).unwrap_err();
        assert!(matches!(refused, Error::SpaceFull { .. }) && !refused.may_pass(), "{refused}");
        assert_eq!(temporary.space.count(&[template![_]]).unwrap(), 0);
    }
}
