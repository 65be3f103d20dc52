//! `put`: storing a tuple (rules O2, B1, C2).

use tupelo_shm::Section;
use tupelo_tuple::{Field, image, image::ARITY_MAX};

use crate::Engine;
use crate::blocks;
use crate::engine;
use crate::error::Error;
use crate::flight::Flight;
use crate::layout::{EXTENT_BYTES, head};
use crate::record::{self, ImageBuffer};
use crate::registry::Kinds;
use crate::stripe::{self, NEXT_SEQUENCE, Stripe};
use crate::waiters::deliver::Delivery;

/// Largest image: its offsets are 32 bits.
const IMAGE_BYTES_MAX: usize = u32::MAX as usize;

/// A tuple on its way in.
pub(crate) struct Incoming<'f> {
    pub(crate) fields: &'f [Field<'f>],
    pub(crate) kinds: Kinds,
    pub(crate) size: image::Size,
}

impl Engine {
    /// Stores a tuple. When it returns, every later operation sees the tuple, or a waiter has it.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceFull`], [`Error::TooLarge`] and [`Error::LimitExceeded`]: nothing was stored.
    #[inline]
    pub fn put(&self, fields: &[Field<'_>]) -> Result<(), Error> {
        let incoming = self.incoming(fields)?;
        let shape = self.shape(&incoming.kinds)?;
        if incoming.size.bytes - record::HEADER_BYTES > ImageBuffer::SHORT_BYTES {
            return self.put_long(&incoming, shape);
        }
        loop {
            match self.put_once(&incoming, shape) {
                Err(Error::Need(need)) => self.provide(need)?,
                done => return done,
            }
        }
    }

    /// Checks a tuple against the limits of the space.
    #[inline]
    pub(crate) fn incoming<'f>(&self, fields: &'f [Field<'f>]) -> Result<Incoming<'f>, Error> {
        if fields.len() > ARITY_MAX {
            return Err(Error::LimitExceeded { what: "fields in a tuple", limit: ARITY_MAX });
        }
        let size = record::size(fields);
        let max_bytes = (self.layout.extents_max as usize * EXTENT_BYTES).min(IMAGE_BYTES_MAX);
        if size.bytes > max_bytes {
            return Err(Error::TooLarge { bytes: size.bytes as u64, max_bytes: max_bytes as u64 });
        }
        Ok(Incoming { fields, kinds: Kinds::of_fields(fields), size })
    }

    #[inline]
    fn put_once(&self, incoming: &Incoming<'_>, shape: u32) -> Result<(), Error> {
        let delivery = {
            let mut section = Section::enter(&self.memory, stripe::scope_of(shape))?;
            let delivery = self.store(&mut section, incoming, shape)?;
            section.commit()?;
            delivery
        };
        delivery.wake(self);
        Ok(())
    }

    /// Stores a tuple in a section that holds its stripe.
    #[inline]
    pub(crate) fn store<'m>(
        &'m self,
        section: &mut Section<'m>,
        incoming: &Incoming<'_>,
        shape: u32,
    ) -> Result<Delivery, Error> {
        let stripe = Stripe::of_shape(section.view(), shape);
        if self.tuples_max != 0 {
            self.respect_limit(section)?;
        }
        let reference = self.fill(section, stripe, incoming, shape)?;
        record::write_image(section.view(), reference, incoming.fields, incoming.size);
        self.publish(section, stripe, reference, incoming)
    }

    /// Refuses one more tuple in a space that has its maximum. Puts queue up here, so that no two of them
    /// see the same last place.
    #[cold]
    fn respect_limit<'m>(&'m self, section: &mut Section<'m>) -> Result<(), Error> {
        if !section.holds(head::QUOTA_SCOPE) {
            let before = section.focused();
            section.enter_also(head::QUOTA_SCOPE)?;
            section.focus(before);
        }
        if engine::tuples(section.view()) >= self.tuples_max {
            Err(self.full(None))
        } else {
            Ok(())
        }
    }

    /// Allocates a record and fills all but its image.
    #[inline]
    fn fill<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        incoming: &Incoming<'_>,
        shape: u32,
    ) -> Result<u32, Error> {
        let reference = blocks::allocate(section, &self.layout, stripe, incoming.size.bytes)?;
        record::fill(section.view(), reference, shape, incoming.size, 0);
        Ok(reference)
    }

    /// Gives a filled record its place in the order, and hands it to a waiter or makes it findable.
    #[inline]
    fn publish<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        reference: u32,
        incoming: &Incoming<'_>,
    ) -> Result<Delivery, Error> {
        let sequence = stripe.page().load64(NEXT_SEQUENCE);
        // Not undone: a number that was skipped does no harm.
        stripe.page().init64(NEXT_SEQUENCE, sequence + 1);
        record::header(section.view(), reference).init64(record::SEQUENCE, sequence);
        let delivery =
            self.deliver(section, stripe, reference, (incoming.fields, incoming.kinds.as_slice()))?;
        if !delivery.taken {
            self.link_youngest(section, stripe, reference, incoming.fields)?;
        }
        Ok(delivery)
    }

    /// Stores a large tuple: its bytes are copied between two sections, so that nobody waits for them.
    #[cold]
    #[inline(never)]
    fn put_long(&self, incoming: &Incoming<'_>, shape: u32) -> Result<(), Error> {
        let scope = stripe::scope_of(shape);
        let (reference, flight) = self.retry(|| {
            let mut section = Section::enter(&self.memory, scope)?;
            let stripe = Stripe::of_shape(section.view(), shape);
            if self.tuples_max != 0 {
                self.respect_limit(&mut section)?;
            }
            let reference = self.fill(&mut section, stripe, incoming, shape)?;
            let header = record::header(section.view(), reference);
            section.set(header, record::STATE, record::RESERVED);
            let flight = Flight::begin(&mut section, reference)?;
            section.commit()?;
            Ok((reference, flight))
        })?;
        // Reserved for this thread: if it dies here, the sweeper frees the block.
        record::write_image(&self.memory.view(), reference, incoming.fields, incoming.size);
        let published = self.retry(|| {
            let mut section = Section::enter(&self.memory, scope)?;
            let stripe = Stripe::of_shape(section.view(), shape);
            let delivery = self.publish(&mut section, stripe, reference, incoming)?;
            flight.end(&mut section);
            section.commit()?;
            Ok(delivery)
        });
        match published {
            Ok(delivery) => {
                delivery.wake(self);
                Ok(())
            }
            Err(error) => {
                let mut section = Section::enter(&self.memory, scope)?;
                let stripe = Stripe::of_shape(section.view(), shape);
                self.free_record(&mut section, stripe, reference)?;
                flight.end(&mut section);
                section.commit()?;
                Err(error)
            }
        }
    }
}
