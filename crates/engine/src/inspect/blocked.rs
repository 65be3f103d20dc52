//! Who is blocked, and for what: for people who look why nothing happens.

use tupelo_shm::{ParticipantInfo, View};
use tupelo_tuple::Template;

use crate::base::error::Error;
use crate::base::want::Want;
use crate::store::{Store, partition, registry};
use crate::time::bounded_lock::OneWait;
use crate::waiters::{self, LINKED, OWNER, SCOPE, STATE, WANT, nodes, stored};

/// A caller that waits for a tuple, to take or to read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocked {
    /// Its process; 0 if it is not known any more.
    pub pid: u32,
    /// What it waits for.
    pub template: Template,
}

/// As [`crate::Engine::blocked`] says.
pub(crate) fn blocked(store: &Store) -> Result<Vec<Blocked>, Error> {
    let view = store.memory.view();
    let participants = store.memory.participants();
    let (mut all, mut one_wait) = (Vec::new(), OneWait::default());
    for number in 1..=nodes::used(&view) {
        let node = waiters::node(&view, number);
        if node.load(STATE) != LINKED {
            continue;
        }
        // Only who holds the lock that the wait node is linked under may look into it.
        let scope = node.load(SCOPE);
        // Who was stopped inside is not waited for for long: looking must end.
        let Some(section) = one_wait.enter(store, scope)? else { continue };
        all.extend(blocked_at(store, section.view(), (number, scope), &participants));
        section.finish()?;
    }
    Ok(all)
}

fn blocked_at(
    store: &Store,
    view: &View<'_>,
    (number, scope): (u32, u32),
    participants: &[ParticipantInfo],
) -> Option<Blocked> {
    let node = waiters::node(view, number);
    let wants = [Want::Take, Want::Read].map(Want::number);
    if node.load(STATE) != LINKED || node.load(SCOPE) != scope || !wants.contains(&node.load(WANT))
    {
        return None;
    }
    let kinds = if scope < partition::scope_of(0) {
        None
    } else {
        registry::kinds_of(store, view, partition::shape_of(scope))
    };
    let template = stored::template(view, node, kinds.as_ref())?;
    Some(Blocked { pid: pid_of(participants, node.load(OWNER)), template })
}

/// The process of the participant that a word names, plus 1; 0 if it is not known any more.
pub(crate) fn pid_of(participants: &[ParticipantInfo], owner: u32) -> u32 {
    participants.iter().find(|one| one.number + 1 == owner).map_or(0, |one| one.pid)
}
