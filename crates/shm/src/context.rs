//! Section contexts: the tools of a thread inside a segment, set up once, used by one section after the other.
//!
//! A section needs the thread's slot and number, the kernel's robust list, a view, and a place in the undo log. Nearly
//! all of that is the same for the next section of the same thread. So it stays where it is, in the thread's static
//! storage, and a section is a pointer to it. If a thread opens a section while another of its sections is open, or in
//! turns in several segments, it gets a second section context. That costs an allocation or a search.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};

use crate::access::View;
use crate::cohort::Cohorts;
use crate::error::Error;
use crate::lock::LockLine;
use crate::log::ScopeTag;
use crate::memory::Memory;
use crate::section::Note;
use crate::thread::Thread;

/// The state of a section. Between sections nothing is logged, violated or overflown.
pub(crate) struct SectionContext {
    /// The number of the mapping that it is set up for, or [`FOR_NONE`]; [`IN_USE`] while a section uses it. By number,
    /// since another mapping may come to the same addresses: data of a mapping that is gone is not used.
    ready_for: u64,
    /// That number, also while a section uses it.
    set_up_for: u64,
    /// The memory of the section that uses it.
    over: *const Memory,
    pub(crate) view: View<'static>,
    pub(crate) thread: Thread<'static>,
    /// The scope that stores are logged under.
    pub(crate) focus: ScopeTag,
    /// The lock that was taken first.
    pub(crate) first: LockLine<'static>,
    /// The scopes that were taken after it, in ascending order. Keeps its memory for the next section.
    pub(crate) others: ManuallyDrop<Vec<LockLine<'static>>>,
    /// What the section's owner has noted since the last commit. Keeps its memory for the next section.
    pub(crate) notes: ManuallyDrop<Vec<Note>>,
    /// Stores logged so far.
    pub(crate) count: u32,
    /// How far the view reached before the log was full; 0 if it is not.
    pub(crate) overflow: usize,
    /// How the thread shares a scope with threads that enter it again and again.
    pub(crate) cohorts: Cohorts,
    /// Whether it was brought in for one section, and goes with it.
    is_extra: bool,
}

thread_local! {
    /// Without a destructor, so that reaching it costs nothing; [`forget`] frees its contents.
    static CONTEXT: UnsafeCell<SectionContext> = const { UnsafeCell::new(SectionContext::bare()) };
}

/// No mapping: not set up yet.
const FOR_NONE: u64 = u64::MAX;
/// No mapping either.
const IN_USE: u64 = 0;

impl SectionContext {
    /// A section context that is set up for no segment.
    const fn bare() -> Self {
        Self {
            ready_for: FOR_NONE,
            set_up_for: FOR_NONE,
            over: ptr::null(),
            view: View::of_nothing(),
            thread: Thread::nobody(),
            focus: ScopeTag::NONE,
            first: LockLine::of_nothing(),
            others: ManuallyDrop::new(Vec::new()),
            notes: ManuallyDrop::new(Vec::new()),
            count: 0,
            overflow: 0,
            cohorts: Cohorts::NONE,
            is_extra: false,
        }
    }

    /// Sets the section context up for `memory` and the calling thread.
    fn set_up(&mut self, memory: &Memory, thread: Thread<'_>) {
        self.set_up_for = memory.mapping().number();
        // SAFETY: the slot is a page of the mapping, which stays as long as a section borrows it. After that only
        // sections over the same mapping use it, which borrow the mapping again.
        self.thread = unsafe { thread.kept() };
        // SAFETY: as above, for everything that the view reaches.
        self.view = unsafe { memory.view().kept() };
    }
}

/// A section context in use by one section.
pub(crate) struct Hold<'m> {
    context: NonNull<SectionContext>,
    memory: PhantomData<&'m Memory>,
}

impl<'m> Hold<'m> {
    /// The calling thread's section context, set up for `memory`.
    ///
    /// # Errors
    ///
    /// What [`Memory::thread`] says if this thread has no slot yet; [`Error::Reentrant`] if a section of it
    /// has changed something and is still open.
    #[inline(always)]
    pub(crate) fn new(memory: &'m Memory) -> Result<Self, Error> {
        let context = CONTEXT.with(UnsafeCell::get);
        // SAFETY: the thread's own; a section that uses it is not running now, this function is.
        let ready_for = unsafe { &raw mut (*context).ready_for };
        // SAFETY: as above.
        if unsafe { *ready_for } != memory.mapping().number() {
            return Self::set_up_new(memory);
        }
        // SAFETY: as above. From here on, nobody else gets a pointer to it.
        unsafe { *ready_for = IN_USE };
        // SAFETY: as above.
        unsafe { (*context).over = memory };
        // SAFETY: static storage is nowhere near null.
        Ok(Self { context: unsafe { NonNull::new_unchecked(context) }, memory: PhantomData })
    }

    /// Sets up a section context: the thread's, unless it is in use.
    #[cold]
    #[inline(never)]
    fn set_up_new(memory: &'m Memory) -> Result<Self, Error> {
        let thread = memory.thread()?;
        if thread.has_logged() {
            return Err(Error::Reentrant);
        }
        let own = CONTEXT.with(UnsafeCell::get);
        // SAFETY: the thread's own, and only looked at.
        let in_use = unsafe { (*own).ready_for == IN_USE };
        // SAFETY: as above.
        if in_use && unsafe { (*own).set_up_for == memory.mapping().number() } {
            // The section that is open may end first. The next one then comes by here, where it is seen whether this
            // one has changed something.
            // SAFETY: as above; read when the open section ends.
            unsafe { (*own).set_up_for = FOR_NONE };
        }
        let context = if in_use {
            Box::into_raw(Box::new(SectionContext { is_extra: true, ..SectionContext::bare() }))
        } else {
            own
        };
        // SAFETY: new, or in use by nobody.
        let context = unsafe { NonNull::new_unchecked(context) };
        let mut hold = Self { context, memory: PhantomData };
        hold.set_up(memory, thread);
        hold.ready_for = IN_USE;
        hold.over = memory;
        Ok(hold)
    }

    /// The memory that the section context was asked for.
    #[inline(always)]
    pub(crate) fn memory(&self) -> &'m Memory {
        // SAFETY: `new` has put it there, where it is borrowed for 'm. As long as this hold has the section context, no
        // other hold gets it.
        unsafe { &*self.over }
    }

    /// The view of the section, which sees the segment as long as its memory is borrowed.
    #[inline(always)]
    pub(crate) fn view(&self) -> &View<'m> {
        &self.view
    }
}

impl Deref for Hold<'_> {
    type Target = SectionContext;

    #[inline(always)]
    fn deref(&self) -> &SectionContext {
        // SAFETY: lives as long as the thread or this hold, which alone points to it.
        unsafe { self.context.as_ref() }
    }
}

impl DerefMut for Hold<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut SectionContext {
        // SAFETY: as in `deref`.
        unsafe { self.context.as_mut() }
    }
}

impl Drop for Hold<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_extra {
            // SAFETY: made by `Box::into_raw` in `set_up_new`, and this hold was its only user.
            let mut context = unsafe { Box::from_raw(self.context.as_ptr()) };
            // SAFETY: the box goes, and the vector with it.
            unsafe { ManuallyDrop::drop(&mut context.others) };
            // SAFETY: as above.
            unsafe { ManuallyDrop::drop(&mut context.notes) };
            return;
        }
        self.view.forgive();
        self.ready_for = self.set_up_for;
    }
}

/// Clears the section context: the thread ends, or it is the child of a fork, where its slot is the parent's.
pub(crate) fn forget() {
    let context = CONTEXT.with(UnsafeCell::get);
    // SAFETY: the thread's own; no section is open at the end of a thread, nor while it forks.
    let context = unsafe { &mut *context };
    // SAFETY: the section context is replaced, so nobody uses the vector again.
    unsafe { ManuallyDrop::drop(&mut context.others) };
    // SAFETY: as above.
    unsafe { ManuallyDrop::drop(&mut context.notes) };
    *context = SectionContext::bare();
}
