//! Records that are out of the lists but not gone: back into the lists, or freed (rule T5).

use tupelo_shm::Section;
use tupelo_tuple::{Field, Kind};

use crate::Engine;
use crate::error::Error;
use crate::events::{EventKind, Happening};
use crate::lease::lease_end_ms;
use crate::record::{self, ImageBuffer, Record};
use crate::stripe::{HELD, Stripe};
use crate::take::count_take;
use crate::timers;
use crate::waiters::deliver::Delivery;

impl Engine {
    /// Puts a held record back to its place, or hands it to a waiter that matches it; or frees it, if its lease has
    /// ended meanwhile: nothing may be filled in the section after that. What is heard of it is
    /// said by the caller.
    pub(crate) fn give_back<'m>(
        &self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        (reference, happening): (u32, Happening),
        kinds: &[Kind],
    ) -> Result<Delivery, Error> {
        // It leaves one hand; a waiter's hand counts anew.
        section.add(stripe.page(), HELD, -1);
        let record = record::at(section.view(), reference);
        if timers::is_past(lease_end_ms(section.view(), record)) {
            // It is there no more (rule L1).
            let gone = (reference, EventKind::Expire);
            let told = self.told_of_removal(section, stripe, gone, kinds)?;
            self.free_record_at(section, stripe, record)?;
            return Ok(told);
        }
        self.put_back(section, stripe, (record, happening), kinds)
    }

    /// Puts a record that nobody holds and that is in no list to its place, or hands it to a waiter that matches it.
    pub(crate) fn put_back<'m>(
        &self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        (record, happening): (Record<'m>, Happening),
        kinds: &[Kind],
    ) -> Result<Delivery, Error> {
        let reference = record.reference;
        let mut copy = ImageBuffer::new();
        let fields: Vec<Field<'_>> = copy.copy(section.view(), reference, kinds).fields().collect();
        let delivery = self.deliver(section, stripe, (reference, happening), &fields, kinds)?;
        if !delivery.taken() {
            self.link_back(section, stripe, reference, kinds)?;
            self.arm_lease(section, stripe, record)?;
        }
        Ok(delivery)
    }

    /// Frees a held record: it was delivered (`taken`), or was a copy.
    pub(crate) fn free_held<'m>(
        &self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        reference: u32,
        kinds: &[Kind],
        taken: bool,
    ) -> Result<Delivery, Error> {
        let mut told = Delivery::default();
        if taken {
            told = self.told_of_removal(section, stripe, (reference, EventKind::Take), kinds)?;
            count_take(stripe);
            section.add(stripe.page(), HELD, -1);
        }
        self.free_record(section, stripe, reference)?;
        Ok(told)
    }
}
