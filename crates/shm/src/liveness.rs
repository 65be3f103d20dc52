//! For tests, with the feature `checked`: whether every access to blocks is to a block that is in use.
//!
//! The engine reports its allocations and frees; they count once the section commits. From then on every window and
//! every copy that begins in the watched part of the memory is checked. It has to lie in one block that is in use (or,
//! for the free list's link, to be the first line of a free one), or the access panics. Meant for one thread: an
//! optimistic reader that races with a writer may look at a block that was just freed, and is right to.
//!
//! Without the feature all of this is nothing.

#[cfg(feature = "checked")]
pub(crate) use checked::{access, commit, discard, note, watch};
#[cfg(not(feature = "checked"))]
pub(crate) use unchecked::{access, commit, discard, note, watch};

/// What became of a block, by granules.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "checked"), allow(dead_code, reason = "nobody looks at it then"))]
pub(crate) enum Event {
    Allocated {
        first: u32,
        granules: u32,
    },
    Freed {
        first: u32,
    },
    /// Extents went back: whatever ran through them is freed, and nothing else is in them.
    Returned {
        first: u32,
        granules: u32,
    },
}

#[cfg(not(feature = "checked"))]
mod unchecked {
    use super::Event;

    #[inline(always)]
    pub(crate) fn watch(_: *const u8, _: Option<usize>) {}
    #[inline(always)]
    pub(crate) fn note(_: *const u8, _: Event) {}
    #[inline(always)]
    pub(crate) fn commit(_: *const u8) {}
    #[inline(always)]
    pub(crate) fn discard(_: *const u8) {}
    #[inline(always)]
    pub(crate) fn access(_: *const u8, _: usize, _: usize) {}
}

#[cfg(feature = "checked")]
mod checked {
    use std::collections::{BTreeMap, BTreeSet, HashMap};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::Event;
    use crate::access::GRANULE;

    /// The blocks of one memory.
    struct Blocks {
        /// Where the watched part begins, in bytes.
        start: usize,
        /// The blocks in use: first granule, and how many.
        live: BTreeMap<u32, u32>,
        /// First granules of blocks that were in use.
        free: BTreeSet<u32>,
        /// The changes of the open section.
        pending: Vec<Event>,
    }

    /// By the base of the memory.
    static ALL: Mutex<Option<HashMap<usize, Blocks>>> = Mutex::new(None);

    fn all() -> MutexGuard<'static, Option<HashMap<usize, Blocks>>> {
        ALL.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(base: *const u8, act: impl FnOnce(&mut Blocks) -> R) -> Option<R> {
        Some(act(all().as_mut()?.get_mut(&base.addr())?))
    }

    /// Watches the memory at `base` from offset `start` on, of which nothing is in use; `None`: no more.
    pub(crate) fn watch(base: *const u8, start: Option<usize>) {
        let mut all = all();
        let all = all.get_or_insert_default();
        all.remove(&base.addr());
        if let Some(start) = start {
            let (live, free, pending) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
            all.insert(base.addr(), Blocks { start, live, free, pending });
        }
    }

    pub(crate) fn note(base: *const u8, event: Event) {
        with(base, |blocks| {
            if let Event::Allocated { first, .. } = event {
                let is_freed = |event: &Event| matches!(event, Event::Freed { first: freed } if *freed == first);
                // An undo would bring back bytes that the new owner has overwritten (rule R2).
                assert!(
                    !blocks.pending.iter().any(is_freed),
                    "block {first} is freed and used again in one section"
                );
                assert!(!blocks.live.contains_key(&first), "block {first} is given out twice");
            }
            blocks.pending.push(event);
        });
    }

    pub(crate) fn commit(base: *const u8) {
        with(base, |blocks| {
            for event in std::mem::take(&mut blocks.pending) {
                blocks.apply(event);
            }
        });
    }

    pub(crate) fn discard(base: *const u8) {
        with(base, |blocks| blocks.pending.clear());
    }

    /// Checks an access to `bytes` bytes at `offset`.
    pub(crate) fn access(base: *const u8, offset: usize, bytes: usize) {
        let allowed = with(base, |blocks| blocks.allow(offset, bytes)).unwrap_or(true);
        assert!(
            allowed,
            "an access to {bytes} bytes at {offset} (granule {}) is to no block in use",
            offset / GRANULE
        );
    }

    impl Blocks {
        fn apply(&mut self, event: Event) {
            match event {
                Event::Allocated { first, granules } => {
                    self.free.remove(&first);
                    self.live.insert(first, granules);
                }
                Event::Freed { first } => {
                    assert!(
                        self.live.remove(&first).is_some(),
                        "block {first} is freed, but not in use"
                    );
                    self.free.insert(first);
                }
                Event::Returned { first, granules } => {
                    self.live.remove(&first);
                    let left = self.live.range(first..first + granules).next();
                    assert!(left.is_none(), "extents at {first} go back with {left:?} in use");
                    self.free.retain(|block| !(first..first + granules).contains(block));
                }
            }
        }

        fn allow(&self, offset: usize, bytes: usize) -> bool {
            if offset < self.start || bytes == 0 {
                return true;
            }
            let inside = |first: u32, granules: u32| {
                let start = first as usize * GRANULE;
                offset >= start && offset + bytes <= start + granules as usize * GRANULE
            };
            let Ok(granule) = u32::try_from(offset / GRANULE) else { return false };
            let before = self.live.range(..=granule).next_back();
            let is_new = |event: &Event| match *event {
                Event::Allocated { first, granules } => inside(first, granules),
                _ => false,
            };
            before.is_some_and(|(first, granules)| inside(*first, *granules))
                || self.pending.iter().any(is_new)
                || (bytes <= GRANULE && self.free.contains(&granule))
        }
    }
}
