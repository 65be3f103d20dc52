//! Which pages a script writes to: known from a process that has to ask for each.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t};

use crate::child::{Exit, fork, shared_words};
use crate::experiment::Script;
use crate::memory::{PAGE_BYTES, Region};

/// Most pages that a script may write to.
const PAGES_MAX: usize = 4096;

/// In the process that asks: where its parent reads of which pages it wrote to. A number, then as many page numbers, each in
/// two words.
static LIST: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
/// How many are in the list.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Runs a script to its end in a process that may write to no page of the regions unless it has asked. Returns their
/// addresses.
///
/// # Panics
///
/// If the process does not come to the end of the script.
pub(crate) fn pages_written<C>(script: &Script<'_, C>, regions: &[Region]) -> BTreeSet<usize> {
    thread_local! {
        static WORDS: &'static [AtomicU32] = shared_words(1 + 2 * PAGES_MAX);
    }
    let words = WORDS.with(|words| *words);
    words[0].store(0, Ordering::Relaxed);
    let child = fork(|| {
        let mut context = (script.prepare)();
        LIST.store(words.as_ptr().cast_mut(), Ordering::Relaxed);
        be_asked();
        for region in regions {
            region.protect();
        }
        (script.script)(&mut context);
    });
    assert_eq!(child.wait(), Exit::Done, "the script did not come to its end");
    let count = words[0].load(Ordering::Relaxed) as usize;
    let word = |index: usize| words[index].load(Ordering::Relaxed) as usize;
    (0..count).map(|entry| (word(2 * entry + 1) << 32 | word(2 * entry + 2)) * PAGE_BYTES).collect()
}

/// From now on this process is asked when it writes where it may not.
fn be_asked() {
    // SAFETY: zeros are an empty set of signals, no flags and the default handler.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = allow;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler has the form that SA_SIGINFO asks for, and does only what is allowed in one.
    let code = unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut()) };
    assert!(code == 0, "can not handle SIGSEGV");
}

/// Notes the page, and lets the process write to it from now on: the instruction is executed again.
extern "C" fn allow(signal: c_int, what: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes what it is about.
    let what = unsafe { &*what };
    // SAFETY: for this signal that is an address.
    let page = unsafe { what.si_addr() }.addr() / PAGE_BYTES;
    let entry = COUNT.fetch_add(1, Ordering::Relaxed);
    let start = ptr::without_provenance_mut(page * PAGE_BYTES);
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a page that this process may read already; where it has none the call is refused.
    let allowed = entry < PAGES_MAX && unsafe { libc::mprotect(start, PAGE_BYTES, rights) } == 0;
    if !allowed {
        // A fault of the script: it dies of it when the handler returns.
        // SAFETY: the default is always there.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    let list = LIST.load(Ordering::Relaxed);
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a number")]
    for (index, value) in [(2 * entry + 1, page >> 32), (2 * entry + 2, page), (0, entry + 1)] {
        // SAFETY: the list has room for so many entries.
        let place = unsafe { list.add(index) };
        // SAFETY: as above, and mapped for ever.
        unsafe { &*place }.store(value as u32, Ordering::Relaxed);
    }
}
