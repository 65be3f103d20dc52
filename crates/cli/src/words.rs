//! Shell words: which one is the space, and what fields and patterns the others are.
//!
//! How a word is read is `tupelo`'s text notation; here is only which words are read.

use std::env;
use std::fmt;

use tupelo::{
    Condition, Error, Form, Order, ParseError, Pattern, Template, TemplateRef, Tuple, TupleView,
    Value,
};

use crate::arguments::Sought;
use crate::failure::Failure;

/// Words that begin with one of these and `://` are spaces.
const SCHEMES: [&str; 7] = ["mem", "shm", "file", "unix", "tcp", "tls", "cluster"];
/// The word for any fields.
const EVERYTHING: &str = "...";
/// The environment variable that names the space where no word does.
const URL_VARIABLE: &str = "TUPELO_URL";

/// The space and the other words. `url` is the option `--url`; with it all words are fields.
pub(crate) fn space_and_words(
    mut words: Vec<String>,
    url: Option<String>,
) -> Result<(String, Vec<String>), Failure> {
    let first = match words.first() {
        Some(word) if url.is_none() && is_space(word) => Some(words.remove(0)),
        Some(word) if url.is_none() && is_meant_as_space(word) => return Err(no_space(word)),
        _ => None,
    };
    Ok((space(first, url)?, words))
}

/// As [`space_and_words`], for commands that need a word per field. The empty tuple has none; it can be
/// had from programs, but on a command line it is a forgotten word nearly always.
pub(crate) fn space_and_fields(
    words: Vec<String>,
    url: Option<String>,
) -> Result<(String, Vec<String>), Failure> {
    let (url, words) = space_and_words(words, url)?;
    if words.is_empty() {
        let fields = "one word per field, as in `job 7`; in a template `...` is any fields";
        return Err(Failure::Usage(format!("which tuple of {url}?\n  Add {fields}.")));
    }
    Ok((url, words))
}

/// The space: the word for it, else the option, else the environment.
pub(crate) fn space(word: Option<String>, url: Option<String>) -> Result<String, Failure> {
    word.or(url).or_else(|| env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty())).ok_or_else(
        || {
            Failure::Usage(format!(
                "which space?\n  Name it first, as in shm://jobs, or with --url, or in ${URL_VARIABLE}. \
                 `tupelo ls` lists those there are."
            ))
        },
    )
}

pub(crate) fn is_space(word: &str) -> bool {
    word.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme))
}

/// Whether a first word is no space, and may be a mistyped one. To take it for a field would put the tuple into the
/// space of the environment, or take one from there.
fn is_meant_as_space(word: &str) -> bool {
    let end = word.find(|letter: char| !(letter.is_ascii_alphanumeric() || "+.-".contains(letter)));
    let (scheme, rest) = word.split_at(end.unwrap_or(word.len()));
    let is_known = SCHEMES.contains(&scheme.to_ascii_lowercase().as_str());
    !scheme.is_empty() && rest.starts_with("://")
        || is_known && (rest.starts_with(":/") || rest.starts_with("//"))
}

/// Whether a word is the path of a file: it is no URL, and no mistyped one.
pub(crate) fn is_meant_as_path(word: &str) -> bool {
    let is_path = word.contains('/') || word.ends_with(".tupelo");
    is_path && !is_space(word) && !is_meant_as_space(word)
}

fn no_space(word: &str) -> Failure {
    let scheme = word.split(|letter: char| !letter.is_ascii_alphanumeric()).next();
    let meant = tupelo::nearest(&scheme.unwrap_or_default().to_lowercase(), tupelo::SCHEMES);
    let rest = word.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
    let rest = rest.trim_start_matches([':', '/']);
    let name = rest.rsplit('/').find(|part| !part.is_empty()).unwrap_or("jobs");
    let url = match meant {
        Some(scheme @ ("unix" | "file")) => format!("{scheme}:///{rest}"),
        Some(scheme) => format!("{scheme}://{rest}"),
        None => format!("shm://{name}"),
    };
    let schemes = tupelo::SCHEMES.map(|scheme| format!("{scheme}://")).join(", ");
    Failure::Usage(format!(
        "no space is called {word:?}; there are {schemes}\n  Write {url}. \
         As a field it stands behind the space, or in quotes: '\"{word}\"'."
    ))
}

/// The tuple that the words are, each one field in the text notation.
pub(crate) fn tuple(words: &[String]) -> Result<Tuple, Failure> {
    let tuple = Tuple::parse_words(words.iter().map(String::as_str));
    tuple.map_err(|error| wrong(words, &error, |word| Value::parse_word(word).is_err()))
}

impl Sought {
    /// The space, and the template for the tuples; there must be a word per field.
    pub(crate) fn asked(self, url: Option<String>) -> Result<(String, Asked), Failure> {
        let (url, words) = space_and_fields(self.words, url)?;
        Ok((url, Asked::parse(&words)?.on_condition(self.condition.as_deref())?))
    }

    /// As [`Sought::asked`]; without words it is every tuple.
    pub(crate) fn asked_or_all(self, url: Option<String>) -> Result<(String, Asked), Failure> {
        let (url, mut words) = space_and_words(self.words, url)?;
        if words.is_empty() {
            words.push(EVERYTHING.to_owned());
        }
        Ok((url, Asked::parse(&words)?.on_condition(self.condition.as_deref())?))
    }

    /// As [`Sought::asked`]; without words it is the space itself, and no template.
    pub(crate) fn asked_or_space(
        self,
        url: Option<String>,
    ) -> Result<(String, Option<Asked>), Failure> {
        let (url, words) = space_and_words(self.words, url)?;
        if words.is_empty() && self.condition.is_some() {
            return Err(Failure::Usage(format!(
                "which tuples of {url}?\n  Add their patterns; `{EVERYTHING}` is every tuple."
            )));
        }
        if words.is_empty() {
            return Ok((url, None));
        }
        let asked = Asked::parse(&words)?.on_condition(self.condition.as_deref())?;
        Ok((url, Some(asked)))
    }
}

/// The template that the words are, each one pattern in the text notation.
pub(crate) struct Asked(Template);

impl Asked {
    pub(crate) fn parse(words: &[String]) -> Result<Self, Failure> {
        let template = Template::parse_words(words.iter().map(String::as_str));
        let template = template
            .map_err(|error| wrong(words, &error, |word| Pattern::parse_word(word).is_err()))?;
        if let Some((place, pattern)) = template.impossible() {
            let problem = format!("no value matches {pattern}, which is asked of field {place}");
            return Err(Failure::from(Error::Template { problem }));
        }
        Ok(Self(template))
    }

    /// The same, for the matches that also fulfil `condition`.
    pub(crate) fn on_condition(self, condition: Option<&str>) -> Result<Self, Failure> {
        let Some(text) = condition else { return Ok(self) };
        let added = Condition::new(text).and_then(|condition| self.0.with_condition(&condition));
        added.map(Self).map_err(|error| {
            Failure::Usage(format!(
                "--where {text:?}: {error}\n  It takes CEL text, as in --where \"f[1] % 2 == 0\"; of an entry the \
                 fields are names, as in --where \"priority > 3\". docs/how-to/where.md has all of it."
            ))
        })
    }

    /// Refuses an order by the number of a field for entries, whose fields go by names, and for tuples that have fewer.
    pub(crate) fn in_order(self, order: Option<Order>) -> Result<Self, Failure> {
        let order = order.unwrap_or_default();
        let is_by_number = matches!(order, Order::Max(_) | Order::Min(_));
        let mut alternatives = self.0.alternatives().iter();
        if is_by_number && alternatives.any(|one| matches!(one.form, Form::Entry(_))) {
            return Err(Failure::Usage(
                "entries have no field numbers, by which --order could go\n  \
                 Name the field: `take 'Job{}' --order max:priority`."
                    .to_owned(),
            ));
        }
        if let Some(name) = self.with(|template| Ok::<_, Failure>(order.unnamed(template)))? {
            return Err(Failure::Usage(format!(
                "--order goes by the field {name}, and only fields of entries have names\n  \
                 Give its number, counted from 0: `take job :int --order max:1`."
            )));
        }
        match self.with(|template| Ok::<_, Failure>(order.beyond(template)))? {
            None => Ok(self),
            Some((field, fields)) => Err(Failure::Usage(format!(
                "--order goes by field {field}, and what is asked for has {fields} fields\n  \
                 Fields are numbered from 0: `take job :int --order max:1`."
            ))),
        }
    }

    /// Gives `ask` the template as the operations of a space take it.
    pub(crate) fn with<R, E>(
        &self,
        ask: impl FnOnce(&[TemplateRef<'_>]) -> Result<R, E>,
    ) -> Result<R, Failure>
    where
        Failure: From<E>,
    {
        let answer = self.0.with_refs(ask).map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(answer?)
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names the first word that is `refused`; without one the words are wrong together.
fn wrong(words: &[String], error: &ParseError, refused: impl Fn(&str) -> bool) -> Failure {
    let word = words.iter().find(|word| refused(word));
    Failure::Usage(word.map_or_else(|| error.to_string(), |word| format!("{word:?}: {error}")))
}

/// A tuple that was found, with bytes of its own, as the operations of a space hand it out.
pub(crate) fn owned(found: TupleView<'_>) -> Result<Tuple, Failure> {
    found.to_tuple().map_err(|error| Failure::Other(format!("a tuple can not be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(words: &[&str], url: Option<&str>) -> (String, Vec<String>) {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        space_and_words(words, url.map(str::to_owned)).unwrap()
    }

    #[test]
    fn the_first_word_is_the_space_if_it_looks_like_one() {
        let (space, words) = split(&["shm://jobs", "job", "7"], None);
        assert_eq!((space.as_str(), words.len()), ("shm://jobs", 2));
    }

    #[test]
    fn an_address_of_another_kind_is_a_field() {
        let (space, words) = split(&["shm://links", "http://x"], None);
        assert_eq!(
            (space.as_str(), words.as_slice()),
            ("shm://links", &["http://x".to_owned()][..])
        );
    }

    #[test]
    fn a_first_word_that_may_be_a_mistyped_space_is_neither_space_nor_field() {
        let mistyped = ["redis://jobs", "http://x", "SHM://jobs", "shm:/jobs", "shm//jobs"];
        for word in mistyped {
            let refused = space_and_words(vec![word.to_owned(), "a".to_owned()], None);
            let Err(Failure::Usage(message)) = refused else { panic!("{word} was read") };
            assert!(message.contains(word) && message.contains("Write shm://"), "{message}");
        }
        for word in ["shm", "a/b", "10:30", "://x", "shm:jobs", "\"redis://jobs\""] {
            assert!(!is_meant_as_space(word), "{word}");
        }
    }

    #[test]
    fn an_error_names_the_word() {
        let words = ["job", ":integer"].map(str::to_owned);
        let Err(Failure::Usage(message)) = Asked::parse(&words) else {
            panic!("`:integer` was read as a pattern");
        };
        assert!(message.starts_with("\":integer\": expected "), "{message}");
    }

    #[test]
    fn with_the_option_every_word_is_a_field() {
        let (space, words) = split(&["shm://jobs", "http://x"], Some("shm://links"));
        assert_eq!((space.as_str(), words.len()), ("shm://links", 2));
    }
}
