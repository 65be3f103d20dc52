//! A subscriber that keeps accounts of what it hears (rules N1, N2).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::shown;
use tupelo_engine::{Engine, Error, Event, EventKind, SubscribeTerms, Subscription};
use tupelo_tuple::{PatternRef, TemplateRef};

/// A subscription to all kinds of events, and what is there according to it: `put` less `take` and `expire`.
pub(crate) struct Listener {
    subscription: Subscription,
    sequence: u64,
    missed: u64,
    balance: BTreeMap<String, i64>,
}

impl Listener {
    /// Listens; so many events may wait.
    pub(crate) fn new(
        engine: &Arc<Engine>,
        patterns: &[PatternRef<'_>],
        events_max: usize,
    ) -> Result<Self, Error> {
        let terms = SubscribeTerms::new(EventKind::ALL, events_max);
        let subscription = engine.subscribe(&[TemplateRef::new(patterns)], &terms)?;
        Ok(Self { subscription, sequence: 0, missed: 0, balance: BTreeMap::new() })
    }

    /// These were there before it listened.
    pub(crate) fn begin_with(&mut self, tuples: &[String]) {
        for tuple in tuples {
            *self.balance.entry(tuple.clone()).or_default() += 1;
        }
    }

    /// Hears what waits. The numbers have no gaps but those that are said.
    pub(crate) fn listen(&mut self) {
        let keep = |event: Event<'_>| {
            Ok::<_, Error>((event.kind, shown(event.tuple)?, event.sequence, event.missed))
        };
        while let Some((kind, tuple, sequence, missed)) = self.subscription.try_next(keep).unwrap()
        {
            assert_eq!(sequence, self.sequence + 1 + missed, "numbers have no gaps");
            self.sequence = sequence;
            self.missed += missed;
            let change = match kind {
                EventKind::Put => 1,
                EventKind::Take | EventKind::Expire => -1,
                EventKind::Return => 0,
            };
            *self.balance.entry(tuple).or_default() += change;
        }
    }

    /// Whether it has heard that a tuple is there.
    pub(crate) fn knows_of(&self, tuple: &str) -> bool {
        self.balance.get(tuple).is_some_and(|count| *count > 0)
    }

    /// Whether there were events that it was not told of.
    pub(crate) fn has_missed_some(&self) -> bool {
        self.missed > 0
    }

    /// What is there by what was heard, each as often as it is, in the order of the text; `None` if something was missed.
    pub(crate) fn contents(&mut self) -> Option<Vec<String>> {
        self.listen();
        let of_one = |(tuple, count): (&String, &i64)| {
            vec![tuple.clone(); usize::try_from(*count).expect("what is taken was put")]
        };
        (self.missed == 0).then(|| self.balance.iter().flat_map(of_one).collect())
    }
}
