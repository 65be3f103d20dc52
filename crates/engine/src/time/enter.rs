//! Entering a stripe at a moment at which everything that was due there has happened.
//!
//! Who finds something due is refused with [`Need::StripeTime`]: to let it happen is not this layer's, and takes locks of its own.
//! [`crate::recovery::enter`] sees to it and enters then.

use tupelo_shm::Section;

use crate::base::error::{Error, Need};
use crate::store::Store;
use crate::store::stripe::{Stripe, is_behind, scope_of};

/// Locks the stripe of shape `shape`, as [`enter`]. Returns it, too: found once for both.
#[inline(always)]
pub(crate) fn enter_stripe(store: &Store, shape: u32) -> Result<(Section<'_>, Stripe<'_>), Error> {
    let scope = scope_of(shape);
    let (section, page) = Section::enter_with(&store.memory, scope)?;
    let stripe = Stripe::new(page, scope);
    if is_behind(stripe) {
        return Err(behind(section, scope));
    }
    Ok((section, stripe))
}

/// Locks a stripe.
///
/// # Errors
///
/// [`Need::StripeTime`] if something is due there; what the memory says.
#[inline(always)]
pub(crate) fn enter(store: &Store, scope: u32) -> Result<Section<'_>, Error> {
    let section = Section::enter(&store.memory, scope)?;
    if is_behind(Stripe::of_scope(section.view(), scope)) {
        return Err(behind(section, scope));
    }
    Ok(section)
}

#[cold]
#[inline(never)]
fn behind(section: Section<'_>, scope: u32) -> Error {
    drop(section);
    Need::StripeTime { scope }.into()
}
