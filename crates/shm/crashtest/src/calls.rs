//! A process that stops in front of each of its calls of the kernel. The test looks at the call, and lets it happen,
//! refuses it, or kills the process there.
//!
//! What a process writes to files, and when it has that synced, is in these calls. So a test can follow what a disk would have at
//! each moment, and can be the disk that fails.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use libc::{c_int, c_long};

use crate::tracee::{Cause, Tracee};

/// A process that is stopped in front of a call of the kernel, or where its script begins.
pub struct TracedCalls {
    tracee: Tracee,
    memory: File,
}

/// A call of the kernel that has not happened yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which one, as `libc::SYS_write`.
    pub number: c_long,
    /// What is passed: numbers, descriptors, addresses.
    pub arguments: [usize; 6],
}

impl TracedCalls {
    /// Starts a process that runs `prepare` without a stop, and then stands where `script` begins.
    ///
    /// # Panics
    ///
    /// If the system does not allow it, or `prepare` panics.
    pub fn start<C>(prepare: impl Fn() -> C, script: impl Fn(&mut C)) -> Self {
        let tracee = Tracee::start(prepare, script);
        tracee.report_calls();
        let memory = File::open(format!("/proc/{}/mem", tracee.pid()));
        let memory = memory.unwrap_or_else(|error| panic!("the memory of the process: {error}"));
        Self { tracee, memory }
    }

    /// Goes on to the next call; `None` at the end of the script.
    ///
    /// # Panics
    ///
    /// If the process ends in another way, with its message.
    pub fn next_call(&self) -> Option<Call> {
        match self.tracee.resume(libc::PTRACE_SYSCALL) {
            Cause::Call => {}
            Cause::Breakpoint => return None,
            cause => panic!("the process stopped where it calls nothing: {cause:?}"),
        }
        let registers = self.tracee.registers();
        let libc::user_regs_struct { orig_rax, rdi, rsi, rdx, r10, r8, r9, .. } = registers;
        #[expect(clippy::cast_possible_truncation, reason = "this file is for x86-64")]
        let arguments = [rdi, rsi, rdx, r10, r8, r9].map(|register| register as usize);
        Some(Call { number: orig_rax.cast_signed(), arguments })
    }

    /// Lets the call happen. Returns its result, or the error as a negative number.
    ///
    /// # Panics
    ///
    /// If the process ends in it.
    pub fn allow(&self) -> i64 {
        let cause = self.tracee.resume(libc::PTRACE_SYSCALL);
        assert_eq!(cause, Cause::Call, "a call that has begun ends");
        self.tracee.registers().rax.cast_signed()
    }

    /// Lets the call fail with this error, without effect.
    pub fn refuse(&self, error: c_int) {
        // A call without a number does nothing.
        let nothing = libc::user_regs_struct { orig_rax: u64::MAX, ..self.tracee.registers() };
        self.tracee.set_registers(&nothing);
        self.allow();
        let result = i64::from(-error).cast_unsigned();
        let refused = libc::user_regs_struct { rax: result, ..self.tracee.registers() };
        self.tracee.set_registers(&refused);
    }

    /// What the process has at this address of its memory.
    ///
    /// # Panics
    ///
    /// If nothing is there.
    pub fn bytes_at(&self, address: usize, bytes: usize) -> Vec<u8> {
        let mut found = vec![0; bytes];
        let read = self.memory.read_exact_at(&mut found, address as u64);
        read.unwrap_or_else(|error| panic!("{bytes} bytes at {address:#x}: {error}"));
        found
    }

    /// The text at this address of its memory, which ends with a zero.
    ///
    /// # Errors
    ///
    /// What the system says if nothing is there.
    pub fn text_at(&self, address: usize) -> io::Result<String> {
        let mut text = vec![0; libc::PATH_MAX.unsigned_abs() as usize];
        // Fewer are there if the memory ends.
        let bytes = self.memory.read_at(&mut text, address as u64)?;
        let end = text[..bytes].iter().position(|byte| *byte == 0).unwrap_or(bytes);
        Ok(String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// Which file a descriptor of the process is; `None` for what is none.
    pub fn file_of(&self, descriptor: usize) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/fd/{descriptor}", self.tracee.pid())).ok()
    }

    /// Where in its file a descriptor of the process stands.
    ///
    /// # Panics
    ///
    /// If it is none of a file.
    pub fn offset_of(&self, descriptor: usize) -> u64 {
        let place = format!("/proc/{}/fdinfo/{descriptor}", self.tracee.pid());
        let info = std::fs::read_to_string(&place).unwrap_or_default();
        let offset = info.strip_prefix("pos:").and_then(|rest| rest.split_whitespace().next());
        let offset = offset.and_then(|offset| offset.parse().ok());
        offset.unwrap_or_else(|| panic!("{place} has no offset: {info}"))
    }

    /// Kills the process where it stands.
    pub fn kill(self) {
        self.tracee.kill();
    }
}
