//! The clock that leases, claims and timers go by (rule L4).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tupelo_shm::clock;

/// How far the cheap clock may be behind, in nanoseconds.
pub(crate) const COARSE_NS: u64 = 12_000_000;

/// The time, in milliseconds of the monotonic clock (rule L4).
pub(crate) fn now_ms() -> u64 {
    clock::monotonic_ns() / 1_000_000
}

/// The moment `after` from now. Rounded up, so that it is not reached too early.
pub(crate) fn moment_in(after: Duration) -> u64 {
    now_and_in(after).1
}

/// The time, and the moment `after` from it, by a clock that is up to [`clock::AHEAD_NS`] ahead: nothing ends too early.
pub(crate) fn now_and_in(after: Duration) -> (u64, u64) {
    moments(clock::monotonic_ahead_ns(), after)
}

/// The time, and the moment `after` from it, by the clock that is the same for all processes.
pub(crate) fn now_and_exactly_in(after: Duration) -> (u64, u64) {
    moments(clock::monotonic_ns(), after)
}

pub(crate) fn moments(now_ns: u64, after: Duration) -> (u64, u64) {
    let seconds_ns = after.as_secs().saturating_mul(1_000_000_000);
    let after_ns = seconds_ns.saturating_add(u64::from(after.subsec_nanos()));
    let end_ms = now_ns.saturating_add(after_ns).div_ceil(1_000_000);
    let begin_ms = now_ns / 1_000_000;
    (begin_ms, end_ms.min(begin_ms + TIME_MS_MAX))
}

/// The moment `after` from now, by the cheap clock: up to [`COARSE_NS`] too early.
pub(crate) fn coarse_moment_in(after: Duration) -> u64 {
    let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    (clock::monotonic_coarse_ns() / 1_000_000).saturating_add(after_ms)
}

/// The time by the wall clock, in nanoseconds since 1970; 0 before that.
pub(crate) fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// What the wall clock will show when the monotonic one shows `monotonic_ms`, if nobody sets it.
pub(crate) fn wall_ns_of(monotonic_ms: u64) -> u64 {
    let then_ns = monotonic_ms.saturating_mul(1_000_000);
    let (now_ns, wall_ns) = (clock::monotonic_ns(), wall_ns());
    if then_ns < now_ns {
        wall_ns.saturating_sub(now_ns - then_ns)
    } else {
        wall_ns.saturating_add(then_ns - now_ns)
    }
}

/// How long it is until `due_ms`, rounded down: what was said to be so long is never shown as longer.
pub(crate) fn time_until(due_ms: u64) -> Duration {
    // What it was said by was as far ahead at most.
    let now_ms = (clock::monotonic_ns() + clock::AHEAD_NS) / 1_000_000;
    Duration::from_millis(due_ms.saturating_sub(now_ms + 1))
}

/// How long it is until [`is_past`] is true of `due_ms`, and not a nanosecond less.
pub(crate) fn exact_time_until(due_ms: u64) -> Duration {
    let moment_ns = due_ms.saturating_mul(1_000_000);
    Duration::from_nanos(moment_ns.saturating_sub(clock::monotonic_ns()))
}

/// Whether what is due at `due_ms` has happened by now.
#[inline(always)]
pub(crate) fn is_past(due_ms: u64) -> bool {
    due_ms != 0 && has_come(due_ms)
}

/// Apart, so that where nothing is due at any time the question costs no more than a look.
#[cold]
#[inline(never)]
pub(crate) fn has_come(due_ms: u64) -> bool {
    // What is far away is told by the cheap clock.
    due_ms.saturating_mul(1_000_000) <= clock::monotonic_coarse_ns() + COARSE_NS
        && due_ms <= now_ms()
}

/// The latest time that the wheel can hold; what is later is as good as never.
pub(crate) const TIME_MS_MAX: u64 = 1 << TIME_BITS_MAX;
/// The bits of that.
const TIME_BITS_MAX: u32 = 41;
