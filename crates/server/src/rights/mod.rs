//! Who may do what: tokens, and the rules that each has (`docs/how-to/security.md`).
//!
//! A request is narrowed to what its rules allow: its template becomes what matches it and a rule. So it finds, counts and
//! waits for nothing else, and says nothing of anything else either. What is left is refused only if that is nothing.

mod file;
mod narrow;
mod rule;
mod tokens;

use std::fmt;

use tupelo_protocol::Fault;

pub use file::{add, list, remove};
pub use rule::{ROLES, Rule};
pub(crate) use tokens::Tokens;

/// Who asks, and what that may do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Principal {
    /// Whoever connects where nobody is asked for a token: everything.
    Anybody,
    /// The holder of a token: what its rules allow.
    Holder {
        /// The name of the token.
        name: String,
        /// What it may do.
        rules: Vec<Rule>,
    },
}

/// What a rule allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// To put tuples.
    Put,
    /// To remove tuples.
    Take,
    /// To see tuples: to read and count them, and to wait until some come or go.
    Read,
    /// To make and remove the space, and to see its figures.
    Admin,
}

impl Right {
    /// All of them, in the order in which people think of them.
    pub(crate) const ALL: [Self; 4] = [Self::Put, Self::Take, Self::Read, Self::Admin];

    /// Its name in a rule.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Take => "take",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

impl Principal {
    /// The name of its token; none of anybody's.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Anybody => "",
            Self::Holder { name, .. } => name,
        }
    }

    /// What it may do, as text; nothing of anybody's, who may do everything.
    pub(crate) fn rules(&self) -> Vec<String> {
        match self {
            Self::Anybody => Vec::new(),
            Self::Holder { rules, .. } => rules.iter().map(ToString::to_string).collect(),
        }
    }

    /// The rule that allows that in this space; none if it is not allowed, or to anybody.
    pub(crate) fn rule_for(&self, right: Right, space: &str) -> Option<&Rule> {
        match self {
            Self::Anybody => None,
            Self::Holder { rules, .. } => rules.iter().find(|rule| rule.allows(right, space)),
        }
    }

    /// Refuses if there is nothing at all that it may do in this space.
    pub(crate) fn require_any(&self, space: &str) -> Result<(), Fault> {
        let has = Right::ALL.into_iter().any(|right| self.has(right, space));
        if has { Ok(()) } else { Err(self.refusal("use", "", space)) }
    }

    /// Refuses if it may not do that in this space, whatever the tuples are.
    pub(crate) fn require(&self, right: Right, space: &str) -> Result<(), Fault> {
        if self.has(right, space) { Ok(()) } else { Err(self.refusal(right.name(), "", space)) }
    }

    /// Whether it may do that in this space, with some tuples at least.
    pub(crate) fn has(&self, right: Right, space: &str) -> bool {
        match self {
            Self::Anybody => true,
            Self::Holder { .. } => self.rule_for(right, space).is_some(),
        }
    }

    /// Why it is not done. Says nothing of the space, of which it may know nothing.
    fn refusal(&self, verb: &str, template: &str, space: &str) -> Fault {
        let (name, rules) = (self.name(), self.rules());
        let separated = if template.is_empty() { "" } else { " " };
        let problem = format!("the token {name:?} may not {verb}{separated}{template} in {space}");
        let hint = format!(
            "its rules are: {}",
            if rules.is_empty() { "none".into() } else { rules.join("; ") }
        );
        Fault::new("TUP-006", problem, Some(&hint))
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
