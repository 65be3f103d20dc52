//! Tuples that stay in somebody's hands beyond a call: claims, leases, transactions; and subscriptions.

pub(crate) mod claim;
pub(crate) mod due;
pub(crate) mod holders_gone;
pub(crate) mod lease;
pub(crate) mod restore;
pub(crate) mod subscription;
pub(crate) mod transaction;
