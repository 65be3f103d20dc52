//! A process that goes on until others can tell something else of it.
//!
//! Its own memory is gone with it when it dies. Three things stay: its writes to shared memory, its requests to the
//! kernel, and the locks that it holds. The kernel finds the locks in its robust list, which is its own memory, but
//! read after its death. Two deaths between which none of these has changed are the same death.
//!
//! From one change to the next it runs at full speed. It may only read the shared memory, so the kernel stops it in
//! front of each write to that. The processor watches the head of its robust list. A call of the kernel is a stop
//! anyway. (If the kernel itself should write to shared memory for it, that fails: no script asks for such a write.)

use std::collections::HashMap;

use libc::{SYS_mmap, SYS_mprotect, SYS_munmap, c_int};

use crate::experiment::Script;
use crate::memory::{PAGE_BYTES, Region};
use crate::tracee::{Cause, Stop, Tracee};

/// Words at the head of a robust list: its first entry, the place of a lock beside its entry, and the lock that is just
/// taken or given back.
const LIST_WORDS: usize = 3;

/// How often in a row the same instruction counts. An instruction that repeats itself (`rep movsb`) writes one byte
/// after the other. Killed at the 17th byte it leaves nothing that it did not leave at the 16th.
const REPEATS_MAX: usize = 16;
/// The prefix of such an instruction, and the prefix that may follow it.
const REPEATS: u8 = 0xf3;
const WIDE: u8 = 0x48;

/// A traced process that asks before it changes anything that others see.
pub(crate) struct Supervised {
    tracee: Tracee,
    /// The memory that it may only read: address and bytes.
    shared: Vec<(usize, usize)>,
    /// Where the kernel finds its locks.
    list: usize,
    /// The instruction that wrote last, and how often in a row.
    last: (usize, usize),
    /// Of instructions that write: where the next one begins.
    behind: HashMap<usize, usize>,
}

impl Supervised {
    /// Starts a process that stands where its script begins. Earlier findings about instructions make it faster.
    pub(crate) fn start<C>(
        script: &Script<'_, C>,
        regions: &[Region],
        behind: HashMap<usize, usize>,
    ) -> Self {
        let prepare = || {
            let context = script.prepared();
            for region in regions {
                region.protect();
            }
            context
        };
        let tracee = Tracee::start(prepare, &script.script);
        tracee.report_calls();
        let shared = regions.iter().map(|region| region.place()).collect();
        let mut process = Self { tracee, shared, list: 0, last: (0, 0), behind };
        process.watch_locks();
        process
    }

    /// Goes on until it has changed something: it stands behind the instruction that has done it, or at its end.
    pub(crate) fn next(&mut self) -> Stop {
        match self.tracee.resume(libc::PTRACE_SYSCALL) {
            Cause::Breakpoint => return Stop::End,
            // A virtual machine has reported a step that was not requested, once in a long run. Its cause is not known,
            // so something may have changed.
            Cause::Watched | Cause::Step => {}
            Cause::Fault(address) => self.write(address),
            Cause::Call => self.call(),
        }
        Stop::At(self.tracee.position())
    }

    /// Executes the instruction that wants to write to this address.
    fn write(&mut self, address: usize) {
        let position = self.tracee.position();
        let times = if self.last.0 == position { self.last.1 + 1 } else { 1 };
        self.last = (position, times);
        let code = self.tracee.code(position);
        if code[0] == REPEATS && times > REPEATS_MAX {
            return self.write_all(position + if code[1] == WIDE { 3 } else { 2 });
        }
        let mut pages = Vec::new();
        let mut wanted = address;
        loop {
            let is_shared =
                |&(base, bytes): &(usize, usize)| (base..base + bytes).contains(&wanted);
            assert!(self.shared.iter().any(is_shared), "the script can not access {wanted:#x}");
            let page = wanted / PAGE_BYTES * PAGE_BYTES;
            self.allow((page, PAGE_BYTES), libc::PROT_READ | libc::PROT_WRITE);
            pages.push(page);
            match self.execute(position) {
                // Its second half lies on the next page.
                Cause::Fault(next) => wanted = next,
                _ => break,
            }
        }
        if code[0] != REPEATS {
            self.behind.insert(position, self.tracee.position());
        }
        for page in pages {
            self.allow((page, PAGE_BYTES), libc::PROT_READ);
        }
    }

    /// Executes the instruction at this address, which is the next one. To a breakpoint, where that is known: on a virtual machine a
    /// single step costs more than all else.
    fn execute(&self, position: usize) -> Cause {
        match self.behind.get(&position) {
            Some(&behind) => self.tracee.resume_to(behind),
            None => self.tracee.resume(libc::PTRACE_SINGLESTEP),
        }
    }

    /// Executes the rest of an instruction that repeats itself: all up to this address.
    fn write_all(&self, end: usize) {
        self.allow_all(libc::PROT_READ | libc::PROT_WRITE);
        assert_eq!(self.tracee.run_to(end, 1), Stop::At(end), "it comes to its end");
        self.allow_all(libc::PROT_READ);
    }

    /// Lets the kernel do the requested call.
    fn call(&mut self) {
        let asked = self.tracee.registers();
        let cause = self.tracee.resume(libc::PTRACE_SYSCALL);
        assert_eq!(cause, Cause::Call, "a call that has begun ends");
        let [number, got] = [asked.orig_rax, self.tracee.registers().rax].map(u64::cast_signed);
        let [from, bytes] =
            [asked.rdi, asked.rsi].map(|word| usize::try_from(word).expect("64 bits"));
        let is_shared = asked.r10 & libc::MAP_SHARED as u64 != 0;
        let is_writable = asked.rdx & libc::PROT_WRITE as u64 != 0;
        if number == SYS_mmap && is_shared && is_writable && got > 0 {
            // The same memory may lie there once more.
            let place = (usize::try_from(got).expect("it is positive"), bytes);
            self.shared.push(place);
            self.allow(place, libc::PROT_READ);
        }
        if number == SYS_munmap {
            self.shared.retain(|place| *place != (from, bytes));
        }
        // The C library does so with its heaps.
        let is_own =
            |(base, length): &(usize, usize)| from + bytes <= *base || base + length <= from;
        let is_harmless = number != SYS_mprotect || self.shared.iter().all(is_own);
        assert!(
            is_harmless,
            "a script that changes its rights to what it shares is not supervised"
        );
        // Only now may there be another list.
        self.watch_locks();
    }

    fn watch_locks(&mut self) {
        let list = self.tracee.robust_list();
        if list != self.list {
            self.list = list;
            let words: [usize; LIST_WORDS] = std::array::from_fn(|index| list + index * 8);
            self.tracee.watch(words);
        }
    }

    /// Changes the rights of the process to a part of its memory.
    fn allow(&self, (base, bytes): (usize, usize), rights: c_int) {
        let rights = usize::try_from(rights).expect("flags are positive");
        let got = self.tracee.call_kernel(SYS_mprotect, [base, bytes, rights]);
        assert!(got == 0, "the process can not change its rights at {base:#x}: error {}", -got);
    }

    fn allow_all(&self, rights: c_int) {
        for place in &self.shared {
            self.allow(*place, rights);
        }
    }

    /// Where it stands.
    pub(crate) fn position(&self) -> usize {
        self.tracee.position()
    }

    /// Its findings about instructions.
    pub(crate) fn behind(&self) -> &HashMap<usize, usize> {
        &self.behind
    }

    /// The number of the process.
    pub(crate) const fn pid(&self) -> u32 {
        self.tracee.pid()
    }

    /// Kills the process where it stands. Its locks are in memory that the kernel can write to for it.
    pub(crate) fn kill(self) {
        self.allow_all(libc::PROT_READ | libc::PROT_WRITE);
        self.tracee.kill();
    }
}
