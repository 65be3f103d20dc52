//! `put`: storing a tuple (rules O2, B1, C2).

use tupelo_shm::Section;
use tupelo_tuple::{
    Field, TupleRef,
    image::{self, ARITY_MAX, Sizer},
};

use crate::base::error::{Error, Need};
use crate::base::layout::EXTENT_BYTES;
use crate::protocols::lease::Terms;
use crate::recovery::full::Wanted;
use crate::store::blocks::{self, Small};
use crate::store::extension;
use crate::store::flight::Flight;
use crate::store::record::{self, ImageBuffer, Record};
use crate::store::registry::Kinds;
use crate::store::stripe::{self, NEXT_SEQUENCE, SUBSCRIBED, Stripe, WAITING};
use crate::waiters::chain;
use crate::waiters::deliver::Delivery;
use crate::{Engine, time};

/// Largest image: its offsets are 32 bits.
const IMAGE_BYTES_MAX: usize = u32::MAX as usize;

/// A tuple on its way in.
pub(crate) struct Incoming<'f> {
    pub(crate) fields: &'f [Field<'f>],
    pub(crate) kinds: Kinds,
    pub(crate) size: image::Size,
    /// From when to when it is there, if not from now for ever.
    pub(crate) terms: Option<Terms>,
    /// Whether it adds to what the space holds, and is not there for a tuple that goes in the same section.
    pub(crate) takes_room: bool,
}

impl Incoming<'_> {
    /// Whether it is copied outside of the critical section.
    #[inline]
    fn is_long(&self) -> bool {
        self.size.bytes - record::HEADER_BYTES > ImageBuffer::SHORT_BYTES
    }
}

impl Engine {
    /// Stores a tuple. When it returns, every later operation sees the tuple, or a waiter has it.
    ///
    /// # Errors
    ///
    /// [`Error::SpaceFull`], [`Error::TooLarge`] and [`Error::LimitExceeded`]: nothing was stored.
    #[inline]
    pub fn put<'f>(&self, tuple: impl Into<TupleRef<'f>>) -> Result<(), Error> {
        let tuple: TupleRef<'f> = tuple.into();
        let mut sizer = Sizer::new();
        let shape = self.shape_known(tuple, |field| sizer.add(field));
        let size = record::size(sizer, tuple.fields);
        // Where tuples are limited, there is more to be locked than a stripe.
        let small = Small::of(size.bytes).filter(|_| self.tuples_max == 0);
        let (Some(shape), Some(small)) = (shape, small) else {
            return tuple.apart(move |tuple| self.put_any(tuple));
        };
        match self.put_small(tuple, (size, small), shape) {
            // Not `done => done`: that would copy all of it.
            Ok(()) => {
                self.see_to_crowd();
                Ok(())
            }
            Err(error) => tuple.apart(move |tuple| self.put_small_again(tuple, error)),
        }
    }

    /// Puts a small tuple of a shape that is known, once. Always part of its caller, who mostly knows the kinds of the fields:
    /// that is a quarter of the time of a put. What is seldom needed is not, and gets no more than the tuple.
    #[inline(always)]
    fn put_small(
        &self,
        tuple: TupleRef<'_>,
        (size, small): (image::Size, Small),
        shape: u32,
    ) -> Result<(), Error> {
        let (mut section, stripe) = self.enter_stripe(shape)?;
        // Nearly always there is nobody. Subscriptions leave the tuple where it is: they hear of it when it is there.
        let (waiting, subscribed) = (stripe.page().load(WAITING), stripe.page().load(SUBSCRIBED));
        let is_awaited = waiting != subscribed
            && tuple.apart(|tuple| self.may_be_awaited(section.view(), stripe, tuple.fields));
        let is_heard_wide = !is_awaited && chain::concerns_wide(&section, stripe);
        if is_heard_wide {
            section = self.enter_wide_on_time(section)?;
        }
        if is_awaited || is_heard_wide && !chain::only_subscribed(section.view()) {
            return tuple.apart(move |tuple| self.put_inside(section, tuple, shape));
        }
        let (reference, taken) = blocks::allocate_small(&mut section, &self.layout, stripe, small)?;
        let record = record::at(section.view(), reference);
        record::fill(record.header, shape, size);
        record::write_image(section.view(), record, tuple.fields, size);
        number(stripe, record);
        self.link_youngest_with(&mut section, stripe, (record, tuple.fields), [taken])?;
        // If others wait here, too, none of those who are filed has its tag.
        let is_heard = waiting != 0 && waiting == subscribed;
        if is_heard || is_heard_wide {
            let put = (stripe, reference);
            return tuple.apart(move |tuple| self.finish_heard(section, put, tuple));
        }
        Ok(section.finish()?)
    }

    /// Puts a small tuple in a section that has its stripe, whoever waits for it.
    #[inline(never)]
    fn put_inside<'m>(
        &'m self,
        mut section: Section<'m>,
        tuple: TupleRef<'_>,
        shape: u32,
    ) -> Result<(), Error> {
        self.require_time_for_wide(&section, Stripe::of_shape(section.view(), shape))?;
        let incoming = self.incoming(tuple)?;
        let (delivery, _) = self.store(&mut section, &incoming, shape)?;
        section.finish()?;
        delivery.wake(self);
        Ok(())
    }

    /// Puts a tuple whose first attempt ended with `error`, if it was for something that can be had. Apart, so that
    /// that one is no loop, before which the compiler would put what only errors need.
    #[cold]
    #[inline(never)]
    fn put_small_again(&self, tuple: TupleRef<'_>, error: Error) -> Result<(), Error> {
        if self.ends_with(&error) { Err(error) } else { self.put_any(tuple) }
    }

    /// Whether a put whose first attempt ended with `error` is over: it was for nothing that can be had.
    fn ends_with(&self, error: &Error) -> bool {
        match error {
            Error::Need(_) => false,
            Error::SpaceFull(_) => !self.drops_oldest(),
            _ => true,
        }
    }

    /// Puts any tuple, until it has all that it needs.
    #[inline(never)]
    fn put_any(&self, tuple: TupleRef<'_>) -> Result<(), Error> {
        let incoming = self.incoming(tuple)?;
        let shape = self.shape(&incoming.kinds)?;
        self.put_incoming(&incoming, shape).map(drop)
    }

    /// Stores a tuple that was looked at. Returns where it is.
    #[inline(always)]
    pub(crate) fn put_at(&self, incoming: &Incoming<'_>, shape: u32) -> Result<u32, Error> {
        if incoming.is_long() {
            return self.put_incoming(incoming, shape);
        }
        match self.put_once(incoming, shape) {
            // Not `done => done`: that would copy all of it.
            Ok(reference) => Ok(reference),
            Err(error) => self.put_again(incoming, shape, error),
        }
    }

    /// As [`Engine::put_at`], until it has all that it needs.
    pub(crate) fn put_incoming(&self, incoming: &Incoming<'_>, shape: u32) -> Result<u32, Error> {
        let wanted = Wanted { shapes: &[shape], leaving: 0, largest_bytes: incoming.size.bytes };
        self.making_room(wanted, || {
            if incoming.is_long() {
                return self.put_long(incoming, shape);
            }
            self.retry(|| self.put_once(incoming, shape))
        })
    }

    #[cold]
    #[inline(never)]
    fn put_again(&self, incoming: &Incoming<'_>, shape: u32, error: Error) -> Result<u32, Error> {
        if self.ends_with(&error) { Err(error) } else { self.put_incoming(incoming, shape) }
    }

    /// Checks a tuple against the limits of the space.
    #[inline(always)]
    pub(crate) fn incoming<'f>(&self, tuple: TupleRef<'f>) -> Result<Incoming<'f>, Error> {
        let TupleRef { fields, class } = tuple;
        if fields.len() > ARITY_MAX {
            return Err(too_many_fields());
        }
        let (mut kinds, mut sizer) = (Kinds::new(), Sizer::new());
        kinds.read(fields, |field| sizer.add(field));
        kinds.set_class(class);
        let size = record::size(sizer, fields);
        // Every arena has room for what fits into an extent.
        if size.bytes > EXTENT_BYTES {
            self.require_room_for(size.bytes)?;
        }
        Ok(Incoming { fields, kinds, size, terms: None, takes_room: true })
    }

    #[cold]
    fn require_room_for(&self, bytes: usize) -> Result<(), Error> {
        let max_bytes = (self.layout.extents_max as usize * EXTENT_BYTES).min(IMAGE_BYTES_MAX);
        if bytes <= max_bytes {
            return Ok(());
        }
        Err(Error::TooLarge { bytes: bytes as u64, max_bytes: max_bytes as u64 })
    }

    #[inline(always)]
    fn put_once(&self, incoming: &Incoming<'_>, shape: u32) -> Result<u32, Error> {
        let (delivery, reference) = match &incoming.terms {
            None => {
                let (mut section, places) = self.enter_to_put(stripe::scope_of(shape))?;
                self.require_time_for_wide(&section, Stripe::of_shape(section.view(), shape))?;
                self.require_places(places, 1)?;
                let stored = self.store(&mut section, incoming, shape)?;
                section.finish()?;
                stored
            }
            Some(terms) => self.put_once_on_terms((incoming, terms), shape)?,
        };
        delivery.wake(self);
        Ok(reference)
    }

    /// As [`Engine::put_once`], with one look at the clock, which says when the terms end.
    #[inline(always)]
    fn put_once_on_terms<'m>(
        &'m self,
        (incoming, terms): (&Incoming<'_>, &Terms),
        shape: u32,
    ) -> Result<(Delivery, u32), Error> {
        let (mut section, places): (Section<'m>, _) = self.begin_put(stripe::scope_of(shape))?;
        let stripe = Stripe::of_shape(section.view(), shape);
        let (now_ms, due_ms) = terms.now_and_first();
        if time::is_behind_at(stripe, now_ms) {
            return Err(Need::Time.into());
        }
        self.require_time_for_wide(&section, stripe)?;
        self.require_places(places, 1)?;
        let stored = self.store_on_terms(&mut section, stripe, (incoming, terms, due_ms), shape)?;
        section.finish()?;
        Ok(stored)
    }

    /// Stores a tuple in a section that holds its stripe, and has a place for it. Returns where, too.
    #[inline(always)]
    pub(crate) fn store<'m>(
        &'m self,
        section: &mut Section<'m>,
        incoming: &Incoming<'_>,
        shape: u32,
    ) -> Result<(Delivery, u32), Error> {
        let stripe = Stripe::of_shape(section.view(), shape);
        if let Some(terms) = &incoming.terms {
            let (_, due_ms) = terms.now_and_first();
            return self.store_on_terms(section, stripe, (incoming, terms, due_ms), shape);
        }
        let record = self.fill(section, stripe, incoming.size, shape)?;
        record::write_image(section.view(), record, incoming.fields, incoming.size);
        Ok((self.publish_at_once(section, stripe, record, incoming)?, record.reference))
    }

    /// As [`Engine::store`], for a tuple that is put on terms, the first of which ends at `due_ms`.
    #[inline(never)]
    fn store_on_terms<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        (incoming, terms, due_ms): (&Incoming<'_>, &Terms, u64),
        shape: u32,
    ) -> Result<(Delivery, u32), Error> {
        let record = if incoming.is_long() {
            self.fill(section, stripe, incoming.size, shape)?
        } else {
            self.fill_extended(section, stripe, incoming, shape)?
        };
        record::write_image(section.view(), record, incoming.fields, incoming.size);
        let on_terms = (incoming, terms, due_ms);
        Ok((self.publish_on_terms(section, stripe, record, on_terms)?, record.reference))
    }

    /// Allocates a record and fills all but its image.
    #[inline(always)]
    fn fill<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        size: image::Size,
        shape: u32,
    ) -> Result<Record<'m>, Error> {
        let reference = blocks::allocate(section, &self.layout, stripe, size.bytes)?;
        let record = record::at(section.view(), reference);
        record::fill(record.header, shape, size);
        Ok(record)
    }

    /// As [`Engine::fill`], with the extension in the same block.
    #[inline]
    fn fill_extended<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        incoming: &Incoming<'_>,
        shape: u32,
    ) -> Result<Record<'m>, Error> {
        let bytes = incoming.size.bytes;
        let both_bytes = extension::bytes_with(bytes);
        let reference = blocks::allocate(section, &self.layout, stripe, both_bytes)?;
        let record = record::at(section.view(), reference);
        record::fill(record.header, shape, incoming.size);
        extension::begin_inside(section.view(), record, bytes);
        Ok(record)
    }

    /// Gives a filled record its place in the order, and hands it to a waiter or makes it findable.
    fn publish<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        record: Record<'m>,
        incoming: &Incoming<'_>,
    ) -> Result<Delivery, Error> {
        match &incoming.terms {
            None => self.publish_at_once(section, stripe, record, incoming),
            Some(terms) => {
                let (_, due_ms) = terms.now_and_first();
                self.publish_on_terms(section, stripe, record, (incoming, terms, due_ms))
            }
        }
    }

    /// As [`Engine::publish`], for a tuple that is put on no terms.
    #[inline(always)]
    fn publish_at_once<'m>(
        &'m self,
        section: &mut Section<'m>,
        stripe: Stripe<'m>,
        record: Record<'m>,
        incoming: &Incoming<'_>,
    ) -> Result<Delivery, Error> {
        number(stripe, record);
        let delivery = self.deliver_new(section, stripe, record.reference, incoming)?;
        if !delivery.taken() {
            self.link_youngest(section, stripe, record, incoming.fields)?;
        }
        Ok(delivery)
    }

    /// Stores a large tuple: its bytes are copied between two sections, so that nobody waits for them.
    #[cold]
    #[inline(never)]
    fn put_long(&self, incoming: &Incoming<'_>, shape: u32) -> Result<u32, Error> {
        let scope = stripe::scope_of(shape);
        let (reference, flight) = self.retry(|| {
            let (mut section, places) = self.begin_put(scope)?;
            let stripe = Stripe::of_shape(section.view(), shape);
            self.require_places(places, 1)?;
            let Record { reference, header } =
                self.fill(&mut section, stripe, incoming.size, shape)?;
            section.set(header, record::STATE, record::RESERVED);
            let flight = Flight::begin(&mut section, reference)?;
            section.commit()?;
            Ok((reference, flight))
        })?;
        // Reserved for this thread: if it dies here, the sweeper frees the block.
        record::write_long_image(&self.memory.view(), reference, incoming.fields, incoming.size);
        let published = self.retry(|| {
            let (mut section, places) = self.enter_to_put(scope)?;
            let stripe = Stripe::of_shape(section.view(), shape);
            self.require_time_for_wide(&section, stripe)?;
            // Others may have put while the bytes were copied: what is reserved is no tuple yet.
            self.require_places(places, 1)?;
            let record = record::at(section.view(), reference);
            let delivery = self.publish(&mut section, stripe, record, incoming)?;
            flight.end(&mut section);
            section.commit()?;
            Ok(delivery)
        });
        match published {
            Ok(delivery) => {
                delivery.wake(self);
                Ok(reference)
            }
            Err(error) => {
                let freed = self.retry(|| {
                    let mut section = Section::enter(&self.memory, scope)?;
                    let stripe = Stripe::of_shape(section.view(), shape);
                    self.free_record(&mut section, stripe, reference)?;
                    flight.end(&mut section);
                    section.commit()?;
                    Ok(())
                });
                freed.inspect_err(|_| self.abandon_flight(&flight))?;
                Err(error)
            }
        }
    }
}

/// Gives a record its place in the order of puts.
#[inline(always)]
pub(crate) fn number<'m>(stripe: Stripe<'m>, record: Record<'m>) {
    let sequence = stripe.page().load64(NEXT_SEQUENCE);
    // Not undone by itself (`step::count_anew`): a number that was skipped does no harm.
    stripe.page().init64(NEXT_SEQUENCE, sequence + 1);
    record.header.init64(record::SEQUENCE, sequence);
}

/// The last put of a section is not to be: it ends or begins anew, and is counted once.
#[cold]
#[inline(never)]
pub(crate) fn give_number_back(stripe: Stripe<'_>, record: Record<'_>) {
    stripe.page().init64(NEXT_SEQUENCE, record.header.load64(record::SEQUENCE));
}

#[cold]
fn too_many_fields() -> Error {
    Error::LimitExceeded { what: "fields in a tuple", limit: ARITY_MAX }
}
