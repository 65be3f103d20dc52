//! What became of earlier attempts at a tuple: one block per record, with the number of each and why it failed
//! (rule K5). The newest are kept, and long reasons are cut.
//!
//! | bytes | what |
//! |---:|---|
//! | 0 | the allocator's |
//! | 8 | bytes of the text that follows |
//! | 16 | per attempt: number and bytes (a word each), then the reason in UTF-8 |

use tupelo_shm::{CopyBuffer, GRANULE, Section, Span, View};

use crate::base::error::Error;
use crate::base::layout::Layout;
use crate::store::blocks;
use crate::store::extension::{Extension, HISTORY};
use crate::store::partition::Partition;

/// Longest reason, in bytes of UTF-8.
const REASON_BYTES_MAX: usize = 512;
/// Most bytes of all reasons of a tuple.
const BYTES_MAX: usize = 4096;
/// Number of the attempt, bytes of the reason.
const ENTRY_BYTES: usize = 8;

const BYTES: usize = 8;
const TEXT: usize = 16;
/// Most bytes of a block.
pub(crate) const BLOCK_BYTES_MAX: usize = TEXT + BYTES_MAX;

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Which one, from 1.
    pub number: u32,
    /// Why it failed.
    pub reason: String,
}

/// Adds an attempt to the history of a record. Returns the block that this replaces, 0 for none: the caller
/// frees it, at the end of its section.
///
/// # Errors
///
/// [`crate::base::error::Need`] if there is no block for it.
pub(crate) fn append<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    extension: Extension<'m>,
    attempt: &Attempt,
) -> Result<u32, Error> {
    let old = extension.load(HISTORY);
    let mut attempts = read(section.view(), old);
    attempts.push(attempt.clone());
    write(section, layout, partition, extension, &attempts)?;
    Ok(old)
}

/// Gives a record a block that tells of these attempts, in place of the one that it has.
///
/// # Errors
///
/// As [`append`].
pub(crate) fn write<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    extension: Extension<'m>,
    attempts: &[Attempt],
) -> Result<(), Error> {
    let bytes = encode(attempts);
    let block = blocks::allocate(section, layout, partition, TEXT + bytes.len())?;
    let start: Span<'m, GRANULE> = section.view().at(block);
    start.init(BYTES, u32::try_from(bytes.len()).unwrap_or(0));
    section.view().copy_in(block as usize * GRANULE + TEXT, &bytes);
    section.set(extension, HISTORY, block);
    Ok(())
}

/// Takes its history from a record. Returns the block, 0 for none: the caller frees it, at the end of its section.
pub(crate) fn detach<'m>(section: &mut Section<'m>, extension: Extension<'m>) -> u32 {
    let block = extension.load(HISTORY);
    if block != 0 {
        section.set(extension, HISTORY, 0);
    }
    block
}

/// Frees a block that [`append`] or [`detach`] returned. Nothing may be filled in the section after that (R2).
#[inline(always)]
pub(crate) fn free<'m>(
    section: &mut Section<'m>,
    layout: &Layout,
    partition: Partition<'m>,
    block: u32,
) -> Result<(), Error> {
    if block == 0 { Ok(()) } else { blocks::free(section, layout, partition, block) }
}

/// The attempts that a history block tells of, oldest first; none for block 0.
pub(crate) fn read(view: &View<'_>, block: u32) -> Vec<Attempt> {
    if block == 0 {
        return Vec::new();
    }
    let start: Span<'_, GRANULE> = view.at(block);
    let mut buffer = CopyBuffer::new();
    let bytes = (start.load(BYTES) as usize).min(BYTES_MAX);
    decode(buffer.copy(view, block as usize * GRANULE + TEXT, bytes))
}

/// The attempts that a copy of a history block tells of.
pub(crate) fn of_block(block: &[u8]) -> Vec<Attempt> {
    let bytes = block.get(BYTES..).and_then(<[u8]>::first_chunk::<4>);
    let bytes = bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize);
    decode(block.get(TEXT..).and_then(|text| text.get(..bytes)).unwrap_or_default())
}

/// Bytes of a history block, for who checks that it is one.
pub(crate) fn block_bytes(view: &View<'_>, block: u32) -> usize {
    let start: Span<'_, GRANULE> = view.at(block);
    TEXT + start.load(BYTES) as usize
}

/// As many of the last attempts as there is room for.
fn encode(attempts: &[Attempt]) -> Vec<u8> {
    let mut entries: Vec<(u32, &str)> = Vec::new();
    let mut total = 0;
    for attempt in attempts.iter().rev() {
        let reason = cut(&attempt.reason);
        total += ENTRY_BYTES + reason.len();
        if total > BYTES_MAX {
            break;
        }
        entries.push((attempt.number, reason));
    }
    let mut bytes = Vec::with_capacity(total);
    for (number, reason) in entries.into_iter().rev() {
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(reason.len()).unwrap_or(0).to_le_bytes());
        bytes.extend_from_slice(reason.as_bytes());
    }
    bytes
}

/// The beginning of a reason that is too long, up to a whole character.
fn cut(reason: &str) -> &str {
    let is_end = |end: &usize| reason.is_char_boundary(*end);
    let end = (0..=reason.len().min(REASON_BYTES_MAX)).rev().find(is_end);
    &reason[..end.unwrap_or(0)]
}

/// Reads entries as far as they make sense: another process wrote them (rule C5).
fn decode(mut bytes: &[u8]) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    while let Some((&[a, b, c, d, e, f, g, h], rest)) = bytes.split_first_chunk::<ENTRY_BYTES>() {
        let number = u32::from_le_bytes([a, b, c, d]);
        let length = u32::from_le_bytes([e, f, g, h]) as usize;
        let Some((reason, rest)) = rest.split_at_checked(length) else { break };
        attempts.push(Attempt { number, reason: String::from_utf8_lossy(reason).into_owned() });
        bytes = rest;
    }
    attempts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(number: u32, reason: &str) -> Attempt {
        Attempt { number, reason: reason.into() }
    }

    #[test]
    fn attempts_are_read_as_they_were_written() {
        let all = [attempt(1, "no disk"), attempt(2, ""), attempt(3, "größer")];
        assert_eq!(decode(&encode(&all)), all);
    }

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        let long = "ä".repeat(REASON_BYTES_MAX);
        let [kept] = &decode(&encode(&[attempt(7, &long)]))[..] else { panic!("one attempt") };
        assert_eq!(kept, &attempt(7, &"ä".repeat(REASON_BYTES_MAX / 2)));
    }

    #[test]
    fn the_newest_attempts_are_kept() {
        let reason = "x".repeat(REASON_BYTES_MAX);
        let all: Vec<Attempt> = (1..=20).map(|number| attempt(number, &reason)).collect();
        let kept = decode(&encode(&all));
        assert_eq!(kept, all[20 - kept.len()..]);
        assert_eq!(kept.len(), BYTES_MAX / (ENTRY_BYTES + REASON_BYTES_MAX));
    }

    #[test]
    fn bytes_that_are_no_history_are_read_as_far_as_they_go() {
        let mut bytes = encode(&[attempt(1, "good")]);
        bytes.extend_from_slice(&[9, 0, 0, 0, 255, 255, 255, 255, b'x']);
        assert_eq!(decode(&bytes), [attempt(1, "good")]);
    }
}
