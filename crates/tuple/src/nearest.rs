//! The word that a mistyped one was meant to be.

/// The word of `known` that `word` was meant to be, if one is that close.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let of_word = |other: &&'a str| {
        let (length, steps) = (word.chars().count().max(other.chars().count()), steps(word, other));
        // At most two in five characters differ.
        steps * 5 <= length * 2
    };
    known.into_iter().filter(of_word).min_by_key(|other| steps(word, other))
}

/// How many characters have to be changed, added, removed or swapped with the next to get from one to the other.
fn steps(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for (row, one) in rows.iter_mut().enumerate() {
        one[0] = row;
    }
    rows[0] = (0..=to.len()).collect();
    for row in 1..=from.len() {
        for column in 1..=to.len() {
            let is_same = from[row - 1] == to[column - 1];
            let is_swapped = row > 1
                && column > 1
                && from[row - 1] == to[column - 2]
                && from[row - 2] == to[column - 1];
            let steps = (rows[row - 1][column - 1] + usize::from(!is_same))
                .min(rows[row - 1][column] + 1)
                .min(rows[row][column - 1] + 1);
            rows[row][column] =
                if is_swapped { steps.min(rows[row - 2][column - 2] + 1) } else { steps };
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::{nearest, steps};

    #[test]
    fn words_are_as_far_apart_as_characters_have_to_change() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("priorty", "priority", 1),
            ("stauts", "status", 1),
            ("tpc", "tcp", 1),
            ("kitten", "sitting", 3),
            ("\u{e9}t\u{e9}", "ete", 2),
        ] {
            assert_eq!((steps(from, to), steps(to, from)), (expected, expected), "{from} {to}");
        }
    }

    #[test]
    fn a_field_is_only_suggested_if_it_is_close() {
        let of = |word| nearest(word, ["id", "status", "there", "tried"]);
        assert_eq!(of("stauts"), Some("status"));
        assert_eq!(of("their"), Some("there"));
        assert_eq!(of("f"), None);
        assert_eq!(of("is"), None);
    }
}
