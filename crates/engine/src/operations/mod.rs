//! The verbs of a space: put, take, read, of one tuple or of many, and waiting for one.

pub(crate) mod at_match;
pub(crate) mod bulk;
pub(crate) mod by_age;
pub(crate) mod exchange;
pub(crate) mod filtered;
pub(crate) mod keys;
pub(crate) mod moment;
pub(crate) mod put;
pub(crate) mod read;
pub(crate) mod scan;
pub(crate) mod take;
pub(crate) mod take_many;
pub(crate) mod targets;
pub(crate) mod transfer;
pub(crate) mod versioned_reference;
pub(crate) mod wait;
