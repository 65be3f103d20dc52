//! What stands in a file is input: whatever it is, attaching answers with an error that says so (rule C5).

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;

use crate::common::{COMMITTED, LAYOUT, OPTIONS, Scratch, fill, open, value, word};
use tupelo_crashtest::{Exit, fork, is_permitted};
use tupelo_shm::{Directory, Error, Layout, Segment};

/// A directory with one good segment in it, that this process has not attached.
struct Victim {
    scratch: Scratch,
    path: PathBuf,
}

impl Victim {
    fn new() -> Self {
        let scratch = Scratch::new();
        let maker = fork(|| drop(open(&scratch.directory(), "victim", 42).unwrap()));
        assert_eq!(maker.wait(), Exit::Done);
        let path = scratch.directory().path_of("victim").unwrap();
        Self { scratch, path }
    }

    fn file(&self) -> File {
        OpenOptions::new().read(true).write(true).open(&self.path).unwrap()
    }

    fn overwrite(&self, offset: u64, bytes: &[u8]) {
        self.file().write_all_at(bytes, offset).unwrap();
    }

    /// Overwrites a field of the identity and makes its checksum right again, as a build that means it
    /// would: FNV-1a over all that stands before it, but for the state at 12 to 15.
    fn forge(&self, offset: u64, bytes: &[u8]) {
        self.overwrite(offset, bytes);
        let mut identity = [0; 128];
        self.file().read_exact_at(&mut identity, 0).unwrap();
        let counted = identity[..12].iter().chain(&identity[16..]);
        let checksum = counted.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        self.overwrite(128, &checksum.to_ne_bytes());
    }

    fn attach(&self) -> Result<u64, Error> {
        self.attach_as(&LAYOUT)
    }

    /// Attaches as a build with another layout. Never creates: the file is there.
    fn attach_as(&self, layout: &Layout) -> Result<u64, Error> {
        let directory = self.scratch.directory();
        Segment::create_or_attach(&directory, "victim", &OPTIONS, layout, |mapping| {
            fill(mapping, 0)
        })
        .map(|segment| value(&segment))
    }

    /// Attaches and expects damage; returns what was found.
    fn damage(&self) -> String {
        match self.attach() {
            Err(Error::Corrupted { what }) => what.into_owned(),
            other => panic!("not damaged: {other:?}"),
        }
    }
}

#[test]
fn an_untouched_segment_is_attached() {
    let victim = Victim::new();
    assert_eq!(victim.attach(), Ok(42));
    victim.forge(96, &7_u32.to_ne_bytes());
    assert_eq!(victim.attach(), Ok(42), "a forged checksum is a right one");
}

#[test]
fn a_file_cut_at_any_length_is_refused() {
    for bytes in [0, 1, 7, 8, 100, 135, 136, 255, 256, 259, 260, 4096, 8192, (1 << 20) - 1, 2 << 20]
    {
        let victim = Victim::new();
        victim.file().set_len(bytes).unwrap();
        let what = victim.damage();
        assert!(what.contains(&format!("has {bytes} bytes where")), "{what}");
    }
}

#[test]
fn a_file_longer_than_its_reserve_is_refused() {
    let victim = Victim::new();
    victim.file().set_len((64 << 20) + 1).unwrap();
    assert!(victim.damage().contains("has 67108865 bytes where 67108864 were reserved"));
}

#[test]
fn a_flipped_bit_in_the_identity_is_found_wherever_it_is() {
    let victim = Victim::new();
    let mut good = [0; 136];
    victim.file().read_exact_at(&mut good, 0).unwrap();
    for offset in 0..136_usize {
        for bit in [0, 3, 7] {
            let mut bad = good;
            bad[offset] ^= 1 << bit;
            victim.overwrite(0, &bad);
            match victim.attach() {
                Err(Error::Corrupted { .. }) => {}
                Err(Error::VersionMismatch { .. }) => assert!((8..10).contains(&offset)),
                other => panic!("bit {bit} of byte {offset}: {other:?}"),
            }
        }
    }
    victim.overwrite(0, &good);
    assert_eq!(victim.attach(), Ok(42));
}

#[test]
fn random_bytes_in_the_identity_never_crash_and_never_pass() {
    let victim = Victim::new();
    let seed = u64::from(std::process::id());
    let mut state = seed;
    let mut random = || {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_ne_bytes()[0]
    };
    let mut good = [0; 256];
    victim.file().read_exact_at(&mut good, 0).unwrap();
    for round in 0..5000 {
        // Every other time with the right magic and major version.
        let kept = if round % 2 == 0 { 0 } else { 10 };
        let mut bytes = good;
        bytes[kept..].fill_with(&mut random);
        victim.overwrite(0, &bytes);
        let result = victim.attach();
        assert!(matches!(result, Err(Error::Corrupted { .. })), "seed {seed}: {result:?}");
    }
    victim.overwrite(0, &good);
    assert_eq!(victim.attach(), Ok(42));
}

#[test]
fn a_committed_size_beyond_the_file_is_found() {
    for granules in [0_u32, 1, 4, (64 << 20) / 64 + 1, u32::MAX] {
        let victim = Victim::new();
        victim.overwrite(COMMITTED as u64, &granules.to_ne_bytes());
        let bytes = u64::from(granules) * 64;
        let what = victim.damage();
        assert!(
            what.contains(&format!("says that {bytes} of its 67108864 bytes are in use")),
            "{what}"
        );
    }
}

#[test]
fn a_state_that_does_not_exist_is_found() {
    let victim = Victim::new();
    victim.overwrite(12, &9_u32.to_ne_bytes());
    assert!(victim.damage().contains("state"));
}

#[test]
fn another_major_layout_is_named() {
    let victim = Victim::new();
    victim.forge(8, &2_u16.to_ne_bytes());
    let error = victim.attach().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the space has layout 2.3, this build expects layout 1: use the build that created it, or \
         create the space anew"
    );
}

#[test]
fn another_minor_layout_and_unknown_compatible_features_are_accepted() {
    let victim = Victim::new();
    victim.forge(10, &99_u16.to_ne_bytes());
    victim.forge(32, &u64::MAX.to_ne_bytes());
    assert_eq!(victim.attach(), Ok(42));
}

#[test]
fn another_memory_layout_is_named() {
    let victim = Victim::new();
    let error = victim.attach_as(&Layout { abi_hash: 0x5678, ..LAYOUT }).unwrap_err();
    assert_eq!(
        error,
        Error::VersionMismatch {
            found: "memory layout 0000000000001234".into(),
            expected: "0000000000005678".into()
        }
    );
}

#[test]
fn a_feature_that_this_build_does_not_know_is_named() {
    let victim = Victim::new();
    let error = victim.attach_as(&Layout { features_incompatible: 0b01, ..LAYOUT }).unwrap_err();
    assert_eq!(
        error,
        Error::VersionMismatch {
            found: "the unknown features 0x2".into(),
            expected: "none beyond 0x1".into()
        }
    );
    let newer = Layout { features_incompatible: 0b111, ..LAYOUT };
    assert_eq!(victim.attach_as(&newer), Ok(42), "a newer build knows what an older one made");
}

#[test]
fn processes_of_another_pid_or_time_namespace_are_refused() {
    for (offset, kind) in [(80, "pid"), (88, "time")] {
        let victim = Victim::new();
        victim.forge(offset, &7_u64.to_ne_bytes());
        let error = victim.attach().unwrap_err();
        assert!(matches!(error, Error::OtherNamespace { found: 7, .. }), "{error:?}");
        let message = error.to_string();
        assert!(message.starts_with(&format!("the space belongs to {kind} namespace 7, this")));
        assert!(message.contains(&format!("share one {kind} namespace")), "{message}");
    }
}

/// As above, with a namespace that the kernel made.
#[test]
fn a_process_in_a_real_other_pid_namespace_is_refused() {
    let victim = Victim::new();
    let child = fork(|| {
        // SAFETY: no memory is involved; concerns the children of this process only.
        let code = unsafe { libc::unshare(libc::CLONE_NEWPID) };
        if !is_permitted(code, "have a pid namespace") {
            return;
        }
        // /proc is still that of the parent namespace, where `self` is what the parent sees; the link
        // of the namespace is the process's own.
        let inside = fork(|| {
            let error = victim.attach().unwrap_err();
            assert!(matches!(error, Error::OtherNamespace { kind: "pid", .. }), "{error:?}");
        });
        assert_eq!(inside.wait(), Exit::Done);
    });
    assert_eq!(child.wait(), Exit::Done);
}

#[test]
fn a_segment_from_before_a_restart_of_the_machine_says_so() {
    let victim = Victim::new();
    victim.forge(56, &[1; 16]);
    // Its makers are dead, whatever their namespace was.
    victim.forge(80, &7_u64.to_ne_bytes());
    let directory = victim.scratch.directory();
    let segment = open(&directory, "victim", 0).unwrap();
    assert!(segment.stale_boot() && value(&segment) == 42);
    drop(segment);
    assert!(!open(&directory, "other", 0).unwrap().stale_boot());
}

#[test]
fn what_is_not_a_regular_file_is_refused_without_waiting() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let path = |name| directory.path_of(name).unwrap();
    fs::create_dir(path("directory")).unwrap();
    symlink("/etc/passwd", path("link")).unwrap();
    symlink(scratch.path().join("nowhere"), path("dangling")).unwrap();
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    for name in ["directory", "link", "dangling", "pipe"] {
        let error = open(&directory, name, 1).unwrap_err();
        let what = format!("the space is damaged: {} is not a regular file", path(name).display());
        assert_eq!(error.to_string(), what);
    }
}

/// The superuser may open anything, so this runs as somebody else.
#[test]
fn a_file_that_may_not_be_opened_is_refused_with_its_owner_and_mode() {
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let child = fork(|| {
        if rustix::process::geteuid().is_root() {
            // SAFETY: no memory is involved.
            assert_eq!(unsafe { libc::setuid(12345) }, 0);
        }
        let user = rustix::process::geteuid().as_raw();
        let directory = scratch.directory();
        let path = directory.path_of("a").unwrap();
        assert!(path.ends_with(format!("tupelo.{user}.a.v1")), "every user has names of their own");
        drop(open(&directory, "a", 1).unwrap());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o040)).unwrap();
        let error = open(&directory, "a", 1).unwrap_err();
        assert_eq!(error, Error::AccessDenied { path, mode: 0o040, owner: user, user });

        let closed = scratch.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
        let error = open(&Directory::new(&closed), "a", 1).unwrap_err();
        assert_eq!(error, Error::AccessDenied { path: closed, mode: 0o555, owner: user, user });
    });
    assert_eq!(child.wait(), Exit::Done);
}

/// What this process has mapped already, it does not look at again: its lengths were checked.
#[test]
fn an_attached_segment_outlives_the_damage_to_its_identity() {
    let victim = Victim::new();
    let segment = open(&victim.scratch.directory(), "victim", 0).unwrap();
    victim.overwrite(0, b"NOTHING\0");
    assert!(victim.damage().contains("does not begin as a space does"));
    word(segment.mapping(), 4096).store(43, Ordering::Relaxed);
    assert_eq!(value(&segment), 43);
}
