//! First answers that outlive the server: those of requests whose space is in shared memory or in a file, which keeps them beside the
//! change.
//!
//! Of a put that is a number: how many were put. What a swap has replaced is not kept. What a take has found stays claimed, until its
//! client has said to this server or to the next one that it has arrived.

use std::time::Duration;

use tupelo::{Claim, Error, Field, RequestKey, Space, hash};
use tupelo_protocol::{Action, Amount, Fault, Key, Operation, Target, code};

use crate::answers::Answer;
use crate::asked;
use crate::hosted::Hosted;
use crate::kept::Held;
use crate::meters::Handed;
use crate::session::Session;

/// Stands for an answer that is not kept.
const NOT_KEPT: u64 = u64::MAX;

/// Does an operation, unless a server that has ended has done it.
pub(crate) fn perform(
    session: &Session,
    (id, key): (u64, Option<Key>),
    on: Target,
    operation: &Operation<'_>,
) -> Result<Option<Answer>, Fault> {
    let perform = || asked::perform(session, id, on, operation);
    let (Some(key), Some(client), Target::Space(number)) = (key, session.client, on) else {
        return perform();
    };
    let hosted = session.space(number)?;
    if hosted.space.keeper().is_none() {
        return perform();
    }
    let request = (key.0, who(session.principal.name()));
    // The keys of a client whose number is new have been seen by no other server.
    let is_new = session.is_new_client.get() && key.0 >> 64 == u128::from(client);
    match operation {
        Operation::Put { .. } | Operation::Swap { .. } => {
            if !is_new && let Some(answer) = first_answer(&hosted.space, request)? {
                return answer.map(Some);
            }
            tupelo::keyed(noted(request, operation)?, perform)
        }
        // Only for a client that may come back for it.
        Operation::Find { action: Action::Take, amount: Amount::One, .. }
            if session.outlives.get() =>
        {
            if !is_new && let Some((claim, tuples)) = adopt(&hosted, request)? {
                let handed = Handed::new(&hosted, (&tuples, 0), Duration::ZERO);
                session.give(id, Held::One(claim), &tuples, handed);
                return Ok(None);
            }
            let answer = tupelo::keyed_take(request, perform)?;
            session.set_take(id, request);
            Ok(answer)
        }
        Operation::Taken { arrived } => {
            let Some((claim, _)) = adopt(&hosted, request)? else {
                return Ok(Some(Answer::Done(0)));
            };
            if *arrived {
                claim.done()?;
            } else {
                claim.give_back()?;
            }
            Ok(Some(Answer::Done(1)))
        }
        _ => perform(),
    }
}

/// What a server that has ended had taken for this request.
fn adopt(hosted: &Hosted, request: (u128, u64)) -> Result<Option<(Claim, Vec<u8>)>, Error> {
    hosted.space.adopt_take(request, &asked::TERMS, asked::one)
}

/// Whose key it is, by the name of the token. It stands in the segment, so it is the same in every build: a server that was
/// upgraded knows what the one before has answered. The hasher of the standard library may change with the compiler.
fn who(name: &str) -> u64 {
    hash::field(&Field::Str(name))
}

/// A put or a swap, as its space is to note it.
fn noted((key, who): (u128, u64), operation: &Operation<'_>) -> Result<RequestKey, Fault> {
    let answer = match operation {
        Operation::Put { tuples, .. } => tuples.read_each()?.len() as u64,
        _ => NOT_KEPT,
    };
    Ok(RequestKey { key, who, answer })
}

/// What the request was answered before, if it had its effect.
fn first_answer(
    space: &Space,
    (key, who): (u128, u64),
) -> Result<Option<Result<Answer, Fault>>, Error> {
    Ok(space.answer_to(key, who)?.map(|answer| match answer {
        NOT_KEPT => Err(not_kept()),
        count => Ok(Answer::Done(count)),
    }))
}

fn not_kept() -> Fault {
    let message = "the server has ended, and another one has taken over: the swap has happened, and what it has replaced is lost";
    let hint = "do not swap again: look what is there";
    Fault::new(code::CONNECTION_LOST, message, Some(hint)).with_flags(Fault::MAY_HAVE_HAPPENED)
}

#[cfg(test)]
mod tests {
    use super::who;

    #[test]
    fn whose_a_key_is_does_not_change_with_the_build() {
        let frozen = (0x6aca_b057_a344_f079, 0xf61f_e4eb_91b6_2020);
        assert_eq!((who(""), who("ci")), frozen, "they stand in segments");
    }
}
