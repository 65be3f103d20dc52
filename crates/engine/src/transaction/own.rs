//! What a transaction has put: in its process, where nobody else sees it until it commits (rule X2).

use tupelo_tuple::{Field, TemplateRef, TupleRef};

use crate::find::{Order, beats, chosen};
use crate::put::Incoming;
use crate::targets::TupleCopy;

/// The tuples, oldest first.
#[derive(Default)]
pub(super) struct Own(Vec<TupleCopy>);

impl Own {
    pub(super) fn put(&mut self, incoming: &Incoming<'_>) {
        self.0.push(TupleCopy::of(incoming));
    }

    pub(super) fn all(&self) -> &[TupleCopy] {
        &self.0
    }

    pub(super) fn get(&self, index: usize) -> &TupleCopy {
        &self.0[index]
    }

    /// Takes one out: it was put and taken, and nobody ever hears of it (rules X2, X7).
    pub(super) fn remove(&mut self, index: usize) -> TupleCopy {
        self.0.remove(index)
    }

    /// Which of them match, oldest first.
    pub(super) fn matches(&self, template: &[TemplateRef<'_>]) -> Vec<usize> {
        let is_match = |copy: &TupleCopy| template.iter().any(|one| one.matches(&copy.view()));
        (0..self.0.len()).filter(|index| is_match(&self.0[*index])).collect()
    }

    /// The match that `order` asks for.
    pub(super) fn pick(
        &self,
        template: &[TemplateRef<'_>],
        order: Order,
        random: u64,
    ) -> Option<usize> {
        let matches = self.matches(template);
        let extreme = |field: usize, greatest: bool| {
            let better = |best: usize, one: usize| {
                if beats(&self.0[one].view(), &self.0[best].view(), field, greatest) {
                    one
                } else {
                    best
                }
            };
            matches.iter().copied().reduce(better)
        };
        match order {
            Order::Fifo | Order::Any => matches.first().copied(),
            Order::Lifo => matches.last().copied(),
            Order::Random => chosen(matches.len(), random).map(|index| matches[index]),
            Order::Max(field) => extreme(field, true),
            Order::Min(field) => extreme(field, false),
        }
    }

    /// The fields of each, for [`Own::refs`].
    pub(super) fn fields(&self) -> Vec<Vec<Field<'_>>> {
        self.0.iter().map(|copy| copy.view().fields().collect()).collect()
    }

    /// All of them, in the form that a put takes.
    pub(super) fn refs<'f>(&self, fields: &'f [Vec<Field<'f>>]) -> Vec<TupleRef<'f>> {
        let refs = fields.iter().zip(&self.0);
        refs.map(|(fields, copy)| TupleRef { fields, class: copy.view().class() }).collect()
    }
}

/// Whether an order by a field asks for `own` rather than for `copy`, which is older.
pub(super) fn is_beaten(copy: &TupleCopy, own: &TupleCopy, order: Order) -> bool {
    match order {
        Order::Max(field) => beats(&own.view(), &copy.view(), field, true),
        Order::Min(field) => beats(&own.view(), &copy.view(), field, false),
        _ => false,
    }
}
