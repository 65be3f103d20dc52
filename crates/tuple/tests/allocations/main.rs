//! What parsers allocate. The counting allocator is the whole program's, so these tests have a program of their own.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod torture;
