//! Every answer that a space may give to an operation, with the state of the space afterwards.
//!
//! The methods of [`Space`] do one of the things that the rules allow. To watch an engine you need all of them:
//! [`State::outcomes`] lists each allowed answer with the state that goes with it. Where the rules leave no choice, the
//! list has one entry.

mod held;
mod transactions;

use std::collections::{BTreeMap, VecDeque};

use crate::operation::{Answer, Operation, Place};
use crate::order::shape;
use crate::scan::ScanTicket;
use crate::transactions::View;
use crate::waiting::{Ticket, Want};
use crate::{Event, LeaseTicket, Order, Refusal, Space, SubscriptionTicket, Template, Tuple};

pub(crate) use held::Handle;
pub(crate) use transactions::Transaction;

/// The code of a blocking call whose time is over.
const TIMEOUT: &str = "TUP-003";

/// Two spaces, and the calls and scans under way in them by their labels; leases, claims and transactions, too.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// [`Place::Main`].
    pub main: Space,
    /// [`Place::Other`].
    pub other: Space,
    pub(crate) calls: BTreeMap<String, (Place, Ticket)>,
    pub(crate) scans: BTreeMap<String, (Place, ScanTicket)>,
    pub(crate) leases: BTreeMap<String, (Place, LeaseTicket)>,
    pub(crate) subscriptions: BTreeMap<String, (Place, SubscriptionTicket)>,
    /// Also ended ones: their holders may not know (K3).
    pub(crate) claims: BTreeMap<String, Handle>,
    /// Also ended ones.
    pub(crate) transactions: BTreeMap<String, Transaction>,
    /// How many transactions there have been.
    begun: u64,
}

/// What may come of an operation: an answer, and the state after it.
pub type Outcome = (Answer, State);

impl State {
    /// Two spaces to begin with.
    pub fn new(main: Space, other: Space) -> Self {
        Self { main, other, ..Self::default() }
    }

    /// Every allowed outcome of an operation in the space `at`. None at all means that the operation makes
    /// no sense now, such as the return of a call that was not served.
    pub fn outcomes(&self, at: Place, operation: &Operation) -> Vec<Outcome> {
        let mut state = self.clone();
        state.compare_ages(at, operation);
        state.outcomes_by_age(at, operation)
    }

    /// From an operation on that may get tuples of several shapes by their age, ages compare across shapes.
    fn compare_ages(&mut self, at: Place, operation: &Operation) {
        use Operation as O;
        let (template, order) = match operation {
            O::Inside { operation, .. } => return self.compare_ages(at, operation),
            O::TryTake { template, order }
            | O::TryRead { template, order }
            | O::TakeNoWait { template, order }
            | O::ReadNoWait { template, order }
            | O::Claim { template, order, .. } => (template, *order),
            O::TrySwap { template, .. }
            | O::Start { template, .. }
            | O::Search { template, .. } => (template, Order::Fifo),
            _ => return,
        };
        if !matches!(order, Order::Fifo | Order::Lifo) {
            return;
        }
        let places = [at, at.opposite()];
        let reached =
            if matches!(operation, O::Search { .. }) { &places[..] } else { &places[..1] };
        for at in reached {
            let space = self.space(*at);
            let mut shapes = space.found(template).map(|stored| shape(&stored.tuple));
            let first = shapes.next();
            if shapes.any(|other| Some(&other) != first.as_ref()) {
                drop(shapes);
                self.space_mut(*at).compare_ages();
            }
        }
    }

    fn outcomes_by_age(&self, at: Place, operation: &Operation) -> Vec<Outcome> {
        match operation {
            Operation::TryTake { template, order } => {
                let choices = self.choices(at, template, *order, View::TAKE);
                self.per_choice(at, choices, Answer::Nothing, remove)
            }
            Operation::TryRead { template, order } => {
                let choices = self.choices(at, template, *order, View::READ);
                self.per_choice(at, choices, Answer::Nothing, copy)
            }
            Operation::TakeNoWait { template, order } => {
                let choices = self.choices(at, template, *order, View::TAKE);
                self.per_choice(at, choices, timeout(), remove)
            }
            Operation::ReadNoWait { template, order } => {
                let choices = self.choices(at, template, *order, View::READ);
                self.per_choice(at, choices, timeout(), copy)
            }
            Operation::Search { template, want } => self.finds(at, template, *want),
            Operation::TrySwap { template, to } => {
                let choices = self.choices(at, template, Order::Fifo, View::TAKE);
                self.per_choice(at, choices, Answer::Nothing, |space, place| {
                    answer(space.swap_at(place, to.clone()), Answer::Tuple)
                })
            }
            Operation::ReadAll { template, limit } => {
                let selection = (limit.unwrap_or(usize::MAX), View::READ);
                self.per_selection(at, template, selection, copy)
            }
            Operation::TakeAll { template, limit } => {
                let selection = (limit.unwrap_or(usize::MAX), View::TAKE);
                self.per_selection(at, template, selection, remove)
            }
            Operation::TryTakeMany { template, at_least, at_most } => {
                if self.space(at).seen(template, View::TAKE).count() < *at_least {
                    return vec![(Answer::Nothing, self.clone())];
                }
                self.per_selection(at, template, (*at_most, View::TAKE), remove)
            }
            Operation::MoveTo { template } => self.transfers(at, template, true),
            Operation::CopyTo { template } => self.transfers(at, template, false),
            Operation::Start { label, want, template } => self.starts(at, label, *want, template),
            Operation::Claim { label, template, order, terms } => {
                let places = self.choices(at, template, *order, View::TAKE);
                self.claims(at, label, places, *terms)
            }
            Operation::Requeue { template } => self.requeues(at, template),
            Operation::Pass { ms } => self.passes(*ms),
            Operation::Begin { label, ttl_ms } => vec![self.begins(label, *ttl_ms)],
            Operation::Inside { label, operation } => self.inside(at, label, operation),
            Operation::Commit { label } => self.commits(label),
            Operation::RollBack { label } => self.rolls_back(label),
            _ => self
                .with_room(at, operation)
                .iter()
                .filter_map(|state| state.outcome(at, operation))
                .collect(),
        }
    }

    /// This state, or its possible states when room is made for the puts of the operation.
    fn with_room(&self, at: Place, operation: &Operation) -> Vec<Self> {
        let (at, tuples, leaving): (_, Vec<&Tuple>, _) = match operation {
            Operation::Put { tuple } | Operation::PutLeased { tuple, .. } => (at, vec![tuple], 0),
            Operation::PutIfAbsent { tuple, unless, .. } if !self.space(at).present(unless) => {
                (at, vec![tuple], 0)
            }
            Operation::PutAll { tuples } | Operation::PutAllLeased { tuples, .. } => {
                (at, tuples.iter().collect(), 0)
            }
            Operation::Done { label } => match self.claims.get(label) {
                Some(handle) if self.holds(handle) => (handle.place(), handle.puts().collect(), 1),
                _ => return vec![self.clone()],
            },
            _ => return vec![self.clone()],
        };
        let outcome = |space: Space| {
            let mut after = self.clone();
            *after.space_mut(at) = space;
            after
        };
        self.space(at).with_room(&tuples, leaving).into_iter().map(outcome).collect()
    }

    /// One outcome per match in the first of both spaces that has one.
    fn finds(&self, first: Place, template: &Template, want: Want) -> Vec<Outcome> {
        let view = View::of_all(want);
        let choices = |at| self.choices(at, template, Order::Fifo, view);
        let here = choices(first);
        let (at, choices) = if here.is_empty() {
            (first.opposite(), choices(first.opposite()))
        } else {
            (first, here)
        };
        let change = if want == Want::Take { remove } else { copy };
        self.per_choice(at, choices, timeout(), change)
    }

    /// The events of a subscription so far, if it has not been asked; as [`Space::events_so_far`].
    pub(crate) fn events_so_far(&self, label: &str) -> Option<Vec<Event>> {
        let (at, ticket) = *self.subscriptions.get(label)?;
        self.space(at).events_so_far(ticket)
    }

    /// The outcome of an operation that leaves no choice.
    fn outcome(&self, at: Place, operation: &Operation) -> Option<Outcome> {
        self.only_outcome(at, operation).or_else(|| self.outcome_of_held(at, operation))
    }

    /// The same, of an operation that is about no lease and no claim.
    fn only_outcome(&self, at: Place, operation: &Operation) -> Option<Outcome> {
        let mut after = self.clone();
        let space = after.space_mut(at);
        let answer = match operation {
            Operation::Put { tuple } => answer(space.put(tuple.clone()), |()| Answer::Done),
            Operation::PutAll { tuples } => {
                answer(space.put_all(tuples.clone()), |count| Answer::Count(count as u64))
            }
            Operation::PutIfAbsent { tuple, unless, terms } => {
                let put = space.put_if_absent_leased(tuple.clone(), unless, *terms);
                answer(put, Answer::Flag)
            }
            Operation::Count { template } => Answer::Count(space.count(template)),
            Operation::Present { template } => Answer::Flag(space.present(template)),
            Operation::BeginScan { label, template } => {
                let ticket = space.begin_scan(template.clone());
                after.scans.insert(label.clone(), (at, ticket));
                Answer::Done
            }
            Operation::ContinueScan { .. } => Answer::Done,
            Operation::EndScan { label } => {
                let (at, ticket) = after.scans.remove(label)?;
                Answer::Scanned(after.space_mut(at).end_scan(ticket))
            }
            Operation::Served { label } => {
                let (at, ticket) = *after.calls.get(label)?;
                Answer::Flag(after.space_mut(at).served(ticket))
            }
            Operation::Finish { label } => {
                let (at, ticket) = after.calls.remove(label)?;
                let space = after.space_mut(at);
                Answer::Tuple(space.served(ticket).then(|| space.finish(ticket))?)
            }
            Operation::Cancel { label } => {
                let (at, ticket) = after.calls.remove(label)?;
                after.space_mut(at).cancel(ticket);
                Answer::Done
            }
            Operation::Subscribe { label, template, on, buffer } => {
                let ticket = space.subscribe(template.clone(), on, *buffer);
                after.subscriptions.insert(label.clone(), (at, ticket));
                Answer::Done
            }
            Operation::Events { label } => {
                let (at, ticket) = *after.subscriptions.get(label)?;
                Answer::Events(after.space_mut(at).events(ticket))
            }
            Operation::Unsubscribe { label } => {
                let (at, ticket) = after.subscriptions.remove(label)?;
                after.space_mut(at).unsubscribe(ticket);
                Answer::Done
            }
            _ => return None,
        };
        Some((answer, after))
    }

    /// One outcome per match that the operation may get, or `otherwise` if there is none.
    fn per_choice(
        &self,
        at: Place,
        places: Vec<u64>,
        otherwise: Answer,
        change: impl Fn(&mut Space, u64) -> Answer,
    ) -> Vec<Outcome> {
        if places.is_empty() {
            return vec![(otherwise, self.clone())];
        }
        places.into_iter().map(|place| self.after(at, |space| change(space, place))).collect()
    }

    /// One outcome per way to choose the oldest `limit` matches: how many there are of each shape is open.
    fn per_selection(
        &self,
        at: Place,
        template: &Template,
        (limit, view): (usize, View),
        change: impl Fn(&mut Space, u64) -> Answer,
    ) -> Vec<Outcome> {
        let shapes = self.matches_by_shape(at, template, view);
        let outcome = |places: Vec<u64>| {
            self.after(at, |space| {
                let answers = places.into_iter().map(|place| change(space, place));
                Answer::Tuples(answers.filter_map(Answer::into_tuple).collect())
            })
        };
        selections(&shapes, limit).into_iter().map(outcome).collect()
    }

    /// One outcome per match that serves the call at once; else it waits.
    fn starts(&self, at: Place, label: &str, want: Want, template: &Template) -> Vec<Outcome> {
        let mut places: Vec<Option<u64>> = self
            .choices(at, template, Order::Fifo, View::of_all(want))
            .into_iter()
            .map(Some)
            .collect();
        if places.is_empty() {
            places.push(None);
        }
        let outcome = |place| {
            let mut after = self.clone();
            let ticket = after.space_mut(at).wait_for(want, template.clone(), place);
            let answer = answer(ticket, |ticket| {
                after.calls.insert(label.to_owned(), (at, ticket));
                Answer::Done
            });
            (answer, after)
        };
        places.into_iter().map(outcome).collect()
    }

    /// One outcome per way in which the tuples of several shapes may reach blocked calls in the other space.
    fn transfers(&self, from: Place, template: &Template, moves: bool) -> Vec<Outcome> {
        let view = if moves { View::TAKE } else { View::READ };
        let shapes = self.matches_by_shape(from, template, view);
        let source = self.space(from);
        let queue = |places: &Vec<u64>| {
            places.iter().map(|place| source.at(*place).tuple.clone()).collect::<VecDeque<_>>()
        };
        let queues: Vec<VecDeque<Tuple>> = shapes.iter().map(queue).collect();
        let tuples: Vec<&Tuple> = queues.iter().flatten().collect();
        let target = self.space(from.opposite());
        if let Err(refusal) = target.admit(&tuples, 0) {
            return vec![(Answer::Refused(refusal.code().to_owned()), self.clone())];
        }
        let count = tuples.len() as u64;
        let outcome = |arrived: Space| {
            let mut after = self.clone();
            *after.space_mut(from.opposite()) = Space { together: None, ..arrived };
            for place in shapes.iter().flatten().filter(|_| moves) {
                after.space_mut(from).take_at(*place);
            }
            (Answer::Count(count), after)
        };
        let mut target = target.clone();
        target.together = Some(target.arrivals + 1);
        target.after_arrivals(queues).into_iter().map(outcome).collect()
    }

    fn choices(&self, at: Place, template: &Template, order: Order, view: View) -> Vec<u64> {
        let choices = self.space(at).choices(template, order, view);
        choices.into_iter().map(|choice| choice.place).collect()
    }

    fn after(&self, at: Place, change: impl FnOnce(&mut Space) -> Answer) -> Outcome {
        let mut after = self.clone();
        let answer = change(after.space_mut(at));
        (answer, after)
    }

    /// The places of the matches, oldest first, one list per shape.
    fn matches_by_shape(&self, at: Place, template: &Template, view: View) -> Vec<Vec<u64>> {
        let mut shapes = BTreeMap::<_, Vec<u64>>::new();
        for stored in self.space(at).seen(template, view) {
            shapes.entry(shape(&stored.tuple)).or_default().push(stored.place);
        }
        shapes.into_values().collect()
    }

    pub(crate) fn space(&self, at: Place) -> &Space {
        match at {
            Place::Main => &self.main,
            Place::Other => &self.other,
        }
    }

    fn space_mut(&mut self, at: Place) -> &mut Space {
        match at {
            Place::Main => &mut self.main,
            Place::Other => &mut self.other,
        }
    }
}

fn remove(space: &mut Space, place: u64) -> Answer {
    Answer::Tuple(space.take_at(place).tuple)
}

fn copy(space: &mut Space, place: u64) -> Answer {
    Answer::Tuple(space.at(place).tuple.clone())
}

fn timeout() -> Answer {
    Answer::Refused(TIMEOUT.to_owned())
}

fn answer<T>(result: Result<T, Refusal>, answer: impl FnOnce(T) -> Answer) -> Answer {
    result.map_or_else(|refusal| Answer::Refused(refusal.code().to_owned()), answer)
}

/// The ways to choose `limit` places, the first of each list first; all of them, if there are no more.
fn selections(shapes: &[Vec<u64>], limit: usize) -> Vec<Vec<u64>> {
    let Some((shape, others)) = shapes.split_first() else { return vec![Vec::new()] };
    let elsewhere: usize = others.iter().map(Vec::len).sum();
    let least = limit.saturating_sub(elsewhere).min(shape.len());
    let most = limit.min(shape.len());
    let with = |count: usize| {
        selections(others, limit - count)
            .into_iter()
            .map(move |chosen| [&shape[..count], &chosen].concat())
    };
    (least..=most).flat_map(with).collect()
}

impl Space {
    /// The possible states of this space after the tuples of several queues have arrived, each queue in its order. How
    /// the queues interleave matters only while a call waits for the heads of them all.
    fn after_arrivals(&self, mut queues: Vec<VecDeque<Tuple>>) -> Vec<Self> {
        let mut space = self.clone();
        while let Some(tuple) = queues
            .iter_mut()
            .find(|queue| queue.front().is_some_and(|tuple| !space.awaits(tuple)))
            .and_then(VecDeque::pop_front)
        {
            space.add(tuple);
        }
        queues.retain(|queue| !queue.is_empty());
        if queues.is_empty() {
            return vec![space];
        }
        let first_from = |index: usize| {
            let (mut space, mut queues) = (space.clone(), queues.clone());
            let tuple = queues[index].pop_front().expect("empty queues are left out");
            space.add(tuple);
            space.after_arrivals(queues)
        };
        (0..queues.len()).flat_map(first_from).collect()
    }

    /// Whether a call waits for an arriving tuple.
    fn awaits(&self, tuple: &Tuple) -> bool {
        let awaits = |want| self.waits.iter().any(|wait| wait.waits_for(want, tuple));
        awaits(Want::Take) || awaits(Want::Read)
    }
}
