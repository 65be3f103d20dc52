//! A file system with little room, for a process of its own.

use std::ffi::{CStr, CString};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::ptr;

use crate::child::{Exit, fork};

/// Whether the system let a test do something that needs a privilege; any other failure fails the test. If it did not,
/// that is printed past the harness, which shows the output of a test only if it fails.
///
/// # Panics
///
/// If `code`, which a system call has just returned, is a failure of another kind.
pub fn is_permitted(code: i32, what: &str) -> bool {
    if code == 0 {
        return true;
    }
    let error = io::Error::last_os_error();
    // The kernel reports "no room" if namespaces are forbidden to all users.
    let refusals = [ErrorKind::PermissionDenied, ErrorKind::StorageFull];
    assert!(refusals.contains(&error.kind()), "{what}: {error}");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(io::stderr(), "not tested: {test}: this user may not {what} ({error})");
    false
}

/// Runs `work` in a process of its own, with a file system of `bytes` bytes over `path`; or says that it may not.
///
/// # Panics
///
/// If `work` does, with its message.
pub fn with_tiny_file_system(path: &Path, bytes: u64, work: impl FnOnce()) {
    let child = fork(|| {
        // It lives as long as the test says.
        // SAFETY: no memory is involved.
        unsafe { libc::alarm(0) };
        // In a user namespace of its own, anybody may mount; the superuser needs none.
        // SAFETY: no memory is involved.
        let user = unsafe { libc::geteuid() };
        // SAFETY: as above.
        let group = unsafe { libc::getegid() };
        let own_users = if user == 0 { 0 } else { libc::CLONE_NEWUSER };
        // SAFETY: no memory is involved.
        let code = unsafe { libc::unshare(libc::CLONE_NEWNS | own_users) };
        if !is_permitted(code, "have namespaces, to mount a file system") {
            return;
        }
        if own_users != 0 {
            // Files are made by users that the namespace knows.
            write("/proc/self/uid_map", &format!("{user} {user} 1"));
            write("/proc/self/setgroups", "deny");
            write("/proc/self/gid_map", &format!("{group} {group} 1"));
        }
        let options = text(&format!("size={bytes}"));
        let target = text(&path.to_string_lossy());
        if mount(None, c"/", libc::MS_REC | libc::MS_PRIVATE, &CString::default())
            && mount(Some(c"tmpfs"), &target, 0, &options)
        {
            work();
        }
    });
    assert_eq!(child.wait(), Exit::Done);
}

fn write(path: &str, text: &str) {
    let written = std::fs::write(path, text);
    assert!(written.is_ok(), "{path}: {written:?}");
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Mounts something. Returns whether this process may.
fn mount(kind: Option<&CStr>, target: &CStr, how: u64, options: &CStr) -> bool {
    let kind = kind.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: all pointers are null where that is allowed, or to strings that live until the return.
    let code = unsafe {
        libc::mount(c"tupelo-test".as_ptr(), target.as_ptr(), kind, how, options.as_ptr().cast())
    };
    is_permitted(code, "mount a file system")
}
