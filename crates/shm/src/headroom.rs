//! How much memory the control group (the container) of this process may still use.
//!
//! Pages of a segment count for the process that allocates them. A group over its limit is not told so: the kernel
//! kills one of its processes. So a segment asks before it grows, and stays clear of the limit.
//!
//! The figure is read at most once a second and only ever advises: other processes of the group allocate meanwhile.
//! Only [`refresh`] reads it, before a lock is taken under which memory is committed. Some files have to be read, and a
//! process that is slow at that, or stopped, would hold up all others there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::monotonic_coarse_ns;
use crate::error::{Error, Limit};

/// How long a reading is used.
const READING_NS: u64 = 1_000_000_000;
/// The share of the limit that segments leave to everything else, as a divisor.
const KEPT_FREE_SHARE: u64 = 32;
/// The most that is left, in bytes.
const KEPT_FREE_BYTES_MAX: u64 = 64 << 20;

/// A memory limit of a control group, and the rest of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Headroom {
    limit_bytes: u64,
    available_bytes: u64,
}

impl Headroom {
    /// That of a process whose groups have no limit.
    const UNLIMITED: Self = Self { limit_bytes: u64::MAX, available_bytes: u64::MAX };
}

/// A reading, in three words instead of under a lock: a lock held by another thread during a fork would stay
/// locked in the child. Torn apart by a race they are still three recent figures. Relaxed throughout: the words
/// guard nothing.
struct Reading {
    /// When it was read; 0 if it never was.
    read_ns: AtomicU64,
    limit_bytes: AtomicU64,
    available_bytes: AtomicU64,
}

/// What this process has read last.
static LAST: Reading = Reading::unread();

/// Reads how much the control groups of this process have left, unless that was done within the last second. Call this
/// before a lock is taken under which memory is committed: the commit uses the last reading.
pub fn refresh() {
    LAST.refresh(monotonic_coarse_ns(), || {
        let tightest =
            groups().iter().filter_map(Group::headroom).min_by_key(|h| h.available_bytes);
        tightest.unwrap_or(Headroom::UNLIMITED)
    });
}

/// Refuses `wanted_bytes` if the control group had no room for them when it was last asked.
///
/// # Errors
///
/// [`Error::Full`] with the figures of the tightest limit.
pub(crate) fn claim(wanted_bytes: u64) -> Result<(), Error> {
    LAST.claim(wanted_bytes)
}

impl Reading {
    const fn unread() -> Self {
        Self {
            read_ns: AtomicU64::new(0),
            limit_bytes: AtomicU64::new(u64::MAX),
            available_bytes: AtomicU64::new(u64::MAX),
        }
    }

    /// Reads anew, if the last time is too long ago.
    fn refresh(&self, now_ns: u64, read: impl FnOnce() -> Headroom) {
        let read_ns = self.read_ns.load(Ordering::Relaxed);
        if read_ns != 0 && now_ns.saturating_sub(read_ns) <= READING_NS {
            return;
        }
        let Headroom { limit_bytes, available_bytes } = read();
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        self.available_bytes.store(available_bytes, Ordering::Relaxed);
        self.read_ns.store(now_ns.max(1), Ordering::Relaxed);
    }

    /// Takes `wanted_bytes` of the last reading, however long ago that was: locks may be held.
    fn claim(&self, wanted_bytes: u64) -> Result<(), Error> {
        let limit_bytes = self.limit_bytes.load(Ordering::Relaxed);
        let available_bytes = self.available_bytes.load(Ordering::Relaxed);
        let kept_free_bytes = (limit_bytes / KEPT_FREE_SHARE).min(KEPT_FREE_BYTES_MAX);
        if wanted_bytes.saturating_add(kept_free_bytes) > available_bytes {
            return Err(Error::Full {
                wanted_bytes,
                available_bytes: available_bytes.saturating_sub(kept_free_bytes),
                limit_bytes,
                limit: Limit::ControlGroup,
            });
        }
        if available_bytes != u64::MAX {
            self.available_bytes.store(available_bytes - wanted_bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The files of one control group, in the words of its version.
struct Group {
    limit: PathBuf,
    usage: PathBuf,
    statistics: PathBuf,
    /// Prefix of the statistics' keys: keys with `total_` include the group's children (version 1).
    prefix: &'static str,
}

/// The groups whose limits hold for this process: its own and those around it. Not kept: a value that is computed once
/// under a lock could be half computed in the child of a fork, for ever.
fn groups() -> Vec<Group> {
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    find_groups(&membership, &mounts)
}

/// Finds the groups from the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn find_groups(membership: &str, mounts: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    for line in membership.lines() {
        // "0::/path" is version 2, "4:memory:/path" version 1.
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (file_system, option) = match controllers {
            "" => ("cgroup2", None),
            _ if controllers.split(',').any(|name| name == "memory") => ("cgroup", Some("memory")),
            _ => continue,
        };
        let Some((mount_point, directory)) = find_mount(mounts, file_system, option, path) else {
            continue;
        };
        let around =
            directory.ancestors().take_while(|ancestor| ancestor.starts_with(&mount_point));
        groups.extend(around.map(|directory| Group::new(directory, option.is_none())));
    }
    groups
}

/// Where the hierarchy is mounted, and the directory of the group at `path` within it.
fn find_mount(
    mounts: &str,
    file_system: &str,
    option: Option<&str>,
    path: &str,
) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        // "36 25 0:31 /root /mount/point rw,... shared:1 - cgroup cgroup rw,memory"
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, mount_point) = (place.next()?, Path::new(place.next()?));
        let mut kind = kind.split(' ');
        let right_kind = kind.next()? == file_system;
        let options = kind.nth(1)?;
        let right_option = option.is_none_or(|option| options.split(',').any(|o| o == option));
        if !(right_kind && right_option) {
            return None;
        }
        // Inside a container the root of the mount is the container's own group.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        Some((mount_point.to_path_buf(), mount_point.join(below)))
    })
}

impl Group {
    fn new(directory: &Path, version_2: bool) -> Self {
        let (limit, usage, prefix) = if version_2 {
            ("memory.max", "memory.current", "")
        } else {
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        };
        Self {
            limit: directory.join(limit),
            usage: directory.join(usage),
            statistics: directory.join("memory.stat"),
            prefix,
        }
    }

    /// `None` if the group has no limit, or its files cannot be read.
    fn headroom(&self) -> Option<Headroom> {
        let number = |path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let limit_bytes = number(&self.limit)?;
        let used_bytes = number(&self.usage)?;
        let statistics = fs::read_to_string(&self.statistics).unwrap_or_default();
        // Cached file contents count as used, but the kernel drops them before it kills anyone.
        let droppable_bytes: u64 = statistics
            .lines()
            .filter_map(|line| line.strip_prefix(self.prefix)?.split_once(' '))
            .filter(|(key, _)| matches!(*key, "inactive_file" | "active_file"))
            .filter_map(|(_, value)| value.trim().parse::<u64>().ok())
            .sum();
        let available_bytes =
            limit_bytes.saturating_sub(used_bytes.saturating_sub(droppable_bytes));
        Some(Headroom { limit_bytes, available_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_read_once_a_second_and_by_no_claim() {
        let reading = Reading::unread();
        let left = |available_bytes| Headroom { limit_bytes: 3200, available_bytes };
        reading.refresh(1, || left(1000));
        reading.refresh(1 + READING_NS, || unreachable!("that is not long ago"));
        assert_eq!(reading.claim(600), Ok(()));
        let refused = Error::Full {
            wanted_bytes: 301,
            available_bytes: 300,
            limit_bytes: 3200,
            limit: Limit::ControlGroup,
        };
        assert_eq!(reading.claim(301), Err(refused), "a hundred are kept free");
        assert_eq!(reading.claim(300), Ok(()));
        reading.refresh(2 + READING_NS, || left(1000));
        assert_eq!(reading.claim(900), Ok(()));
    }

    fn directories(groups: &[Group]) -> Vec<&Path> {
        groups.iter().filter_map(|group| group.limit.parent()).collect()
    }

    #[test]
    fn a_group_is_found_below_its_mount_with_all_groups_around_it() {
        let mounts =
            "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let groups = find_groups("0::/user.slice/job\n", mounts);
        let expected =
            ["/sys/fs/cgroup/user.slice/job", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"];
        assert_eq!(directories(&groups), expected.map(Path::new));
    }

    #[test]
    fn a_container_that_sees_only_its_own_group_finds_it_at_the_mount_point() {
        let membership = "4:memory:/docker/abc\n1:name=systemd:/docker/abc\n";
        let mounts = "9 8 0:30 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let groups = find_groups(membership, mounts);
        assert_eq!(directories(&groups), [Path::new("/sys/fs/cgroup/memory")]);
        assert!(groups[0].limit.ends_with("memory.limit_in_bytes"));
    }

    #[test]
    fn cached_file_contents_count_as_available() {
        let directory =
            std::env::temp_dir().join(format!("tupelo-headroom-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in [
            ("memory.max", "1000\n"),
            ("memory.current", "900\n"),
            ("memory.stat", "anon 500\nfile 400\ninactive_file 200\nactive_file 100\nshmem 100\n"),
        ] {
            fs::write(directory.join(name), text).unwrap();
        }
        let headroom = Group::new(&directory, true).headroom();
        assert_eq!(headroom, Some(Headroom { limit_bytes: 1000, available_bytes: 400 }));
        fs::write(directory.join("memory.max"), "max\n").unwrap();
        assert_eq!(Group::new(&directory, true).headroom(), None);
        fs::remove_dir_all(directory).unwrap();
    }
}
