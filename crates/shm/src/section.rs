//! A critical section whose changes happen all or not at all, whoever is killed when (rule C1).
//!
//! Every store to a word that others can reach goes through [`Section::set`], which first writes the old
//! value to the log of this thread:
//!
//! ```text
//! set:     entry[n] = (offset, scope, old);  n = n + 1;  *offset = new
//! commit:  n = 0
//! heir:    restore the entries of this scope, newest first
//! ```
//!
//! SIGKILL arrives between two instructions with all earlier stores done and no later one, so program
//! order is all that is needed; the compiler fences keep it. Killed before the entry counts: nothing
//! changed. After it counts: the old value is restored, over itself or over the new one. After `n = 0`,
//! which commits the changes in all locked scopes with one store: nothing to restore. Every case is run,
//! instruction by instruction, by the crash tests.
//!
//! Two rules keep the argument short. R1: what others can reach is stored by `set`. R2: what is stored
//! without the log (`Span::init`) means nothing in the state that an undo would restore: the body of a
//! free block, the tag of an empty index entry.

use std::sync::atomic::{Ordering, compiler_fence};

use crate::access::{Span, View, Word};
use crate::error::Error;
use crate::lock::{self, LockLine};
use crate::memory::Memory;
use crate::thread::{self, INLINE_ENTRIES, LogEntry, Thread, put_back};

/// A locked scope (or several), and what was changed in it so far. Dropped without [`Section::commit`],
/// it puts everything back.
pub struct Section<'m> {
    view: View<'m>,
    thread: Thread<'m>,
    memory: &'m Memory,
    /// The scope that `set` files its entries under.
    focus: u32,
    first: u32,
    first_line: LockLine<'m>,
    /// Locked after `first`, in ascending order.
    others: Vec<(u32, LockLine<'m>)>,
    count: u32,
    /// How far the view reached before the log was full; 0 if it is not.
    overflow: usize,
}

impl<'m> Section<'m> {
    /// Locks `scope` for the calling thread.
    ///
    /// # Errors
    ///
    /// [`Error::Stalled`] if its owner lives but does not leave; [`Error::Reentrant`] if the owner is
    /// this very thread (a signal handler); what [`Memory::thread`] says if this thread has no slot yet.
    #[inline(always)]
    pub fn enter(memory: &'m Memory, scope: u32) -> Result<Self, Error> {
        let thread = memory.thread()?;
        let mut view = memory.view();
        let first_line = lock::line(&view, scope)?;
        lock::acquire(memory, &thread, first_line)?;
        // While we waited, others may have made the segment larger and used the new part.
        memory.widen(&mut view);
        Ok(Self {
            view,
            thread,
            memory,
            focus: scope,
            first: scope,
            first_line,
            others: Vec::new(),
            count: 0,
            overflow: 0,
        })
    }

    /// As [`Section::enter`], but `None` while a living thread is inside: does not wait.
    ///
    /// The section may stay open while its thread opens and ends others, as long as it changes nothing.
    ///
    /// # Errors
    ///
    /// As [`Section::enter`].
    pub fn try_enter(memory: &'m Memory, scope: u32) -> Result<Option<Self>, Error> {
        let thread = memory.thread()?;
        let view = memory.view();
        let first_line = lock::line(&view, scope)?;
        if !lock::try_acquire(&view, &thread, first_line)? {
            return Ok(None);
        }
        Ok(Some(Self {
            view,
            thread,
            memory,
            focus: scope,
            first: scope,
            first_line,
            others: Vec::new(),
            count: 0,
            overflow: 0,
        }))
    }

    /// Locks a further scope and directs `set` to it. To rule out deadlock, callers lock scopes in
    /// ascending order.
    ///
    /// # Errors
    ///
    /// As [`Section::enter`]; the section stays as it was.
    pub fn enter_also(&mut self, scope: u32) -> Result<(), Error> {
        if self.holds(scope) {
            // Who asks knows what it holds, unless it has the scope from a damaged word.
            self.memory.poison();
            return Err(Error::corrupted("a lock is named that is held already"));
        }
        let line = lock::line(&self.view, scope)?;
        lock::acquire(self.memory, &self.thread, line)?;
        self.memory.widen(&mut self.view);
        self.others.push((scope, line));
        self.focus = scope;
        Ok(())
    }

    /// Whether the section holds `scope`.
    #[inline]
    pub fn holds(&self, scope: u32) -> bool {
        self.first == scope || self.others.iter().any(|(held, _)| *held == scope)
    }

    /// Directs `set` to `scope`, which the section holds. Returns the scope it was directed to.
    #[inline(always)]
    pub fn focus(&mut self, scope: u32) -> u32 {
        debug_assert!(self.holds(scope) || self.view.violated(), "focus on a scope not locked");
        std::mem::replace(&mut self.focus, scope)
    }

    /// The scope that `set` is directed to.
    #[inline(always)]
    pub fn focused(&self) -> u32 {
        self.focus
    }

    /// The view through which this section sees the segment.
    #[inline(always)]
    pub fn view(&self) -> &View<'m> {
        &self.view
    }

    /// The calling thread's slot number: names it in the segment.
    #[inline(always)]
    pub fn thread(&self) -> &Thread<'m> {
        &self.thread
    }

    /// Stores a word that others can reach (rule R1). Undone unless the section commits.
    #[inline(always)]
    pub fn set<const N: usize>(&mut self, span: Span<'m, N>, at: usize, value: u32) {
        self.set_word(span.place(at), value);
    }

    /// Stores a word that others can reach (rule R1). Undone unless the section commits.
    #[inline(always)]
    pub fn set_word(&mut self, word: Word<'m>, value: u32) {
        let entry = LogEntry::new(word.offset, self.focus, word.load());
        // Copies, since the compiler must reload what it sees in memory behind each fence.
        let (slot, count) = (self.thread.slot(), self.count);
        if count < INLINE_ENTRIES {
            thread::log(slot, count, entry);
        } else if !self.thread.log_in_run(&self.view, count, entry) {
            return self.overflow();
        }
        self.count = count + 1;
        compiler_fence(Ordering::SeqCst);
        thread::set_log_count(slot, count + 1);
        compiler_fence(Ordering::SeqCst);
        word.word.store(value, Ordering::Relaxed);
    }

    /// The section can only be rolled back. Until its owner notices, it finds nothing: a place that was
    /// computed from words that were not stored must not be filled by [`Span::init`].
    #[cold]
    #[inline(never)]
    fn overflow(&mut self) {
        self.overflow = self.view.reach(View::BYTES_MIN);
        debug_assert!(false, "a step changes more words than it had asked for");
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
        self.overflow == 0 && !self.view.violated()
    }

    /// How many more words the log has room for: long jobs commit before it is full.
    #[inline]
    pub fn room(&self) -> usize {
        self.thread.log_capacity().saturating_sub(self.count) as usize
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
        compiler_fence(Ordering::SeqCst);
        thread::set_log_count(self.thread.slot(), 0);
        compiler_fence(Ordering::SeqCst);
        self.count = 0;
        Ok(())
    }

    /// Checks that [`Section::commit`] would not refuse. For a step over two memories, which must both be
    /// sure before the first commits.
    ///
    /// # Errors
    ///
    /// As [`Section::commit`]; everything is rolled back then.
    pub fn check(&mut self) -> Result<(), Error> {
        if self.sound() { Ok(()) } else { Err(self.refuse()) }
    }

    #[cold]
    fn refuse(&mut self) -> Error {
        let overflow = self.overflow;
        self.roll_back();
        if overflow != 0 {
            Error::LogFull
        } else {
            self.memory.poison();
            Error::corrupted("a reference points outside of the segment")
        }
    }

    /// Puts back what was changed since the last commit.
    #[cold]
    #[inline(never)]
    pub fn roll_back(&mut self) {
        if self.overflow != 0 {
            self.view.reach(self.overflow);
            self.view.forgive();
        }
        for index in (0..self.count).rev() {
            put_back(&self.view, &self.thread.logged(&self.view, index));
        }
        compiler_fence(Ordering::SeqCst);
        thread::set_log_count(self.thread.slot(), 0);
        self.count = 0;
        self.overflow = 0;
    }
}

impl Drop for Section<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.count != 0 {
            self.roll_back();
        }
        while let Some((_, line)) = self.others.pop() {
            lock::release(&self.thread, line);
        }
        lock::release(&self.thread, self.first_line);
    }
}
