//! Entering a stripe at a moment at which everything that was due there has happened.

use tupelo_shm::Section;

use crate::base::error::Error;
use crate::store::Store;
use crate::store::stripe::{Stripe, is_behind, scope_of};

/// Locks the stripe of shape `shape`, as [`crate::time::enter::enter`]. Returns it, too: found once for both.
#[inline(always)]
pub(crate) fn enter_stripe(store: &Store, shape: u32) -> Result<(Section<'_>, Stripe<'_>), Error> {
    let scope = scope_of(shape);
    let (mut section, page) = Section::enter_with(&store.memory, scope)?;
    let stripe = Stripe::new(page, scope);
    if is_behind(stripe) {
        drop(section);
        section = enter_again(store, scope)?;
    }
    Ok((section, stripe))
}

#[cold]
#[inline(never)]
fn enter_again(store: &Store, scope: u32) -> Result<Section<'_>, Error> {
    enter(store, scope)
}

/// Locks a stripe, at a moment at which everything that was due there has happened.
#[inline(always)]
pub(crate) fn enter(store: &Store, scope: u32) -> Result<Section<'_>, Error> {
    let section = Section::enter(&store.memory, scope)?;
    if !is_behind(Stripe::of_scope(section.view(), scope)) {
        return Ok(section);
    }
    enter_on_time(store, section, scope)
}

#[cold]
#[inline(never)]
fn enter_on_time<'m>(
    store: &'m Store,
    mut section: Section<'m>,
    scope: u32,
) -> Result<Section<'m>, Error> {
    while is_behind(Stripe::of_scope(section.view(), scope)) {
        section.finish()?;
        (store.callbacks.catch_up)(store, scope)?;
        section = Section::enter(&store.memory, scope)?;
    }
    Ok(section)
}
