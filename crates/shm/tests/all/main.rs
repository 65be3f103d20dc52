//! Segments, processes, and sections whose thread is killed: one program, so that it is linked once.
#![allow(unsafe_code, reason = "the tests look at the memory itself, and have signals come")]
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod announce;
mod common;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod crash_group;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod crash_section;
mod processes;
mod section_full;
mod segment_create;
mod segment_damage;
mod segment_full;
mod segment_huge;
