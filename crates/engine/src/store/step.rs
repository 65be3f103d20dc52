//! How many words one step of an operation may change, and asking the undo log for room before it does.
//!
//! A step links or unlinks one tuple in everything that finds it. The log of a thread always has room for
//! one; whoever makes several in one section calls [`begin`] before each. The rare parts of a step that may
//! change more (a split, a served waiter, many extents) call [`beyond`] first. Both refuse before anything
//! of theirs is stored: [`Need::Log`] then drops the section, lengthens the log and begins again.
//!
//! Whoever changes words in a step says how many, and asserts it: the sums of a put and of a take stand beside what links a
//! tuple ([`crate::index::links`]).
//!
//! Asking beforehand is not politeness. A block is chosen by logged words and filled by unlogged ones; a
//! section that went on without its log would fill the wrong one, and no undo repairs that.

use tupelo_shm::Section;

use crate::base::error::{Error, Need};
use crate::store::partition::{NEXT_SEQUENCE, Partition, TAKES};

/// State, marks, holder, who holds it, how many are held, in which in-flight slot: a record changes hands.
pub(crate) const HAND_WORDS: usize = 6;

/// Words that a step may change without asking for more.
pub(crate) const STEP_WORDS: usize = 112;
/// A fresh section is one step, and one rare part of it, long.
const _: () = assert!(2 * STEP_WORDS <= tupelo_shm::LOG_ENTRIES_MIN);

/// Makes sure that there is room for a step.
#[inline]
pub(crate) fn begin(section: &Section<'_>) -> Result<(), Error> {
    beyond(section, 0)
}

/// Makes sure that there is room for `words` and the rest of the step that they are part of.
#[inline]
pub(crate) fn beyond(section: &Section<'_>, words: usize) -> Result<(), Error> {
    if section.room() < words.saturating_add(STEP_WORDS) { Err(Need::Log.into()) } else { Ok(()) }
}

/// Lets an undo restore the numbers of puts and takes of `shapes`, which no step logs. The partitions of `shapes` are
/// locked. The caller is about to change `changes` tuples in one section. If the section begins anew, for a longer log
/// or for memory, each tuple is then counted once.
pub(crate) fn count_anew(
    section: &mut Section<'_>,
    changes: usize,
    shapes: impl IntoIterator<Item = u32>,
) -> Result<(), Error> {
    if changes < MANY {
        return Ok(());
    }
    for shape in shapes {
        let partition = Partition::of_shape(section.view(), shape);
        beyond(section, COUNTS.len())?;
        section.focus(partition.scope());
        for at in COUNTS {
            section.set(partition.page(), at, partition.page().load(at));
        }
    }
    Ok(())
}

/// Fewer changes than these are seldom begun anew, and not worth the stores.
const MANY: usize = 3;
/// What is counted: two words each.
const COUNTS: [usize; 4] = [NEXT_SEQUENCE, NEXT_SEQUENCE + 4, TAKES, TAKES + 4];

/// Commits if there is no room for a step and a rare part of it. For walks that may be interrupted anywhere.
pub(crate) fn commit_if_full(section: &mut Section<'_>) -> Result<(), Error> {
    if section.room() < 2 * STEP_WORDS {
        section.commit()?;
    }
    Ok(())
}
