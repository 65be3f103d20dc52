//! The connection of a process to the file of a space, while it has one; and whether a thread of its own writes to it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::gate::Inside;
use crate::storage::{self, FileNumber, Storage};

/// A place for a connection. It is opened when it is needed, and closed before a fork.
#[derive(Debug)]
pub(crate) struct Slot {
    path: PathBuf,
    file: FileNumber,
    storage: Mutex<Option<Storage>>,
    has_flusher: AtomicBool,
}

impl Slot {
    /// With a connection that is there already.
    pub(crate) fn new(storage: Storage) -> Self {
        let (path, file) = (storage.path().to_owned(), storage.file());
        let (storage, has_flusher) = (Mutex::new(Some(storage)), AtomicBool::new(false));
        Self { path, file, storage, has_flusher }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Lets `use_storage` have the connection, alone.
    ///
    /// # Errors
    ///
    /// [`Error::Replaced`] if the file is not at its path any more. As [`Storage::open`], and what `use_storage` says.
    pub(crate) fn with<R>(
        &self,
        _inside: &Inside,
        use_storage: impl FnOnce(&mut Storage) -> Result<R, Error>,
    ) -> Result<R, Error> {
        storage::require_there(&self.path, self.file)?;
        let mut storage = self.locked();
        if storage.is_none() {
            *storage = Some(Storage::open(&self.path)?);
        }
        match &mut *storage {
            Some(storage) => use_storage(storage),
            None => unreachable!("it was opened above"),
        }
    }

    /// Closes the connection. Whoever needs one later opens it anew.
    pub(crate) fn close(&self, _inside: &Inside) {
        drop(self.locked().take());
    }

    /// Closes the connection before a fork.
    pub(crate) fn disconnect(&self) {
        if let Some(storage) = self.locked().take() {
            storage.close_quickly();
        }
    }

    fn locked(&self) -> MutexGuard<'_, Option<Storage>> {
        self.storage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the place of the one thread that writes to the file by itself. Returns whether it is the caller's.
    pub(crate) fn begin_flusher(&self) -> bool {
        // SeqCst, as in `end_flusher`: who has appended a record and finds a flusher is found by that.
        !self.has_flusher.swap(true, Ordering::SeqCst)
    }

    /// Gives that place up: what is appended from now on is another's.
    pub(crate) fn end_flusher(&self) {
        self.has_flusher.store(false, Ordering::SeqCst);
    }

    /// In the child of a fork, which has no such thread.
    pub(crate) fn forget_flusher(&self) {
        self.end_flusher();
    }
}
