//! The arguments of a call beside its tuples: words that every engine, every protocol and every language shares.

use std::fmt;

use crate::image::ARITY_MAX;
use crate::{Class, Form, TemplateRef, ValueError};

/// Which of several matches is taken (rule T2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// The oldest.
    #[default]
    Fifo,
    /// The youngest.
    Lifo,
    /// Any one, each with the same chance.
    Random,
    /// Whichever costs least to find.
    Any,
    /// The tuple whose field of this number is greatest. The fields of an entry are numbered as its class has them.
    Max(usize),
    /// The tuple whose field of this number is least, numbered as for [`Order::Max`].
    Min(usize),
    /// The entry whose field of this name is greatest. The classes of several may number it otherwise.
    MaxOf(FieldName),
    /// The entry whose field of this name is least.
    MinOf(FieldName),
}

/// The name of a field of entries, which is kept for the life of the process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FieldName(&'static Class);

impl FieldName {
    /// This name.
    ///
    /// # Errors
    ///
    /// As [`Class::new`]: there are too many, or it is too long.
    pub fn new(name: &str) -> Result<Self, ValueError> {
        // A table of names that ends with the process is there already: that of the classes.
        Class::new("", [""; 0], [name]).map(Self)
    }

    /// The name itself.
    pub fn text(self) -> &'static str {
        self.0.fields().next().unwrap_or_default()
    }
}

impl fmt::Debug for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text().fmt(f)
    }
}

impl Order {
    /// Whether it goes by a field: such an order compares tuples of all shapes with each other.
    #[must_use]
    pub const fn is_by_field(self) -> bool {
        matches!(self, Self::Max(_) | Self::Min(_) | Self::MaxOf(_) | Self::MinOf(_))
    }

    /// The same among tuples of one class: by the number that a named field has there. What has no such field comes last.
    #[must_use]
    pub fn among(self, class: Option<&Class>) -> Self {
        let number = |name: FieldName| class.and_then(|class| class.index_of(name.text()));
        match self {
            Self::MaxOf(name) => Self::Max(number(name).unwrap_or(ARITY_MAX)),
            Self::MinOf(name) => Self::Min(number(name).unwrap_or(ARITY_MAX)),
            order => order,
        }
    }

    /// The name of a field by which it goes, and which a match may have not: one that is no entry has no names. Everything
    /// may be an entry.
    #[must_use]
    pub fn unnamed(self, template: &[TemplateRef<'_>]) -> Option<&'static str> {
        let are_named = template.iter().all(|one| match one.form {
            Form::Entry(_) => true,
            Form::Exact | Form::Rest => one.is_for_everything(),
        });
        self.field_name().filter(|_| !are_named)
    }

    /// The name of the field, if it goes by that.
    #[must_use]
    pub fn field_name(self) -> Option<&'static str> {
        match self {
            Self::MaxOf(name) | Self::MinOf(name) => Some(name.text()),
            _ => None,
        }
    }

    /// If it goes by a field that no match of `template` has: the number of that field, and how many fields they have at most.
    /// There is no order then.
    #[must_use]
    pub fn beyond(self, template: &[TemplateRef<'_>]) -> Option<(usize, usize)> {
        let (Self::Max(field) | Self::Min(field)) = self else { return None };
        let are_exact = template.iter().all(|one| matches!(one.form, Form::Exact));
        let fields_max = template.iter().map(|one| one.patterns.len()).max()?;
        (are_exact && field >= fields_max).then_some((field, fields_max))
    }
}

/// What becomes of a put for which there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused.
    #[default]
    Error,
    /// It waits for room.
    Wait,
    /// The oldest tuples are dropped for it.
    DropOldest,
}

impl WhenFull {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Error, Self::Wait, Self::DropOldest];

    /// Its name, as in `connect(..., when_full="drop-oldest")`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Wait => "wait",
            Self::DropOldest => "drop-oldest",
        }
    }

    /// Its number, where it is stored and sent. Part of both formats: append, never renumber.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The value with this number, if there is one.
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.number() == number)
    }
}
