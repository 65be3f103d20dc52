"""transaction: operations that take effect together, or not at all."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

import pytest

import tupelo as ts
from tupelo import REST, F, aio, like


@dataclass
class Account:
    owner: str
    money: int = 0


def test_a_block_takes_effect_at_its_end(space):
    space.put("account", "alice", 100)
    with space.transaction() as t:
        _, _, money = t.take("account", "alice", int)
        t.put("account", "alice", money - 10)
        t.put("account", "bob", 10)
        assert space.read_all(REST) == []  # X2, X3
        assert t.read_all("account", str, int) == [("account", "alice", 90), ("account", "bob", 10)]
    assert space.read_all(REST) == [("account", "alice", 90), ("account", "bob", 10)]  # X1


@pytest.mark.parametrize("exception", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_an_exception_undoes_everything_and_goes_on(space, exception):
    space.put_all([("job", n) for n in range(4)])
    with pytest.raises(exception), space.transaction() as t:
        assert t.take("job", 2) == ("job", 2)
        assert t.take("job", int) == ("job", 0)
        assert t.read("job", int) == ("job", 1)
        t.put("job", 9)
        raise exception
    assert space.take_all("job", int) == [("job", n) for n in range(4)]  # X5


def test_what_was_read_can_be_read_and_not_taken(space):
    space.put("rate", 0.5)
    with space.transaction() as t:
        assert t.read("rate", float) == ("rate", 0.5)
        assert space.read("rate", float) == ("rate", 0.5)
        assert space.try_take("rate", float) is None  # X3
        with pytest.raises(ts.Timeout):
            space.take("rate", float, timeout=0.01)
        assert space.try_claim("rate", float) is None
        assert t.take("rate", float) == ("rate", 0.5)  # its own
    assert space.count(REST) == 0


def test_every_verb_sees_the_transaction_s_own_view(space):
    space.put_all([("n", 1), ("n", 5)])
    with space.transaction() as t:
        assert t.put_all([("n", 3), ("n", 9)]) == 2
        assert t.count("n", int) == 4
        assert t.try_take("n", int, order="lifo") == ("n", 9)
        assert t.try_read("n", int, order=F.max(1)) == ("n", 5)
        assert t.try_read("n", F > 2, order=F.min(1)) == ("n", 3)
        assert t.swap("n", 1, to=("n", 7)) == ("n", 1)
        assert t.try_swap("m", to=("n", 8)) is None
        assert t.take_many("n", int, n=2, at_least=1) == [("n", 5), ("n", 3)]
        assert t.take_all("n", int, limit=5) == [("n", 7)]
        assert t.try_take(like("n", int) | like("m")) is None
        t.put("n", 4)
    assert space.take_all(REST) == [("n", 4)]


def test_entries_and_their_fields_by_keyword(space):
    space.put(Account("alice", 10))
    with space.transaction() as t:
        account = t.take(Account, owner="alice")
        t.put(Account("alice", account.money + 1))
        assert t.try_read(Account, money=F > 5) == Account("alice", 11)
    assert space.take(Account) == Account("alice", 11)
    with space.transaction() as t, pytest.raises(ts.UnknownField):
        t.take(Account, ovner="alice")


def test_several_spaces_change_together(space, url, url_beside):
    with ts.connect(url_beside) as other:
        space.put("job", 1)
        with pytest.raises(ZeroDivisionError), space.transaction(other) as t:
            t.on(other).put(*t.take("job", int))
            raise ZeroDivisionError
        assert (space.count(REST), other.count(REST)) == (1, 0)
        with space.transaction(other) as t:
            t.on(other).put(*t.take("job", int))
        assert (space.count(REST), other.take("job", int)) == (0, ("job", 1))  # X1
        with pytest.raises(ValueError, match="not in this transaction"), space.transaction() as t:
            t.on(other)
        with ts.connect(url) as again, space.transaction(other) as t:
            t.on(again).put("by another handle")
            for no_space in (None, url, t):
                with pytest.raises(TypeError, match=r"on\(\) is given a space of .*, not a "):
                    t.on(no_space)
        assert space.take(str) == ("by another handle",)


def test_spaces_that_can_not_change_together_are_refused(space, url, new_url):
    with pytest.raises(ValueError, match="in the transaction twice"):
        space.transaction(space)
    scheme = "shm" if url.startswith("mem") else "mem"
    with (
        ts.connect(new_url(scheme)) as other,
        pytest.raises(ValueError, match="all mem://, all shm://"),
    ):
        space.transaction(other)
    with pytest.raises(TypeError, match="not a str"):
        space.transaction("shm://jobs")
    with pytest.raises(ValueError, match="ttl is 0"):
        space.transaction(ttl=0)


def test_a_timeout_does_not_end_the_transaction(space):
    with space.transaction() as t:
        t.put("a", 1)
        for wait in (t.take, t.read):
            with pytest.raises(ts.Timeout, match=r'nothing matched \("b", :int\) within 0.01 s'):
                wait("b", int, timeout=0.01)
            with pytest.raises(ts.Timeout):
                wait("b", int, timeout=0)
        with pytest.raises(ts.Timeout):
            t.take_many("b", int, n=1, timeout=0.01)
        with pytest.raises(ts.Timeout):
            t.swap("b", int, to=("b", 2), timeout=0.01)
        with pytest.raises(ts.NotEncodable):
            t.put("\ud800")
        with pytest.raises(TypeError, match="the only argument is a tuple"):
            t.put(("a", 1))
        with pytest.raises(TypeError, match="needs to"):
            t.swap("a", int)
        with pytest.raises(ValueError, match="at_least is 3"):
            t.take_many("a", int, n=2, at_least=3)
    assert space.take_all(REST) == [("a", 1)]


def test_a_transaction_ends_once(space):
    t = space.transaction()
    t.put("a", 1)
    t.commit()
    for again in (t.commit, t.abort, lambda: t.put("b"), lambda: t.take("a", ...)):
        with pytest.raises(ValueError, match="was committed already"):
            again()
    with space.transaction() as t:
        t.put("b")
        t.abort()
    with pytest.raises(ValueError, match="was aborted already"):
        t.count(REST)
    assert space.take_all(REST) == [("a", 1)]
    forgotten = space.transaction()
    forgotten.put("c")
    space.put("d")
    assert forgotten.take("d") == ("d",)
    del forgotten
    assert space.take_all(REST) == [("d",)]


def test_a_timeout_of_a_put_is_refused_with_the_verb_that_has_it(space):
    space.put("work")
    claim = space.claim("work")
    with space.transaction() as t:
        for put in (lambda **terms: t.put("a", **terms), lambda **terms: t.put_all([], **terms)):
            with pytest.raises(TypeError, match=r"in a transaction has no timeout=.*space\.put"):
                put(timeout=1)
        with pytest.raises(TypeError, match='put\\(\\) has no keyword argument "nothing"'):
            t.put("a", nothing=1)
    with pytest.raises(TypeError, match=r"under a claim has no timeout=.*space\.put"):
        claim.put("a", timeout=1)
    claim.done()
    assert space.count(REST) == 0


def test_a_lease_and_an_after_count_from_the_commit_x2(space, eventually):
    with space.transaction() as t:
        t.put("short", lease=0.05)
        t.put("later", after=0.05)
        t.put_all([("host", 1), ("host", 2)], lease=3600)
        t.put("plain")
        t.put("given up", lease=3600)
        t.take("given up")
        assert t.count(REST) == 5  # the transaction sees all of them at once
        with pytest.raises(ts.Timeout):
            t.take("nothing", timeout=0.1)  # for longer than the lease
        assert t.count("short") == 1
    assert sum(shape["leased"] for shape in space.stat()["shapes"]) >= 2
    assert space.take("later", timeout=60) == ("later",)
    eventually(lambda: space.count("short") == 0)
    assert space.read_all("host", int) == [("host", 1), ("host", 2)]
    assert space.take("plain") == ("plain",)


def test_a_transaction_that_is_rolled_back_puts_nothing_on_terms_x2(space):
    with pytest.raises(ZeroDivisionError), space.transaction() as t:
        t.put("host", lease=3600)
        raise ZeroDivisionError
    assert space.count(REST) == 0


def test_many_puts_of_a_transaction_keep_their_terms_apart_x2(space, eventually):
    with space.transaction() as t:
        for number in range(40):
            t.put("host", number, lease=0.02 if number % 2 else None)
        assert t.take("host", 3) == ("host", 3)
        assert t.take("host", 4) == ("host", 4)
    eventually(lambda: space.count("host", int) == 19)
    assert {number % 2 for _, number in space.read_all("host", int)} == {0}


def test_another_thread_is_refused(space):
    failures = []

    def use(t):
        try:
            t.put("a", 1)
        except ValueError as why:
            failures.append(str(why))

    with space.transaction() as t:
        thread = threading.Thread(target=use, args=(t,))
        thread.start()
        thread.join()
        t.put("b")
    assert f"in {space.url} belongs to the thread that began it" in failures[0]
    assert space.take_all(REST) == [("b",)]


def test_a_block_that_goes_on_after_aborted_does_not_end_as_if_all_were_well(space):
    with pytest.raises(ts.Aborted, match="0 takes were undone, 1 put was discarded"):
        with space.transaction(ttl=0.5) as t:
            t.put("left")
            with pytest.raises(ts.Aborted):
                t.take("right")
    assert space.count(REST) == 0
    with space.transaction(ttl=0.01) as t:
        with pytest.raises(ts.Aborted):
            t.take("right")
        t.abort()  # Said and done.


def test_who_waits_for_what_another_has_read_too_gets_it_when_that_one_ends(space):
    space.put("rate", 1)
    both, other_may_end = threading.Barrier(2), threading.Event()

    def read():
        with space.transaction() as other:
            other.read("rate", int)
            both.wait(60)
            other_may_end.wait(60)

    thread = threading.Thread(target=read)
    thread.start()
    with space.transaction() as t:
        t.read("rate", int)
        both.wait(60)
        with pytest.raises(ts.Timeout):
            t.take("rate", int, timeout=0.01)
        threading.Timer(0.01, other_may_end.set).start()
        assert t.take("rate", int) == ("rate", 1)  # X4
    thread.join()
    assert space.count(REST) == 0


def test_what_is_refused_has_taken_and_put_nothing(url):
    large = b"x" * (5 << 20)
    with ts.connect(url, size="4M") as small:
        small.put("account", 1)
        with small.transaction() as t:
            for swap in (t.swap, t.try_swap):
                with pytest.raises(ts.SpaceFull):
                    swap("account", int, to=("account", large))
            with pytest.raises(ts.SpaceFull):
                t.put_all([("ok", 1), ("large", large), ("ok", 2)])
        assert small.take_all(REST) == [("account", 1)]  # O2, O5, O8


def test_a_transaction_that_is_open_too_long_is_undone(space):
    space.put("a")
    with pytest.raises(ts.Aborted, match=r"its ttl is 0\.5 s"), space.transaction(ttl=0.5) as t:
        t.take("a")
        t.put("b")
        space.take("a")  # It is back when the time is over.
        space.put("c")
    assert space.take_all(REST) == [("c",)]  # X5


def test_who_waits_gets_what_is_given_back_and_what_is_committed(space):
    space.put("a", 1)
    with space.transaction() as t:
        t.take("a", int)
        later = space.take_future("a", int)
        assert not later.done()
        t.put("a", 2)
    assert later.result(60) == ("a", 2)  # X4
    space.put("a", 3)
    with space.transaction() as t:
        t.read("a", int)
        later = space.take_future("a", int)
        t.abort()
    assert later.result(60) == ("a", 3)


def test_a_transaction_waits_for_what_another_puts_or_gives_back(space):
    def put():
        with space.transaction() as other:
            other.put("a", 1)
            other.put("b", 2)

    with space.transaction() as t:
        thread = threading.Thread(target=put)
        thread.start()
        assert t.take("a", int, timeout=60) == ("a", 1)
        assert t.read("b", int, timeout=60) == ("b", 2)
        thread.join()
        assert t.take_many("b", int, n=1, timeout=60) == [("b", 2)]
    assert space.count(REST) == 0


def test_a_commit_that_finds_no_room_raises_and_undoes_everything(url):
    with ts.connect(url, tuples_max=2) as small:
        small.put_all([("a", 1), ("a", 2)])
        with pytest.raises(ts.SpaceFull), small.transaction() as t:
            t.read("a", 1)
            t.put("a", 3)
        assert small.take_all("a", int) == [("a", 1), ("a", 2)]


def test_a_closed_space_is_refused(url, space):
    with ts.connect(url) as closed:
        t = closed.transaction()
        t.put("a")
    with pytest.raises(ts.SpaceClosed):
        t.take("a")
    with pytest.raises(ts.SpaceClosed):
        t.commit()
    assert space.count(REST) == 0
    t.abort()


HOLDS = """
import os, signal, sys, threading
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
with space.transaction(ttl=float(sys.argv[2])) as t:
    t.take("job", 1)
    t.read("job", 2)
    t.put("result", 1)
    space.put("held")
    {work}
"""


def test_a_killed_process_leaves_everything_as_it_was(shm, shm_url):
    shm.put_all([("job", 1), ("job", 2)])
    code = HOLDS.format(work="threading.Event().wait()")
    with subprocess.Popen([sys.executable, "-c", code, shm_url, "3600"]) as child:
        shm.take("held", timeout=60)
        assert shm.try_take("job", int) is None
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert shm.take_all("job", int) == [("job", 1), ("job", 2)]  # X5, L5
    assert shm.count(REST) == 0


@pytest.mark.parametrize("late", ["commits", "goes on"])
def test_a_process_stopped_for_longer_than_its_transaction_may_last_is_refused_later_x5(
    shm, shm_url, late
):
    shm.put_all([("job", 1), ("job", 2)])
    work = "os.kill(os.getpid(), signal.SIGSTOP)"
    if late == "goes on":
        work += "; t.put('more')"
    code = HOLDS.format(work=work)
    with subprocess.Popen(
        [sys.executable, "-c", code, shm_url, "10"], stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert shm.take("held", timeout=60) == ("held",)
            # The one that it had taken, at its old place, and the one that it had read.
            assert shm.take_many("job", int, n=2, timeout=60) == [("job", 1), ("job", 2)]
        finally:
            child.send_signal(signal.SIGCONT)
        error = child.communicate(timeout=60)[1]
    assert "tupelo.Aborted: TUP-008: the transaction was open for " in error
    assert "(its ttl is 10 s)" in error
    assert child.returncode == 1
    assert shm.count(REST) == 0


def test_tasks_have_transactions_too(space):
    async def main():
        async with aio.connect(space.url) as shared:
            await shared.put("account", "alice", 100)
            async with shared.transaction() as t:
                _, _, money = await t.take("account", "alice", int)
                await t.put("account", "alice", money - 1)
                assert await t.try_read("account", str, int) == ("account", "alice", 99)
                assert await shared.count(REST) == 0
            with pytest.raises(ZeroDivisionError):
                async with shared.transaction() as t:
                    await t.take_all(REST)
                    raise ZeroDivisionError
            return await shared.take("account", "alice", int)

    assert asyncio.run(main()) == ("account", "alice", 99)


def test_a_wait_of_a_transaction_that_ends_keeps_nothing_from_others(space):
    with space.transaction() as t:
        place = t._waiter("take", like("job", int))  # noqa: SLF001 - as asyncio's twin does
        assert not place.end_wait()
        # To look once more does not put it into the wait queue again, though it has a time to pick
        # up in.
        assert t._finish_take(place) is None  # noqa: SLF001
        space.put("job", 1)
        assert space.try_take("job", int) == ("job", 1)
        place.cancel()


def test_a_task_that_does_not_wait_in_a_transaction_is_told_so(space):
    async def main():
        async with aio.connect(space.url) as shared, shared.transaction() as t:
            for timeout in (0, 0.0, timedelta(0)):
                with pytest.raises(ts.Timeout, match="within 0 s"):
                    await t.take("none", timeout=timeout)

    asyncio.run(main())


def test_a_task_waits_within_a_transaction_and_loses_nothing_when_cancelled(space):
    async def main():
        async with aio.connect(space.url) as shared:
            taken = asyncio.Event()

            async def work():
                async with shared.transaction() as t:
                    first = await t.take("a", int)
                    assert await t.read("b", int) == ("b", 2)
                    assert await t.take_many("b", int, n=1) == [("b", 2)]
                    taken.set()
                    return first, await t.swap("c", int, to=("c", 0))

            task = asyncio.create_task(work())
            await asyncio.sleep(0)
            await shared.put("a", 1)
            await shared.put("b", 2)
            await taken.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await shared.read_all(REST) == [("a", 1), ("b", 2)]  # T5, X5
            task = asyncio.create_task(work())
            await shared.put("c", 3)
            assert await task == (("a", 1), ("c", 3))
            assert await shared.take_all(REST) == [("c", 0)]
            with pytest.raises(ts.Timeout):
                async with shared.transaction() as t:
                    await t.take("none", timeout=0.01)
            with pytest.raises(ts.Aborted, match=r'it was waiting for \("none"\)'):
                async with shared.transaction(ttl=0.02) as t:
                    await t.take("none")

    asyncio.run(main())


def test_another_task_is_refused(space):
    """As another thread is, also while the first one waits."""

    async def refused(call):
        with pytest.raises(ValueError, match="TUP-019: this transaction belongs to the task that"):
            await call

    async def main():
        async with aio.connect(space.url) as shared:
            begun, calls = asyncio.Event(), []

            async def work():
                async with shared.transaction() as t:
                    inside = t.on(shared)
                    calls.extend(
                        [
                            lambda: t.put("a", 1),
                            lambda: t.take("a", int, timeout=0),
                            lambda: t.read_all(REST),
                            lambda: inside.try_take("a", int),
                            t.commit,
                            t.abort,
                            t.__aenter__,
                            lambda: t.__aexit__(None, None, None),
                        ]
                    )
                    begun.set()
                    await t.take("b")
                    await t.put("c")

            task = asyncio.create_task(work())
            await begun.wait()
            await asyncio.sleep(0)  # it waits
            for call in calls:
                await refused(call())
            await shared.put("b")
            await task
            assert await shared.take_all(REST) == [("c",)]

    asyncio.run(main())


def test_a_transaction_that_was_begun_outside_of_tasks_belongs_to_the_first(space):
    shared = aio.connect(space.url)
    t = shared.transaction()

    async def main():
        async with t, asyncio.timeout(60):
            await t.put("a")
            with pytest.raises(ValueError, match="belongs to the task"):
                await asyncio.create_task(t.put("b"))

    asyncio.run(main())
    shared.close()
    assert space.take_all(REST) == [("a",)]


def test_an_asynchronous_generator_that_is_left_aborts_its_transaction(space):
    """A task that the loop makes for that ends it."""

    async def main():
        async with aio.connect(space.url) as shared:
            problems = []
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: problems.append(context))

            async def taken():
                async with shared.transaction() as t:
                    yield await t.take("a")

            await shared.put("a")
            async for each in taken():
                assert each == ("a",)
                break
            gc.collect()
            await shared.take("a", timeout=60)  # X5
            assert problems == []

    asyncio.run(main())


def test_a_commit_that_fails_is_told_also_if_the_undoing_fails_too(space):
    t = space.transaction()
    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(t.__exit__, None, None, None).exception()
    assert isinstance(refused, ValueError)
    assert len(refused.__notes__) == 1
    t.abort()


def test_an_unknown_keyword_is_refused_with_the_nearest_and_takes_nothing(space):
    space.put("job", 1)
    with (
        pytest.raises(TypeError, match='"timout"; did you mean "timeout"'),
        space.transaction() as t,
    ):
        t.take("job", int, timout=1)
    with pytest.raises(TypeError, match='"status"'):
        ts.search([space], "job", int, status=1)
    assert space.count("job", int) == 1
