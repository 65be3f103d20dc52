//! A process that is stepped, or run to a breakpoint, by `ptrace`.
//!
//! The thread that starts it must also go on with it. Both run on one processor: a step is two switches between them,
//! which are slower across processors.

use std::arch::{asm, naked_asm};
use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::ptr;

use libc::{c_int, c_long, c_uint};

use crate::child::{Child, Exit, fork};

/// The breakpoint instruction, one byte.
const BREAKPOINT: c_long = 0xcc;
/// The kernel's cause of a stop by that instruction.
const SI_KERNEL: c_int = 0x80;
/// The same of a stop by the processor, which has watched a word.
const TRAP_HWBKPT: c_int = 4;
/// The signal of a stop at a call of the kernel.
const CALL: c_int = libc::SIGTRAP | 0x80;
/// How the processor is told to watch writes to a word of eight bytes: its four bits of that register.
const WRITES_TO_EIGHT_BYTES: usize = 0b1001;

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

/// Why a process does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It has executed a breakpoint.
    Breakpoint,
    /// It has made a step.
    Step,
    /// It has written to a word that is watched.
    Watched,
    /// It calls the kernel, or the kernel has done the call.
    Call,
    /// It may not do its access at this address.
    Fault(usize),
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
        assert!(stopped, "the process did not come to its script: {}", tracee.describe(status));
        tracee
    }

    /// Executes one instruction.
    pub(crate) fn step(&self) -> Stop {
        let cause = self.resume(libc::PTRACE_SINGLESTEP);
        self.stopped(cause)
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
        let cause = self.resume_to(address);
        self.stopped(cause)
    }

    /// Lets the process go on until the instruction at `address` is next; if so, as if it had made a step. The process must not be
    /// there already.
    pub(crate) fn resume_to(&self, address: usize) -> Cause {
        let instructions = self.request(libc::PTRACE_PEEKTEXT, address, 0);
        let with_breakpoint = (instructions & !0xff) | BREAKPOINT;
        self.request(libc::PTRACE_POKETEXT, address, with_breakpoint);
        let cause = self.resume(libc::PTRACE_CONT);
        self.request(libc::PTRACE_POKETEXT, address, instructions);
        if cause != Cause::Breakpoint || self.position() != address + 1 {
            return cause;
        }
        // The breakpoint was executed: back in front of the instruction that it replaces.
        let position = c_long::try_from(address).expect("addresses of programs are positive");
        self.request(libc::PTRACE_POKEUSER, offset_of!(libc::user, regs.rip), position);
        Cause::Step
    }

    /// Runs to the end of the script.
    pub(crate) fn run_to_end(&self) {
        let cause = self.resume(libc::PTRACE_CONT);
        assert_eq!(self.stopped(cause), Stop::End);
    }

    /// The number of the process.
    pub(crate) const fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Kills the process at the instruction before which it stands.
    pub(crate) fn kill(self) {
        assert_eq!(self.child.kill(), Exit::Killed(libc::SIGKILL));
    }

    /// Where it stopped, if it did so of itself.
    fn stopped(&self, cause: Cause) -> Stop {
        match cause {
            Cause::Step => Stop::At(self.position()),
            // The breakpoint at the end.
            Cause::Breakpoint => Stop::End,
            _ => panic!("the script did not come to its end: {cause:?} at {:#x}", self.position()),
        }
    }

    /// Lets the process go on until something stops it.
    pub(crate) fn resume(&self, how: c_uint) -> Cause {
        self.request(how, 0, 0);
        let status = self.child.wait_status();
        let signal = if libc::WIFSTOPPED(status) { libc::WSTOPSIG(status) } else { 0 };
        let why = || self.why_it_stopped();
        match signal {
            CALL => Cause::Call,
            libc::SIGTRAP if why().si_code == SI_KERNEL => Cause::Breakpoint,
            libc::SIGTRAP if why().si_code == TRAP_HWBKPT => Cause::Watched,
            libc::SIGTRAP => Cause::Step,
            // SAFETY: for this signal that is an address.
            libc::SIGSEGV => Cause::Fault(unsafe { why().si_addr() }.addr()),
            _ => panic!("the script did not come to its end: {}", self.describe(status)),
        }
    }

    /// From now on it stops at each call of the kernel, before and after, if it is resumed for that.
    pub(crate) fn report_calls(&self) {
        self.request(libc::PTRACE_SETOPTIONS, 0, c_long::from(libc::PTRACE_O_TRACESYSGOOD));
    }

    /// From now on it stops only when it has written to one of these words.
    pub(crate) fn watch(&self, words: [usize; 3]) {
        let set = |register: usize, value: usize| {
            let place = offset_of!(libc::user, u_debugreg) + register * size_of::<usize>();
            self.request(libc::PTRACE_POKEUSER, place, value.cast_signed() as c_long);
        };
        // None while their addresses change.
        set(7, 0);
        let mut control = 0;
        for (number, word) in words.into_iter().enumerate() {
            set(number, word);
            control |= 1 << (2 * number) | WRITES_TO_EIGHT_BYTES << (16 + 4 * number);
        }
        set(7, if words[0] == 0 { 0 } else { control });
    }

    /// Has the process call the kernel on the way, and returns the result; it stands where it stood.
    pub(crate) fn call_kernel(&self, number: c_long, arguments: [usize; 3]) -> i64 {
        let before = self.registers();
        let [rdi, rsi, rdx] = arguments.map(|argument| argument as u64);
        let calling = libc::user_regs_struct {
            rip: call_kernel as *const () as u64,
            rax: number.cast_unsigned(),
            rdi,
            rsi,
            rdx,
            // It is in no call that could be begun again.
            orig_rax: u64::MAX,
            ..before
        };
        self.set_registers(&calling);
        let cause = self.resume(libc::PTRACE_CONT);
        assert_eq!(cause, Cause::Breakpoint, "behind the call is one");
        let got = self.registers().rax.cast_signed();
        self.set_registers(&libc::user_regs_struct { orig_rax: u64::MAX, ..before });
        got
    }

    pub(crate) fn registers(&self) -> libc::user_regs_struct {
        let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
        self.request(libc::PTRACE_GETREGS, 0, registers.as_mut_ptr() as c_long);
        // SAFETY: zeros are valid, and the request has filled them in.
        unsafe { registers.assume_init() }
    }

    pub(crate) fn set_registers(&self, registers: &libc::user_regs_struct) {
        self.request(libc::PTRACE_SETREGS, 0, ptr::from_ref(registers) as c_long);
    }

    /// What stands at this address: the beginning of an instruction.
    pub(crate) fn code(&self, address: usize) -> [u8; 8] {
        self.request(libc::PTRACE_PEEKTEXT, address, 0).to_le_bytes()
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

    /// The address of the next instruction.
    pub(crate) fn position(&self) -> usize {
        let position = self.request(libc::PTRACE_PEEKUSER, offset_of!(libc::user, regs.rip), 0);
        usize::try_from(position).expect("addresses of programs are positive")
    }

    /// The kernel's data about the signal that stopped the process.
    fn why_it_stopped(&self) -> libc::siginfo_t {
        let mut why = MaybeUninit::<libc::siginfo_t>::zeroed();
        self.request(libc::PTRACE_GETSIGINFO, 0, why.as_mut_ptr() as c_long);
        // SAFETY: zeros are valid, and the request has filled them in.
        unsafe { why.assume_init() }
    }

    /// Asks the kernel for something about the process. Failure is a bug of this crate.
    fn request(&self, what: c_uint, address: usize, data: c_long) -> c_long {
        // SAFETY: the child is ours and stopped. Peeking and poking concern its memory, which is a copy. `data` is an
        // address only for GETSIGINFO, GETREGS and SETREGS, whose callers pass the right type.
        let answer = unsafe { libc::ptrace(what, self.child.pid(), address, data) };
        let peeks = matches!(what, libc::PTRACE_PEEKTEXT | libc::PTRACE_PEEKUSER);
        assert!(answer != -1 || peeks, "ptrace {what}: {}", io::Error::last_os_error());
        answer
    }

    /// What became of the process, for a person.
    fn describe(&self, status: c_int) -> String {
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

/// The instruction by which a process calls the kernel on the way.
#[unsafe(naked)]
extern "C" fn call_kernel() {
    naked_asm!("syscall", "int3")
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
