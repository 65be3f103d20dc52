//! What is missing and how it is got: what the dead held, memory, room in a full space.

pub(crate) mod abandoned;
pub(crate) mod compact;
pub(crate) mod enter;
pub(crate) mod fit;
pub(crate) mod full;
pub(crate) mod handed;
pub(crate) mod held;
pub(crate) mod learning;
pub(crate) mod node_memory;
pub(crate) mod provide;
pub(crate) mod quota;
pub(crate) mod shrink;
pub(crate) mod sweep;
pub(crate) mod withdraw;
