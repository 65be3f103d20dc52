//! Tuples and templates as a Rust program writes them.

/// The fields of a tuple, borrowed, for a put.
///
/// ```
/// let fields = tupelo_tuple::fields!["job", 7, 3.5];
/// assert_eq!(fields[1].kind(), tupelo_tuple::Kind::Int);
/// ```
#[macro_export]
macro_rules! fields {
    ($($field:expr),* $(,)?) => { [$($crate::Field::from($field)),*] };
}

/// A [`Tuple`](crate::Tuple), owned.
///
/// ```
/// use tupelo_tuple::{Value, tuple};
///
/// let job = tuple!["job", 7, vec![1_u8, 2]];
/// assert_eq!(job[2], Value::Bytes(vec![1, 2]));
/// ```
#[macro_export]
macro_rules! tuple {
    ($($field:expr),* $(,)?) => {
        <$crate::Tuple as ::core::convert::From<::std::vec::Vec<$crate::Value>>>::from(
            ::std::vec![$($crate::Value::from($field)),*],
        )
    };
}

/// A [`TemplateRef`](crate::TemplateRef), for a take. Values are actuals, and a [`Kind`](crate::Kind) is a formal. `_`
/// is any one field, and `..` at the end any number of further fields.
///
/// ```
/// use tupelo_tuple::{Kind, fields, template};
///
/// let jobs = template!["job", Kind::Int, _];
/// assert!(jobs.matches_fields(&fields!["job", 7, 3.5]));
/// assert!(!jobs.matches_fields(&fields!["job", 7.0, 3.5]));
/// assert!(template!["job", ..].matches_fields(&fields!["job", 7, 3.5]));
/// ```
#[macro_export]
macro_rules! template {
    // A literal, not a call of a constructor: only in it do the patterns live as long as the template.
    (@form = $form:ident [$($done:expr,)*]) => {
        $crate::TemplateRef {
            patterns: &[$($done,)*],
            form: $crate::Form::$form,
            condition: ::core::option::Option::None,
        }
    };
    (@next [$($done:expr,)*]) => { $crate::template!(@form = Exact [$($done,)*]) };
    (@next [$($done:expr,)*] .. $(,)?) => { $crate::template!(@form = Rest [$($done,)*]) };
    (@next [$($done:expr,)*] _ $(, $($more:tt)*)?) => {
        $crate::template!(@next [$($done,)* $crate::PatternRef::ANY,] $($($more)*)?)
    };
    (@next [$($done:expr,)*] $pattern:expr $(, $($more:tt)*)?) => {
        $crate::template!(@next [$($done,)* $crate::PatternRef::from($pattern),] $($($more)*)?)
    };
    ($($patterns:tt)*) => { $crate::template!(@next [] $($patterns)*) };
}

#[cfg(test)]
mod tests {
    use crate::{Kind, TemplateRef};

    fn arity(template: &TemplateRef<'_>) -> usize {
        template.patterns.len()
    }

    #[test]
    fn templates_are_written_as_the_tuples_they_find_m2_m3_m4() {
        let template = template!["job", Kind::Int, _, 1 + 2];
        assert_eq!((arity(&template), template.form), (4, crate::Form::Exact));
        assert!(template.matches_fields(&fields!["job", 1, true, 3]));
        assert!(!template.matches_fields(&fields!["job", 1, true, 4]));
        assert!(template![].matches_fields(&fields![]));
        assert!(template![_].matches_fields(&fields![b"x"]));
        assert!(template![..].matches_fields(&fields![]));
        assert!(!template!["a", _, ..].matches_fields(&fields!["a"]));
    }
}
