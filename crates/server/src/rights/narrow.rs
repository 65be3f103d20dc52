//! Operations, narrowed to what somebody may do.

use tupelo::Template;
use tupelo_protocol::{Action, Fault, Operation, TemplateBytes, Tuples};

use super::{Principal, Right};

/// What a request asks for in the end: its operation, with other templates where those are narrower.
pub(crate) struct Narrowed<'a> {
    operation: Operation<'a>,
    template: Option<Vec<u8>>,
}

impl Narrowed<'_> {
    /// The operation.
    pub(crate) fn operation(&self) -> Operation<'_> {
        let Some(narrowed) = self.template.as_deref().map(TemplateBytes::of_encoding) else {
            return self.operation;
        };
        let mut operation = self.operation;
        match &mut operation {
            Operation::Put { unless, .. } | Operation::PutLeased { unless, .. } => {
                *unless = Some(narrowed);
            }
            Operation::Find { template, .. }
            | Operation::Swap { template, .. }
            | Operation::Count { template }
            | Operation::Present { template }
            | Operation::Watch { template, .. }
            | Operation::Claim { template, .. }
            | Operation::Dead { template }
            | Operation::Requeue { template }
            | Operation::Subscribe { template, .. }
            | Operation::Scan { template }
            | Operation::Transfer { template, .. }
            | Operation::Explain { template } => *template = narrowed,
            Operation::Room
            | Operation::Begin { .. }
            | Operation::Stat
            | Operation::Blocked
            | Operation::Names
            | Operation::Next { .. }
            | Operation::Events { .. }
            | Operation::Waiting
            | Operation::Term(_)
            | Operation::Settle(_)
            | Operation::HasRead
            | Operation::Taken { .. }
            | Operation::Check { .. } => {}
        }
        operation
    }
}

impl Principal {
    /// Narrows an operation in a space to what this one may do there. What is done to something that was left open was narrowed
    /// when that was begun.
    ///
    /// # Errors
    ///
    /// That nothing of it is allowed; [`Fault`]s of what can not be decoded.
    pub(crate) fn narrow<'a>(
        &self,
        space: &str,
        operation: Operation<'a>,
    ) -> Result<Narrowed<'a>, Fault> {
        let template = match operation {
            _ if matches!(self, Self::Anybody) => None,
            Operation::Put { tuples, unless, .. }
            | Operation::PutLeased { tuple: tuples, unless, .. } => {
                self.require_puts(space, tuples)?;
                match unless {
                    Some(unless) => self.narrowed((Right::Read, "read"), space, unless)?,
                    None => None,
                }
            }
            Operation::Check { tuples } => {
                self.require_puts(space, tuples)?;
                None
            }
            Operation::Room => {
                self.require(Right::Put, space)?;
                None
            }
            Operation::Find { action: Action::Take, template, .. } => {
                self.narrowed((Right::Take, "take"), space, template)?
            }
            Operation::Claim { template, .. } => {
                self.narrowed((Right::Take, "claim"), space, template)?
            }
            Operation::Requeue { template } => {
                self.narrowed((Right::Take, "requeue"), space, template)?
            }
            Operation::Transfer { moves: true, template, .. } => {
                self.narrowed((Right::Take, "move"), space, template)?
            }
            Operation::Transfer { template, .. } => {
                self.narrowed((Right::Read, "copy"), space, template)?
            }
            Operation::Subscribe { template, .. } => {
                self.narrowed((Right::Read, "subscribe to"), space, template)?
            }
            Operation::Scan { template } => {
                self.narrowed((Right::Read, "scan"), space, template)?
            }
            // They tell of whatever is there.
            Operation::Stat | Operation::Blocked | Operation::Names | Operation::Explain { .. } => {
                self.require(Right::Admin, space)?;
                None
            }
            Operation::Begin { .. }
            | Operation::Next { .. }
            | Operation::Events { .. }
            | Operation::Waiting
            | Operation::Term(_)
            | Operation::Settle(_)
            // Of a take that was narrowed; nobody has the key of another token's.
            | Operation::Taken { .. }
            | Operation::HasRead => None,
            Operation::Find { action: Action::Read, template, .. }
            | Operation::Dead { template } => {
                self.narrowed((Right::Read, "read"), space, template)?
            }
            Operation::Swap { template, to } => {
                self.require_puts(space, to)?;
                self.narrowed((Right::Take, "take"), space, template)?
            }
            Operation::Count { template } => {
                self.narrowed((Right::Read, "count"), space, template)?
            }
            Operation::Present { template } | Operation::Watch { template, .. } => {
                self.narrowed((Right::Read, "watch"), space, template)?
            }
        };
        Ok(Narrowed { operation, template })
    }

    /// The narrower template; `None` if nothing has to be taken away.
    pub(crate) fn narrowed(
        &self,
        (right, verb): (Right, &str),
        space: &str,
        template: TemplateBytes<'_>,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let Some(allowed) = self.allowed(right, space) else { return Ok(None) };
        let asked = template.decode()?;
        let refused = || self.refusal(verb, &asked.to_string(), space);
        let allowed = allowed.ok_or_else(refused)?;
        let both = asked.intersect(&allowed).map_err(|error| {
            let hint = "ask with a simpler template, or have the token's rules simplified";
            Fault::limit(format!("{asked} and the token's rules: {error}"), hint)
        })?;
        Ok(Some(both.ok_or_else(refused)?.encode()?))
    }

    /// What the rules allow in a space: `None` for everything, and a template of none for nothing.
    #[expect(clippy::option_option, reason = "everything, nothing, and what lies between")]
    fn allowed(&self, right: Right, space: &str) -> Option<Option<Template>> {
        let Self::Holder { rules, .. } = self else { return None };
        let mut allowed: Option<Template> = None;
        for rule in rules.iter().filter(|rule| rule.allows(right, space)) {
            let template = rule.template()?.clone();
            allowed = Some(match allowed {
                Some(others) => others.or(template),
                None => template,
            });
        }
        Some(allowed)
    }

    /// Refuses if one of these may not be put.
    fn require_puts(&self, space: &str, tuples: Tuples<'_>) -> Result<(), Fault> {
        let Some(allowed) = self.allowed(Right::Put, space) else { return Ok(()) };
        for tuple in tuples.read_each()? {
            let tuple = tuple?.as_ref().to_tuple()?;
            // An entry names its own bases, and by them it would be found as what no rule allows.
            let has_bases = tuple.class().is_some_and(|class| class.bases().next().is_some());
            if has_bases || !allowed.as_ref().is_some_and(|allowed| allowed.matches(&tuple)) {
                return Err(self.refusal("put", &tuple.to_string(), space));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tupelo::{Order, Template, Tuple};
    use tupelo_protocol::{
        Action, Amount, Fault, Operation, PutTerms, SpaceId, TemplateBytes, Tuples,
    };

    use crate::rights::{Principal, Right};

    fn holder(rules: &[&str]) -> Principal {
        let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        Principal::Holder { name: "ci".to_owned(), rules }
    }

    fn encoded(template: &str) -> Vec<u8> {
        template.parse::<Template>().unwrap().encode().unwrap()
    }

    fn tuples(tuple: &str) -> Vec<u8> {
        let tuple: Tuple = tuple.parse().unwrap();
        tuple.with_ref(|tuple| Tuples::encode(std::iter::once(tuple))).unwrap().unwrap()
    }

    /// The template of a take in `jobs` that is left of this one.
    fn taken(principal: &Principal, template: &str) -> Result<String, Fault> {
        let template = encoded(template);
        let narrowed = principal.narrow(
            "jobs",
            Operation::Find {
                action: Action::Take,
                order: Order::Fifo,
                amount: Amount::One,
                waits: true,
                template: TemplateBytes::of_encoding(&template),
            },
        )?;
        let Operation::Find { template, waits: true, .. } = narrowed.operation() else { panic!() };
        Ok(template.decode().unwrap().to_string())
    }

    fn put(
        principal: &Principal,
        tuple: &str,
        unless: Option<&str>,
    ) -> Result<Option<String>, Fault> {
        let (tuples, unless) = (tuples(tuple), unless.map(encoded));
        let narrowed = principal.narrow(
            "jobs",
            Operation::Put {
                tuples: Tuples::of_encoding(&tuples),
                terms: PutTerms::default(),
                unless: unless.as_deref().map(TemplateBytes::of_encoding),
            },
        )?;
        let Operation::Put { unless, .. } = narrowed.operation() else { panic!() };
        Ok(unless.map(|unless| unless.decode().unwrap().to_string()))
    }

    #[test]
    fn a_template_is_narrowed_to_what_the_rules_allow() {
        let gpu =
            holder(&["jobs : take (\"job\", \"gpu\", _)", "jobs : take (\"stop\")", "* : read"]);
        assert_eq!(taken(&gpu, "\"job\", :str, :int").unwrap(), "(\"job\", \"gpu\", :int)");
        assert_eq!(taken(&gpu, "...").unwrap(), "(\"job\", \"gpu\", _) | (\"stop\")");
        let fault = taken(&gpu, "\"job\", \"cpu\", _").unwrap_err();
        assert_eq!(fault.code, "TUP-006");
        assert!(
            fault.message.contains("\"ci\" may not take (\"job\", \"cpu\", _) in jobs"),
            "{fault}"
        );
        assert!(fault.hint.unwrap().contains("jobs : take (\"job\", \"gpu\", _)"));
    }

    #[test]
    fn a_rule_without_tuples_is_for_all_and_another_space_for_none() {
        assert_eq!(taken(&holder(&["j* : take"]), "\"job\", _").unwrap(), "(\"job\", _)");
        assert!(taken(&holder(&["work : take"]), "\"job\", _").is_err());
        assert!(taken(&holder(&["jobs : read, put"]), "\"job\", _").is_err());
        assert!(taken(&holder(&[]), "\"job\", _").is_err());
        assert_eq!(taken(&Principal::Anybody, "\"job\", _").unwrap(), "(\"job\", _)");
    }

    #[test]
    fn each_tuple_that_is_put_has_to_be_allowed_and_what_is_asked_beside_it_too() {
        let one = holder(&["jobs : put (\"job\", :int)", "jobs : read (\"leader\", _)"]);
        assert_eq!(put(&one, "(\"job\", 1)", None), Ok(None));
        assert_eq!(put(&one, "(\"job\", \"a\")", None).unwrap_err().code, "TUP-006");
        let narrowed = put(&one, "(\"job\", 1)", Some("...")).unwrap();
        assert_eq!(narrowed.as_deref(), Some("(\"leader\", _)"));
        assert!(put(&one, "(\"job\", 1)", Some("\"secret\", _")).is_err());
    }

    #[test]
    fn what_is_begun_is_narrowed_too_and_figures_are_for_who_may_see_all() {
        let one = holder(&["jobs : take, read (\"job\", _)"]);
        let (all, put) = (encoded("..."), tuples("(\"job\", 1)"));
        let template = TemplateBytes::of_encoding(&all);
        let (order, ttl) = (Order::Fifo, Duration::from_secs(1));
        let to = SpaceId { client: 1, space: 1 };
        for operation in [
            Operation::Claim { order, ttl, attempts_max: None, waits: true, template },
            Operation::Subscribe { template, kinds: 1, events_max: 1, bytes_max: None },
            Operation::Scan { template },
            Operation::Dead { template },
            Operation::Requeue { template },
            Operation::Transfer { to, moves: true, template },
            Operation::Transfer { to, moves: false, template },
        ] {
            let narrowed = one.narrow("jobs", operation).unwrap();
            let left = match narrowed.operation() {
                Operation::Claim { template, .. }
                | Operation::Subscribe { template, .. }
                | Operation::Scan { template }
                | Operation::Dead { template }
                | Operation::Requeue { template }
                | Operation::Transfer { template, .. } => template.decode().unwrap().to_string(),
                other => panic!("{other:?}"),
            };
            assert_eq!(left, "(\"job\", _)");
            assert!(holder(&["jobs : put", "work : take"]).narrow("jobs", operation).is_err());
        }
        let looks = [Operation::Stat, Operation::Blocked, Operation::Names];
        for operation in looks.into_iter().chain([Operation::Explain { template }]) {
            assert!(one.narrow("jobs", operation).is_err());
            assert!(holder(&["jobs : admin"]).narrow("jobs", operation).is_ok());
        }
        let (tuple, terms) = (Tuples::of_encoding(&put), PutTerms::default());
        for operation in [
            Operation::PutLeased { tuple, terms, unless: None },
            Operation::Check { tuples: tuple },
            Operation::Room,
        ] {
            assert!(one.narrow("jobs", operation).is_err());
            assert!(holder(&["jobs : put"]).narrow("jobs", operation).is_ok());
        }
    }

    #[test]
    fn an_entry_is_not_put_under_the_name_of_another_class() {
        let one = holder(&["jobs : put Job{id: :int}"]);
        assert_eq!(put(&one, "Job{id: 7}", None), Ok(None));
        for entry in ["Payment{id: 7}", "Payment(Job){id: 7}", "Job(Payment){id: 7}"] {
            assert_eq!(put(&one, entry, None).unwrap_err().code, "TUP-006", "{entry}");
        }
        assert_eq!(put(&holder(&["jobs : put"]), "Payment(Job){id: 7}", None), Ok(None));
    }

    #[test]
    fn rights_on_a_whole_space_are_asked_for_as_such() {
        let one = holder(&["jobs : read (\"job\", _)", "tmp* : admin"]);
        assert!(one.require_any("jobs").is_ok() && one.require_any("other").is_err());
        assert!(one.require(Right::Admin, "tmp-1").is_ok());
        assert!(one.require(Right::Admin, "jobs").is_err());
    }
}
