//! Templates as JSON.

use serde_json::{Map as Object, Value as Json};
use tupelo_tuple::{Alternative, Condition, Form, Pattern, Template};

use crate::to_value;

/// The key of an object that stands for a pattern.
const FORMAL: &str = "$formal";
const EXPECTED: &str = "a template is a list, as in [\"job\", {\"$formal\": \":int\"}], or a text, as in \"\\\"job\\\", :int\"";

/// The template that JSON spells. A list has a value for each field that is to be equal, and `{"$formal": ":int"}` for each
/// that only has to look like that, in the notation of the command line: `:int`, `_`, `>3`; `...` at the end stands for the
/// rest. A text is a template in that notation as a whole, with which alternatives and entries can be said.
///
/// `condition` is CEL text that has to hold of a match, too (rule M9).
///
/// # Errors
///
/// The mistake, in words.
pub fn template(json: Json, condition: Option<&str>) -> Result<Template, String> {
    let template = match json {
        Json::String(text) => text.parse::<Template>().map_err(|error| error.to_string())?,
        Json::Array(fields) => Template::from(of_list(fields)?),
        _ => return Err(EXPECTED.to_owned()),
    };
    if let Some((place, pattern)) = template.impossible() {
        return Err(format!("no value matches {pattern}, which is asked of field {place}"));
    }
    let Some(condition) = condition else { return Ok(template) };
    let added = Condition::new(condition).and_then(|condition| template.with_condition(&condition));
    added.map_err(|error| format!("the condition {condition:?}: {error}"))
}

fn of_list(fields: Vec<Json>) -> Result<Alternative, String> {
    let mut alternative = Alternative::default();
    let last = fields.len().saturating_sub(1);
    for (index, field) in fields.into_iter().enumerate() {
        let refused = |why| format!("field {index}: {why}");
        match field {
            Json::Object(object) if object.contains_key(FORMAL) => {
                let Alternative { patterns, form, .. } = formal(&object).map_err(refused)?;
                if form == Form::Rest && index < last {
                    return Err(refused(
                        "... stands for the rest, so nothing follows it".to_owned(),
                    ));
                }
                alternative.patterns.extend(patterns);
                alternative.form = form;
            }
            value => alternative.patterns.push(Pattern::Actual(to_value(value).map_err(refused)?)),
        }
    }
    Ok(alternative)
}

/// The only pattern, or the rest, that an object names.
fn formal(object: &Object<String, Json>) -> Result<Alternative, String> {
    let expected = || {
        format!(
            "a pattern is {{\"{FORMAL}\": \":int\"}}, one field in the notation of the command line"
        )
    };
    let text = object.get(FORMAL).and_then(Json::as_str).filter(|_| object.len() == 1);
    let text = text.ok_or_else(expected)?;
    let template: Template =
        text.parse().map_err(|error| format!("{}; {text:?}: {error}", expected()))?;
    let [alternative] = template.alternatives() else { return Err(expected()) };
    match (&alternative.patterns[..], &alternative.form) {
        ([_], Form::Exact) | ([], Form::Rest) => Ok(alternative.clone()),
        _ => Err(expected()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::template;

    #[test]
    fn a_list_is_values_and_patterns() {
        for (json, text) in [
            (json!(["job", 7]), "\"job\", 7"),
            (json!(["job", { "$formal": ":int" }]), "\"job\", :int"),
            (json!(["job", { "$formal": "_" }, { "$formal": "..." }]), "\"job\", _, ..."),
            (json!([null, { "$formal": ":int|:str" }]), "null, :int|:str"),
            (json!([]), "()"),
            (json!("\"job\", :int | \"task\", _"), "\"job\", :int | \"task\", _"),
            // Not a template in a text, but a text.
            (json!([":int"]), "\":int\""),
        ] {
            let expected = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(template(json.clone(), None), Ok(expected), "{json}");
        }
    }

    #[test]
    fn a_condition_holds_of_the_matches_m9() {
        let made = template(json!(["job", { "$formal": ":int" }]), Some("f[1] > 9")).unwrap();
        let matches = |text: &str| made.matches(&text.parse().unwrap());
        assert!(matches("(\"job\", 10)") && !matches("(\"job\", 9)"));
        assert!(template(json!(["job"]), Some("f[1] >")).unwrap_err().contains("f[1] >"));
    }

    #[test]
    fn what_is_no_template_is_refused_with_one_that_is() {
        for (json, says) in [
            (json!(7), "a template is a list"),
            (json!({ "$formal": ":int" }), "a template is a list"),
            (json!(["job", { "$formal": ":integer" }]), "field 1"),
            (json!([{ "$formal": ":int, :int" }]), "one field"),
            (json!([{ "$formal": ":int", "more": 1 }]), "one field"),
            (json!([{ "$formal": "..." }, 1]), "nothing follows"),
            (json!("\"job"), "closing quote"),
        ] {
            let why = template(json.clone(), None).unwrap_err();
            assert!(why.contains(says), "{json}: {why}");
        }
    }
}
