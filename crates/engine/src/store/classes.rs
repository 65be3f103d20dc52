//! The classes of entries: which shape is of which class, and which shapes a template of entries concerns.
//!
//! The names of a class stand in a page beside the shape, written before the shape is published and never
//! changed. This process reads each page once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use tupelo_shm::fork_local::ForkLocal;
use tupelo_shm::{CopyBuffer, View};
use tupelo_tuple::{CLASS_BYTES_MAX, Class};

use crate::base::layout;
use crate::store::Store;
use crate::store::registry::{self, Kinds};

/// How many shapes of entries a process remembers the classes of.
const READ_MAX: usize = 4096;

/// What this process has read of the classes. A fork may come while another thread reads one: the child waits for
/// nothing of that.
pub(crate) struct Classes {
    /// The shape and the [number](Class::number) of its class, for shapes that were read. Each has one place, and the one
    /// that was read last is there; 0 if there is none.
    read: Box<[AtomicU64]>,
    names: ForkLocal<Names>,
}

impl Default for Classes {
    fn default() -> Self {
        let read = (0..READ_MAX).map(|_| AtomicU64::new(0)).collect();
        Self { read, names: ForkLocal::new() }
    }
}

/// The shapes by the names that a template may give: the class's own, or that of a base.
#[derive(Default)]
struct Names {
    /// The shapes below this number are in it.
    read: u32,
    shapes: HashMap<Box<str>, Vec<u32>>,
    /// By class and kinds.
    exact: HashMap<(u64, u64), Vec<u32>>,
}

/// The class of a shape whose entry says that it has one of `bytes` bytes of names; `None` if it is damaged.
pub(crate) fn class(
    store: &Store,
    view: &View<'_>,
    shape: u32,
    bytes: usize,
) -> Option<&'static Class> {
    let place = &store.classes.read[shape as usize % READ_MAX];
    // Acquire pairs with the Release below: the class has its number before that is noted.
    let noted = place.load(Ordering::Acquire);
    #[expect(clippy::cast_possible_truncation, reason = "the halves are meant")]
    let (noted_shape, number) = ((noted >> 32) as u32, noted as u32);
    if noted_shape == shape
        && let Some(class) = Class::with_number(number)
    {
        return Some(class);
    }
    if bytes > CLASS_BYTES_MAX {
        view.violate();
        return None;
    }
    let mut buffer = CopyBuffer::new();
    let Ok(class) = Class::decode(buffer.copy(view, layout::class(shape), bytes)) else {
        view.violate();
        return None;
    };
    place.store(u64::from(shape) << 32 | u64::from(class.number()), Ordering::Release);
    Some(class)
}

/// The shapes of entries whose class has this name, or is derived from one that has, ascending.
pub(crate) fn shapes_named(store: &Store, view: &View<'_>, name: &str) -> Vec<u32> {
    with_names(store, view, |names| names.shapes.get(name).cloned()).unwrap_or_default()
}

/// The shape of entries of this class and these kinds, if this process has met it.
pub(crate) fn shape_met(
    store: &Store,
    view: &View<'_>,
    class: &Class,
    kinds: &Kinds,
) -> Option<u32> {
    let key = (class.names_hash(), kinds.signature());
    with_names(store, view, |names| {
        let shapes = names.exact.get(&key)?.iter().copied();
        shapes.into_iter().find(|shape| {
            registry::kinds_of(store, view, *shape).is_some_and(|found| found.are(kinds))
        })
    })
}

/// As [`crate::Engine::classes_named`] says.
pub(crate) fn classes_named(store: &Store, name: &str) -> Vec<&'static Class> {
    let view = store.memory.view();
    let mut classes: Vec<&'static Class> = Vec::new();
    for shape in shapes_named(store, &view, name) {
        let class = registry::kinds_of(store, &view, shape).and_then(|kinds| kinds.class());
        if let Some(class) = class.filter(|class| class.name() == name)
            && !classes.contains(&class)
        {
            classes.push(class);
        }
    }
    classes
}

/// Gives `use_names` the shapes by their names, once those that came meanwhile are among them.
fn with_names<R>(store: &Store, view: &View<'_>, use_names: impl FnOnce(&Names) -> R) -> R {
    let count = registry::count(view);
    let mut slot = store.classes.names.lock(Some);
    let names = slot.content();
    while names.read < count {
        let shape = names.read;
        names.read += 1;
        let Some(kinds) = registry::kinds_of(store, view, shape) else { continue };
        let Some(class) = kinds.class() else { continue };
        names.exact.entry((class.names_hash(), kinds.signature())).or_default().push(shape);
        for name in std::iter::once(class.name()).chain(class.bases()) {
            let shapes = names.shapes.entry(name.into()).or_default();
            // A base may be named twice.
            if shapes.last() != Some(&shape) {
                shapes.push(shape);
            }
        }
    }
    use_names(names)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

    use tupelo_crashtest::{Exit, fork};
    use tupelo_tuple::{Field, TupleRef};

    use super::*;
    use crate::testing;

    #[test]
    fn the_child_of_a_fork_finds_a_class_though_another_thread_was_at_the_names() {
        let engine = testing::engine(8 << 20);
        let class = Class::new("Job", [""; 0], ["id"]).unwrap();
        engine.put(TupleRef { fields: &[Field::Int(1)], class: Some(class) }).unwrap();
        for is_read in [false, true] {
            if is_read {
                assert_eq!(classes_named(&engine, "Job"), [class]);
            }
            // As if it was another's: the child has no thread that lets it go.
            let _locked = engine.classes.names.lock(Some);
            let child = fork(|| assert_eq!(classes_named(&engine, "Job"), [class]));
            assert_eq!(child.wait(), Exit::Done);
        }
    }
}
