//! Spaces that are kept in a file: what waits for the disk, and what goes wrong with it (rule C4).

use std::path::Path;
use std::sync::Arc;

use tupelo_engine::JournalStat;
use tupelo_journal::{Error as Trouble, Journal, OpenOptions};
use tupelo_shm::Directory;
use tupelo_shm::surroundings::outside;

use crate::connect::{ConnectOptions, Space, create_options};
use crate::error::Error;
use crate::url::{Place, file_url, shell_word};

/// When a call returns that changes a space which is kept in a file. What is in memory only survives that the program is killed,
/// what is on disk survives also that the machine ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the change is on disk. One sync of the disk is for all that wait at that moment, in any process.
    #[default]
    Group,
    /// At once. The change is on disk soon after, as a rule within 50 ms.
    None,
}

impl Durability {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Group, Self::None];

    /// Its name, in URLs and in other languages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::None => "none",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// Opens the space of this name that is kept in the file at `path`.
pub(crate) fn open(
    (path, space): (&Path, &str),
    url: &str,
    options: &ConnectOptions,
) -> Result<Arc<Journal>, Error> {
    create_options(options)?;
    let ConnectOptions { create, fresh, keeps_keys, .. } = *options;
    let (limits, directory) = (options.limits(), Directory::default());
    let options = OpenOptions { create, fresh, limits, directory };
    let journal = Journal::open(path, space, &options).map_err(|trouble| refused(trouble, url))?;
    if keeps_keys {
        journal.engine().keep_keys()?;
    }
    // What was in memory alone when the last program that used it ended.
    journal.settle_later();
    Ok(journal)
}

/// Removes the file at `path`, and the memory that belongs to it; or only the space of this name, if there is one.
pub(crate) fn remove((path, space): (&Path, &str), url: &str) -> Result<(), Error> {
    let directory = Directory::default();
    let removed = if space.is_empty() {
        tupelo_journal::remove(path, &directory)
    } else {
        tupelo_journal::remove_space(path, space, &directory)
    };
    removed.map_err(|trouble| refused(trouble, url))
}

/// Brings to their files what the spaces of this process have changed: for the end of a program that does not close them.
///
/// # Errors
///
/// [`Error::Storage`]; the changes stay in memory, and come to the file when somebody opens it again.
pub fn flush() -> Result<(), Error> {
    outside(tupelo_journal::flush_all).map_err(|trouble| refused(trouble, "file://"))
}

/// What it means if the file of a space is refused. Nothing has changed.
#[cold]
pub(crate) fn refused(trouble: Trouble, url: &str) -> Error {
    let problem = trouble.to_string();
    match trouble {
        Trouble::NotFound { .. } => Error::SpaceNotFound { url: url.into() },
        Trouble::AccessDenied { path, .. } => Error::AccessDenied {
            problem,
            hint: Some(format!(
                "let your user own the file and write to it and its directory, as `ls -l {}` shows",
                shell_word(&path.display().to_string())
            )),
        },
        Trouble::Corrupted { path, .. } => Error::SpaceCorrupted {
            problem,
            hint: Some(format!(
                "if it has spaces: `tupelo doctor {} --save NEW_FILE` saves what can be read of all of them",
                shell_word(&file_url(&path, ""))
            )),
        },
        Trouble::Newer { .. } => Error::VersionMismatch { problem, hint: None },
        Trouble::OnlyInOldMemory { path, memory, .. } => Error::VersionMismatch {
            problem,
            hint: Some(format!(
                "stop the programs of that version, and run `tupelo compact file://{}` with it. To go on without these changes: `rm {}`",
                path.display(),
                memory.display()
            )),
        },
        Trouble::Engine(error) => error.into(),
        Trouble::Memory(error) => error.into(),
        _ => Error::Storage { problem },
    }
}

/// Whether the memory of the space is not that of its file any more.
fn is_of_removed(trouble: &Trouble) -> bool {
    use tupelo_engine::Error as Failure;
    use tupelo_shm::Error::Removed;
    match trouble {
        Trouble::TakenOver { .. } | Trouble::Replaced { .. } | Trouble::Memory(Removed { .. }) => {
            true
        }
        Trouble::Engine(Failure::Memory(error)) => matches!(**error, Removed { .. }),
        _ => false,
    }
}

impl Space {
    /// What a call returns that may have changed the space: as soon as it is on disk, if this handle asks for that.
    ///
    /// # Errors
    ///
    /// [`Error::DurabilityUnknown`].
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "nearly no space is kept in a file")]
    pub(crate) fn settled<R, E: From<Error>>(&self, result: R) -> Result<R, E> {
        if let Some(journal) = &self.inner.journal {
            self.settle(journal)?;
        }
        Ok(result)
    }

    /// Whether the space is kept in a file, here: what `sync` speaks of.
    pub fn is_kept(&self) -> bool {
        self.inner.journal.is_some()
    }

    /// Up to which position the journal has to be on disk for what this thread has changed; `None` if it is, and for a space that is
    /// in no file. For a thread that must not wait: another one calls [`Space::settle_up_to`] for it.
    pub fn unsettled(&self) -> Option<u64> {
        let journal = self.inner.journal.as_ref()?;
        (!journal.is_settled()).then(|| journal.position())
    }

    /// Waits until the journal is on disk up to `position`.
    ///
    /// # Errors
    ///
    /// [`Error::DurabilityUnknown`]; [`Error::Storage`] if the file is not this space's any more.
    pub fn settle_up_to(&self, position: u64) -> Result<(), Error> {
        let Some(journal) = &self.inner.journal else { return Ok(()) };
        self.explained(outside(|| journal.settle_up_to(position)))
    }

    /// What a call that has had its effect says if its changes did not come to the disk.
    fn explained(&self, settled: Result<(), Trouble>) -> Result<(), Error> {
        settled.map_err(|trouble| match trouble {
            // What is not on disk is gone.
            trouble if is_of_removed(&trouble) => refused(trouble, self.url()),
            trouble => Error::DurabilityUnknown { problem: trouble.to_string() },
        })
    }

    #[cold]
    #[inline(never)]
    fn settle(&self, journal: &Arc<Journal>) -> Result<(), Error> {
        if self.sync == Durability::None {
            journal.settle_later();
            return Ok(());
        }
        if journal.is_settled() {
            return Ok(());
        }
        self.explained(outside(|| journal.settle()))
    }

    /// When calls through this handle return.
    pub const fn sync(&self) -> Durability {
        self.sync
    }

    /// A handle of the same space whose calls return at another time. Says nothing for a space that is in no file.
    #[must_use]
    pub fn with_sync(&self, sync: Durability) -> Self {
        Self { sync, ..self.clone() }
    }

    /// Waits until all that anybody has changed by now is on disk; for a space that is in no file, not at all.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`]: what has changed is in memory, and comes to the file when that is possible.
    pub fn flush(&self) -> Result<(), Error> {
        self.require_open()?;
        let Some(journal) = &self.inner.journal else { return Ok(()) };
        outside(|| journal.flush()).map_err(|trouble| refused(trouble, self.url()))
    }

    /// How far the journal of a space that is kept in a file is; `None` for any other.
    pub fn journal_stat(&self) -> Option<JournalStat> {
        self.inner.journal.as_ref().map(|journal| journal.stat())
    }

    /// Writes what is in the space at a moment of this call into another file, which must not exist. Others go on meanwhile. The other
    /// file has spaces of its own, with the same names, tuples, leases and attempts: this one, or of the space without a name also all
    /// others of the file.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a space that is kept in no file; [`Error::Storage`], [`Error::AccessDenied`]: the other file is there,
    /// or can not be written.
    pub fn copy_file_to(&self, path: &Path) -> Result<(), Error> {
        self.require_open()?;
        let Some(journal) = &self.inner.journal else {
            return Err(Error::Unsupported {
                problem: format!("{} is kept in no file that could be copied", self.url()),
                hint: format!(
                    "its tuples as lines of JSON: `tupelo dump {} > FILE`, and `tupelo load URL < FILE`",
                    shell_word(self.url())
                ),
            });
        };
        outside(|| journal.copy_to(path)).map_err(|trouble| refused(trouble, self.url()))
    }

    /// Makes the file of the space as small as what is in it. Returns the bytes that it had before, with its log, and those that it has
    /// now. Calls that wait for the disk wait until this is done.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a space that is kept in no file; [`Error::Storage`]: the disk has no room for a second file of that
    /// size. What is in the space stays as it is.
    pub fn compact(&self) -> Result<(u64, u64), Error> {
        self.require_open()?;
        let Some(journal) = &self.inner.journal else {
            return Err(Error::Unsupported {
                problem: format!("{} is kept in no file that could be compacted", self.url()),
                hint: "memory is given back as tuples are taken; name a space of a file, as in `tupelo compact file:///srv/jobs.tupelo`"
                    .into(),
            });
        };
        outside(|| journal.compact()).map_err(|trouble| refused(trouble, self.url()))
    }

    /// Refuses two spaces of different files for what must happen in both or in none: on disk it would be two steps.
    pub(crate) fn require_one_file(&self, other: &Self) -> Result<(), Error> {
        match (&self.inner.journal, &other.inner.journal) {
            (Some(one), Some(other)) if !one.is_beside(other) => {}
            _ => return Ok(()),
        }
        Err(Error::Unsupported {
            problem: format!(
                "{} and {} are in two files, and no step is on disk in both at one moment",
                self.url(),
                other.url()
            ),
            hint: format!(
                "keep what changes together in one file, {}; or copy_to the other space, and take it here after that",
                self.beside(other)
            ),
        })
    }

    /// What two spaces in the file of this one may be called, with what stands before them in a sentence.
    fn beside(&self, other: &Self) -> String {
        let Place::File { path, space, .. } = self.place() else { return "as its spaces".into() };
        let name = if other.name() == space { "NAME" } else { other.name() };
        format!("as its spaces {} and {}", file_url(path, space), file_url(path, name))
    }
}
