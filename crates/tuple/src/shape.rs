//! Shapes: what tuples are sorted by.

use crate::{Class, Kind, Tuple, Value};

/// The arity and the kinds of the fields, and the class of entries. Within a shape tuples have an order (rule T2).
///
/// ```
/// use tupelo_tuple::{Shape, Tuple, tuple};
///
/// assert_eq!(Shape::of(&tuple!["job", 7]).to_string(), "(str, int)");
/// let job: Tuple = "Job{id: 7, status: 'new'}".parse()?;
/// assert_eq!(Shape::of(&job).to_string(), "Job{id: int, status: str}");
/// // Names that are no words are in quotes, as in tuples: they may come from anybody, and go to a terminal.
/// let odd: Tuple = r#""\u{1b}[2J"{"a b": 7}"#.parse()?;
/// assert_eq!(Shape::of(&odd).to_string(), r#""\u{1b}[2J"{"a b": int}"#);
/// # Ok::<(), tupelo_tuple::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The kinds of the fields.
    pub kinds: Vec<Kind>,
    /// The class, if it is of entries.
    pub class: Option<&'static Class>,
}

impl Shape {
    /// The shape of a tuple.
    pub fn of(tuple: &Tuple) -> Self {
        Self { kinds: tuple.iter().map(Value::kind).collect(), class: tuple.class() }
    }
}
