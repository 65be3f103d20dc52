//! Waking the owner of a wait node, or its notifier.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU32, Ordering, fence};

use tupelo_shm::{Span, View, process};

use crate::base::error::Error;
use crate::base::{layout, signal};
use crate::store::Store;
use crate::waiters::{SIGNAL, TICKET, WAKES, node};

/// In the word that names whom a signal wakes: a notifier, with a bit for each of its waiters.
pub(crate) const IS_NOTIFIER: u32 = 1 << 31;

/// Where the bit of a wait node stands: which word, and the bit.
pub(crate) const fn place_of(number: u32) -> (u32, u32) {
    ((number - 1) / 32, 1 << ((number - 1) % 32))
}

/// A word of bits.
pub(crate) fn raised<'m>(view: &View<'m>, word: u32) -> &'m AtomicU32 {
    let offset = layout::raised(32 * word);
    let pair: Span<'m, 8> = view.span(offset & !7);
    pair.word(offset & 4)
}

/// The address of the notifier with this number.
pub(crate) fn address(number: u64) -> Result<SocketAddr, Error> {
    let name = format!("tupelo-{number:016x}");
    SocketAddr::from_abstract_name(name).map_err(|error| Error::System(error.to_string().into()))
}

/// Tells the owner of a wait node to look: it, or its notifier.
pub(crate) fn notify(store: &Store, number: u32) {
    let view = store.memory.view();
    // Pairs with the fence in `Notifier::add`: it sees what was done, or we see whom to tell.
    fence(Ordering::SeqCst);
    let named = node(&view, number).load(WAKES);
    if named & IS_NOTIFIER != 0 {
        let (word, bit) = place_of(number);
        raised(&view, word).fetch_or(bit, Ordering::Release);
    }
    let woken = if named == 0 { number } else { named & !IS_NOTIFIER };
    let node = node(&view, woken);
    if signal::raise(node.word(SIGNAL), process::processor()) {
        ring(node.load64(TICKET));
    }
}

/// Sends a byte to a notifier, from a socket that is made for it: to keep one would be to send from another's, if the
/// program has closed it.
#[cold]
pub(crate) fn ring(id: u64) {
    // Without a socket, which the system may refuse, the notifier's owner looks a slice later.
    let Ok(ringer) = UnixDatagram::unbound() else { return };
    if ringer.set_nonblocking(true).is_ok()
        && let Ok(address) = address(id)
    {
        // Refused by one that is gone, or full of bytes that nobody has read yet: both are well.
        let _ = ringer.send_to_addr(&[1], &address);
    }
}
