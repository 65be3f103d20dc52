//! What everything stands upon: errors, where things are in a segment, signals.

pub(crate) mod abortion;
pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod layout;
pub(crate) mod refusable;
pub(crate) mod signal;
pub(crate) mod steps;
pub(crate) mod sync;
pub(crate) mod terms;
pub(crate) mod visitor;
pub(crate) mod want;
