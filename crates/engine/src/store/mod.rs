//! The memory of a space: stripes and their records, shapes, the blocks and extents that they are made of.

pub(crate) mod arena;
pub(crate) mod blocks;
pub(crate) mod classes;
pub(crate) mod extension;
pub(crate) mod flight;
pub(crate) mod passage;
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod shrink;
pub(crate) mod step;
pub(crate) mod stripe;
