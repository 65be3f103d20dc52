//! A segment of another pid or time namespace, of which the caller says that all its processes have ended: a container was
//! started again, and has the old `/dev/shm`.
//!
//! Its processes and threads are marked as dead: their numbers mean nothing here. Then the identity says that the segment
//! was made here. What the dead left is found as ever, and the kernel has marked the locks that they held. If one of them
//! lives after all, it counts as dead: its claims go back, and what it does may damage the space.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::Error;
use crate::superblock::{IDENTITY_BYTES, Identity, Layout};
use crate::table::{self, PARTICIPANTS_MAX, THREADS_MAX};
use crate::thread::{LEFT, PROCESS_START, START_TIME, TID};

/// Makes the segment in `file` one of this namespace. Of several callers one does it.
pub(crate) fn adopt(file: &File, path: &Path, layout: &Layout) -> Result<(), Error> {
    let refused = |what| move |errno| Error::system(what, Some(path.into()), errno);
    // Let go of when the file is closed, whatever happens.
    flock(file, FlockOperation::LockExclusive).map_err(refused("lock"))?;
    let refused_io = |what| {
        move |error: std::io::Error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            Error::system(what, Some(path.into()), errno)
        }
    };
    let mut bytes = [0; IDENTITY_BYTES];
    file.read_exact_at(&mut bytes, 0).map_err(refused_io("read"))?;
    if Identity::decode(&bytes, layout)?.check_surroundings().is_ok() {
        return Ok(());
    }
    mark_dead(file).map_err(refused_io("write to"))?;
    // In one call, of which a death leaves all or nothing: the bytes lie in one page.
    let (at, changed) = Identity::moved_here(bytes);
    let written = file.write_at(&changed, at as u64).map_err(refused_io("write to"))?;
    if written != changed.len() {
        return Err(Error::system("write to", Some(path.into()), Errno::IO));
    }
    Ok(())
}

/// Marks every process and thread as one that has ended.
fn mark_dead(file: &File) -> std::io::Result<()> {
    let word = |at: usize| {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, at as u64)?;
        Ok::<_, std::io::Error>(u32::from_ne_bytes(bytes) as usize)
    };
    let end = |at: usize| file.write_all_at(&LEFT.to_ne_bytes(), at as u64);
    for number in 0..word(table::PARTICIPANTS_USED)?.min(PARTICIPANTS_MAX) {
        let participant = table::participant(number);
        // Its number comes first; 0 is nobody's.
        if word(participant)? != 0 {
            end(participant + PROCESS_START)?;
        }
    }
    for number in 0..word(table::SLOTS_USED)?.min(THREADS_MAX) {
        let slot = table::slot(number);
        if word(slot + TID)? != 0 {
            end(slot + START_TIME)?;
        }
    }
    Ok(())
}
