//! What workers do to coins by claims, and what they put for a while, in the torture by random kills.

use std::sync::Arc;
use std::time::Duration;

use tupelo_engine::{ClaimTerms, Engine, Error, LeaseTerms, Order};
use tupelo_tuple::{Field, PatternRef, TemplateRef, TupleRef, TupleView};

use super::{INT, shown, text};

const HOUR: Duration = Duration::from_secs(3_600);
/// So many attempts fail sooner or later: then a coin is dead until somebody says `requeue`.
const ATTEMPTS_MAX: u32 = 20;

/// Claims a coin and gives it another key at the end of the claim; or gives it back, or forgets to, or is too late.
pub(crate) fn claim_coin(engine: &Arc<Engine>, [from, to]: [i64; 2], draw: u64) {
    let ttl = if draw & 1 == 0 { HOUR } else { Duration::from_millis(1) };
    let terms = ClaimTerms { ttl, attempts_max: Some(ATTEMPTS_MAX) };
    let template = [text("coin"), PatternRef::Actual(Field::Int(from)), INT];
    let visitor = |tuple: TupleView<'_>| match tuple.field(2) {
        Some(Field::Int(number)) => Ok(number),
        other => panic!("a coin with the number {other:?}"),
    };
    let claimed = engine.try_claim(&[TemplateRef::new(&template)], Order::Fifo, &terms, visitor);
    let (claim, number) = match claimed {
        Ok(Some(claimed)) => claimed,
        Ok(None) | Err(Error::SpaceFull(_)) => return,
        Err(error) => panic!("{error}"),
    };
    let moved = [Field::Str("coin"), Field::Int(to), Field::Int(number)];
    let settled = match draw >> 1 & 7 {
        0 => claim
            .abort("a reason that is longer than the others, so that it needs a block of its own"),
        1 => claim.abort(""),
        2 => claim.extend(HOUR),
        _ => claim.done(&[TupleRef::from(&moved)]),
    };
    match settled {
        Ok(()) | Err(Error::ClaimLost { .. } | Error::SpaceFull(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Puts a tuple that goes away, or one that comes later, or both.
pub(crate) fn put_brief(engine: &Engine, draw: u64) {
    let some = |bits: u64| (!bits.is_multiple_of(4)).then(|| Duration::from_millis(bits % 8));
    let lease = some(draw).unwrap_or(Duration::from_millis(1));
    let terms = LeaseTerms { lease: Some(lease), after: some(draw >> 3) };
    match engine.put_leased(&[Field::Str("brief"), Field::Float(0.5)], &terms) {
        Ok(lease) if (draw >> 6).is_multiple_of(4) => match engine.cancel(&lease) {
            Ok(()) | Err(Error::LeaseExpired | Error::LeaseHeld { .. }) => {}
            Err(error) => panic!("{error}"),
        },
        Ok(_) | Err(Error::SpaceFull(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Gives dead coins another chance.
pub(crate) fn requeue_coins(engine: &Engine) {
    let template = [text("coin"), INT, INT];
    match engine.requeue(&[TemplateRef::new(&template)]) {
        Ok(_) | Err(Error::SpaceFull(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

/// Waits until all that was put for a while has gone. If it does not, the test does not end.
pub(crate) fn let_all_brief_go(engine: &Engine) {
    let template = [text("brief"), super::FLOAT];
    let template = [TemplateRef::new(&template)];
    let is_to_come = || {
        let stat = engine.stat().expect("the space is sound");
        stat.shapes.iter().any(|shape| shape.delayed > 0)
    };
    while is_to_come() || engine.present(&template).expect("the space is sound") {
        let _ = engine.try_read(&template, Order::Fifo, shown).expect("the space is sound");
        std::thread::sleep(Duration::from_millis(1));
    }
}
