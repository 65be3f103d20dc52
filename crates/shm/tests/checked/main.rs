//! With the feature `checked` the memory objects to every access outside of a block in use. These tests show that it does: if
//! it objected to nothing, all others would pass.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use tupelo_shm::{CopyBuffer, CreateOptions, GRANULE, Layout, Memory, Section, Segment};

/// The lock of the section; what follows it is watched.
#[expect(clippy::cast_possible_truncation, reason = "the fixed part has 17 MiB of granules")]
const LOCK: u32 = (Memory::engine_base() / GRANULE) as u32;
/// A block.
const BLOCK: u32 = LOCK + 8;
/// Granules that the block has.
const GRANULES: u32 = 4;
/// Bytes behind the fixed part: more than any test looks at.
const ENGINE_BYTES: usize = 1 << 16;

/// Private memory in which nothing but [`BLOCK`] is in use.
fn with_a_block() -> Memory {
    let end = Memory::engine_base() + ENGINE_BYTES;
    let options = CreateOptions {
        reserve_bytes: 64 << 20,
        initial_commit_bytes: 4096,
        create: true,
        fresh: false,
        mode: 0o600,
    };
    let layout = Layout { minor: 0, abi_hash: 1, features_incompatible: 0, features_compatible: 0 };
    let make = |mapping: &_| Memory::initialise(mapping, end, ENGINE_BYTES).map(drop);
    let segment = Segment::private(&options, &layout, make).unwrap();
    let memory = Memory::new(segment.mapping().clone());
    memory.watch(Some(Memory::engine_base() + GRANULE));
    change(&memory, |section| section.note_allocated(BLOCK, GRANULES));
    memory
}

fn change(memory: &Memory, act: impl FnOnce(&mut Section<'_>)) {
    let mut section = Section::enter(memory, LOCK).unwrap();
    act(&mut section);
    section.commit().unwrap();
}

/// Copies something, as long as these bytes, from an offset on, or to it.
type Copying<'a> = &'a dyn Fn(usize, &[u8]);

/// What is said of an access.
fn objection_to<R>(access: impl FnOnce() -> R) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(access)).err()?;
    Some(*panic.downcast::<String>().unwrap())
}

/// What is said of a look at `N` bytes from granule `granule` on.
fn objection<const N: usize>(memory: &Memory, granule: u32) -> Option<String> {
    objection_to(|| memory.view().at::<N>(granule).load(0))
}

#[test]
fn a_block_in_use_can_be_looked_at_and_no_more_once_it_is_free() {
    let memory = with_a_block();
    assert_eq!(objection::<GRANULE>(&memory, BLOCK), None);
    assert_eq!(objection::<GRANULE>(&memory, BLOCK + GRANULES - 1), None);
    change(&memory, |section| section.note_freed(BLOCK));
    // The link of a free block is in its first granule.
    assert_eq!(objection::<GRANULE>(&memory, BLOCK), None);
    let said = objection::<GRANULE>(&memory, BLOCK + 1).unwrap();
    assert!(said.contains(&format!("(granule {}) is to no block in use", BLOCK + 1)), "{said}");
}

#[test]
fn a_look_beyond_the_end_of_a_block_is_objected_to() {
    let said = objection::<4096>(&with_a_block(), BLOCK).unwrap();
    assert!(said.starts_with("an access to 4096 bytes at "), "{said}");
}

#[test]
fn what_a_section_allocates_and_takes_back_is_not_in_use() {
    let memory = with_a_block();
    let mut section = Section::enter(&memory, LOCK).unwrap();
    section.note_allocated(BLOCK + GRANULES, 1);
    assert_eq!(objection::<GRANULE>(&memory, BLOCK + GRANULES), None);
    section.roll_back();
    drop(section);
    assert!(objection::<GRANULE>(&memory, BLOCK + GRANULES).is_some());
}

#[test]
fn a_copy_beyond_the_end_of_a_block_or_of_one_that_is_free_is_objected_to() {
    let memory = with_a_block();
    let (view, start) = (memory.view(), BLOCK as usize * GRANULE);
    let mut bytes = [0; GRANULE * GRANULES as usize];
    let beyond = [0; 16 * GRANULE * GRANULES as usize];
    assert_eq!(objection_to(|| view.copy_out(start, &mut bytes)), None);
    let copies: [(&str, Copying<'_>); 5] = [
        ("out", &|at, bytes| view.copy_out(at, &mut bytes.to_vec())),
        ("long", &|at, bytes| {
            CopyBuffer::new().copy(&view, at, bytes.len());
        }),
        ("in", &|at, bytes| view.copy_in(at, bytes)),
        ("across", &|at, bytes| view.copy_across(at, at, bytes.len())),
        ("fresh", &|at, bytes| {
            view.fresh(at, bytes.len());
        }),
    ];
    for (name, copy) in copies {
        assert!(objection_to(|| copy(start, &beyond)).is_some(), "{name} beyond the end");
    }
    change(&memory, |section| section.note_freed(BLOCK));
    for (name, copy) in copies {
        let said = objection_to(|| copy(start, &bytes)).unwrap_or_default();
        assert!(said.ends_with("is to no block in use"), "{name} of what is free: {said}");
        let short = &bytes[..8];
        assert!(objection_to(|| copy(start + GRANULE, short)).is_some(), "{name} of a few bytes");
    }
}

#[test]
fn a_block_that_is_not_in_use_can_not_be_freed() {
    let memory = with_a_block();
    let free = || change(&memory, |section| section.note_freed(BLOCK + 1));
    let said = objection_to(free).unwrap();
    assert!(said.ends_with("is freed, but not in use"), "{said}");
}
