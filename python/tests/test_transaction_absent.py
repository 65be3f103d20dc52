"""put_if_absent in a transaction: only if nothing matches, and nobody comes first (O8, X1)."""

import asyncio

import pytest

import tupelo as ts
from tupelo import REST, F, aio, like


def test_it_puts_what_is_absent_in_the_view_of_the_transaction_o8(space):
    space.put("leader", 1)
    with space.transaction() as t:
        assert t.put_if_absent("leader", 2, unless=("leader", int)) is False
        assert t.take("leader", int) == ("leader", 1)
        assert t.put_if_absent("leader", 2, unless=("leader", int)) is True  # X2: it is gone to t
        assert t.put_if_absent("leader", 3, unless=like("leader", int)) is False
        assert t.put_if_absent("seen", 7)
        assert not t.put_if_absent("seen", 7)
        assert space.read_all(REST) == []
    assert space.read_all("leader", int) == [("leader", 2)]
    assert space.take_all("seen", int) == [("seen", 7)]


def test_what_others_hold_is_present_o9(space):
    space.put("leader", 1)
    with space.claim("leader", int), space.transaction() as t:
        assert t.put_if_absent("leader", 2, unless=("leader", int)) is False
    with space.transaction() as other:
        other.put("leader", 5)
        with space.transaction() as t:
            assert t.put_if_absent("leader", 2, unless=("leader", 5))
        other.abort()
    assert space.take_all("leader", int) == [("leader", 2)]


def test_of_two_transactions_one_has_put_and_the_other_is_rolled_back_o8(space):
    space.put("job", 1)
    with pytest.raises(ts.Aborted, match="put_if_absent found absent: the transaction was rolled"):
        with space.transaction() as late:
            assert late.take("job", int) == ("job", 1)
            assert late.put_if_absent("leader", 1, unless=("leader", F > 0))
            with space.transaction() as first:
                assert first.put_if_absent("leader", 2, unless=("leader", int))
    assert space.read_all("leader", int) == [("leader", 2)]
    assert space.take("job", int, timeout=60) == ("job", 1)  # X5


def test_a_match_of_a_shape_that_is_new_rolls_it_back_too_o8(space):
    with pytest.raises(ts.Aborted), space.transaction() as t:
        assert t.put_if_absent("leader", 1, unless=("leader", ...))
        space.put("leader", "by hand")
    assert space.read_all(REST) == [("leader", "by hand")]


def test_over_two_spaces_the_one_that_is_broken_undoes_both_x1(space, url_beside):
    with ts.connect(url_beside, size="64M") as other:
        with pytest.raises(ts.Aborted), space.transaction(other) as t:
            t.put("here", 1)
            assert t.on(other).put_if_absent("there", 1)
            other.put("there", 1)
        with space.transaction(other) as t:
            t.put("here", 2)
            assert t.on(other).put_if_absent("there", 2)
        assert space.read_all(REST) == [("here", 2)]
        assert other.count("there", int) == 2


def test_it_has_a_lease_from_the_commit_and_no_timeout_x2(space, eventually):
    with space.transaction() as t:
        assert t.put_if_absent("host", 1, lease=0.02)
        with pytest.raises(TypeError, match="in a transaction has no timeout="):
            t.put_if_absent("host", 2, timeout=1)
        with pytest.raises(ts.Unsupported, match=r"does not take a condition \(where=\)"):
            t.put_if_absent("host", 2, unless=like("host", int, where="f[1] > 1"))
    eventually(lambda: space.count("host", 1) == 0)


def test_it_is_a_verb_of_asyncio_too(space):
    async def main():
        async with aio.connect(space.url) as shared, shared.transaction() as t:
            assert await t.put_if_absent("leader", 1, unless=("leader", int))
            assert not await t.put_if_absent("leader", 2, unless=("leader", int))
        async with aio.connect(space.url) as shared:
            lease = await shared.put_if_absent("leader", 3, unless=("leader", 3), lease=60)
            assert await shared.put_if_absent("leader", 3, unless=("leader", 3), lease=60) is None
            await lease.cancel()

    asyncio.run(main())
    assert space.read_all(REST) == [("leader", 1)]
