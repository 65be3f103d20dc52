//! With the feature `checked` the memory objects to every access outside of a block in use. These tests show that it does: if
//! it objected to nothing, all others would pass.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tupelo_shm::GRANULE;
use tupelo_tuple::Field;

use crate::engine::Engine;
use crate::{Lease, LeaseTerms, testing};

/// Granules that the tuple's block has at least.
const GRANULES: u32 = 4;

/// A space with one tuple, whose block its lease names.
fn with_a_tuple() -> (Engine, Lease) {
    let engine = testing::engine(8 << 20);
    let terms = LeaseTerms { lease: Some(Duration::from_secs(3600)), after: None };
    let bytes = [7; GRANULE * (GRANULES as usize - 1)];
    let lease = engine.put_leased(&[Field::Bytes(&bytes)], &terms).unwrap();
    (engine, lease)
}

/// What is said of a look at `N` bytes from granule `granule` on.
fn objection<const N: usize>(engine: &Engine, granule: u32) -> Option<String> {
    let look = || engine.memory.view().at::<N>(granule).load(0);
    let panic = catch_unwind(AssertUnwindSafe(look)).err()?;
    Some(*panic.downcast::<String>().unwrap())
}

#[test]
fn a_block_in_use_can_be_looked_at_and_no_more_once_it_is_free() {
    let (engine, lease) = with_a_tuple();
    let block = lease.block();
    assert_eq!(objection::<GRANULE>(&engine, block), None);
    assert_eq!(objection::<GRANULE>(&engine, block + GRANULES - 1), None);
    engine.cancel(&lease).unwrap();
    // The link of a free block is in its first granule.
    assert_eq!(objection::<GRANULE>(&engine, block), None);
    let said = objection::<GRANULE>(&engine, block + 1).unwrap();
    assert!(said.contains(&format!("(granule {}) is to no block in use", block + 1)), "{said}");
}

#[test]
fn a_look_beyond_the_end_of_a_block_is_objected_to() {
    let (engine, lease) = with_a_tuple();
    let said = objection::<4096>(&engine, lease.block()).unwrap();
    assert!(said.starts_with("an access to 4096 bytes at "), "{said}");
}

#[test]
fn a_block_that_is_not_in_use_can_not_be_freed() {
    let (engine, lease) = with_a_tuple();
    let free = || {
        let (mut section, _) = engine.enter_stripe(0).unwrap();
        section.note_freed(lease.block() + 1);
        section.commit().unwrap();
    };
    let panic = catch_unwind(AssertUnwindSafe(free)).unwrap_err();
    let said = panic.downcast::<String>().unwrap();
    assert!(said.ends_with("is freed, but not in use"), "{said}");
}
