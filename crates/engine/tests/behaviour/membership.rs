//! Templates that ask for one of several values (rule M5), and counts by a value: by an index, once that has paid.

use crate::support::{any_job, engine, job, number};
use tupelo_engine::{Engine, Order};
use tupelo_tuple::{Field, Pattern, PatternRef, TemplateRef, Value};

/// Whether there is an index over both fields of a job.
fn has_index(engine: &Engine) -> bool {
    engine.stat().unwrap().shapes[0].indexes.contains(&vec![0, 1])
}

#[test]
fn one_of_several_values_is_found_by_an_index_and_the_oldest_is_taken_t2_m5() {
    let engine = engine(16 << 20);
    for number in 0..2_000 {
        engine.put(&job(number)).unwrap();
    }
    let members = [1_500, 77, 1_900, 5_000].map(Value::from);
    let Ok(Pattern::Test(test)) = Pattern::is_in(members) else { panic!("it is a test") };
    let template = [any_job()[0], PatternRef::Test(&test)];
    let template = [TemplateRef::new(&template)];
    assert_eq!(engine.try_read(&template, Order::Lifo, number).unwrap(), Some(1_900));
    for _ in 0..30 {
        assert_eq!(engine.try_read(&template, Order::Fifo, number).unwrap(), Some(77));
    }
    assert!(has_index(&engine), "thirty walks have cost as much");
    assert_eq!(engine.count(&template).unwrap(), 3);
    assert_eq!(engine.read_all(&template, None, number).unwrap(), [77, 1_500, 1_900]);
    assert_eq!(engine.read_all(&template, Some(2), number).unwrap(), [77, 1_500]);
    assert_eq!(engine.try_take(&template, Order::Lifo, number).unwrap(), Some(1_900));
    assert_eq!(engine.try_take(&template, Order::Fifo, number).unwrap(), Some(77));
    assert_eq!(engine.try_take(&template, Order::Fifo, number).unwrap(), Some(1_500));
    assert_eq!(engine.try_take(&template, Order::Fifo, number).unwrap(), None);
    engine.check().unwrap();
}

#[test]
fn counting_by_a_value_learns_an_index_o6() {
    let engine = engine(16 << 20);
    for number in 0..2_000 {
        engine.put(&job(number % 100)).unwrap();
    }
    let seven = [any_job()[0], PatternRef::Actual(Field::Int(7))];
    let seven = [TemplateRef::new(&seven)];
    for _ in 0..3 {
        assert_eq!(engine.count(&seven).unwrap(), 20);
    }
    assert!(has_index(&engine));
    assert_eq!(engine.count(&[TemplateRef::new(&any_job())]).unwrap(), 2_000);
    engine.check().unwrap();
}
