//! Patterns and templates, owned.

use crate::{KindSet, Test, Value};

/// What one field must look like, owned. Predicates are made by [`Pattern::range`] and its neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Exactly this value (rule M2).
    Actual(Value),
    /// Any value of one of these kinds: a formal, a union of formals, or `any` (rules M3, M4).
    Kinds(KindSet),
    /// A predicate (rule M5).
    Test(Test),
}

impl Pattern {
    /// Any one field (rule M4).
    pub const ANY: Self = Self::Kinds(KindSet::ALL);
}
