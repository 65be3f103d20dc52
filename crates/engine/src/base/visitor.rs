//! What gets to see the tuple of a call.

use tupelo_tuple::TupleView;

/// A visitor that is used for one match, for a loop that ends with it.
#[inline]
pub fn visitor_once<R, E>(
    visitor: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> impl FnMut(TupleView<'_>) -> Result<R, E> {
    let mut visitor = Some(visitor);
    move |tuple| match visitor.take() {
        Some(visitor) => visitor(tuple),
        None => unreachable!("a visitor is used for one match"),
    }
}
