"""A connection that goes on in the next space of its name: `on_removed="reconnect"` (C4)."""

import asyncio
import math
import pickle
import subprocess
import sys

import pytest
from serving import server
from test_removed import in_a_thread, removed, waits

import tupelo as ts
import tupelo.aio
from tupelo import REST, F, aio, linda
from tupelo.aio import batteries as aio_batteries
from tupelo.batteries import Barrier, Counter, Latch, Lock, Queue, RWLock, Semaphore, Service, call

SCHEMES = pytest.mark.parametrize("scheme", ["mem", "shm", "file", "unix"])


def replaced(url):
    ts.connect(url, size="64M", fresh=True).close()


LOSE = pytest.mark.parametrize("lose", [removed, replaced])


def in_the_next(url, *fields):
    """Put a tuple into the space that has the name now, whoever makes it."""
    with ts.connect(url, size="64M") as space:
        space.put(*fields)


class Result:
    """A call in a thread."""

    def __init__(self, call):
        self._results = []
        self._outcome = in_a_thread(lambda: self._results.append(call()))

    def get(self):
        raised = self._outcome()
        if raised:
            raise raised[0]
        return self._results[0]


@SCHEMES
@LOSE
def test_a_take_that_waits_goes_on_in_the_next_space_c4(lasting, eventually, scheme, lose):
    space = lasting(scheme)
    result = Result(lambda: space.take("job", int, timeout=60))
    eventually(waits(space))
    lose(space.url)
    in_the_next(space.url, "job", 7)
    assert result.get() == ("job", 7)
    assert space.count(REST) == 0
    space.put("job", 8)
    with ts.connect(space.url, create=False) as new:
        assert new.take("job", int) == ("job", 8)


@SCHEMES
def test_each_verb_goes_on_in_a_space_that_it_makes_itself_c4(lasting, scheme):
    space = lasting(scheme, tuples_max=100)
    verbs = [
        lambda: space.put("n", 1),
        lambda: space.put_all([("n", 1), ("n", 2)]),
        lambda: space.put_all(("n", n) for n in range(3)),
        lambda: space.put_all((("n", n) for n in range(3)), atomic=False),
        lambda: space.put_if_absent("n", 1),
        lambda: space.put("n", 1, lease=60).cancel(),
        lambda: space.try_take("n", int),
        lambda: space.try_read("n", int),
        lambda: space.try_swap("n", int, to=("n", 2)),
        lambda: space.try_claim("n", int),
        lambda: space.take_all("n", int),
        lambda: space.read_all("n", int),
        lambda: space.count("n", int),
        lambda: space.discard("n", int),
        lambda: space.wait_none("n", int),
        lambda: list(space.scan("n", int)),
        lambda: space.dead("n", int),
        lambda: space.requeue("n", int),
        space.stat,
        lambda: space.explain("n", int),
        lambda: space.finish("n", int),
        lambda: space.subscribe("n", int).close(),
        lambda: space.transaction().abort(),
        lambda: space.take_future("n", int).cancel(),
    ]
    for verb in verbs:
        ts.remove(space.url)
        verb()
        with ts.connect(space.url, create=False, tuples_max=100):
            pass  # made with the same limit
    ts.remove(space.url)
    with space.transaction() as t:
        t.put("in", 1)
    assert space.take_all("in", int) == [("in", 1)]
    ts.remove(space.url)
    assert space.put_all(("n", n) for n in range(3)) == 3
    assert space.take_all("n", int) == [("n", n) for n in range(3)]


def test_the_time_of_a_call_is_not_begun_anew_c4(lasting, eventually):
    space = lasting("shm")
    result = Result(lambda: space.take("job", int, timeout=3))
    eventually(waits(space))
    ts.remove(space.url)
    with pytest.raises(ts.Timeout):
        result.get()


TAKER = """
import sys, tupelo as ts
with ts.connect(sys.argv[1], on_removed="reconnect") as space:
    space.put("ready")
    print(*space.take("job", int, timeout=60), flush=True)
"""


def test_a_take_goes_on_when_another_process_removes_the_space_c4(shm_url, eventually):
    with (
        ts.connect(shm_url, size="64M") as space,
        subprocess.Popen(
            [sys.executable, "-c", TAKER, shm_url], stdout=subprocess.PIPE, text=True
        ) as taker,
    ):
        space.take("ready", timeout=60)
        eventually(waits(space))
        ts.remove(shm_url)
        in_the_next(shm_url, "job", 7)
        assert taker.stdout.readline() == "job 7\n"


@SCHEMES
def test_what_was_begun_in_the_old_space_ends_with_it_c4(lasting, scheme):
    space = lasting(scheme)
    space.put("job", 1)
    claim = space.try_claim("job", int)
    lease = space.put("host", "a", lease=60)
    events = space.subscribe("job", int)
    future = space.take_future("answer", int)
    transaction = space.transaction()
    transaction.put("job", 2)
    ts.remove(space.url)
    space.put("job", 3)
    space.put("answer", 4)
    for late in (
        claim.done,
        lambda: lease.renew(60),
        lambda: events.next(timeout=60),
        lambda: future.result(60),
        transaction.commit,
    ):
        with pytest.raises(ts.SpaceRemoved):
            late()
    assert space.take_future("answer", int).result(60) == ("answer", 4)
    assert sorted(space.take_all(REST)) == [("job", 3)]


def test_a_call_over_two_spaces_goes_on_whichever_was_removed_c4(lasting):
    here, there = lasting("shm"), lasting("shm")
    here.put("job", 1)
    ts.remove(there.url)
    assert here.move_to(there, "job", int) == 1
    assert there.take("job", int) == ("job", 1)
    ts.remove(here.url)
    assert here.move_to(there, "job", int) == 0


def test_another_space_that_does_not_go_on_is_told_c4(lasting, new_url):
    here = lasting("shm")
    here.put("job", 1)
    with ts.connect(new_url("shm"), size="64M") as there:
        ts.remove(there.url)
        with pytest.raises(ts.SpaceRemoved):
            here.move_to(there, "job", int)


def test_without_leave_to_create_it_goes_on_once_there_is_a_space_c4(shm):
    with ts.connect(shm.url, create=False, on_removed="reconnect") as space:
        ts.remove(shm.url)
        for _ in range(2):
            with pytest.raises(ts.SpaceRemoved):
                space.put("job", 1)
        in_the_next(shm.url, "job", 2)
        assert space.take("job", int) == ("job", 2)


def test_a_next_space_with_other_limits_is_refused_c4(lasting):
    space = lasting("shm", tuples_max=10)
    ts.remove(space.url)
    with (
        ts.connect(space.url, size="64M", tuples_max=20),
        pytest.raises(ValueError, match="tuples_max"),
    ):
        space.put("job", 1)


def test_a_space_that_was_fresh_does_not_empty_the_next_one_c4(new_url):
    url = new_url("shm")
    with ts.connect(url, size="64M", fresh=True, on_removed="reconnect") as space:
        ts.remove(url)
        in_the_next(url, "job", 1)
        assert space.take_all("job", int) == [("job", 1)]


def test_a_closed_connection_does_not_go_on_c4(lasting, eventually):
    space = lasting("shm")
    result = Result(lambda: space.take("job", int))
    eventually(waits(space))
    space.close()
    with pytest.raises(ts.SpaceClosed) as told:
        result.get()
    assert not isinstance(told.value, ts.SpaceRemoved)
    ts.remove(space.url)
    with pytest.raises(ts.SpaceClosed):
        space.put("job", 1)
    with pytest.raises(ts.SpaceNotFound):
        ts.connect(space.url, create=False)


def test_consume_and_update_go_on_c4(lasting, eventually):
    space = lasting("shm")
    space.put("n", 1)
    taken = space.consume("n", int)
    assert next(taken) == ("n", 1)
    result = Result(lambda: next(taken))
    eventually(lambda: space.stat()["waiters"] > 0)
    ts.remove(space.url)
    in_the_next(space.url, "n", 2)
    assert result.get() == ("n", 2)
    result = Result(lambda: space.update("n", int, to=lambda old: ("n", old[1] + 1), timeout=60))
    eventually(lambda: space.stat()["waiters"] > 0)
    ts.remove(space.url)
    in_the_next(space.url, "n", 5)
    assert result.get() == ("n", 6)
    space.finish("n", int)
    assert list(space.consume("n", int)) == [("n", 6)]


def lock(space):
    return Lock(space, "index"), 1


def semaphore(space):
    return Semaphore(space, "gpu", n=2), 2


def reader(space):
    return RWLock(space, "table", readers=3).reader, 3


def writer(space):
    return RWLock(space, "table", readers=3).writer, 1


@pytest.mark.parametrize("scheme", ["mem", "shm", "unix"])
@pytest.mark.parametrize("of", [lock, semaphore, reader, writer])
def test_locks_begin_anew_in_the_next_space_c4(lasting, eventually, scheme, of):
    space = lasting(scheme)
    one, holders = of(space)
    held = [one.acquire() for _ in range(holders)]
    assert one.locked()
    other, _ = of(space)
    result = Result(lambda: other.acquire(timeout=60).token)
    eventually(lambda: space.stat()["waiters"] > 0)
    ts.remove(space.url)
    assert result.get() > 0
    for permit in held:
        with pytest.raises(ts.SpaceRemoved):
            permit.release()
    other.release()
    assert not one.locked()
    with one:
        pass


def test_a_barrier_counts_all_parties_anew_c4(lasting, eventually):
    space = lasting("shm")
    parties = [Result(Barrier(space, "epoch", parties=3).wait) for _ in range(2)]
    eventually(lambda: space.stat()["waiters"] == 2)
    ts.remove(space.url)
    places = [Barrier(space, "epoch", parties=3).wait(timeout=60)]
    assert sorted(places + [party.get() for party in parties]) == [0, 1, 2]
    ts.remove(space.url)
    Barrier(space, "epoch", parties=3).reset()


def test_a_bounded_queue_has_its_room_anew_c4(lasting, eventually):
    space = lasting("shm")
    queue = Queue(space, "mail", maxsize=1)
    queue.put("a")
    result = Result(lambda: queue.put("b", timeout=60))
    eventually(lambda: space.stat()["waiters"] == 1)
    ts.remove(space.url)
    result.get()
    with queue.get(timeout=60) as item:
        assert item == "b"
    queue.put("c", timeout=60)
    with pytest.raises(ts.Timeout):
        queue.put("d", timeout=0)


def test_a_queue_a_latch_and_a_counter_go_on_c4(lasting, eventually):
    space = lasting("shm")
    queue = Queue(space, "mail")
    result = Result(lambda: queue.get(timeout=60))
    opened = Result(lambda: Latch(space, "ready").wait(timeout=60))
    counter = Counter(space, "hits")
    counter += 5
    eventually(lambda: space.stat()["waiters"] == 2)
    ts.remove(space.url)
    queue.put("a")
    Latch(space, "ready").count_down()
    opened.get()
    with result.get() as item:
        assert item == "a"
    counter += 2
    assert counter.value == 2


def test_a_service_goes_on_and_the_call_of_the_old_space_is_told_c4(lasting):
    space = lasting("shm")
    begun = []

    def double(number):
        begun.append(number)
        if number == 1:
            ts.remove(space.url)
        return 2 * number

    service = Service(space, "double", double)
    outcome = in_a_thread(service.run)
    with pytest.raises(ts.SpaceRemoved):
        call(space, "double", 1, timeout=60)
    assert call(space, "double", 2, timeout=60) == 4
    service.stop()
    assert outcome() == []
    assert begun == [1, 2]


def test_a_task_of_the_old_space_is_told_c4(lasting):
    space = lasting("shm")
    old = space.eval("root", ts.call(math.sqrt, 4.0), on="workers")
    ts.remove(space.url)
    with pytest.raises(ts.SpaceRemoved):
        old.result(60)
    new = space.eval("root", ts.call(math.sqrt, 9.0), on="threads")
    assert new.result(60) == ("root", 3.0)
    assert space.take("root", float) == ("root", 3.0)


@pytest.mark.parametrize("scheme", ["mem", "shm", "file", "unix"])
def test_tasks_of_an_event_loop_go_on_c4(new_url, scheme):
    url = new_url(scheme)

    async def main():
        async with aio.connect(url, size="64M", on_removed="reconnect") as space:
            assert space.on_removed == "reconnect"
            events = space.subscribe("n", int)
            tasks = [
                asyncio.ensure_future(one)
                for one in (
                    space.take("job", int, timeout=60),
                    space.read("job", str, timeout=60),
                    space.take_many("many", int, n=2, timeout=60),
                    space.swap("old", int, to=("new", 1), timeout=60),
                    space.update("count", int, to=lambda old: ("count", old[1] + 1), timeout=60),
                    anext(space.consume("consumed", int)),
                )
            ]

            async def claims():
                async with space.claim("claimed", int, timeout=60) as fields:
                    return fields

            tasks.append(asyncio.ensure_future(claims()))
            while (await space.stat())["waiters"] < len(tasks):  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0)
            ts.remove(url)
            await space.put("job", 7)
            await space.put("job", "read")
            assert await space.put_all(("many", n) for n in range(2)) == 2
            await space.put("old", 1)
            await space.put("count", 1)
            await space.put("consumed", 1)
            await space.put("claimed", 1)
            found = await asyncio.gather(*tasks)
            with pytest.raises(ts.SpaceRemoved):
                await events.next(timeout=60)
            with pytest.raises(ts.Timeout):
                await space.take("nothing", timeout=0.01)
            assert await space.count("claimed", int) == 0
            async with space.transaction() as t:
                await t.put("in", 1)
            assert await space.take("in", int) == ("in", 1)
            later = space.subscribe("n", int)
            await space.put("n", 1)
            assert (await later.next(timeout=60)).tuple == ("n", 1)
            return found

    assert asyncio.run(main()) == [
        ("job", 7),
        ("job", "read"),
        [("many", 0), ("many", 1)],
        ("old", 1),
        ("count", 2),
        ("consumed", 1),
        ("claimed", 1),
    ]


def test_batteries_of_an_event_loop_go_on_c4(new_url):
    url = new_url("shm")

    async def main():
        async with aio.connect(url, size="64M", on_removed="reconnect") as space:
            held = await aio_batteries.Lock(space, "index").permit()
            queue = aio_batteries.Queue(space, "mail", maxsize=1)
            waiting = [
                asyncio.ensure_future(aio_batteries.Lock(space, "index").permit(timeout=60)),
                asyncio.ensure_future(
                    aio_batteries.Barrier(space, "epoch", parties=2).wait(timeout=60)
                ),
                asyncio.ensure_future(queue.get(timeout=60)),
            ]
            while (await space.stat())["waiters"] < len(waiting):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0)
            ts.remove(url)
            await queue.put("a", timeout=60)
            await aio_batteries.Barrier(space, "epoch", parties=2).wait(timeout=60)
            permit, place, delivery = await asyncio.gather(*waiting)
            await permit.release()
            assert place in (0, 1)
            assert delivery.item == "a"
            await delivery.done()
            await queue.put("b", timeout=60)
            with pytest.raises(ts.SpaceRemoved):
                await held.release()

    asyncio.run(main())


def test_the_next_space_beside_a_server_is_found_c4(tmp_path, shm_url, eventually):
    name = shm_url.removeprefix("shm://")
    with server(tmp_path / "tupelo.sock", "--engine", "shm"):
        url = f"unix://{tmp_path / 'tupelo.sock'}?space={name}"
        with ts.connect(url, on_removed="reconnect") as served:
            result = Result(lambda: served.take("job", int, timeout=60))
            eventually(waits(served))
            ts.remove(shm_url)
            with ts.connect(shm_url) as here:
                here.put("job", 7)
                assert result.get() == ("job", 7)


def test_all_ways_to_connect_have_it_c4(new_url):
    url = new_url("shm")
    with linda.connect(url, on_removed="reconnect") as space:
        assert space.on_removed == "reconnect"
        again = pickle.loads(pickle.dumps(space))
        assert again.on_removed == "reconnect"
        again.close()
    with ts.connect(url) as space:
        assert space.on_removed == "error"
    with pytest.raises(ValueError, match="on_removed is 'wait': give 'error' or 'reconnect'"):
        ts.connect(url, on_removed="wait")
    with pytest.raises(ValueError, match="on_removed is 'wait'"):
        tupelo.aio.connect(url, on_removed="wait")


def test_removed_again_and_again_it_goes_on_c4(lasting):
    space = lasting("shm")
    for n in range(20):
        removed(space.url)
        space.put("n", n)
        assert space.take("n", F >= 0) == ("n", n)
