//! Looking at a space: figures, who holds what, and whether everything in it agrees.

pub(crate) mod blocked;
pub(crate) mod check;
#[cfg(test)]
mod contradictions;
pub(crate) mod holdings;
pub(crate) mod kept;
pub(crate) mod stat;
