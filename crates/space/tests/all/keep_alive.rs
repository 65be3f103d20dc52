//! What is kept alive lasts as long as its guard, however little was left when that began (L2, K2, K3).

use std::time::Duration;

use crate::common::{ENGINES, Temporary, keep};
use tupelo::{
    Claim, ClaimTerms, Error, Kind, LeaseTerms, Order, Space, TemplateRef, fields, template,
};
use tupelo_model::Limits;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const MOMENT: Duration = Duration::from_millis(1);

fn claimed(space: &Space, template: &[TemplateRef<'_>], ttl: Duration) -> Claim {
    let terms = ClaimTerms { ttl, attempts_max: None };
    space.try_claim(template, Order::Fifo, &terms, keep).unwrap().unwrap().0
}

/// How long the one tuple that is claimed stays so, if nobody extends that.
fn left(space: &Space, template: &[TemplateRef<'_>]) -> Duration {
    let holdings = space.explain(template).unwrap().held;
    holdings[0].expires_in.unwrap()
}

#[test]
fn a_claim_that_has_little_time_left_is_renewed_when_its_guard_begins_k2() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let space = &temporary.space;
        let template = [template!["job", Kind::Int]];
        space.put(&fields!["job", 1]).unwrap();
        let claim = claimed(space, &template, HOUR);
        claim.extend(Some(MINUTE)).unwrap();
        assert!(left(space, &template) <= MINUTE);
        let guard = claim.keep_alive().unwrap();
        assert!(left(space, &template) > MINUTE);
        drop(guard);
        claim.extend(Some(HOUR * 10)).unwrap();
        let _guard = claim.keep_alive().unwrap();
        assert!(left(space, &template) > HOUR * 9, "what was extended beyond that stays so");
    }
}

#[test]
fn a_claim_that_is_lost_can_not_be_kept_alive_k3() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let space = &temporary.space;
        let template = [template!["job", Kind::Int]];
        space.put(&fields!["job", 1]).unwrap();
        let claim = claimed(space, &template, MOMENT);
        space.take(&template, Order::Fifo, None, keep).unwrap();
        let refused = claim.keep_alive();
        assert!(matches!(refused, Err(Error::ClaimLost { .. })), "{refused:?}");
    }
}

#[test]
fn a_lease_that_has_little_time_left_is_renewed_when_its_guard_begins_l2() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let terms = LeaseTerms { lease: Some(HOUR), after: None };
        let lease = temporary.space.put_leased(&fields!["job", 1], &terms).unwrap();
        lease.renew(Some(MINUTE)).unwrap();
        let guard = lease.keep_alive().unwrap();
        assert!(lease.expires_in().unwrap().unwrap() > MINUTE);
        drop(guard);
        lease.renew(Some(HOUR * 10)).unwrap();
        let guard = lease.keep_alive().unwrap();
        assert!(lease.expires_in().unwrap().unwrap() > HOUR * 9);
        drop(guard);
        lease.renew(None).unwrap();
        let guard = lease.keep_alive().unwrap();
        assert_eq!(lease.expires_in().unwrap(), None, "what stays for ever does so");
        drop(guard);
        lease.cancel().unwrap();
        let refused = lease.keep_alive();
        assert!(matches!(refused, Err(Error::LeaseExpired { .. })), "{refused:?}");
    }
}

#[test]
fn what_is_claimed_by_a_closed_handle_can_not_be_kept_alive_l5() {
    for engine in ENGINES {
        let temporary = Temporary::new(engine, Limits::default());
        let space = temporary.connect_again();
        let template = [template!["job", Kind::Int]];
        space.put(&fields!["job", 1]).unwrap();
        let claim = claimed(&space, &template, HOUR);
        space.close();
        let refused = claim.keep_alive();
        assert!(matches!(refused, Err(Error::SpaceClosed { .. })), "{refused:?}");
    }
}
