//! Descriptors that have to be kept from one call to the next: of processes that are watched, and of sockets that event
//! loops wait for.
//!
//! A program may close numbers that are not its own, as daemons do when they start, and open files of its own under
//! them. So each use checks which file the number stands for now. The descriptor is closed only if it is unchanged.
//! Between that check and the call another thread of the program may close and open. The same holds for a descriptor
//! that is opened and used in one call; nothing can prevent it. Memory needs no descriptor ([`crate::Mapping`]).

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};

use crate::home::FileIdentity;

/// A descriptor, or its owner, as long as no other code has closed it.
#[derive(Debug)]
pub struct Kept<F: AsFd> {
    file: ManuallyDrop<F>,
    /// The identity of the file; `None` if the system did not say, or if the number is another file's now.
    identity: Option<FileIdentity>,
}

impl<F: AsFd> Kept<F> {
    /// Keeps a descriptor that was just opened.
    pub fn new(file: F) -> Self {
        let identity = identity(file.as_fd());
        Self { file: ManuallyDrop::new(file), identity }
    }

    /// The kept descriptor; `None` if the number was closed since, or is another file's.
    pub fn get(&self) -> Option<&F> {
        let is_same = self.identity.is_some() && identity(self.file.as_fd()) == self.identity;
        is_same.then_some(&*self.file)
    }

    /// Gives the number up: it is another file's, which is not closed.
    pub(crate) fn disown(&mut self) {
        self.identity = None;
    }
}

impl<F: AsFd> AsFd for Kept<F> {
    /// The number, whatever it stands for now: to wait for, not to act on.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl<F: AsFd> Drop for Kept<F> {
    fn drop(&mut self) {
        if self.get().is_some() {
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

fn identity(file: BorrowedFd<'_>) -> Option<FileIdentity> {
    rustix::fs::fstat(file).ok().as_ref().map(FileIdentity::from)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsRawFd, RawFd};
    use std::os::unix::net::UnixDatagram;

    use tupelo_crashtest::{Exit, fork};

    use super::*;

    /// Closes a number, as a program does to which it does not belong, and opens a file under it.
    fn replace(number: RawFd) -> File {
        // SAFETY: no memory is involved, and this process has no other threads.
        unsafe { libc::close(number) };
        let file = File::open("/dev/null").unwrap();
        assert_eq!(file.as_raw_fd(), number, "the lowest free number");
        file
    }

    #[test]
    fn a_number_that_is_another_files_now_is_neither_used_nor_closed() {
        let child = fork(|| {
            let kept = Kept::new(UnixDatagram::unbound().unwrap());
            assert!(kept.get().is_some());
            let number = kept.as_fd().as_raw_fd();
            let file = replace(number);
            assert!(kept.get().is_none());
            drop(kept);
            assert!(file.metadata().is_ok(), "it is still open");
            // A descriptor that is still its own is closed.
            drop(file);
            let kept = Kept::new(UnixDatagram::unbound().unwrap());
            assert_eq!(kept.as_fd().as_raw_fd(), number);
            drop(kept);
            assert_eq!(File::open("/dev/null").unwrap().as_raw_fd(), number);
        });
        assert_eq!(child.wait(), Exit::Done);
    }

    #[test]
    fn a_number_that_was_closed_is_not_closed_again() {
        let child = fork(|| {
            let kept = Kept::new(UnixDatagram::unbound().unwrap());
            // SAFETY: no memory is involved.
            unsafe { libc::close(kept.as_fd().as_raw_fd()) };
            assert!(kept.get().is_none());
        });
        assert_eq!(child.wait(), Exit::Done);
    }
}
