//! Stored templates against the templates themselves: random ones, and random tuples that are more or less like them.
#![allow(clippy::unwrap_used, reason = "a refusal fails the test")]

use std::sync::Arc;

use fastrand::Rng as Random;
use tupelo_tuple::{Alternative, Entry, Pattern, Tuple, TupleRef, Value};

use super::*;
use crate::base::error::Error;
use crate::operations::wait::Waiter;
use crate::waiters::node;
use crate::{Engine, EventKind, Order, SubscribeTerms, Subscription, Want, testing};

const ROUNDS: usize = 400;
/// Templates, and tuples, of a round.
const EACH: usize = 6;
/// More than templates that are compared where they lie have patterns, by two.
const ARITY_MAX: usize = sets::PATTERNS_MAX + 2;

fn random() -> Random {
    Random::with_seed(tupelo_crashtest::seed())
}

fn engine() -> Arc<Engine> {
    Arc::new(testing::engine(32 << 20))
}

/// Text around the ends of a word, and more of it than a wait node has room for.
fn text(random: &mut Random) -> String {
    let lengths = [0, 1, 7, 8, 9, 16, 30, 80, 200];
    "a".repeat(*random.choice(&lengths).unwrap()) + random.choice(&["", "a", "b"]).unwrap()
}

fn value(random: &mut Random) -> Value {
    match random.u8(..12) {
        0 => Value::Null,
        1 => Value::Bool(random.bool()),
        2 | 3 => Value::Int(random.i64(0..=1)),
        4 => Value::Int(*random.choice(&[i64::MIN, i64::MAX, -1]).unwrap()),
        5 => Value::parse_int("36893488147419103232").unwrap(),
        6 => Value::Float(*random.choice(&[0.0, -0.0, 1.0, f64::NAN]).unwrap()),
        7 | 8 => Value::Str(text(random)),
        9 => Value::Bytes(text(random).into_bytes()),
        10 => Value::List(vec![Value::Int(random.i64(0..=1))]),
        _ => Value::Uuid([random.u8(0..=1); 16]),
    }
}

fn name_of(index: usize) -> String {
    format!("field{index}")
}

/// A tuple, now and then an entry.
fn tuple(random: &mut Random) -> Tuple {
    let values: Vec<Value> = (0..random.usize(..=ARITY_MAX)).map(|_| value(random)).collect();
    if random.u8(..6) > 0 {
        return values.into();
    }
    let name = format!("Class{}", values.len());
    let fields = values.into_iter().enumerate().map(|(index, value)| (name_of(index), value));
    Tuple::from_entry(Entry::new(name, [], fields).unwrap()).unwrap()
}

/// A pattern that as a rule `like` matches.
fn pattern(random: &mut Random, like: &Value) -> Pattern {
    let own = KindSet::of(like.kind());
    match random.u8(..20) {
        0..=7 => Pattern::Actual(like.clone()),
        8 | 9 => Pattern::Kinds(own),
        10..=13 => Pattern::Kinds(own.or(KindSet::from_bits(random.u16(..)))),
        14..=16 => Pattern::ANY,
        17 => Pattern::Kinds(KindSet::from_bits(random.u16(..))),
        18 => Pattern::Actual(value(random)),
        _ => Pattern::is_in([like.clone(), Value::Null]).unwrap(),
    }
}

/// A template that as a rule `like` matches.
fn template_like(random: &mut Random, like: &Tuple) -> Template {
    let mut patterns: Vec<Pattern> = like.iter().map(|value| pattern(random, value)).collect();
    let mut form = Form::Exact;
    if let (Some(class), true) = (like.class(), random.bool()) {
        let named = patterns.into_iter().enumerate().map(|(index, one)| (name_of(index), one));
        return Alternative::entry(class.name(), named).unwrap().into();
    }
    match random.u8(..8) {
        0..=3 => {
            form = Form::Rest;
            patterns.truncate(random.usize(..=patterns.len()));
        }
        4 => patterns.push(Pattern::ANY),
        _ => {}
    }
    let one: Template = Alternative { patterns, form, condition: None }.into();
    if random.u8(..10) == 0 { one.or(template_like(random, like)) } else { one }
}

/// Tuples, and templates for some of them.
fn draw(random: &mut Random) -> (Vec<Tuple>, Vec<Template>) {
    let tuples: Vec<Tuple> = (0..EACH).map(|_| tuple(random)).collect();
    let templates = (0..EACH)
        .map(|_| {
            let like = random.choice(&tuples).unwrap().clone();
            template_like(random, &like)
        })
        .collect();
    (tuples, templates)
}

fn waits(engine: &Arc<Engine>, template: &Template, want: Want) -> Waiter {
    template.with_refs(|refs| engine.waiter(refs, want)).unwrap().unwrap()
}

fn listens(engine: &Arc<Engine>, template: &Template) -> Subscription {
    let terms = SubscribeTerms::new([EventKind::Put], 4);
    template.with_refs(|refs| engine.subscribe(refs, &terms)).unwrap().unwrap()
}

/// Whether a waiter's template is compared where it lies, though it spans shapes.
fn is_in_sets(engine: &Engine, waiter: &Waiter) -> bool {
    let view = engine.memory.view();
    node(&view, waiter.number()).load(FORM) & 0xff == SETS
}

fn has_event(listener: &Subscription) -> bool {
    listener.try_next(|_| Ok::<_, Error>(())).unwrap().is_some()
}

fn take_everything(engine: &Engine) {
    let everything = [TemplateRef::beginning(&[])];
    while engine.try_take(&everything, Order::Any, |_| Ok::<_, Error>(())).unwrap().is_some() {}
}

fn kinds_of(tuple: TupleRef<'_>) -> Kinds {
    let mut kinds = Kinds::new();
    kinds.read(tuple.fields, |_| ());
    kinds.set_class(tuple.class);
    kinds
}

#[test]
fn who_waits_is_served_exactly_with_what_its_template_matches_m1_m3_t3() {
    let mut random = random();
    let (mut served, mut missed) = (0, 0);
    for _ in 0..ROUNDS {
        let engine = engine();
        let (tuples, templates) = draw(&mut random);
        let listeners: Vec<_> = templates.iter().map(|one| listens(&engine, one)).collect();
        // Again: by then it is known which shapes nobody listens to.
        for tuple in tuples.iter().chain(&tuples) {
            // Where nobody but subscriptions waits, a put goes another way.
            let some = if random.bool() { &templates[..] } else { &[] };
            let readers: Vec<_> = some.iter().map(|one| waits(&engine, one, Want::Read)).collect();
            tuple.with_ref(|tuple| engine.put(tuple)).unwrap().unwrap();
            for (index, template) in templates.iter().enumerate() {
                let expected = template.matches(tuple);
                assert_eq!(has_event(&listeners[index]), expected, "{template} hears of {tuple:?}");
                let Some(reader) = readers.get(index) else { continue };
                assert_eq!(reader.is_ready(), expected, "{template} reads {tuple:?}");
                let count = if expected { &mut served } else { &mut missed };
                *count += u32::from(is_in_sets(&engine, reader));
            }
            engine.check().unwrap();
            drop(readers);
            take_everything(&engine);
        }
    }
    assert!(served > 100 && missed > 100, "{served} were served, {missed} were not");
}

#[test]
fn the_place_of_an_integer_beyond_64_bits_is_not_taken_for_an_integer_m2() {
    let wide = Value::parse_int("36893488147419103232").unwrap();
    // Behind its field and the set of such fields: what stands in the field, if that is read as an integer.
    let bytes = i64::try_from(wide.encode().unwrap().len()).unwrap();
    let place = Value::Int(16 | bytes << 32);
    let engine = engine();
    for (value, other) in [(&wide, &place), (&place, &wide)] {
        let like = |actual: &Value| Alternative {
            patterns: vec![Pattern::Actual(actual.clone())],
            form: Form::Rest,
            condition: None,
        };
        let listeners = [value, other].map(|actual| listens(&engine, &like(actual).into()));
        let tuple = Tuple::from(vec![value.clone()]);
        tuple.with_ref(|tuple| engine.put(tuple)).unwrap().unwrap();
        assert_eq!(listeners.map(|listener| has_event(&listener)), [true, false], "{value:?}");
    }
}

#[test]
fn by_its_kinds_a_tuple_that_matches_is_never_passed_over_m1_m3() {
    let mut random = random();
    let mut passed_over = 0;
    for _ in 0..ROUNDS {
        let engine = engine();
        let (tuples, templates) = draw(&mut random);
        for template in &templates {
            let waiter = waits(&engine, template, Want::Put);
            let view = engine.memory.view();
            for tuple in &tuples {
                let kinds = tuple.with_ref(kinds_of).unwrap();
                let may_match = may_match(&view, node(&view, waiter.number()), &kinds);
                assert!(may_match || !template.matches(tuple), "{template}, {tuple:?}");
                if is_in_sets(&engine, &waiter) {
                    let fits = template.with_refs(|refs| kinds.fit(&refs[0])).unwrap();
                    assert_eq!(may_match, fits, "{template}, {tuple:?}");
                    passed_over += u32::from(!may_match);
                }
            }
            assert!(!view.violated());
        }
    }
    assert!(passed_over > 100, "{passed_over}");
}

#[test]
fn a_stored_template_is_told_as_it_was_given() {
    let mut random = random();
    let mut in_sets = 0;
    for _ in 0..ROUNDS {
        let engine = engine();
        for template in draw(&mut random).1 {
            let waiter = waits(&engine, &template, Want::Put);
            let one_shape = |refs: &[TemplateRef<'_>]| match refs {
                [one] => Kinds::of_template(one),
                _ => None,
            };
            let kinds = template.with_refs(one_shape).unwrap();
            let view = engine.memory.view();
            let stored = super::template(&view, node(&view, waiter.number()), kinds.as_ref());
            assert_eq!(stored.as_ref(), Some(&template));
            assert!(!view.violated());
            in_sets += u32::from(is_in_sets(&engine, &waiter));
        }
    }
    assert!(in_sets > 100, "{in_sets}");
}

#[test]
fn a_damaged_template_is_noticed_or_another_and_nothing_worse_c5() {
    let mut random = random();
    let job = [PatternRef::Actual(Field::Str("job")), PatternRef::ANY];
    let engine = engine();
    let number = crate::recovery::node_memory::claim_node(&engine).unwrap();
    let mut incoming = crate::operations::put::incoming(
        &engine,
        TupleRef::from(&[Field::Str("job"), Field::Int(1)]),
    )
    .unwrap();
    incoming.takes_room = false;
    let shape = crate::store::registry::shape(&engine, &incoming.kinds, None).unwrap();
    let reference = crate::operations::put::put_incoming(&engine, &incoming, shape).unwrap();
    let mut noticed = 0;
    for _ in 0..20_000 {
        let view = engine.memory.view();
        let node = node(&view, number);
        assert!(sets::store(&view, node, &TemplateRef::beginning(&job)));
        let words = [FORM, TEMPLATE_BYTES, TEMPLATE, TEMPLATE + 16, TEMPLATE + 20];
        let at = *random.choice(&words).unwrap();
        let keeps_form = if at == FORM { !0xff } else { !0 };
        node.init(at, node.load(at) ^ random.u32(..) & random.u32(..) & keeps_form);
        let kinds = incoming.kinds.as_slice();
        matches(&view, node, Candidate { reference, kinds, class: None });
        may_match(&view, node, &incoming.kinds);
        super::template(&view, node, None);
        noticed += u32::from(view.violated());
    }
    assert!(noticed > 1_000, "{noticed}");
    crate::waiters::nodes::free_node(&engine, number).unwrap();
}
