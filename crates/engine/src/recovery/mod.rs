//! What is missing and how it is got: what the dead held, memory, room in a full space.

pub(crate) mod abandoned;
pub(crate) mod fit;
pub(crate) mod full;
pub(crate) mod held;
pub(crate) mod provide;
pub(crate) mod quota;
pub(crate) mod sweep;
