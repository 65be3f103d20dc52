//! The likely intention behind a word that a condition does not know.

/// What CEL has for a word of other languages.
pub(super) fn in_cel(word: &str) -> Option<&'static str> {
    Some(match word {
        "None" => "`null`",
        "True" => "`true`",
        "False" => "`false`",
        "and" => "`&&`",
        "or" => "`||`",
        "not" => "`!`, as in !(x in list),",
        _ => return None,
    })
}

/// Where an operator that is a word of another language stands: at `at`, where the parser stopped, or just before.
pub(super) fn operator_at(text: &str, at: usize) -> Option<(usize, &'static str)> {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let (before, rest) = text.split_at(at);
    let (ahead, _) = rest.split_at(rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()));
    let before = before.trim_end_matches(' ');
    let behind = before.rfind(|c| !is_of_word(c)).map_or(0, |end| {
        // The word begins behind a character, which may be a long one.
        end + before[end..].chars().next().map_or(1, char::len_utf8)
    });
    [(at, ahead), (behind, &before[behind..])].into_iter().find_map(|(start, word)| {
        matches!(word, "and" | "or" | "not").then(|| in_cel(word).map(|cel| (start, cel)))?
    })
}

/// The word of `known` that `word` was meant to be, if one is that close.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let of_word = |other: &&'a str| {
        let (length, steps) = (word.chars().count().max(other.chars().count()), steps(word, other));
        // At most two in five characters differ.
        steps * 5 <= length * 2
    };
    known.filter(of_word).min_by_key(|other| steps(word, other))
}

/// How many characters have to be changed, added or removed to get from one to the other.
fn steps(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (number, from) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = number + 1;
        for (index, to) in to.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[index + 1];
            row[index + 1] = changed.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::{nearest, operator_at, steps};

    #[test]
    fn words_are_as_far_apart_as_characters_have_to_change() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("priorty", "priority", 1),
            ("stauts", "status", 2),
            ("kitten", "sitting", 3),
            ("\u{e9}t\u{e9}", "ete", 2),
        ] {
            assert_eq!((steps(from, to), steps(to, from)), (expected, expected), "{from} {to}");
        }
    }

    #[test]
    fn a_field_is_only_suggested_if_it_is_close() {
        let of = |word| nearest(word, ["id", "status", "there", "tried"].into_iter());
        assert_eq!(of("stauts"), Some("status"));
        assert_eq!(of("their"), Some("there"));
        assert_eq!(of("f"), None);
        assert_eq!(of("is"), None);
    }

    #[test]
    fn an_operator_is_found_where_the_parser_stops_and_before() {
        assert_eq!(operator_at("a and b", 2), Some((2, "`&&`")));
        assert_eq!(operator_at("\u{e9}or b", 5), None);
        assert_eq!(operator_at("(or b", 4), Some((1, "`||`")));
        assert_eq!(operator_at("\u{2028}or b", 6), Some((3, "`||`")));
        assert_eq!(operator_at("android", 0), None);
        assert_eq!(operator_at("", 0), None);
    }
}
