//! What signals are made of. The exhaustive test of their interleavings puts other things in their place.

pub(crate) use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) use tupelo_shm::futex;
