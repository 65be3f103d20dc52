//! The first 256 bytes of a segment: its kind, its maker, and whether this build can use it.
//!
//! Written once, before the segment has a name, and never again, except for the state and for who removed the segment
//! ([`crate::removal`]). So it is read
//! from the file like any other input, checked whole, and only then is the segment mapped.
//!
//! | offset | what |
//! |---:|---|
//! | 0 | magic `TUPELO\0\1` |
//! | 8 | layout, major and minor (2 bytes each): major must match, minor may differ |
//! | 12 | state (4 bytes, atomic) |
//! | 16 | hash of the layout of everything in the segment: must match |
//! | 24, 32 | features: a reader must know all of the first, may ignore those of the second |
//! | 40, 56 | uuid of the segment; boot id of the machine when it was made |
//! | 72 | seed of the hashes in the segment |
//! | 80, 88 | pid and time namespace of its makers |
//! | 96, 104 | pid and start time of the process that made it |
//! | 112 | when, in nanoseconds since 1970 |
//! | 120 | size of the range to reserve |
//! | 128 | checksum of all of the above but the state |
//! | 144 | how, by whom and when the segment was removed |
//!
//! Numbers are in the machine's byte order; on the other kind of machine the major version differs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::Error;
use crate::process::ProcessId;

/// The layout that this build reads and writes. Also part of the file's name.
pub const LAYOUT_MAJOR: u16 = 1;
/// Size of the identity, in bytes.
pub const IDENTITY_BYTES: usize = 256;
/// The largest range that references of 32 bits to granules of 64 bytes can address.
pub const RESERVE_BYTES_MAX: usize = 256 << 30;

pub(crate) const MAGIC: [u8; 8] = *b"TUPELO\0\x01";
/// Offset of the state word in the segment.
pub(crate) const STATE: usize = 12;
/// Offset of the uuid.
pub(crate) const UUID: usize = 40;
const BOOT: usize = 56;
const CHECKSUM: usize = 128;

/// The engine's layout of the segment, as far as strangers must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Counts additions that older builds may ignore.
    pub minor: u16,
    /// Hash of the sizes and offsets of everything in the segment.
    pub abi_hash: u64,
    /// Features that a build must know to use the segment; of a build: every feature that it knows.
    pub features_incompatible: u64,
    /// Features that a build may ignore.
    pub features_compatible: u64,
}

/// A segment's statements about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The layout of the build that made it.
    pub layout: Layout,
    /// Tells the segment from all others, also from earlier ones of the same name.
    pub uuid: [u8; 16],
    /// Seed of the hashes in the segment, so that colliding keys cannot be chosen in advance.
    pub hash_seed: u64,
    /// The process that made it.
    pub creator: ProcessId,
    /// When it was made, by the wall clock.
    pub created: SystemTime,
    /// How many bytes every process reserves for it.
    pub reserve_bytes: usize,
    surroundings: Surroundings,
}

/// Whether a segment can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// It can.
    Good = 1,
    /// A process found damage (rule C5): only a check or a rebuild may use it.
    Poisoned = 2,
    /// It was removed, or another took its name: the attached processes are told so.
    Retired = 3,
}

impl State {
    /// The state as it stands in the identity of a segment.
    pub(crate) fn from_bytes(bytes: &[u8; IDENTITY_BYTES]) -> Option<Self> {
        Self::from_word(u32::from_ne_bytes(field(bytes, STATE)))
    }

    pub(crate) const fn from_word(word: u32) -> Option<Self> {
        match word {
            1 => Some(Self::Good),
            2 => Some(Self::Poisoned),
            3 => Some(Self::Retired),
            _ => None,
        }
    }
}

/// The world in which process numbers and monotonic times have a meaning. Zeros: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Surroundings {
    boot: [u8; 16],
    pid_namespace: u64,
    time_namespace: u64,
}

impl Surroundings {
    fn current() -> Self {
        let namespace =
            |kind| fs::metadata(format!("/proc/self/ns/{kind}")).map_or(0, |ns| ns.ino());
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = u128::from_str_radix(&boot.trim().replace('-', ""), 16).unwrap_or(0);
        Self {
            boot: boot.to_be_bytes(),
            pid_namespace: namespace("pid"),
            time_namespace: namespace("time"),
        }
    }
}

impl Identity {
    /// The identity of a segment that this process makes now.
    ///
    /// # Errors
    ///
    /// [`Error::System`] if there are no random numbers.
    pub(crate) fn new(layout: Layout, reserve_bytes: usize) -> Result<Self, Error> {
        #[expect(clippy::disallowed_methods, reason = "a date for people; nothing goes by it")]
        let created = SystemTime::now();
        Ok(Self {
            layout,
            uuid: random_uuid()?,
            hash_seed: random_word()?,
            creator: ProcessId::current(),
            created,
            reserve_bytes,
            surroundings: Surroundings::current(),
        })
    }

    /// The bytes as they stand in a segment in good state.
    pub(crate) fn encode(&self) -> [u8; IDENTITY_BYTES] {
        let mut bytes = [0; IDENTITY_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(8, &LAYOUT_MAJOR.to_ne_bytes());
        put(10, &self.layout.minor.to_ne_bytes());
        put(STATE, &(State::Good as u32).to_ne_bytes());
        put(16, &self.layout.abi_hash.to_ne_bytes());
        put(24, &self.layout.features_incompatible.to_ne_bytes());
        put(32, &self.layout.features_compatible.to_ne_bytes());
        put(UUID, &self.uuid);
        put(BOOT, &self.surroundings.boot);
        put(72, &self.hash_seed.to_ne_bytes());
        put(80, &self.surroundings.pid_namespace.to_ne_bytes());
        put(88, &self.surroundings.time_namespace.to_ne_bytes());
        put(96, &self.creator.pid.to_ne_bytes());
        put(104, &self.creator.start_time.to_ne_bytes());
        let age = self.created.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        put(112, &u64::try_from(age.as_nanos()).unwrap_or(u64::MAX).to_ne_bytes());
        put(120, &(self.reserve_bytes as u64).to_ne_bytes());
        let checksum = checksum(&bytes);
        bytes[CHECKSUM..CHECKSUM + 8].copy_from_slice(&checksum.to_ne_bytes());
        bytes
    }

    /// Whether these are the bytes of an identity of this major layout, undamaged.
    pub(crate) fn is_whole(bytes: &[u8; IDENTITY_BYTES]) -> bool {
        field::<8>(bytes, 0) == MAGIC
            && u16::from_ne_bytes(field(bytes, 8)) == LAYOUT_MAJOR
            && u64::from_ne_bytes(field(bytes, CHECKSUM)) == checksum(bytes)
    }

    /// Reads what [`encode`](Self::encode) wrote, and checks that this build can use the segment.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupted`] if it is not the beginning of a segment; [`Error::VersionMismatch`] if it is
    /// one of another layout.
    pub(crate) fn decode(bytes: &[u8; IDENTITY_BYTES], known: &Layout) -> Result<Self, Error> {
        if field::<8>(bytes, 0) != MAGIC {
            return Err(Error::corrupted("the file does not begin as a space does"));
        }
        let major = u16::from_ne_bytes(field(bytes, 8));
        let minor = u16::from_ne_bytes(field(bytes, 10));
        if major != LAYOUT_MAJOR {
            return Err(Error::VersionMismatch {
                found: format!("layout {major}.{minor}"),
                expected: format!("layout {LAYOUT_MAJOR}"),
            });
        }
        let word = |at| u64::from_ne_bytes(field(bytes, at));
        if word(CHECKSUM) != checksum(bytes) {
            return Err(Error::corrupted("the identity at its beginning fails its checksum"));
        }
        let layout = Layout {
            minor,
            abi_hash: word(16),
            features_incompatible: word(24),
            features_compatible: word(32),
        };
        check_layout(&layout, known)?;
        // Behind the checksum, so these two are wrong only by intent.
        if State::from_bytes(bytes).is_none() {
            return Err(Error::corrupted("the state is not one that a space can be in"));
        }
        let reserve_bytes = usize::try_from(word(120)).unwrap_or(usize::MAX);
        if reserve_bytes > RESERVE_BYTES_MAX {
            return Err(Error::corrupted("the reserved size is beyond what a space can address"));
        }
        Ok(Self {
            layout,
            uuid: field(bytes, UUID),
            hash_seed: word(72),
            creator: ProcessId { pid: u32::from_ne_bytes(field(bytes, 96)), start_time: word(104) },
            created: SystemTime::UNIX_EPOCH + Duration::from_nanos(word(112)),
            reserve_bytes,
            surroundings: Surroundings {
                boot: field(bytes, BOOT),
                pid_namespace: word(80),
                time_namespace: word(88),
            },
        })
    }

    /// Whether process numbers and times in the segment mean here what they meant to its maker. Also whether the
    /// machine was started anew since (`true`): then all its users are dead.
    ///
    /// # Errors
    ///
    /// [`Error::OtherNamespace`] if they do not. Thread numbers could be equal by chance, and the kernel would take the
    /// lock of a living thread for that of a dead one.
    pub(crate) fn check_surroundings(&self) -> Result<bool, Error> {
        let (made, here) = (self.surroundings, Surroundings::current());
        let unknown = [0; 16];
        if made.boot != here.boot && made.boot != unknown && here.boot != unknown {
            return Ok(true);
        }
        for (kind, found, expected) in [
            ("pid", made.pid_namespace, here.pid_namespace),
            ("time", made.time_namespace, here.time_namespace),
        ] {
            if found != expected && found != 0 && expected != 0 {
                return Err(Error::OtherNamespace { kind, found, expected });
            }
        }
        Ok(false)
    }

    /// The same segment, as if this process had made it: the part of the identity that changes, and where it stands.
    pub(crate) fn moved_here(mut bytes: [u8; IDENTITY_BYTES]) -> (usize, Vec<u8>) {
        let here = Surroundings::current();
        bytes[BOOT..BOOT + 16].copy_from_slice(&here.boot);
        bytes[80..88].copy_from_slice(&here.pid_namespace.to_ne_bytes());
        bytes[88..96].copy_from_slice(&here.time_namespace.to_ne_bytes());
        let checksum = checksum(&bytes);
        bytes[CHECKSUM..CHECKSUM + 8].copy_from_slice(&checksum.to_ne_bytes());
        (BOOT, bytes[BOOT..CHECKSUM + 8].to_vec())
    }
}

fn check_layout(found: &Layout, known: &Layout) -> Result<(), Error> {
    if found.abi_hash != known.abi_hash {
        return Err(Error::VersionMismatch {
            found: format!("memory layout {:016x}", found.abi_hash),
            expected: format!("{:016x}", known.abi_hash),
        });
    }
    let unknown = found.features_incompatible & !known.features_incompatible;
    if unknown != 0 {
        return Err(Error::VersionMismatch {
            found: format!("the unknown features {unknown:#x}"),
            expected: format!("none beyond {:#x}", known.features_incompatible),
        });
    }
    Ok(())
}

/// `N` bytes at a constant offset.
fn field<const N: usize>(bytes: &[u8; IDENTITY_BYTES], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

/// A checksum against accidents, not against intent. Everything before it counts, but for the state,
/// which changes.
fn checksum(bytes: &[u8; IDENTITY_BYTES]) -> u64 {
    let counted = bytes[..STATE].iter().chain(&bytes[STATE + 4..CHECKSUM]);
    // FNV-1a, with its published constants.
    counted.fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A random number from the system, which nobody can foresee.
///
/// # Errors
///
/// The system's, if it has none.
pub fn random_word() -> Result<u64, Error> {
    Ok(u64::from_ne_bytes(random()?))
}

/// A random uuid, version 4.
fn random_uuid() -> Result<[u8; 16], Error> {
    let mut uuid = random::<16>()?;
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(uuid)
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    const { assert!(N <= 256, "up to 256 bytes come in one piece") };
    let mut bytes = [0; N];
    getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|errno| Error::system("get random numbers", None, errno))?;
    Ok(bytes)
}
