"""put with lease and after: tuples that disappear, or appear, by themselves."""

import gc
import os
import signal
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from time import monotonic

import pytest
from attempts import in_one_attempt

import tupelo as ts
from tupelo import REST


def test_a_leased_tuple_disappears_and_not_before_its_time(space):
    begin = monotonic()
    lease = space.put("host", "a", lease=0.05)
    space.wait_none("host", str, timeout=60)
    assert monotonic() - begin >= 0.05  # L1
    assert space.try_take("host", str) is None
    with pytest.raises(ts.LeaseExpired) as caught:
        lease.renew()  # L2
    assert (caught.value.code, caught.value.space) == ("TUP-021", space.url)
    assert "not there any more: ('host', 'a'), put for 0.05 s; its lease ended" in str(caught.value)
    with pytest.raises(ts.LeaseExpired):
        lease.cancel()
    with pytest.raises(ts.LeaseExpired):
        lease.expires_in_s  # noqa: B018
    assert repr(lease) == "<Lease, ended>"


def test_a_plain_put_has_no_lease(space):
    assert space.put("host", "a", lease=None, after=None) is None


@pytest.mark.parametrize("seconds", [60, 60.0, timedelta(minutes=1)])
def test_a_lease_says_how_long_it_is(space, seconds):
    lease = space.put("host", "a", lease=seconds)
    assert isinstance(lease, ts.Lease)
    assert 0 < lease.expires_in_s <= 60
    lease.renew(120)
    assert 60 < lease.expires_in_s <= 120  # L2
    lease.renew()
    assert lease.expires_in_s <= 60
    assert space.take("host", str, timeout=0) == ("host", "a")
    with pytest.raises(ts.LeaseExpired):
        lease.renew()


def test_cancelling_a_lease_removes_the_tuple(space):
    lease = space.put("host", "a", lease=60)
    space.put("host", "b")
    lease.cancel()
    assert space.read_all(REST) == [("host", "b")]  # L2


def test_a_forgotten_lease_changes_nothing(space):
    space.put("host", "a", lease=60)
    assert space.read_all(REST) == [("host", "a")]


def test_a_delayed_tuple_is_visible_later_and_serves_who_waits(space, eventually):
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(space.take, "job", int)
        eventually(lambda: space.stat()["waiters"] == 1)
        begin = monotonic()
        space.put("job", 1, after=0.05)
        assert waiting.result() == ("job", 1)  # T6
        assert monotonic() - begin >= 0.05
    lease = space.put("job", 2, after=60)
    assert lease.expires_in_s is None
    assert repr(lease) == "<Lease for ever>"
    assert space.try_take("job", int) is None  # L3


def test_a_tuple_in_somebodys_hands_is_not_cancelled(space):
    lease = space.put("news", 1, lease=60)
    claim = space.claim("news", int)
    message = f"in the hands of process {os.getpid()}, .*: \\('news', 1\\), put for 60 s"
    with pytest.raises(ts.LeaseExpired, match=message) as caught:
        lease.cancel()
    assert "renew the lease for a moment" in caught.value.hint
    claim.abort()
    lease.cancel()  # L2
    assert space.try_read("news", int) is None


def test_a_delayed_tuple_can_be_cancelled_before_it_is_seen(space):
    lease = space.put("job", 1, after=60)
    assert space.stat()["shapes"][0]["delayed"] == 1
    lease.cancel()
    assert space.stat()["shapes"][0]["delayed"] == 0
    with pytest.raises(ts.LeaseExpired, match=r"put without an end; it was cancelled here"):
        lease.cancel()


def test_stat_counts_the_tuples_whose_lease_ends(space):
    def leased():
        return space.stat()["shapes"][0]["leased"]

    space.put("job", 0)
    leases = [space.put("job", k, lease=60) for k in range(1, 5)]
    space.put("job", 5, after=60, lease=60)
    space.put("job", 6, lease=None)
    assert leased() == 5
    leases[0].renew(120)
    assert leased() == 5
    space.take("job", 1)
    leases[1].cancel()
    assert leased() == 3
    claim = space.claim("job", 3, max_attempts=1)
    assert leased() == 3
    claim.abort("not today")
    assert space.stat()["shapes"][0]["dead"] == 1
    assert leased() == 3
    leases[3].renew(0.001)
    space.wait_none("job", 4)
    assert leased() == 2
    leases[2].cancel()
    assert leased() == 1  # that of the one that is not there yet


def test_a_lease_counts_from_when_the_tuple_is_visible(space):
    lease = space.put("job", 1, after=60, lease=5)
    assert lease.expires_in_s == 5  # L3
    space.put("job", 2, after=0, lease=60)
    assert space.take("job", int, timeout=60) == ("job", 2)


def test_put_all_takes_terms_for_all_its_tuples(space):
    assert space.put_all([("host", "a"), ("host", "b")], lease=0.02) == 2
    assert space.put_all([("host", "c")], after=0.02) == 1
    space.put_all([("host", "d")], lease=None)
    assert space.take("host", "c", timeout=60) == ("host", "c")
    space.wait_none("host", "a", timeout=60)
    space.wait_none("host", "b", timeout=60)
    assert space.read_all(REST) == [("host", "d")]


@in_one_attempt
def test_a_lease_that_is_kept_alive_does_not_end(space, eventually):
    lease = space.put("host", "a", lease=0.6)
    with lease.keep_alive(), pytest.raises(ts.Timeout):
        space.wait_none("host", str, timeout=1.5)  # more than twice the lease
    eventually(lambda: space.count(REST) == 0)


def test_a_lease_that_has_ended_is_not_kept_alive(space, eventually):
    ended = space.put("host", "a", lease=0.01)
    eventually(lambda: space.count(REST) == 0)
    taken = space.put("host", "b", lease=60)
    space.take("host", "b")
    cancelled = space.put("host", "c", lease=60)
    cancelled.cancel()
    for lease in (ended, taken, cancelled):
        with pytest.raises(ts.LeaseExpired, match="TUP-021"), lease.keep_alive():
            pytest.fail("the block ran")


def test_keeping_alive_renews_at_once(space):
    """The first renewal by the clock is a third of the lease away: more than may be left."""
    lease = space.put("host", "a", lease=3600)
    lease.renew(0.5)
    with lease.keep_alive():
        assert lease.expires_in_s > 3000


def test_keeping_alive_shortens_nothing(space):
    lease = space.put("host", "a", lease=0.3)
    lease.renew(7200)
    with lease.keep_alive():
        with pytest.raises(ts.Timeout):
            space.wait_none("host", str, timeout=0.5)  # more than one renewal
        assert lease.expires_in_s > 7000


def test_a_lease_that_is_lost_while_it_is_kept_alive_says_so_at_the_end(space):
    lease = space.put("host", "a", lease=60)
    with pytest.raises(ts.LeaseExpired, match="TUP-021"), lease.keep_alive():
        space.take("host", str)


def test_a_lease_that_is_cancelled_while_it_is_kept_alive_is_not_lost(space):
    lease = space.put("host", "a", lease=60)
    with lease.keep_alive():
        lease.cancel()
    assert space.count(REST) == 0


def test_an_exception_goes_on_and_has_a_note_that_the_lease_was_lost(space):
    lease = space.put("host", "a", lease=60)
    with pytest.raises(ZeroDivisionError) as raised, lease.keep_alive():
        space.take("host", str)
        1 / 0  # noqa: B018
    assert [note.split(":")[0] for note in raised.value.__notes__] == ["TUP-021"]
    kept = space.put("host", "b", lease=60)
    with pytest.raises(ZeroDivisionError) as raised, kept.keep_alive():
        1 / 0  # noqa: B018
    assert not hasattr(raised.value, "__notes__")


STOPPED = """
import os, signal, sys
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
lease = space.put("host", "stopped", lease=2)
try:
    with lease.keep_alive():
        os.kill(os.getpid(), signal.SIGSTOP)
except ts.LeaseExpired:
    space.put("noticed")
"""


def test_who_is_stopped_for_longer_than_the_lease_is_told_at_the_end(shm, shm_url):
    child = subprocess.Popen([sys.executable, "-c", STOPPED, shm_url])
    try:
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert child.poll() is None
        assert shm.wait_none("host", str, timeout=60) is None
    finally:
        child.send_signal(signal.SIGCONT)
    assert shm.take("noticed", timeout=60) == ("noticed",)
    assert child.wait(timeout=60) == 0


def test_a_lease_that_never_ends_says_none_and_is_not_kept_alive_l4(space):
    lease = space.put("host", "a", after=0.001)
    assert lease.expires_in_s is None
    with pytest.raises(ValueError, match="this lease never ends"), lease.keep_alive():
        pass


def test_a_lease_that_ends_makes_room_for_a_put_that_waits(url):
    with ts.connect(url, tuples_max=1) as space:
        first = space.put("job", 1, lease=60)
        with pytest.raises(ts.SpaceFull):
            space.put("job", 2, lease=60, timeout=0.001)
        first.renew(0.02)
        lease = space.put("job", 3, lease=60, timeout=60)
        assert 0 < lease.expires_in_s <= 60
        assert space.read_all(REST) == [("job", 3)]


def test_a_claimed_tuple_whose_lease_ends_does_not_come_back(space, eventually):
    claimed = space.put("job", 1, lease=60)
    claim = space.claim("job", int)
    claimed.renew(0.02)
    other = space.put("job", 2, lease=0.02)
    eventually(lambda: space.count(REST) == 0)
    with pytest.raises(ts.LeaseExpired):
        other.renew()
    claim.abort()
    eventually(lambda: space.count(REST) == 0)


def test_a_lease_of_a_space_that_was_closed_says_so(url):
    with ts.connect(url) as space:
        lease = space.put("host", "a", lease=60)
    with pytest.raises(ts.SpaceClosed):
        lease.renew()


class Host:
    """What keeps the lease of the tuple that has it."""


@pytest.mark.parametrize("kept", [lambda lease: lease, lambda lease: lease.keep_alive()])
def test_who_keeps_a_lease_of_itself_is_collected_and_its_tuple_stays(space, kept):
    host = Host()
    host.lease = kept(space.put("host", host, lease=60))
    gone = weakref.ref(host)
    del host
    gc.collect()
    assert gone() is None
    assert space.count("host", ...) == 1


def test_put_if_absent_with_a_lease_elects_one_leader_at_a_time(space, eventually):
    def stand(number):
        return space.put_if_absent("leader", number, unless=("leader", int), lease=60)

    lease = stand(1)
    assert isinstance(lease, ts.Lease)
    assert lease.expires_in_s <= 60  # L1
    assert stand(2) is None  # O8
    assert space.read_all("leader", int) == [("leader", 1)]
    lease.cancel()  # L2
    assert stand(3)
    assert space.put_if_absent("leader", 4, unless=("leader", 4), lease=0.02)
    eventually(lambda: space.count("leader", 4) == 0)
    assert space.put_if_absent("leader", 4, unless=("leader", 4), lease=60)


def test_put_if_absent_with_a_delay_puts_what_is_visible_later(space):
    lease = space.put_if_absent("job", 1, unless=("job", int), after=60, lease=60)
    assert space.count("job", int) == 0  # L3
    lease.cancel()
    assert space.put_if_absent("job", 1, unless=("job", int), lease=None) is True
    assert space.put_if_absent("job", 1, unless=("job", int)) is False
