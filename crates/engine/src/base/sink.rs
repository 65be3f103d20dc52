//! What gets to see the tuple of a call.

use tupelo_tuple::TupleView;

/// A sink that is used for one match, for a loop that ends with it.
#[inline]
pub fn sink_once<R, E>(
    sink: impl FnOnce(TupleView<'_>) -> Result<R, E>,
) -> impl FnMut(TupleView<'_>) -> Result<R, E> {
    let mut sink = Some(sink);
    move |tuple| match sink.take() {
        Some(sink) => sink(tuple),
        None => unreachable!("a sink is used for one match"),
    }
}
