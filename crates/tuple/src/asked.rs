//! The arguments of a call beside its tuples: words that every engine, every protocol and every language shares.

use crate::{Form, TemplateRef};

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
}

impl Order {
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
