//! A process that is stepped, or run to a breakpoint, by `ptrace`.
//!
//! The thread that starts it must be the one that goes on with it. Both run on one processor: a step is
//! two switches between them, which are slower across processors.

use std::arch::asm;
use std::io;
use std::mem::{MaybeUninit, offset_of};

use libc::{c_int, c_long, c_uint};

use crate::child::{Child, Exit, fork};

/// The breakpoint instruction, one byte.
const BREAKPOINT: c_long = 0xcc;
/// The instruction that calls the kernel, two bytes.
const SYSCALL: c_long = 0x050f;
/// What the kernel gives as cause of a stop by that instruction; a step has another.
const SI_KERNEL: c_int = 0x80;

/// A forked process that stopped where its script begins.
pub(crate) struct Tracee {
    child: Child,
}

/// Where a process stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// In front of the instruction at this address.
    At(usize),
    /// At the end of the script.
    End,
}

impl Tracee {
    /// Forks a process that runs `prepare`, stops, and runs `script` when it is told to go on.
    pub(crate) fn start<C>(prepare: impl Fn() -> C, script: impl Fn(&mut C)) -> Self {
        let child = fork(|| {
            let mut context = prepare();
            // SAFETY: asks to be traced by the parent; the other arguments are ignored.
            unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
            script_begins();
            script(&mut context);
            script_ends();
        });
        let tracee = Self { child };
        let status = tracee.child.wait_status();
        let stopped = libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTRAP;
        assert!(stopped, "the process did not come to its script: {}", tracee.told(status));
        tracee
    }

    /// Executes one instruction.
    pub(crate) fn step(&self) -> Stop {
        self.go_on(libc::PTRACE_SINGLESTEP, None)
    }

    /// Runs until the instruction at `address` is next, for the `times`-th time. The process must not be
    /// there already.
    pub(crate) fn run_to(&self, address: usize, times: usize) -> Stop {
        for _ in 1..times {
            if self.run_to_next(address) == Stop::End || self.step() == Stop::End {
                return Stop::End;
            }
        }
        self.run_to_next(address)
    }

    fn run_to_next(&self, address: usize) -> Stop {
        let instructions = self.request(libc::PTRACE_PEEKTEXT, address, 0);
        let with_breakpoint = (instructions & !0xff) | BREAKPOINT;
        self.request(libc::PTRACE_POKETEXT, address, with_breakpoint);
        let stop = self.go_on(libc::PTRACE_CONT, Some(address));
        self.request(libc::PTRACE_POKETEXT, address, instructions);
        if stop == Stop::At(address) {
            // The breakpoint was executed: back in front of what it stands for.
            let position = c_long::try_from(address).expect("addresses of programs are positive");
            self.request(libc::PTRACE_POKEUSER, offset_of!(libc::user, regs.rip), position);
        }
        stop
    }

    /// Runs to the end of the script.
    pub(crate) fn run_to_end(&self) {
        assert_eq!(self.go_on(libc::PTRACE_CONT, None), Stop::End);
    }

    /// The number of the process.
    pub(crate) const fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Kills the process at the instruction before which it stands.
    pub(crate) fn kill(self) {
        assert_eq!(self.child.kill(), Exit::Killed(libc::SIGKILL));
    }

    /// Lets the process go on until something stops it.
    fn go_on(&self, how: c_uint, breakpoint: Option<usize>) -> Stop {
        self.request(how, 0, 0);
        let status = self.child.wait_status();
        let stopped = libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTRAP;
        assert!(stopped, "the script did not come to its end: {}", self.told(status));
        let position = self.position();
        if self.stopped_by_instruction() {
            // An executed breakpoint: ours, or the one at the end.
            match breakpoint {
                Some(address) if address + 1 == position => Stop::At(address),
                _ => Stop::End,
            }
        } else {
            Stop::At(position)
        }
    }

    /// Whether the instruction at this address is a call of the kernel.
    pub(crate) fn calls_kernel(&self, address: usize) -> bool {
        self.request(libc::PTRACE_PEEKTEXT, address, 0) & 0xffff == SYSCALL
    }

    /// Where the kernel finds the locks that the process holds: the head of its robust list; 0 if it has none.
    pub(crate) fn robust_list(&self) -> usize {
        let (mut head, mut head_bytes) = (0_usize, 0_usize);
        // SAFETY: writes two words, into local variables.
        let code = unsafe {
            let pid = self.child.pid();
            libc::syscall(libc::SYS_get_robust_list, pid, &raw mut head, &raw mut head_bytes)
        };
        assert!(code == 0, "get_robust_list: {}", io::Error::last_os_error());
        head
    }

    /// Three words of the memory of the process: as many as the head of a robust list has. Zeros at address 0.
    pub(crate) fn words(&self, address: usize) -> [c_long; 3] {
        let word = |index| self.request(libc::PTRACE_PEEKTEXT, address + index * 8, 0);
        if address == 0 { [0; 3] } else { std::array::from_fn(word) }
    }

    /// The address of the next instruction.
    fn position(&self) -> usize {
        let position = self.request(libc::PTRACE_PEEKUSER, offset_of!(libc::user, regs.rip), 0);
        usize::try_from(position).expect("addresses of programs are positive")
    }

    /// Whether a breakpoint instruction stopped the process, not a single step.
    fn stopped_by_instruction(&self) -> bool {
        let mut why = MaybeUninit::<libc::siginfo_t>::zeroed();
        self.request(libc::PTRACE_GETSIGINFO, 0, why.as_mut_ptr() as c_long);
        // SAFETY: zeros are valid, and the request has filled them in.
        let why = unsafe { why.assume_init() };
        why.si_code == SI_KERNEL
    }

    /// Asks the kernel for something about the process. Failure is a bug of this crate.
    fn request(&self, what: c_uint, address: usize, data: c_long) -> c_long {
        // SAFETY: the child is ours and stopped. Peeking and poking concern its memory, which is a copy;
        // `data` is an address only for GETSIGINFO, whose caller passes room for the answer.
        let answer = unsafe { libc::ptrace(what, self.child.pid(), address, data) };
        let peeks = matches!(what, libc::PTRACE_PEEKTEXT | libc::PTRACE_PEEKUSER);
        assert!(answer != -1 || peeks, "ptrace {what}: {}", io::Error::last_os_error());
        answer
    }

    /// What became of the process, for a person.
    fn told(&self, status: c_int) -> String {
        if libc::WIFEXITED(status) {
            self.child.panic_message()
        } else if libc::WIFSIGNALED(status) {
            format!("killed by signal {}", libc::WTERMSIG(status))
        } else {
            format!("stopped by signal {} at {:#x}", libc::WSTOPSIG(status), self.position())
        }
    }
}

/// Stops a traced process; the next instruction is the script's, but for the way back.
#[inline(never)]
fn script_begins() {
    // SAFETY: changes nothing but the position.
    unsafe { asm!("int3", options(nomem, nostack, preserves_flags)) };
}

/// As [`script_begins`], at the end.
#[inline(never)]
fn script_ends() {
    // SAFETY: as above.
    unsafe { asm!("int3", options(nomem, nostack, preserves_flags)) };
}

/// Keeps the calling thread, and the processes it forks, on one processor while it lives.
pub(crate) struct OneProcessor {
    before: libc::cpu_set_t,
}

impl OneProcessor {
    pub(crate) fn new() -> Self {
        let mut before = empty_set();
        // SAFETY: 0 is the calling thread; the set is a local variable of that size.
        let code =
            unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut before) };
        assert!(code == 0, "sched_getaffinity: {}", io::Error::last_os_error());
        // SAFETY: no memory is involved.
        let here = unsafe { libc::sched_getcpu() };
        let mut one = empty_set();
        // SAFETY: writes one bit of the set, and checks that it is inside.
        unsafe { libc::CPU_SET(usize::try_from(here).unwrap_or(0), &mut one) };
        set_affinity(&one);
        Self { before }
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        set_affinity(&self.before);
    }
}

fn empty_set() -> libc::cpu_set_t {
    // SAFETY: a set of bits; zeros are the empty one.
    unsafe { std::mem::zeroed() }
}

/// Fails silently where a sandbox forbids it: the experiment is slower then, not wrong.
fn set_affinity(processors: &libc::cpu_set_t) {
    // SAFETY: 0 is the calling thread; the set is of that size.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), processors) };
}
