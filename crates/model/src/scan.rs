//! Reading through a space while it changes (O6).
//!
//! A scan takes time, so its answer is not one list: the model says which tuples must be in it and which
//! may be. Its order is open.

use crate::space::Stored;
use crate::{Space, Template, Tuple};

/// A scan that has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanTicket(u64);

/// The allowed results of a scan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scanned {
    /// Matches that were in the space from the beginning to the end: in every answer, once.
    pub throughout: Vec<Stored>,
    /// Matches that came or went meanwhile: in an answer at most once.
    pub meanwhile: Vec<Stored>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenScan {
    ticket: ScanTicket,
    template: Template,
    pub(crate) scanned: Scanned,
}

impl Space {
    /// Begins a scan.
    ///
    /// ```
    /// use tupelo_model::{Order, Space, template, tuple};
    ///
    /// let mut space = Space::new();
    /// space.put_all(vec![tuple("a, 1"), tuple("a, 2")])?;
    /// let scan = space.begin_scan(template("a, _"));
    /// space.try_take(&template("a, 1"), Order::Fifo);
    /// space.put(tuple("a, 3"))?;
    /// let scanned = space.end_scan(scan);
    /// assert!(scanned.allows(&[tuple("a, 2")]));
    /// assert!(scanned.allows(&[tuple("a, 3"), tuple("a, 2"), tuple("a, 1")]));
    /// assert!(!scanned.allows(&[tuple("a, 1"), tuple("a, 3")]), "a, 2 was there throughout");
    /// assert!(!scanned.allows(&[tuple("a, 2"), tuple("a, 2")]), "none twice");
    /// # Ok::<(), tupelo_model::Refusal>(())
    /// ```
    pub fn begin_scan(&mut self, template: Template) -> ScanTicket {
        let ticket = ScanTicket(self.next_place());
        let throughout = self.found(&template).cloned().collect();
        let scanned = Scanned { throughout, meanwhile: Vec::new() };
        self.scans.push(OpenScan { ticket, template, scanned });
        ticket
    }

    /// Ends a scan and gives its allowed results.
    ///
    /// # Panics
    ///
    /// If the scan has ended before.
    pub fn end_scan(&mut self, ticket: ScanTicket) -> Scanned {
        let index = self.scans.iter().position(|scan| scan.ticket == ticket);
        self.scans.remove(index.expect("a scan ends once")).scanned
    }

    /// Open scans hear of a tuple that came or went.
    pub(crate) fn update_scans(&mut self, changed: &Stored) {
        for scan in self.scans.iter_mut().filter(|scan| scan.template.matches(&changed.tuple)) {
            let Scanned { throughout, meanwhile } = &mut scan.scanned;
            throughout.retain(|stored| stored.place != changed.place);
            if meanwhile.iter().all(|stored| stored.place != changed.place) {
                meanwhile.push(changed.clone());
            }
        }
    }
}

impl Scanned {
    /// Whether a tuple was in the space throughout, or came or went.
    pub(crate) fn knows(&self, place: u64) -> (bool, bool) {
        let has = |all: &[Stored]| all.iter().any(|stored| stored.place == place);
        (has(&self.throughout), has(&self.meanwhile))
    }

    /// The shortest answer.
    pub fn least(&self) -> Vec<Tuple> {
        self.throughout.iter().map(|stored| stored.tuple.clone()).collect()
    }

    /// Whether a scan may have returned these tuples, in whatever order.
    pub fn allows(&self, answer: &[Tuple]) -> bool {
        let mut required: Vec<&Tuple> =
            self.throughout.iter().map(|stored| &stored.tuple).collect();
        let mut optional: Vec<&Tuple> = self.meanwhile.iter().map(|stored| &stored.tuple).collect();
        let known = answer
            .iter()
            .all(|tuple| strike_out(&mut required, tuple) || strike_out(&mut optional, tuple));
        known && required.is_empty()
    }
}

/// Whether two lists hold the same tuples, each as often.
pub(crate) fn same_multiset(a: &[Tuple], b: &[Tuple]) -> bool {
    let mut rest: Vec<&Tuple> = b.iter().collect();
    a.iter().all(|tuple| strike_out(&mut rest, tuple)) && rest.is_empty()
}

/// Removes one tuple that equals `tuple` from the list; returns whether there was one.
fn strike_out(tuples: &mut Vec<&Tuple>, tuple: &Tuple) -> bool {
    let index = tuples.iter().position(|other| *other == tuple);
    index.map(|index| tuples.swap_remove(index)).is_some()
}
