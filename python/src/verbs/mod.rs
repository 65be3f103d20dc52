//! The verbs of a space, one file per family.

pub(crate) mod bulk;
pub(crate) mod claim;
pub(crate) mod consume;
pub(crate) mod eval;
pub(crate) mod futures;
pub(crate) mod look;
pub(crate) mod notifier;
pub(crate) mod put;
pub(crate) mod scan;
pub(crate) mod subscribe;
pub(crate) mod swap;
pub(crate) mod take;
pub(crate) mod transaction;
pub(crate) mod transfer;
pub(crate) mod wait_none;
pub(crate) mod waiter;

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::call::define;

/// Puts the verbs on `class`, the class `Space`.
pub(crate) fn define_all(class: &Bound<'_, PyType>) -> PyResult<()> {
    define::<put::Put>(class)?;
    define::<put::PutAll>(class)?;
    define::<put::PutIfAbsent>(class)?;
    define::<take::Take>(class)?;
    define::<take::Read>(class)?;
    define::<take::TryTake>(class)?;
    define::<take::TryRead>(class)?;
    define::<bulk::TakeAll>(class)?;
    define::<bulk::Discard>(class)?;
    define::<bulk::ReadAll>(class)?;
    define::<bulk::TakeMany>(class)?;
    define::<bulk::Count>(class)?;
    define::<claim::Claim>(class)?;
    define::<claim::TryClaim>(class)?;
    define::<claim::Dead>(class)?;
    define::<claim::Requeue>(class)?;
    define::<scan::Scan>(class)?;
    define::<swap::Swap>(class)?;
    define::<swap::TrySwap>(class)?;
    define::<swap::Update>(class)?;
    define::<wait_none::WaitNone>(class)?;
    define::<transaction::Transaction>(class)?;
    define::<transfer::MoveTo>(class)?;
    define::<transfer::CopyTo>(class)?;
    define::<consume::Consume>(class)?;
    define::<consume::Finish>(class)?;
    define::<eval::Eval>(class)?;
    define::<futures::TakeFuture>(class)?;
    define::<futures::ReadFuture>(class)?;
    define::<subscribe::Subscribe>(class)?;
    define::<look::Stat>(class)?;
    define::<look::Explain>(class)?;
    Ok(())
}
