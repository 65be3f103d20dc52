//! A critical section whose changes happen all or not at all, whichever process is killed at whichever moment (rule
//! C1).
//!
//! Every store to a word that others can reach goes through [`Section::set`], which first writes the old
//! value to the log of this thread:
//!
//! ```text
//! set:        entry[n] = (offset, scope, old);  n = n + 1;  *offset = new
//! commit:     n = 0
//! recoverer:  restore the entries of this scope, newest first
//! ```
//!
//! SIGKILL arrives between two instructions with all earlier stores done and no later one, so program
//! order is all that is needed; the compiler fences keep it. Killed before the entry counts: nothing
//! changed. After it counts: the old value is restored, over itself or over the new one. After `n = 0`,
//! which commits the changes in all locked scopes with one store: nothing to restore. Every case is run,
//! instruction by instruction, by the crash tests.
//!
//! Two rules keep the argument short. R1: memory that others can reach is stored by `set`. R2: a store without the log
//! (`Span::init`) means nothing in the state that an undo would restore. Examples are the body of a free block, and the
//! tag of an empty index entry.

use std::mem::ManuallyDrop;
use std::sync::atomic::{Ordering, compiler_fence};

use crate::access::{GRANULE, Span, View, Word};
use crate::context::{Hold, SectionContext};
use crate::error::Error;
use crate::liveness::{self, Event};
use crate::lock::{self, LockLine};
use crate::log::{self, INLINE_ENTRIES, LogEntry, ScopeTag, put_back};
use crate::memory::Memory;
use crate::thread::{Slot, Thread};

/// A locked scope (or several), with its changes so far. Dropped without [`Section::commit`], it puts everything back.
///
/// One pointer, so that it is moved from function to function in a register. Two words are moved as one of twice the
/// size, which is not there before both have left the store buffer: at the end of a section, where everybody waits.
pub struct Section<'m> {
    context: Hold<'m>,
}

const _: () = assert!(size_of::<Section<'static>>() == size_of::<usize>());

/// Something that a section has changed, in words of its owner's: they mean nothing here. Kept with the section for
/// whoever commits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// What happened.
    pub kind: u32,
    /// To which block.
    pub reference: u32,
    /// More of it.
    pub number: u64,
}

impl<'m> Section<'m> {
    /// Locks `scope` for the calling thread.
    ///
    /// # Errors
    ///
    /// [`Error::Stalled`] if its owner lives but does not leave. [`Error::Reentrant`] if the owner is this very thread
    /// (a signal handler). The errors of [`Memory::thread`] if this thread has no slot yet.
    #[inline(always)]
    pub fn enter(memory: &'m Memory, scope: u32) -> Result<Self, Error> {
        Self::enter_with::<GRANULE>(memory, scope).map(|(section, _)| section)
    }

    /// As [`Section::enter`], with the window of `N` bytes that begins with the lock: found once for both.
    ///
    /// # Errors
    ///
    /// As [`Section::enter`].
    #[inline(always)]
    pub fn enter_with<const N: usize>(
        memory: &'m Memory,
        scope: u32,
    ) -> Result<(Self, Span<'m, N>), Error> {
        let mut context = Hold::new(memory)?;
        let Some(window) = context.view().window_at::<N>(scope) else {
            return Err(lock::no_line(context.view()));
        };
        let line: LockLine<'m> = window.part(0);
        let place = (context.view.base(), scope);
        context.cohorts.wait(place, line);
        let before = lock::acquire(memory, context.thread, line)?;
        let thread = context.thread.slot_number();
        if before != thread {
            context.cohorts.meet(place, line, thread);
        }
        Ok((Self::inside(context, (scope, line))?, window))
    }

    /// Says that the calling thread is about to wait for others: no thread need leave a scope to it any longer (see the
    /// `cohort` module).
    pub fn end_cohort(memory: &'m Memory) {
        // If there is no section context at hand, its cohort ends by itself.
        if let Ok(mut context) = Hold::new(memory) {
            let context = &mut *context;
            context.cohorts.end(&context.view, context.thread.slot_number());
        }
    }

    /// A section over a scope that is locked.
    #[inline(always)]
    fn inside(mut context: Hold<'m>, (scope, line): (u32, LockLine<'m>)) -> Result<Self, Error> {
        context.focus = ScopeTag::new(scope);
        // SAFETY: the mapping stays where it is as long as the section borrows it; after that the line is not used.
        context.first = unsafe { line.kept() };
        let section = Self { context };
        // By value, so that the section has no address yet.
        if Memory::sees_all(&section.context.view) { Ok(section) } else { section.that_sees_all() }
    }

    /// Sees all of the segment: before a lock was ours, others may have made it larger and used the new part.
    /// Or they may have found damage in it.
    #[cold]
    #[inline(never)]
    fn see_all(&mut self) -> Result<(), Error> {
        let memory = self.memory();
        memory.refresh(&mut self.context.view);
        memory.require_sound()
    }

    #[cold]
    #[inline(never)]
    fn that_sees_all(mut self) -> Result<Self, Error> {
        self.see_all()?;
        Ok(self)
    }

    /// As [`Section::enter`], but `None` while a living thread is inside: does not wait.
    ///
    /// The section may stay open while its thread opens and ends others, as long as it changes nothing.
    ///
    /// # Errors
    ///
    /// As [`Section::enter`].
    pub fn try_enter(memory: &'m Memory, scope: u32) -> Result<Option<Self>, Error> {
        let context = Hold::new(memory)?;
        let line = lock::line(context.view(), scope)?;
        let is_ours = lock::try_acquire(memory, &context.thread, line)?;
        is_ours.then(|| Self::inside(context, (scope, line))).transpose()
    }

    /// As [`Section::try_enter`], but `None` also while a dead thread is inside: costs no look at the process table (some microseconds).
    ///
    /// # Errors
    ///
    /// As [`Section::enter`].
    pub fn try_enter_if_free(memory: &'m Memory, scope: u32) -> Result<Option<Self>, Error> {
        let is_free = lock::is_free(lock::line(&memory.view(), scope)?);
        if is_free { Self::try_enter(memory, scope) } else { Ok(None) }
    }

    /// Locks a further scope and directs `set` to it. To rule out deadlock, callers lock scopes in
    /// ascending order.
    ///
    /// # Errors
    ///
    /// As [`Section::enter`]; the section stays as it was.
    pub fn enter_also(&mut self, scope: u32) -> Result<(), Error> {
        if self.holds(scope) {
            // The caller knows its scopes, unless it has the scope from a damaged word.
            self.memory().poison();
            return Err(Error::corrupted("a lock is named that is held already"));
        }
        let line = lock::line(self.view(), scope)?;
        lock::acquire(self.memory(), self.context.thread, line)?;
        // SAFETY: as in `inside`.
        self.context.others.push(unsafe { line.kept() });
        self.context.focus = ScopeTag::new(scope);
        if Memory::sees_all(&self.context.view) { Ok(()) } else { self.see_all() }
    }

    /// Whether the section holds `scope`.
    #[inline]
    pub fn holds(&self, scope: u32) -> bool {
        let offset = scope as usize * GRANULE;
        let is_it = |line: LockLine<'static>| self.context.view.offset_of(line) == offset;
        is_it(self.context.first) || self.context.others.iter().any(|line| is_it(*line))
    }

    /// Directs `set` to `scope`, which the section holds. Returns the scope it was directed to.
    #[inline(always)]
    pub fn focus(&mut self, scope: u32) -> u32 {
        debug_assert!(self.holds(scope) || self.view().violated(), "focus on a scope not locked");
        std::mem::replace(&mut self.context.focus, ScopeTag::new(scope)).scope()
    }

    /// The scope that `set` is directed to.
    #[inline(always)]
    pub fn focused(&self) -> u32 {
        self.context.focus.scope()
    }

    /// The view through which this section sees the segment.
    #[inline(always)]
    pub fn view(&self) -> &View<'m> {
        self.context.view()
    }

    /// The calling thread's slot number: names it in the segment.
    #[inline(always)]
    pub fn thread(&self) -> &Thread<'m> {
        &self.context.thread
    }

    /// Stores a word that others can reach (rule R1). Undone unless the section commits.
    #[inline(always)]
    pub fn set<const N: usize>(&mut self, span: Span<'m, N>, at: usize, value: u32) {
        self.set_word(span.place(at), value);
    }

    /// Stores a word that others can reach (rule R1). Undone unless the section commits.
    #[inline(always)]
    pub fn set_word(&mut self, word: Word<'m>, value: u32) {
        self.assert_sole_writer();
        let context = &mut *self.context;
        let offset = context.view.offset_at(word.word.as_ptr().cast());
        let entry = LogEntry::new(offset, context.focus, word.load());
        // Copies, since the compiler must reload values from memory behind each fence.
        let (slot, count) = (context.thread.slot(), context.count);
        if count < INLINE_ENTRIES {
            log::write(slot, count as usize, entry);
        } else if !context.thread.log_in_run(&context.view, count, entry) {
            return self.overflow();
        }
        context.count = count + 1;
        compiler_fence(Ordering::SeqCst);
        log::set_count(slot, count + 1);
        compiler_fence(Ordering::SeqCst);
        word.word.store(value, Ordering::Relaxed);
    }

    /// Stores several words that others can reach (rule R1): as one [`Section::set_word`] each, at half the
    /// price. All are logged before the first is stored.
    #[inline(always)]
    pub fn set_words<const K: usize>(&mut self, stores: [Store<'m>; K]) {
        self.set_together(stores, [], []);
    }

    /// As [`Section::set_words`], for what changes in up to three places.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a log has far fewer entries")]
    pub fn set_together<const A: usize, const B: usize, const C: usize>(
        &mut self,
        first: [Store<'m>; A],
        second: [Store<'m>; B],
        third: [Store<'m>; C],
    ) {
        self.assert_sole_writer();
        let context = &mut *self.context;
        let (slot, count) = (context.thread.slot(), context.count as usize);
        if count > INLINE_ENTRIES as usize - (A + B + C) {
            // Copies, so that the stores themselves need no address.
            let each = (first, second, third);
            return self.set_each([&each.0, &each.1, &each.2]);
        }
        context.log((slot, count), first);
        context.log((slot, count + A), second);
        context.log((slot, count + A + B), third);
        let count = (count + A + B + C) as u32;
        context.count = count;
        compiler_fence(Ordering::SeqCst);
        log::set_count(slot, count);
        compiler_fence(Ordering::SeqCst);
        store(first);
        store(second);
        store(third);
    }

    /// The sections that a thread has open in a segment share its log, so only one of them may have changed anything.
    #[inline(always)]
    fn assert_sole_writer(&self) {
        debug_assert!(
            self.context.count != 0 || !self.context.thread.has_logged(),
            "another section of this thread has changed something"
        );
    }

    /// As [`Section::set_together`], where the log goes on in its run.
    #[cold]
    #[inline(never)]
    fn set_each(&mut self, groups: [&[Store<'m>]; 3]) {
        for (word, value) in groups.into_iter().flatten() {
            self.set_word(*word, *value);
        }
    }

    /// The section can only be rolled back, for which [`Section::sound`] looks at its view alone. Until its owner notices,
    /// it finds nothing: a place that was computed from words that were not stored must not be filled by [`Span::init`].
    #[cold]
    #[inline(never)]
    fn overflow(&mut self) {
        // SAFETY: no further than before.
        let overflow = unsafe { self.context.view.reach(View::BYTES_MIN) };
        // No second time, when it reached no further.
        if self.context.overflow == 0 {
            self.context.overflow = overflow;
        }
        self.context.view.violate();
        debug_assert!(false, "a step changes more words than it had asked for");
    }

    /// Notes that a block of so many granules from `first` is in use if the section commits ([`Memory::watch`]).
    #[inline(always)]
    pub fn note_allocated(&self, first: u32, granules: u32) {
        liveness::note(self.context.view.base(), Event::Allocated { first, granules });
    }

    /// Notes that the block from granule `first` is free if the section commits.
    #[inline(always)]
    pub fn note_freed(&self, first: u32) {
        liveness::note(self.context.view.base(), Event::Freed { first });
    }

    /// Notes that nothing is in use in so many granules from `first`, and in what runs through them, if the
    /// section commits.
    #[inline(always)]
    pub fn note_returned(&self, first: u32, granules: u32) {
        liveness::note(self.context.view.base(), Event::Returned { first, granules });
    }

    /// Keeps `note` for whoever commits the section: it is forgotten where the section is rolled back. Noted after the change
    /// itself, since a section that has changed nothing has nothing to roll back.
    #[inline]
    pub fn note(&mut self, note: Note) {
        debug_assert!(self.context.count != 0 || !self.sound(), "noted before the change");
        self.context.notes.push(note);
    }

    /// Whether anything is noted.
    #[inline(always)]
    pub fn has_notes(&self) -> bool {
        !self.context.notes.is_empty()
    }

    /// What is noted.
    pub fn notes(&self) -> &[Note] {
        &self.context.notes
    }

    /// Gives the notes to who is about to commit, which none may be left at; its [`Section::reuse_notes`] saves the next
    /// section an allocation.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut *self.context.notes)
    }

    /// Takes the memory of notes back that are done with.
    pub fn reuse_notes(&mut self, mut notes: Vec<Note>) {
        notes.clear();
        *self.context.notes = notes;
    }

    /// Leaves the scope that was entered last, which is not the only one, after a commit: what follows may enter scopes that
    /// come before it.
    pub fn leave_last(&mut self) {
        debug_assert!(self.context.count == 0, "left before the commit");
        if let Some(line) = self.context.others.pop() {
            lock::release(self.context.thread, line);
        }
    }

    /// Adds to a word that others can reach, wrapping.
    #[inline(always)]
    pub fn add<const N: usize>(&mut self, span: Span<'m, N>, at: usize, change: i32) {
        let value = span.load(at).wrapping_add_signed(change);
        self.set(span, at, value);
    }

    /// Whether the section still can commit: its log had room and everything it saw was inside the
    /// segment.
    #[inline(always)]
    pub fn sound(&self) -> bool {
        !self.context.view.violated()
    }

    /// How many more words the log has room for: long jobs commit before it is full.
    #[inline]
    pub fn room(&self) -> usize {
        self.context.thread.log_capacity().saturating_sub(self.context.count) as usize
    }

    /// Makes the changes final, in all locked scopes at once, and leaves the scopes locked for more.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupted`] if the section met damage, [`Error::LogFull`] if it changed more words than
    /// the log holds. Everything is rolled back then.
    #[inline(always)]
    pub fn commit(&mut self) -> Result<(), Error> {
        if !self.sound() {
            return Err(self.refuse());
        }
        self.seal();
        Ok(())
    }

    /// Commits a section that is [sound](Section::sound).
    #[inline(always)]
    pub(crate) fn seal(&mut self) {
        debug_assert!(!self.has_notes(), "committed beside the one place that tells of changes");
        compiler_fence(Ordering::SeqCst);
        log::set_count(self.context.thread.slot(), 0);
        compiler_fence(Ordering::SeqCst);
        self.context.count = 0;
        liveness::commit(self.context.view.base());
    }

    /// The memory that the section is over.
    pub(crate) fn memory(&self) -> &'m Memory {
        self.context.memory()
    }

    /// How many words it has changed since the last commit.
    pub(crate) fn changes(&self) -> u32 {
        self.context.count
    }

    /// Makes the changes final and unlocks the scopes: [`Section::commit`], and then there is nothing to put back.
    ///
    /// # Errors
    ///
    /// As [`Section::commit`].
    #[inline(always)]
    pub fn finish(mut self) -> Result<(), Error> {
        self.commit()?;
        let mut section = ManuallyDrop::new(self);
        section.leave();
        // SAFETY: the section is not dropped, so its hold on the section context ends here and only here.
        unsafe { std::ptr::drop_in_place(&raw mut section.context) };
        Ok(())
    }

    /// Unlocks the scopes.
    #[inline(always)]
    fn leave(&mut self) {
        if !self.context.others.is_empty() {
            self.leave_others();
        }
        lock::release(self.context.thread, self.context.first);
    }

    /// Checks that [`Section::commit`] would not refuse.
    ///
    /// # Errors
    ///
    /// As [`Section::commit`]; everything is rolled back then.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        if self.sound() { Ok(()) } else { Err(self.refuse()) }
    }

    #[inline(never)]
    fn leave_others(&mut self) {
        while let Some(line) = self.context.others.pop() {
            lock::release(self.context.thread, line);
        }
    }

    #[cold]
    fn refuse(&mut self) -> Error {
        let overflow = self.context.overflow;
        self.roll_back();
        if overflow != 0 {
            Error::LogFull
        } else if let Err(error) = self.memory().require_sound() {
            error
        } else {
            self.memory().poison();
            Error::corrupted("a reference points outside of the segment")
        }
    }

    /// Undoes the changes since the last commit.
    #[cold]
    #[inline(never)]
    pub fn roll_back(&mut self) {
        let context = &mut *self.context;
        if context.overflow != 0 {
            // SAFETY: as far as before the log was full.
            unsafe { context.view.reach(context.overflow) };
            context.view.forgive();
        }
        for index in (0..context.count).rev() {
            put_back(&context.view, &context.thread.logged(&context.view, index));
        }
        compiler_fence(Ordering::SeqCst);
        log::set_count(self.context.thread.slot(), 0);
        liveness::discard(self.context.view.base());
        self.context.count = 0;
        self.context.overflow = 0;
        self.context.notes.clear();
    }
}

/// A word that others can reach, and its new value.
pub type Store<'m> = (Word<'m>, u32);

impl SectionContext {
    /// Writes what stands in the words of `stores` to the entries from number `first` on in `slot`, which do not count yet.
    #[inline(always)]
    fn log<const K: usize>(&self, (slot, first): (Slot<'_>, usize), stores: [Store<'_>; K]) {
        for (index, (word, _)) in stores.iter().enumerate() {
            let offset = self.view.offset_at(word.word.as_ptr().cast());
            log::write(slot, first + index, LogEntry::new(offset, self.focus, word.load()));
        }
    }
}

/// Stores the logged value.
#[inline(always)]
fn store<const K: usize>(stores: [Store<'_>; K]) {
    for (word, value) in stores {
        word.word.store(value, Ordering::Relaxed);
    }
}

impl Drop for Section<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.context.count != 0 {
            self.roll_back();
        }
        self.leave();
    }
}
