//! A compiler that sees a tuple or a template being made can know its fields or patterns as long as an operation on it
//! runs. This module keeps that knowledge: half of the work of a search is to find out the template.
//!
//! The compiler knows the items if no other code gets a pointer to them: code that seldom needs them gets a copy. Each
//! item is also looked at by code of its own, so there is no loop over the first few.

use crate::{Field, PatternRef, TemplateRef, TupleRef};

/// So many fields or patterns are copied.
const COPIED_MAX: usize = 8;

/// The question to one item after the other. No closure: the compiler decides whether a closure becomes part of its
/// caller. If it does not, the compiler knows nothing about the items any more.
pub trait Ask<T> {
    /// Whether to go on behind `item`, which has this number. To be compiled into its caller.
    fn ask(&mut self, index: usize, item: &T) -> bool;
}

/// Asks each item, until the answer is no; whether it never was. A loop only from the fifth on.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the caller may know the items")]
pub fn each<T>(items: &[T], asked: &mut impl Ask<T>) -> bool {
    let [first, rest @ ..] = items else { return true };
    if !asked.ask(0, first) {
        return false;
    }
    let [second, rest @ ..] = rest else { return true };
    if !asked.ask(1, second) {
        return false;
    }
    let [third, rest @ ..] = rest else { return true };
    if !asked.ask(2, third) {
        return false;
    }
    let [fourth, rest @ ..] = rest else { return true };
    if !asked.ask(3, fourth) {
        return false;
    }
    for (index, item) in rest.iter().enumerate() {
        if !asked.ask(4 + index, item) {
            return false;
        }
    }
    true
}

/// Gives `act` a copy of `items`, if they are few.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the caller is to see that it keeps the items")]
fn apart<T: Copy, R>(items: &[T], blank: T, act: impl FnOnce(&[T]) -> R) -> R {
    let mut copies = [blank; COPIED_MAX];
    let copy = copies.get_mut(..items.len()).map(|copy| {
        copy.copy_from_slice(items);
        &*copy
    });
    act(copy.unwrap_or(items))
}

impl TupleRef<'_> {
    /// Gives `act` the tuple with a copy of its fields, if they are few. For seldom paths. A caller that sees the
    /// fields being made knows them as long as it runs, if no other code gets a pointer to them. That holds whatever
    /// the other code does in shared memory.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the caller is to see that it keeps the fields")]
    pub fn apart<R>(self, act: impl FnOnce(TupleRef<'_>) -> R) -> R {
        let class = self.class;
        apart(self.fields, Field::Null, move |fields| act(TupleRef { fields, class }))
    }
}

impl PatternRef<'_> {
    /// Gives `act` a copy of `patterns`, if they are few, as [`TupleRef::apart`].
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the caller is to see that it keeps the patterns")]
    pub fn apart<R>(patterns: &[Self], act: impl FnOnce(&[Self]) -> R) -> R {
        apart(patterns, Self::ANY, act)
    }
}

impl TemplateRef<'_> {
    /// Gives `act` a copy of a template that has one alternative of few patterns, as [`TupleRef::apart`]; another as it is.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the caller is to see that it keeps the patterns")]
    pub fn apart<R>(template: &[Self], act: impl FnOnce(&[TemplateRef<'_>]) -> R) -> R {
        let &[one] = template else { return act(template) };
        PatternRef::apart(one.patterns, move |patterns| act(&[TemplateRef { patterns, ..one }]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes the numbers that it is asked, and says no to one of them.
    struct Noting {
        asked: Vec<(usize, usize)>,
        last: usize,
    }

    impl Ask<usize> for Noting {
        fn ask(&mut self, index: usize, item: &usize) -> bool {
            self.asked.push((index, *item));
            index != self.last
        }
    }

    #[test]
    fn each_item_is_asked_once_with_its_number_until_the_answer_is_no() {
        for len in 0..8 {
            let items: Vec<usize> = (10..10 + len).collect();
            for last in 0..9 {
                let mut noting = Noting { asked: Vec::new(), last };
                assert_eq!(each(&items, &mut noting), last >= len);
                let asked = items.iter().copied().enumerate().take(last + 1);
                assert_eq!(noting.asked, asked.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn who_gets_a_copy_gets_all_fields_and_patterns() {
        for len in 0..2 * COPIED_MAX {
            let fields: Vec<_> = (0..).map(Field::Int).take(len).collect();
            let kept = TupleRef::from(&fields).apart(|tuple| tuple.to_tuple().unwrap());
            assert_eq!(kept, TupleRef::from(&fields).to_tuple().unwrap());
            let patterns: Vec<_> = fields.iter().map(|field| PatternRef::Actual(*field)).collect();
            let template = TemplateRef::new(&patterns);
            let kept = TemplateRef::apart(&[template], |kept| kept[0].to_template().unwrap());
            assert_eq!(kept, template.to_template().unwrap());
        }
    }
}
