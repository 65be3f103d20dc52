//! The memory that all `shm://` spaces of a machine share.

use rustix::fs::statvfs;

pub(super) const DIRECTORY: &str = "/dev/shm";
/// Below it not even a small space has room to grow.
const ROOM_MIN_BYTES: u64 = 16 << 20;

pub(super) struct Room {
    pub(super) free_bytes: u64,
    pub(super) total_bytes: u64,
}

impl Room {
    /// What there is; `None` if the directory is missing.
    pub(super) fn now() -> Option<Self> {
        let room = statvfs(DIRECTORY).ok()?;
        let bytes = |blocks| blocks * room.f_frsize;
        Some(Self { free_bytes: bytes(room.f_bavail), total_bytes: bytes(room.f_blocks) })
    }

    /// Whether no space has room to grow.
    pub(super) fn is_used_up(&self) -> bool {
        self.free_bytes < ROOM_MIN_BYTES
    }
}
