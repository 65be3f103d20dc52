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

#[cfg(test)]
mod tests {
    use super::operator_at;

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
