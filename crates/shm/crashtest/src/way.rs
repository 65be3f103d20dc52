//! What an experiment goes by: the instructions of a script, or the changes that others see.

use crate::changes::Changes;
use crate::experiment::Script;
use crate::memory::Region;
use crate::trace::Trace;

/// The steps of a script, as a process went through them.
pub(crate) enum Way {
    /// Each instruction is one.
    Instructions(Trace),
    /// Each change that others see is one, and the beginning.
    Changes(Changes),
}

impl Way {
    /// How many steps there are: the index that stands for the end of the script.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::Instructions(trace) => trace.len(),
            Self::Changes(changes) => changes.len(),
        }
    }

    /// The indexes of the steps that count.
    pub(crate) fn steps(&self) -> Vec<usize> {
        match self {
            Self::Instructions(trace) => trace.counted().to_vec(),
            Self::Changes(changes) => (0..changes.len()).collect(),
        }
    }

    /// Runs a script to a step, or its end, and kills it there. Returns its number, and whether it came there.
    pub(crate) fn kill<C>(
        &self,
        script: &Script<'_, C>,
        regions: &[Region],
        index: usize,
    ) -> (u32, bool) {
        let tracee = match self {
            Self::Changes(changes) if index < self.len() => {
                return changes.kill(script, regions, index);
            }
            _ => script.start(),
        };
        let has_come = match self {
            Self::Instructions(trace) if index < self.len() => {
                let stop = trace.bring(&tracee, index);
                trace.is_at(&stop, index)
            }
            _ => {
                tracee.run_to_end();
                true
            }
        };
        let pid = tracee.pid();
        tracee.kill();
        (pid, has_come)
    }
}
