//! Conditions over a whole tuple: what follows `where` (rule M9).
//!
//! A condition is text in CEL, the Common Expression Language; `docs/how-to/where.md` lists the supported parts. The
//! `cel` crate parses the text, and [`compile`] compiles it into a tree of our own. Every name, function and number of
//! arguments in the tree is known; [`mod@evaluate`] asks it about a tuple. Parts that this subset of CEL does not have
//! are refused when the condition is made. So later failures depend on the tuple only: a missing field, kinds that do
//! not compare, a division by zero. Then there is no match ([`Fault`]). A part that has no answer for any tuple is
//! refused, too, even beside a part that would decide alone ([`kinds`]).
//!
//! Both steps are bounded, whoever wrote the text: by its length and its nesting, and in time also by the length of the
//! tuple. There are no loops, no regular expressions, and nothing that makes a value larger than its parts.

mod compile;
mod evaluate;
mod kinds;
mod syntax;
mod words;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use crate::{Class, ParseError, TupleRef, TupleView, nearest};
pub use evaluate::Fault;
use evaluate::{Fields, evaluate};

/// Longest text of a condition, in bytes (rule B2).
pub const CONDITION_BYTES_MAX: usize = 2048;
/// Deepest nesting of a condition: of brackets in its text, and of operators in one another.
pub const CONDITION_DEPTH_MAX: usize = 48;

/// Compiled conditions that a process keeps at hand.
const KEPT_MAX: usize = 256;

/// A condition, compiled. Cheap to copy; two are equal if their texts are.
///
/// ```
/// use tupelo_tuple::{Condition, tuple};
///
/// let even = Condition::new("f[1] % 2 == 0")?;
/// assert_eq!(tuple!["job", 4].with_ref(|job| even.holds_ref(&job)), Ok(Ok(true)));
/// assert_eq!(tuple!["job", 7].with_ref(|job| even.holds_ref(&job)), Ok(Ok(false)));
///
/// let error = Condition::new("matches(f[0], 'j.*')").unwrap_err();
/// assert!(error.to_string().starts_with("expected one of the functions size, startsWith"));
/// # Ok::<(), tupelo_tuple::ParseError>(())
/// ```
#[derive(Clone)]
pub struct Condition(Arc<Compiled>);

struct Compiled {
    text: Box<str>,
    root: compile::Node,
    /// The functions that it calls by name, with the place of the first mention.
    names: Vec<(Box<str>, usize)>,
    /// Why it has no answer for a plain tuple.
    misuse: Option<ParseError>,
}

/// The conditions that were made last, by their text: a loop that takes with one compiles it once.
static KEPT: RwLock<Option<HashMap<Box<str>, Condition>>> = RwLock::new(None);

/// Locks the conditions that are kept: see [`crate::before_fork`].
pub(crate) fn lock_kept() -> RwLockWriteGuard<'static, impl Sized> {
    KEPT.write().unwrap_or_else(PoisonError::into_inner)
}

impl Condition {
    /// The condition that `text` says, in the subset of CEL.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if it is no expression, or has an unknown function or operator. Also if it cannot be true or
    /// false, or has a part without an answer for any tuple. The error says where, and gives the correct form.
    pub fn new(text: &str) -> Result<Self, ParseError> {
        let kept = KEPT.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.as_ref().and_then(|kept| kept.get(text)) {
            return Ok(known.clone());
        }
        drop(kept);
        let condition = Self::compiled(text)?;
        let mut kept = KEPT.write().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.get_or_insert_default();
        if kept.len() >= KEPT_MAX {
            // A program that makes as many different ones has no use for the old ones.
            kept.clear();
        }
        kept.insert(text.into(), condition.clone());
        Ok(condition)
    }

    fn compiled(text: &str) -> Result<Self, ParseError> {
        let made = compile::compile(text, &syntax::parse(text)?)?;
        let compile::Compilation { root, names, misuse } = made;
        Ok(Self(Arc::new(Compiled { text: text.into(), root, names, misuse })))
    }

    /// The text that it was made of.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The names in it: `f` for a tuple, fields of an entry.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names.iter().map(|(name, _)| &**name)
    }

    /// Fails if it has a name that a plain tuple has not: that is `f`. Also if it asks of `f` what no tuple has, such as
    /// `f[-1]` or `f.id`.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the place of that name or part.
    pub fn require_tuple(&self) -> Result<(), ParseError> {
        if let Some((name, at)) = self.0.names.iter().find(|(name, _)| **name != *TUPLE) {
            if let Some(meant) = words::in_cel(name) {
                return Err(ParseError::new(self.text(), *at, meant));
            }
            let why = ParseError::new(self.text(), *at, "`f`, the tuple, as in f[0]");
            return Err(why.with_hint(compile::ONLY_ENTRIES));
        }
        self.0.misuse.clone().map_or(Ok(()), Err)
    }

    /// Fails if it has a name that is no field of `class`.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the place of that name, and the field that may have been meant.
    pub fn require_class(&self, class: &Class) -> Result<(), ParseError> {
        let is_declared = |name: &str| class.index_of(name).is_some();
        let Some((name, at)) = self.0.names.iter().find(|(name, _)| !is_declared(name)) else {
            return Ok(());
        };
        if let Some(meant) = words::in_cel(name) {
            return Err(ParseError::new(self.text(), *at, meant));
        }
        let fields = class.fields().collect::<Vec<_>>().join(", ");
        let expected = format!("a field of {} ({fields})", class.name());
        let near = nearest(name, class.fields());
        let hint = near.map_or_else(String::new, |near| format!("did you mean {near:?}?"));
        Err(ParseError::new(self.text(), *at, expected).with_hint(hint))
    }

    /// Both conditions in one.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if that is too long or too deep.
    pub fn and(&self, other: &Self) -> Result<Self, ParseError> {
        Self::new(&format!("{} && {}", self.in_parentheses(), other.in_parentheses()))
    }

    /// The text as a part of a longer one.
    fn in_parentheses(&self) -> String {
        // A comment reaches to the end of its line, and may stand last.
        let end = if self.text().contains("//") { "\n" } else { "" };
        format!("({}{end})", self.text())
    }

    /// Whether the tuple fulfils the condition.
    ///
    /// # Errors
    ///
    /// [`Fault`] if that cannot be decided for this tuple. Then it is no match.
    pub fn holds(&self, tuple: &TupleView<'_>) -> Result<bool, Fault> {
        self.holds_of(tuple)
    }

    /// As [`Condition::holds`], of a tuple that is not in a space.
    ///
    /// # Errors
    ///
    /// As [`Condition::holds`].
    pub fn holds_ref(&self, tuple: &TupleRef<'_>) -> Result<bool, Fault> {
        self.holds_of(tuple)
    }

    fn holds_of(&self, tuple: &dyn Fields) -> Result<bool, Fault> {
        evaluate(&self.0.root, &self.0.names, tuple)
    }
}

/// The name of a tuple in a condition.
const TUPLE: &str = "f";

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Condition {}

impl fmt::Debug for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Condition").field(&self.text()).finish()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text())
    }
}
