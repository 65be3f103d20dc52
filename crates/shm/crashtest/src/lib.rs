//! Kills a process after each single instruction and checks the memory that it leaves behind (rule C1), or stops it
//! there for another.
//!
//! A development tool: nothing of it is in a program that people run. It knows memory and processes, not
//! what is in the memory: the test brings a script, and a check that fails unless the state is legal.
//!
//! The kernel is the real one: the process dies by SIGKILL, at an exact instruction, and the kernel
//! cleans up after it. An `Experiment` first has the script run one instruction at a time and notes
//! the address of each. Then, for every instruction, it restores the memory, starts a new process, lets
//! it run to that instruction by a breakpoint, kills it, and starts another process for the check. So
//! the cost of a kill does not grow with the length of the script: 2 000 kills take seconds.
//!
//! Most instructions change nothing that another process could see when the process dies there. An experiment can pass
//! over them and kill behind each of the others: the same as to kill at every one. The process comes there at full
//! speed, since it is stopped only where it changes something (`supervised`). So a hundredth of the time is enough.
//!
//! Exact as far as the script takes the same path each time: no time, no random numbers, no numbers of its own process
//! turned into text. Such work belongs before the script, in its `prepare`.
//!
//! The same way processes come between one another. One is stopped in front of every instruction while another does its
//! whole script (or waits for the first to get out of its way).
//!
//! What a process does to files is in its calls of the kernel: [`TracedCalls`] stops it in front of each, for tests that are the disk.
//!
//! Besides, [`CountingAllocator`] counts the heap use of a test.
//!
//! Linux only, and experiments on x86-64 only: breakpoints differ per machine. Elsewhere there is
//! [`fork`], for tests between processes.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "development code that forks and traces processes")]

mod allocations;
#[cfg(target_arch = "x86_64")]
mod calls;
mod chance;
#[cfg(target_arch = "x86_64")]
mod changes;
mod child;
#[cfg(target_arch = "x86_64")]
mod experiment;
#[cfg(target_arch = "x86_64")]
mod file_calls;
mod file_system;
#[cfg(target_arch = "x86_64")]
mod interruption;
#[cfg(target_arch = "x86_64")]
mod memory;
#[cfg(target_arch = "x86_64")]
mod supervised;
#[cfg(target_arch = "x86_64")]
mod trace;
#[cfg(target_arch = "x86_64")]
mod tracee;
#[cfg(target_arch = "x86_64")]
mod way;

pub use allocations::{Allocations, CountingAllocator};
#[cfg(target_arch = "x86_64")]
pub use calls::{Call, TracedCalls};
pub use chance::{phase, seed, thorough, torture_time};
pub use child::{
    Child, Exit, end_this_thread, fork, kill_this_process, shared_words, stop_this_process,
};
#[cfg(target_arch = "x86_64")]
pub use experiment::{Death, Experiment, Script, Summary};
#[cfg(target_arch = "x86_64")]
pub use file_calls::FileCall;
pub use file_system::{is_permitted, with_tiny_file_system};
#[cfg(target_arch = "x86_64")]
pub use interruption::Interruption;
#[cfg(target_arch = "x86_64")]
pub use memory::Region;
