//! With the feature `checked` the memory objects to every access outside of a block in use. These tests show that it does: if
//! it objected to nothing, all others would pass.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tupelo_shm::{CopyBuffer, GRANULE};
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

/// Copies something, as long as these bytes, from an offset on, or to it.
type Copying<'a> = &'a dyn Fn(usize, &[u8]);

/// What is said of an access.
fn objection_to<R>(access: impl FnOnce() -> R) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(access)).err()?;
    Some(*panic.downcast::<String>().unwrap())
}

/// What is said of a look at `N` bytes from granule `granule` on.
fn objection<const N: usize>(engine: &Engine, granule: u32) -> Option<String> {
    objection_to(|| engine.memory.view().at::<N>(granule).load(0))
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
fn a_copy_beyond_the_end_of_a_block_or_of_one_that_is_free_is_objected_to() {
    let (engine, lease) = with_a_tuple();
    let (view, start) = (engine.memory.view(), lease.block() as usize * GRANULE);
    let mut bytes = [0; GRANULE * GRANULES as usize];
    // More than any block of this size has.
    let beyond = [0; 16 * GRANULE * GRANULES as usize];
    assert_eq!(objection_to(|| view.copy_out(start, &mut bytes)), None);
    let copies: [(&str, Copying<'_>); 6] = [
        ("out", &|at, bytes| view.copy_out(at, &mut bytes.to_vec())),
        ("long", &|at, bytes| {
            CopyBuffer::new().copy(&view, at, bytes.len());
        }),
        ("in", &|at, bytes| view.copy_in(at, bytes)),
        ("across", &|at, bytes| view.copy_across(at, at, bytes.len())),
        ("in place", &|at, bytes| {
            view.bytes(at, bytes.len());
        }),
        ("fresh", &|at, bytes| {
            view.fresh(at, bytes.len());
        }),
    ];
    for (name, copy) in copies {
        assert!(objection_to(|| copy(start, &beyond)).is_some(), "{name} beyond the end");
    }
    engine.cancel(&lease).unwrap();
    for (name, copy) in copies {
        let said = objection_to(|| copy(start, &bytes)).unwrap_or_default();
        assert!(said.ends_with("is to no block in use"), "{name} of what is free: {said}");
        let short = &bytes[..8];
        assert!(objection_to(|| copy(start + GRANULE, short)).is_some(), "{name} of a few bytes");
    }
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
