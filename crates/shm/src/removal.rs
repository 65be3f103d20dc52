//! That a segment was removed: words in it tell every process that is attached.
//!
//! A removed segment has no name, so processes that are attached would wait in it for others that can not come. The
//! process that removes it, or puts another in its place, writes who and when into it, makes its state
//! [`State::Retired`], and stops all views, as damage does. Every operation then ends with [`Error::Removed`]. That costs
//! nothing on segments in use.
//!
//! A file can also be removed from outside, by `rm` or by the system. Then a process that waits finds the name missing,
//! and tells the others.
//!
//! | offset | what |
//! |---:|---|
//! | 144 | how: 0 while the segment is in use (4 bytes, atomic) |
//! | 148 | pid of the process that removed it, or found it missing |
//! | 152 | when, in nanoseconds since 1970 |

use std::fmt;
use std::fs::File;
use std::os::fd::AsFd;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use rustix::mm::{MapFlags, ProtFlags};

use crate::access::View;
use crate::error::Error;
use crate::segment::read_start;
use crate::superblock::{IDENTITY_BYTES, Identity, STATE, State};
use crate::table::COMMITTED;

/// Where the words are.
const WORDS: usize = 144;
const WORDS_BYTES: usize = 16;
const HOW: usize = 0;
const PID: usize = 4;
const WHEN: usize = 8;

const _: () = assert!(WORDS + WORDS_BYTES <= IDENTITY_BYTES);

/// How a segment lost its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum HowRemoved {
    /// It was removed by [`crate::Directory::remove`].
    Removed = 1,
    /// A fresh segment took its place.
    Replaced = 2,
    /// Its file was removed by other means.
    Missing = 3,
}

/// What is known of the removal of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// How the segment lost its name.
    pub how: HowRemoved,
    /// The process that removed it, or that found it missing.
    pub pid: u32,
    /// How long ago that was, when the error was made.
    pub age: Duration,
}

impl Removal {
    /// What the words say; whatever is no known way counts as a removal.
    fn of_words(how: u32, pid: u32, when_ns: u64) -> Self {
        let how = match how {
            2 => HowRemoved::Replaced,
            3 => HowRemoved::Missing,
            _ => HowRemoved::Removed,
        };
        let age = Duration::from_nanos(now_ns().saturating_sub(when_ns));
        Self { how, pid, age }
    }

    /// What the beginning of a file says, if its state is [`State::Retired`].
    pub(crate) fn of_bytes(bytes: &[u8; IDENTITY_BYTES]) -> Option<Self> {
        if State::from_bytes(bytes) != Some(State::Retired) {
            return None;
        }
        let word =
            |at: usize| u32::from_ne_bytes(std::array::from_fn(|index| bytes[WORDS + at + index]));
        let when = u64::from_ne_bytes(std::array::from_fn(|index| bytes[WORDS + WHEN + index]));
        Some(Self::of_words(word(HOW), word(PID), when))
    }
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { how, pid, age } = self;
        let age = format!("{:.1} s ago", age.as_secs_f64());
        match how {
            HowRemoved::Removed => write!(f, "the space was removed {age} by process {pid}"),
            HowRemoved::Replaced => {
                write!(f, "process {pid} replaced the space {age} by a fresh one of the same name")
            }
            HowRemoved::Missing => write!(
                f,
                "the file of the space is gone, which process {pid} noticed {age}: another program removed it, or the \
                 system did (RemoveIPC of systemd-logind)"
            ),
        }
    }
}

/// Why nothing of a segment can be had whose views were stopped: it was removed, or damage was found in it.
#[cold]
pub(crate) fn refusal(view: &View<'_>) -> Error {
    // Acquire pairs with the Release in `publish`: who sees the state sees the words.
    if state_word(view).load(Ordering::Acquire) != State::Retired as u32 {
        return Error::poisoned();
    }
    let words = view.span::<WORDS_BYTES>(WORDS);
    let removal = Removal::of_words(words.load(HOW), words.load(PID), words.load64(WHEN));
    Error::Removed { removal }
}

/// Tells every process that is attached to the segment in view. The first who tells is the one they hear of. A segment in which
/// damage was found stays one.
pub(crate) fn publish(view: &View<'_>, how: HowRemoved) {
    let words = view.span::<WORDS_BYTES>(WORDS);
    let first =
        words.word(HOW).compare_exchange(0, how as u32, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_ok() {
        words.init(PID, std::process::id());
        words.init64(WHEN, now_ns());
    }
    let (good, retired) = (State::Good as u32, State::Retired as u32);
    // Release pairs with the Acquire in `refusal`.
    let published =
        state_word(view).compare_exchange(good, retired, Ordering::Release, Ordering::Relaxed);
    if published.is_ok() {
        // Release pairs with the Acquire where views are made.
        view.span::<8>(COMMITTED).word(0).store(0, Ordering::Release);
    }
}

/// As [`publish`], for those who are attached to a file that this process need not have mapped. A file that is no segment stays as it
/// is, and so does one that the system gives no address for: those who wait there find its name missing.
pub(crate) fn publish_to_attached(file: &File, how: HowRemoved) {
    let mut start = [0; IDENTITY_BYTES];
    let page_bytes = rustix::param::page_size();
    let Ok(file_bytes) = read_start(file, &mut start) else { return };
    if file_bytes < page_bytes as u64 || !Identity::is_whole(&start) {
        return;
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: without FIXED the system chooses addresses that nobody uses.
    let mapped = unsafe {
        rustix::mm::mmap(ptr::null_mut(), page_bytes, access, MapFlags::SHARED, file.as_fd(), 0)
    };
    let Ok(page) = mapped else { return };
    {
        // SAFETY: the page was mapped just now, and is unmapped after the view is gone; the file has memory behind it, since
        // a whole identity was read there.
        let view = unsafe { View::new(page.cast(), page_bytes.min(View::BYTES_MIN)) };
        publish(&view, how);
    }
    // SAFETY: the page is ours, and the view of it is gone. Failing leaves it mapped, which harms nobody.
    let _ = unsafe { rustix::mm::munmap(page, page_bytes) };
}

fn state_word<'m>(view: &View<'m>) -> &'m std::sync::atomic::AtomicU32 {
    view.span::<8>(STATE & !7).word(STATE & 4)
}

fn now_ns() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a date for people; nothing goes by it")]
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
