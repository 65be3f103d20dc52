//! Spaces that are kept in a file, from outside: what is there after the memory is gone, and who may open what.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[cfg(target_arch = "x86_64")]
mod calls;
#[cfg(target_arch = "x86_64")]
mod disk;
mod forks;
mod kept;
mod killed;
#[cfg(target_arch = "x86_64")]
mod power;
mod refused;
#[cfg(target_arch = "x86_64")]
mod script;
mod shared;
mod spaces;
mod subscribed;
mod upgraded;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tupelo_engine::{Engine, Error, Limits, Order};
use tupelo_journal::{Journal, OpenOptions};
use tupelo_shm::Directory;
use tupelo_tuple::{Tuple, TupleView, template};

/// A place for a file and for the memory that belongs to it. Both are gone with it.
struct Place {
    directory: PathBuf,
}

impl Place {
    fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("tupelo-journal-test-{}-{number}", std::process::id());
        // Of memory, so that the disk is not waited for.
        let directory = Path::new("/dev/shm").join(name);
        fs::create_dir_all(directory.join("memory")).unwrap();
        Self { directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.join("jobs.tupelo")
    }

    /// The file, and those beside it that have what is in the space.
    fn files(&self) -> Vec<PathBuf> {
        let file = self.file().display().to_string();
        ["", "-wal", "-journal"].iter().map(|suffix| format!("{file}{suffix}").into()).collect()
    }

    fn options(&self) -> OpenOptions {
        let limits = Limits { size_bytes: 16 << 20, ..Limits::default() };
        let directory = Directory::new(self.directory.join("memory"));
        OpenOptions { create: true, fresh: false, limits, directory }
    }

    fn open(&self) -> Arc<Journal> {
        self.open_space("")
    }

    /// The space of this name in the file.
    fn open_space(&self, name: &str) -> Arc<Journal> {
        Journal::open(&self.file(), name, &self.options()).unwrap()
    }

    /// As after a restart of the machine: the memory is gone.
    fn forget_memory(&self) {
        for entry in fs::read_dir(self.directory.join("memory")).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What a failed test leaves behind is no further harm.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn owned(view: TupleView<'_>) -> Result<Tuple, Error> {
    view.to_tuple().map_err(|error| Error::System(error.to_string().into()))
}

/// What is in the space, in its order.
fn contents(engine: &Engine) -> Vec<String> {
    let all = engine.read_all(&[template![..]], None, owned).unwrap();
    all.iter().map(ToString::to_string).collect()
}

/// Takes the oldest job.
fn take_job(engine: &Engine) -> Option<String> {
    let template = [template!["job", tupelo_tuple::Kind::Int]];
    let taken = engine.try_take(&template, Order::Fifo, owned).unwrap();
    taken.map(|tuple| tuple.to_string())
}
