//! One process is stopped at every instruction while another does its script: every way in which the second can come
//! between two instructions of the first.

use std::fmt::Debug;

use crate::child::{Child, Rest, fork, stop_this_process};
use crate::experiment::{Experiment, Script, Summary, require, restore};
use crate::trace::Trace;
use crate::tracee::{OneProcessor, Stop};

/// When a process was stopped for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// Instructions of its script that it had executed.
    pub instructions: usize,
    /// Instructions of the whole script.
    pub of: usize,
    /// Whether the other one had to wait for it, and so came to its end after it.
    pub waited: bool,
}

impl Experiment {
    /// Stops a process after each instruction of `worker`, and once at its end. Meanwhile another process does the
    /// script of `other`; its preparation comes before the first begins. Then the first goes on to its end. Each time
    /// `check` runs in a process of its own, when both are at their ends and still exist. It panics unless the state is
    /// legal. The memory is as before afterwards.
    ///
    /// If the other one waits for the first, as for a lock, that goes on at once. The other one may also die of its script.
    ///
    /// # Panics
    ///
    /// If a check panics or hangs: with its message, and the instruction. If the other one panics.
    pub fn interrupt_at_every_instruction<C, D>(
        &self,
        worker: &Script<'_, C>,
        other: &Script<'_, D>,
        check: impl Fn(Interruption),
    ) -> Summary {
        let _one = OneProcessor::new();
        let before = self.snapshot();
        let trace = {
            // It is there while the way is noted, too: that is another if nobody is.
            let other = other.start_untraced();
            let trace = Trace::record(worker);
            other.kill();
            trace
        };
        let mut summary = Summary { steps: trace.len(), ..Summary::default() };
        for index in self.interruptions(&trace) {
            restore(&before);
            let other = other.start_untraced();
            let first = worker.start();
            let stop = if index == trace.len() {
                first.run_to_end();
                Stop::End
            } else {
                let stop = trace.bring(&first, index);
                summary.missed += usize::from(!trace.is_at(&stop, index));
                summary.interruptions += usize::from(stop != Stop::End);
                stop
            };
            other.signal(libc::SIGCONT);
            let waited = other.rests_or_waits() == Rest::Waits;
            if stop != Stop::End {
                first.run_to_end();
            }
            let interruption =
                Interruption { instructions: index + 1, of: trace.len() + 1, waited };
            other.require_end(&interruption);
            require(|| check(interruption), &interruption);
            first.kill();
            other.kill();
        }
        restore(&before);
        summary
    }

    fn interruptions(&self, trace: &Trace) -> Vec<usize> {
        let (mut points, _) = self.points(trace.counted(), trace.len());
        if self.begins_with_ends {
            let ends = [0, trace.len()];
            points.retain(|point| !ends.contains(point));
            points.splice(0..0, ends);
        }
        points
    }
}

impl<D> Script<'_, D> {
    /// A process that has prepared itself and stops where its script begins, and again where it ends.
    fn start_untraced(&self) -> Child {
        let child = fork(|| {
            let mut context = self.prepared();
            stop_this_process();
            (self.script)(&mut context);
            stop_this_process();
        });
        child.require_end(&"its script begins");
        child
    }
}

impl Child {
    /// Waits until it stops itself, or is dead by its own hand.
    fn require_end(&self, when: &dyn Debug) {
        match self.rests() {
            Rest::Stopped | Rest::Killed(libc::SIGKILL) => {}
            _ => panic!("the other process ended when {when:?}: {}", self.panic_message()),
        }
    }
}
