//! Tests: conditions on a field beyond one value or some kinds (rule M5).
//!
//! A [`Test`] is built by the constructors of [`Pattern`], which check it, so that matching has
//! nothing left to refuse: it allocates nothing and its depth is bounded.

mod constant;
mod error;
mod glob;
mod members;
mod never;
mod range;

use std::ops::Bound;

pub use error::PatternError;

pub(crate) use constant::Constant;
use glob::Glob;
use members::Members;
use range::Range;
pub(crate) use range::{compare, compare_families};

use crate::{DEPTH_MAX, Field, Kind, KindSet, Pattern, Value, encoding};

/// A predicate on one field: a range, membership, a prefix, a glob, a class of entries, or a combination of patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    node: Node,
    /// The kinds that a matching field can have: the first and cheapest check.
    kinds: KindSet,
    depth: usize,
    is_impossible: bool,
}

/// The question of a test. Actuals and kinds occur only inside combinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Actual(Constant),
    Kinds(KindSet),
    Range(Range),
    In(Members),
    Prefix(Constant),
    Glob(Glob),
    /// Entries of the class of this name, and of those derived from it.
    Class(Box<str>),
    Not(Box<Test>),
    All(Vec<Test>),
    Any(Vec<Test>),
}

impl Test {
    /// Whether `field` satisfies the test.
    pub fn matches(&self, field: &Field<'_>) -> bool {
        if !self.kinds.contains(field.kind()) {
            return false;
        }
        match (&self.node, field) {
            (Node::Actual(actual), _) => actual.field().same(field),
            (Node::Kinds(_), _) => true,
            (Node::Range(range), _) => range.matches(field),
            (Node::In(members), _) => members.contains(field),
            (Node::Glob(glob), Field::Str(text)) => glob.matches(text),
            (Node::Prefix(prefix), _) => match (prefix.field(), field) {
                (Field::Str(prefix), Field::Str(text)) => text.starts_with(prefix),
                (Field::Bytes(prefix), Field::Bytes(bytes)) => bytes.starts_with(prefix),
                _ => false,
            },
            (Node::Class(name), Field::Encoded(entry)) => {
                encoding::is_of_class(&entry.contiguous(), name)
            }
            (Node::Not(test), _) => !test.matches(field),
            (Node::All(tests), _) => tests.iter().all(|test| test.matches(field)),
            (Node::Any(tests), _) => tests.iter().any(|test| test.matches(field)),
            (Node::Glob(_) | Node::Class(_), _) => false,
        }
    }

    /// The kinds that a matching field can have.
    #[inline]
    pub const fn kinds(&self) -> KindSet {
        self.kinds
    }

    /// Whether no field at all can satisfy the test, as far as its making looked for that. It looked for an empty set
    /// of values, bounds the wrong way round, and parts of an AND that exclude each other.
    pub const fn is_impossible(&self) -> bool {
        self.is_impossible
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    /// How many members there are, if the test is of membership.
    pub fn members_count(&self) -> usize {
        if let Node::In(members) = &self.node { members.len() } else { 0 }
    }

    /// The members, in no order that says anything; none if the test is not of membership.
    pub fn members(&self) -> impl Iterator<Item = Field<'_>> {
        let members = if let Node::In(members) = &self.node { Some(members) } else { None };
        members.into_iter().flat_map(Members::iter).map(Constant::field)
    }

    fn leaf(node: Node, kinds: KindSet) -> Self {
        let is_impossible = never::is_impossible(&node, kinds);
        Self { node, kinds, depth: 1, is_impossible }
    }

    /// A combination of `tests`, refused if it is nested too deeply to be matched on any stack.
    fn around(node: Node, kinds: KindSet, tests_depth: usize) -> Result<Self, PatternError> {
        let depth = tests_depth + 1;
        if depth > DEPTH_MAX {
            return Err(PatternError::TooDeep);
        }
        let is_impossible = never::is_impossible(&node, kinds);
        Ok(Self { node, kinds, depth, is_impossible })
    }
}

/// The constructors of predicates.
impl Pattern {
    /// Fields between two bounds (rule M5): `int` and `float` numerically and exactly, `str` by code
    /// point, `bytes` by byte. NaN lies in no range, `bool` is no number.
    ///
    /// # Errors
    ///
    /// [`PatternError`] if neither side is bounded, or a bound has no order, or the two cannot be compared.
    pub fn range(low: Bound<Value>, high: Bound<Value>) -> Result<Self, PatternError> {
        let range = Range::new(low, high)?;
        let kinds = range.kinds();
        Ok(Self::Test(Test::leaf(Node::Range(range), kinds)))
    }

    /// Fields that are one of `values` (rules M2, M5).
    ///
    /// # Errors
    ///
    /// [`PatternError`] if a value cannot be encoded.
    pub fn is_in(values: impl IntoIterator<Item = Value>) -> Result<Self, PatternError> {
        let members = Members::new(values)?;
        let kinds = members.kinds();
        Ok(Self::Test(Test::leaf(Node::In(members), kinds)))
    }

    /// Text or bytes that begin with `prefix` (rule M5).
    ///
    /// # Errors
    ///
    /// [`PatternError::PrefixKind`] if `prefix` is neither text nor bytes.
    pub fn prefix(prefix: impl Into<Value>) -> Result<Self, PatternError> {
        let prefix = prefix.into();
        let kind = prefix.kind();
        if !matches!(prefix, Value::Str(_) | Value::Bytes(_)) {
            return Err(PatternError::PrefixKind { kind });
        }
        Ok(Self::Test(Test::leaf(Node::Prefix(Constant::new(prefix)?), KindSet::of(kind))))
    }

    /// Text that matches a glob of `*` (any run of characters), `?` (any one) and `[a-z]`, `[!a-z]` (rule M5).
    ///
    /// # Errors
    ///
    /// [`PatternError::Glob`] if a bracket is not closed.
    pub fn glob(glob: &str) -> Result<Self, PatternError> {
        let glob = Glob::new(glob)?;
        Ok(Self::Test(Test::leaf(Node::Glob(glob), KindSet::of(Kind::Str))))
    }

    /// Fields that are entries of the class `name`, or of one derived from it, whatever they have (rule M5).
    pub fn class(name: impl Into<Box<str>>) -> Self {
        Self::Test(Test::leaf(Node::Class(name.into()), KindSet::of(Kind::Entry)))
    }

    /// Fields of any kind that `pattern` does not match (rule M5): `not(actual)` is `F != value`.
    ///
    /// # Errors
    ///
    /// [`PatternError::TooDeep`], or if a value in the pattern cannot be encoded.
    #[expect(clippy::should_implement_trait, reason = "the operator can not fail, this can")]
    pub fn not(pattern: Self) -> Result<Self, PatternError> {
        let test = Test::try_from(pattern)?;
        // Only a pattern that accepts whole kinds rules any out.
        let kinds = match test.node {
            Node::Kinds(kinds) => kinds.complement(),
            _ => KindSet::ALL,
        };
        let depth = test.depth;
        Ok(Self::Test(Test::around(Node::Not(Box::new(test)), kinds, depth)?))
    }

    /// Fields that all of `patterns` match (rule M5). None at all is `any`.
    ///
    /// # Errors
    ///
    /// [`PatternError::TooDeep`], or if a value in a pattern cannot be encoded.
    pub fn all(patterns: impl IntoIterator<Item = Self>) -> Result<Self, PatternError> {
        let mut tests = Vec::new();
        for pattern in patterns {
            match Test::try_from(pattern)? {
                Test { node: Node::All(nested), .. } => tests.extend(nested),
                test => tests.push(test),
            }
        }
        match tests.len() {
            0 => Ok(Self::ANY),
            1 => Ok(tests.remove(0).into()),
            _ => {
                let kinds = tests.iter().fold(KindSet::ALL, |kinds, test| kinds.and(test.kinds));
                let depth = depth_of(&tests);
                Ok(Self::Test(Test::around(Node::All(tests), kinds, depth)?))
            }
        }
    }

    /// Fields that at least one of `patterns` matches (rule M5). Formals among them become one union
    /// of formals (rule M3). None at all matches nothing.
    ///
    /// # Errors
    ///
    /// [`PatternError::TooDeep`], or if a value in a pattern cannot be encoded.
    pub fn any_of(patterns: impl IntoIterator<Item = Self>) -> Result<Self, PatternError> {
        let mut tests = Vec::new();
        let mut formals = KindSet::EMPTY;
        for pattern in patterns {
            match Test::try_from(pattern)? {
                Test { node: Node::Kinds(kinds), .. } => formals = formals.or(kinds),
                Test { node: Node::Any(nested), .. } => {
                    for test in nested {
                        match test.node {
                            Node::Kinds(kinds) => formals = formals.or(kinds),
                            _ => tests.push(test),
                        }
                    }
                }
                test => tests.push(test),
            }
        }
        if formals != KindSet::EMPTY || tests.is_empty() {
            tests.insert(0, Test::leaf(Node::Kinds(formals), formals));
        }
        if tests.len() == 1 {
            return Ok(tests.remove(0).into());
        }
        let kinds = tests.iter().fold(KindSet::EMPTY, |kinds, test| kinds.or(test.kinds));
        let depth = depth_of(&tests);
        Ok(Self::Test(Test::around(Node::Any(tests), kinds, depth)?))
    }
}

fn depth_of(tests: &[Test]) -> usize {
    tests.iter().map(|test| test.depth).max().unwrap_or(0)
}

impl TryFrom<Pattern> for Test {
    type Error = PatternError;

    fn try_from(pattern: Pattern) -> Result<Self, PatternError> {
        Ok(match pattern {
            Pattern::Actual(value) => {
                let kinds = KindSet::of(value.kind());
                Self::leaf(Node::Actual(Constant::new(value)?), kinds)
            }
            Pattern::Kinds(kinds) => Self::leaf(Node::Kinds(kinds), kinds),
            Pattern::Test(test) => test,
        })
    }
}

impl From<Test> for Pattern {
    fn from(test: Test) -> Self {
        match test.node {
            Node::Actual(constant) => Self::Actual(constant.into_value()),
            Node::Kinds(kinds) => Self::Kinds(kinds),
            _ => Self::Test(test),
        }
    }
}
