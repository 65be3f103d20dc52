//! What is put under a claim appears with its end or is refused, also at the very moment of that end (K4).

use std::time::Duration;

use crate::common::{ENGINES, Temporary, keep};
use tupelo::{Claim, ClaimTerms, Error, Field, Kind, Order, TupleRef, fields, template};
use tupelo_model::Limits;

/// How somebody ends a claim.
type End = fn(&Claim) -> Result<(), Error>;

/// A tuple that is looked at when somebody else ends the claim under which it is put.
struct Meanwhile<'c>(&'c Claim, End);

impl From<Meanwhile<'_>> for TupleRef<'static> {
    fn from(Meanwhile(claim, end): Meanwhile<'_>) -> Self {
        end(claim).unwrap();
        const { &[Field::Int(7)] }.into()
    }
}

#[test]
fn what_is_put_while_the_claim_ends_is_refused_k4() {
    let ends: [End; 2] = [Claim::done, |claim| claim.abort("no")];
    for (engine, end) in ENGINES.into_iter().flat_map(|engine| ends.map(|end| (engine, end))) {
        for earlier in [false, true] {
            let temporary = Temporary::new(engine, Limits::default());
            let space = &temporary.space;
            space.put(&fields!["job", 1]).unwrap();
            let terms = ClaimTerms { ttl: Duration::from_secs(60), attempts_max: None };
            let template = [template!["job", Kind::Int]];
            let claimed = space.try_claim(&template, Order::Fifo, &terms, keep).unwrap();
            let (claim, _) = claimed.unwrap();
            if earlier {
                claim.put(&fields!["earlier"]).unwrap();
            }
            let put = claim.put(Meanwhile(&claim, end));
            assert!(matches!(put, Err(Error::Misuse { .. })), "{put:?}");
            assert_eq!(claim.discard_puts(), 0);
            assert_eq!(space.count(&[template![Kind::Int]]).unwrap(), 0);
        }
    }
}
