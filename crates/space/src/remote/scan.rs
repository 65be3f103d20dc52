//! Walks through spaces that are elsewhere, and moves between such spaces (rules O6, O7).

use std::collections::VecDeque;
use std::ops::ControlFlow;

use tupelo_protocol::{Kept, Operation, TemplateBytes};
use tupelo_tuple::encoding::{Decoded, Reader, encode_tuple_view};
use tupelo_tuple::{Template, TemplateRef, TupleView};

use super::{Ask, not_due};
use crate::connect::Space;
use crate::error::Error;

/// A walk that is elsewhere.
pub(crate) struct RemoteScan {
    kept: Box<dyn Kept>,
    /// What has come and was not shown yet.
    left: VecDeque<Vec<u8>>,
}

impl RemoteScan {
    pub(crate) fn begin(space: &Space, template: &Template) -> Result<Self, Error> {
        let template = template.encode()?;
        let scan = Operation::Scan { template: TemplateBytes::of_encoding(&template) };
        let (found, kept) = space.remote()?.open(&scan, &mut |_| ControlFlow::Break(()))?;
        let kept = kept.ok_or_else(|| not_due(&scan, "a scan", found))?;
        Ok(Self { kept, left: VecDeque::new() })
    }

    /// As [`crate::Scan::next_batch`].
    pub(crate) fn next_batch<R, E: From<Error>>(
        &mut self,
        at_most: usize,
        mut visitor: impl FnMut(TupleView<'_>) -> Result<R, E>,
    ) -> Result<Vec<R>, E> {
        let at_most = at_most.max(1);
        if self.left.is_empty() {
            self.fetch(at_most)?;
        }
        let mut results = Vec::new();
        while results.len() < at_most
            && let Some(tuple) = self.left.pop_front()
        {
            match show(&tuple, &mut visitor) {
                Ok(result) => results.push(result),
                Err(error) if results.is_empty() => return Err(error),
                Err(_) => {
                    self.left.push_front(tuple);
                    break;
                }
            }
        }
        Ok(results)
    }

    fn fetch(&mut self, at_most: usize) -> Result<(), Error> {
        let keep = |tuple: TupleView<'_>| Some(kept_tuple(tuple));
        let next = Operation::Next { at_most };
        let found = Ask::Kept(&*self.kept, 0).tuples_of(&next, keep)?;
        self.left.extend(found.unwrap_or_default());
        Ok(())
    }
}

/// A tuple that has come, to be shown later.
pub(super) fn kept_tuple(tuple: TupleView<'_>) -> Result<Vec<u8>, Error> {
    let mut encoding = Vec::with_capacity(64);
    encode_tuple_view(&mut encoding, tuple)?;
    Ok(encoding)
}

/// Shows a tuple that was kept.
pub(super) fn show<R, E: From<Error>>(
    encoding: &[u8],
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> Result<R, E> {
    let tuple = Decoded::read(&mut Reader::new(encoding)).map_err(Error::from)?;
    visitor(tuple.to_image().view())
}

impl Space {
    /// As [`Space::move_to`] and [`Space::copy_to`], where one of the two is elsewhere.
    #[cold]
    pub(crate) fn transfer_remotely(
        &self,
        other: &Self,
        moves: bool,
        template: &[TemplateRef<'_>],
    ) -> Result<u64, Error> {
        self.require_open()?;
        other.require_open()?;
        if !self.is_beside(other) {
            return Err(Error::Misuse {
                problem: format!("no step goes from {} to {}", self.url(), other.url()),
                hint: Some(
                    "take two spaces of one server, or two that are here; else take here and put there".into(),
                ),
            });
        }
        let (to, template) = (other.remote()?.identity(), TemplateBytes::encode(template)?);
        let template = TemplateBytes::of_encoding(&template);
        Ask::Space(self.remote()?).count_of(&Operation::Transfer { to, moves, template })
    }
}
