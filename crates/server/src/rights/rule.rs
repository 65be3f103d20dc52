//! Rules as text: `jobs : put, take ("job", "gpu", _)`.

use std::fmt;
use std::str::FromStr;

use tupelo::Template;

use super::Right;

/// What may be done in some spaces, with some tuples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name of a space; with a `*` at its end, the beginning of one.
    spaces: String,
    rights: Vec<Right>,
    /// Which tuples; `None`: all.
    template: Option<Template>,
}

/// The rules that many tokens have, by the name of the role.
pub const ROLES: [(&str, &str); 3] = [
    ("reader", "* : read"),
    ("writer", "* : put, take, read"),
    ("admin", "* : put, take, read, admin"),
];

/// A rule that is right.
const EXAMPLE: &str = "write the space, what may be done there, and perhaps with which tuples, as in \
                       jobs : put, take (\"job\", \"gpu\", _)";

impl Rule {
    /// Whether it allows that in this space, with some tuples at least.
    pub(super) fn allows(&self, right: Right, space: &str) -> bool {
        let is_there = match self.spaces.strip_suffix('*') {
            Some(beginning) => space.starts_with(beginning),
            None => self.spaces == space,
        };
        is_there && self.rights.contains(&right)
    }

    /// Which tuples it is for; `None`: all.
    pub(super) const fn template(&self) -> Option<&Template> {
        self.template.as_ref()
    }
}

/// The verbs that a text begins with, and what follows them.
fn verbs(text: &str) -> Result<(Vec<Right>, &str), String> {
    let (mut rights, mut rest) = (Vec::new(), text.trim());
    loop {
        let end = rest.find(|character: char| !character.is_ascii_alphabetic());
        let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let right = Right::ALL.into_iter().find(|right| right.name() == name);
        let right =
            right.ok_or_else(|| format!("{name:?} is not one of put, take, read and admin"))?;
        rights.push(right);
        rest = behind.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None => return Ok((rights, rest)),
        }
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |problem: String| format!("{text:?} is no rule: {problem}\n  {EXAMPLE}");
        let (spaces, rest) =
            text.split_once(':').ok_or_else(|| wrong("it has no colon".to_owned()))?;
        let spaces = spaces.trim();
        if spaces.is_empty() || spaces.trim_end_matches('*').contains('*') {
            return Err(wrong(format!("{spaces:?} is no name, and no beginning of one with a *")));
        }
        let (rights, template) = verbs(rest).map_err(wrong)?;
        let template: Option<Template> = match template {
            "" => None,
            text => Some(text.parse().map_err(|error| wrong(format!("{text:?}: {error}")))?),
        };
        if template.is_some() && rights.contains(&Right::Admin) {
            return Err(wrong("admin is for a whole space".to_owned()));
        }
        Ok(Self { spaces: spaces.to_owned(), rights, template })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rights: Vec<_> = self.rights.iter().map(|right| right.name()).collect();
        write!(f, "{} : {}", self.spaces, rights.join(", "))?;
        self.template.as_ref().map_or(Ok(()), |template| write!(f, " {template}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{ROLES, Rule};
    use crate::rights::Right;

    #[test]
    fn a_rule_names_spaces_verbs_and_tuples() {
        let rule: Rule = "render* : put , take (\"job\", \"gpu\", _)".parse().unwrap();
        assert_eq!(rule.to_string(), "render* : put, take (\"job\", \"gpu\", _)");
        assert_eq!(rule.to_string().parse(), Ok(rule.clone()));
        assert!(rule.allows(Right::Put, "render") && rule.allows(Right::Take, "render-2"));
        assert!(!rule.allows(Right::Read, "render") && !rule.allows(Right::Put, "rende"));
        let rule: Rule = "jobs : put,take Job{id: :int}".parse().unwrap();
        assert_eq!(rule.to_string(), "jobs : put, take Job{id: :int}");
        let rule: Rule = "jobs:read".parse().unwrap();
        assert!(rule.allows(Right::Read, "jobs") && !rule.allows(Right::Read, "jobs-2"));
    }

    #[test]
    fn roles_are_rules() {
        for (name, rule) in ROLES {
            assert_eq!(
                rule.parse::<Rule>().map(|rule| rule.to_string()),
                Ok(rule.to_owned()),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_no_rule_is_refused_with_one_that_is() {
        for (text, says) in [
            ("jobs", "no colon"),
            (": read", "no name"),
            ("j*bs : read", "no name"),
            ("jobs :", "put, take, read and admin"),
            ("jobs : get", "\"get\" is not one of"),
            ("jobs : take (\"job\"", "is no rule"),
            ("jobs : admin (\"job\")", "whole space"),
        ] {
            let why = text.parse::<Rule>().unwrap_err();
            assert!(why.contains(says) && why.contains("jobs : put, take"), "{text}: {why}");
        }
    }
}
