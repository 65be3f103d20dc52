//! Entering a stripe, after everything has happened that was due there.

use tupelo_shm::Section;

use crate::base::error::{Error, Need};
use crate::store::Store;
use crate::store::stripe::{Stripe, scope_of};
use crate::time;

/// Locks a stripe, at a moment at which everything that was due there has happened.
#[inline(always)]
pub(crate) fn enter(store: &Store, scope: u32) -> Result<Section<'_>, Error> {
    match time::enter::enter(store, scope) {
        Err(Error::Need(Need::StripeTime { .. })) => enter_late(store, scope),
        entered => entered,
    }
}

/// As [`enter`], for the stripe of shape `shape`. Returns it, too: found once for both.
#[inline(always)]
pub(crate) fn enter_stripe(store: &Store, shape: u32) -> Result<(Section<'_>, Stripe<'_>), Error> {
    match time::enter::enter_stripe(store, shape) {
        Err(Error::Need(Need::StripeTime { .. })) => {
            let section = enter_late(store, scope_of(shape))?;
            let stripe = Stripe::of_shape(section.view(), shape);
            Ok((section, stripe))
        }
        entered => entered,
    }
}

/// Lets happen what is due before it enters, as often as something is.
#[cold]
#[inline(never)]
fn enter_late(store: &Store, scope: u32) -> Result<Section<'_>, Error> {
    loop {
        (store.callbacks.catch_up)(store, scope)?;
        match time::enter::enter(store, scope) {
            Err(Error::Need(Need::StripeTime { .. })) => {}
            entered => return entered,
        }
    }
}
