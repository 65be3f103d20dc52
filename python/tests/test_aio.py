"""tupelo.aio: tasks that wait, with the names and options of the synchronous space."""

import asyncio
import gc
import inspect
import pickle
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from attempts import in_one_attempt
from forgetting import forgets_a_claim
from resources import open_descriptors, own_threads

import tupelo as ts
from tupelo import aio, like


def run(main):
    return asyncio.run(main)


def test_a_task_waits_for_what_another_puts(space):
    async def main():
        async with aio.connect(space.url) as shared:
            later = asyncio.create_task(shared.take("answer", int))
            await asyncio.sleep(0)
            await shared.put("answer", 42)
            return await later

    assert run(main()) == ("answer", 42)


def test_what_is_there_is_had_without_waiting(space):
    async def main():
        async with aio.connect(space.url) as shared:
            await shared.put("a", 1)
            assert await shared.read("a", int) == ("a", 1)
            assert await shared.try_read("a", str) is None
            assert await shared.take("a", int, timeout=0) == ("a", 1)
            assert await shared.try_take("a", int) is None
            assert await shared.put_all([("b", n) for n in range(3)]) == 3
            assert await shared.count("b", int) == 3
            assert [found async for found in shared.scan("b", int)] == [("b", n) for n in range(3)]
            assert await shared.take_many("b", int, n=2) == [("b", 0), ("b", 1)]
            assert await shared.swap("b", int, to=("b", 7)) == ("b", 2)
            assert await shared.take_all("b", int) == [("b", 7)]
            assert await shared.put_if_absent("lock", unless=("lock",))
            assert not await shared.put_if_absent("lock", unless=("lock",))
            assert (await shared.stat())["tuples"] == 1

    run(main())


def test_a_timeout_raises_the_synchronous_error_and_leaves_no_place_in_line(space):
    async def main():
        async with aio.connect(space.url) as shared:
            with pytest.raises(ts.Timeout, match=r'nothing matched \("a", :int\) within 0.01 s'):
                await shared.take("a", int, timeout=0.01)
            with pytest.raises(ts.Timeout):
                await shared.read("a", int, timeout=0)
            for wait in (
                shared.take_many("a", int, n=2, timeout=0.01),
                shared.swap("a", to=("b",), timeout=0.01),
            ):
                with pytest.raises(ts.Timeout):
                    await wait
            with pytest.raises(ValueError, match="timeout is -1"):
                await shared.take("a", timeout=-1)

    run(main())
    assert space.stat()["waiters"] == 0


def test_waiting_tasks_are_served_first_come_first_served_t3(space):
    async def main():
        async with aio.connect(space.url) as shared:
            order = []

            async def take(who):
                order.append((who, await shared.take("turn", int)))

            async with asyncio.TaskGroup() as tasks:
                for who in range(5):
                    tasks.create_task(take(who))
                await asyncio.sleep(0)
                for n in range(5):
                    await shared.put("turn", n)
            return order

    assert sorted(run(main())) == [(n, ("turn", n)) for n in range(5)]


def test_wait_none_returns_when_the_last_is_taken(space):
    async def main():
        async with aio.connect(space.url) as shared:
            await shared.put("job", 1)
            gone = asyncio.create_task(shared.wait_none("job", int))
            await asyncio.sleep(0)
            assert not gone.done()
            await shared.take("job", int)
            await gone

    run(main())


def test_consumers_share_the_work_and_all_end(space):
    async def main():
        async with aio.connect(space.url) as shared:

            async def consume():
                return [n async for _, n in shared.consume("n", int)]

            async with asyncio.TaskGroup() as tasks:
                consumers = [tasks.create_task(consume()) for _ in range(4)]
                await asyncio.sleep(0)
                for n in range(200):
                    await shared.put("n", n)
                    if n % 50 == 0:
                        await asyncio.sleep(0)
                await shared.finish("n", int)
            return sorted(n for consumer in consumers for n in consumer.result())

    assert run(main()) == list(range(200))
    assert space.stat()["waiters"] == 0


def test_ten_thousand_tasks_wait_by_what_one_waits_by_and_each_gets_its_own_tuple_t4(space):
    async def main():
        async with aio.connect(space.url) as shared:
            tasks = [asyncio.create_task(shared.take("reply", 0, str))]
            await asyncio.sleep(0)
            descriptors, threads = open_descriptors(), own_threads()
            tasks += [asyncio.create_task(shared.take("reply", n, str)) for n in range(1, 10_000)]
            await asyncio.sleep(0)
            assert (await shared.stat())["waiters"] == 10_000
            # What another test has used may end meanwhile.
            assert own_threads() <= threads
            assert open_descriptors() <= descriptors
            for n in random.sample(range(10_000), 10_000):
                await shared.put("reply", n, str(n))
            return await asyncio.gather(*tasks)

    assert run(main()) == [("reply", n, str(n)) for n in range(10_000)]


async def wait_in_vain(shared):
    """Wait, and be cancelled: a time-out may be over before the loop has waited at all."""
    waiting = asyncio.create_task(shared.take("never"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_a_connection_that_many_loops_have_used_has_the_descriptors_of_one(space):
    shared = aio.connect(space.url)
    run(wait_in_vain(shared))
    before = open_descriptors()
    for _ in range(5):
        run(wait_in_vain(shared))
    # What another test has used may end meanwhile.
    assert open_descriptors() <= before
    shared.close()


@forgets_a_claim
@pytest.mark.parametrize("forget", ["here", "in another thread", "with what is in hands"])
def test_a_connection_that_is_forgotten_keeps_nothing_though_its_loop_goes_on(space, forget):
    async def uses():
        shared = aio.connect(space.url)
        await wait_in_vain(shared)
        if forget != "with what is in hands":
            return shared
        await shared.put("job")
        return await shared.claim("job"), shared.subscribe("job")

    async def descriptors_of_one_more():
        used = [await uses()]
        open_with_it = open_descriptors()
        if forget == "in another thread":
            await asyncio.to_thread(used.clear)
        used.clear()
        gc.collect()
        await asyncio.sleep(0)  # the loop does itself what another thread has forgotten
        return open_with_it - open_descriptors()

    async def main():
        # What a process has once, as for the first notifier that it rings; leavings of other tests.
        async with aio.connect(space.url) as shared:
            waiting = asyncio.create_task(shared.take("served"))
            await asyncio.sleep(0)
            await shared.put("served")
            await waiting
        await descriptors_of_one_more()
        before = open_descriptors()
        for _ in range(3):
            assert await descriptors_of_one_more() > 0
            assert open_descriptors() <= before  # a thread of an earlier test may have closed one

    run(main())
    assert space.stat()["waiters"] == 0


def test_a_put_of_another_thread_wakes_the_loop(space):
    async def main():
        async with aio.connect(space.url) as shared:
            later = asyncio.create_task(shared.take("from", str))
            await asyncio.sleep(0)
            await asyncio.to_thread(space.put, "from", "thread")
            return await later

    assert run(main()) == ("from", "thread")


def test_closing_ends_waits_with_space_closed(space):
    async def main():
        shared = aio.connect(space.url)
        later = asyncio.create_task(shared.take("never"))
        await asyncio.sleep(0)
        shared.close()
        with pytest.raises(ts.SpaceClosed):
            await later

    run(main())


def test_a_tuple_is_put_on_terms_and_its_lease_is_awaited(space):
    async def main():
        async with aio.connect(space.url) as shared:
            assert await shared.put("plain") is None
            lease = await shared.put("host", "a", lease=60)
            assert isinstance(lease, aio.Lease)
            assert 0 < lease.expires_in_s <= 60  # L1
            await lease.renew(120)
            assert 60 < lease.expires_in_s <= 120  # L2
            async with lease.keep_alive():
                assert repr(lease).startswith("<Lease, 1")
            await lease.cancel()
            assert await shared.try_read("host", str) is None
            with pytest.raises(ts.LeaseExpired):
                await lease.renew()
            late = await shared.put("job", 1, after=0.01)
            assert late.expires_in_s is None
            assert await shared.take("job", int) == ("job", 1)  # L3
            assert await shared.put_all([("job", 2), ("job", 3)], lease=0.01) == 2
            await shared.wait_none("job", int)

    run(main())


def test_what_times_out_says_how_long_was_waited(space):
    async def main():
        async with aio.connect(space.url) as shared:
            await shared.put("a", 1)
            for call, told in (
                (shared.take("b", timeout=0.02), "within"),
                (shared.take_many("a", int, n=2, timeout=0.02), "within"),
                (shared.swap("b", to=("c",), timeout=0.02), "within"),
                (shared.wait_none("a", int, timeout=0.02), "after"),
            ):
                with pytest.raises(ts.Timeout) as late:
                    await call
                assert late.value.args[0].endswith(f" {told} 0.02 s in {space.url}")
                assert "0.02 s" in str(late.value).splitlines()[0]

    run(main())


@in_one_attempt
def test_a_lease_is_kept_alive_while_the_loop_is_busy(space):
    async def main():
        async with aio.connect(space.url) as shared:
            lease = await shared.put("host", "a", lease=0.3)
            async with lease.keep_alive():
                with pytest.raises(ts.Timeout):
                    space.wait_none("host", str, timeout=0.9)  # blocks the loop

    run(main())


def test_a_lease_that_is_lost_while_it_is_kept_alive_is_told_to_the_task(space):
    async def main():
        async with aio.connect(space.url) as shared:
            lease = await shared.put("host", "a", lease=60)
            with pytest.raises(ts.LeaseExpired):
                async with lease.keep_alive():
                    await shared.take("host", str)
            with pytest.raises(ts.LeaseExpired):
                async with lease.keep_alive():
                    pytest.fail("the block ran")
            lease = await shared.put("host", "b", lease=60)
            with pytest.raises(ZeroDivisionError) as raised:
                async with lease.keep_alive():
                    await shared.take("host", str)
                    1 / 0  # noqa: B018
            assert raised.value.__notes__[0].startswith("TUP-021")
            lease = await shared.put("host", "c", lease=60)
            async with lease.keep_alive():
                await lease.cancel()

    run(main())


@dataclass
class Errand:
    id: int
    status: str = "ready"


def test_entries_are_sought_by_keyword_in_every_verb(space):
    async def main():
        async with aio.connect(space.url, schema=[Errand]) as shared:
            await shared.put_all([Errand(1), Errand(2, "old")])
            assert await shared.take(Errand, status="old") == Errand(2, "old")
            assert await shared.read(Errand, status="ready") == Errand(1)
            assert await shared.try_take(Errand, id=7) is None
            assert await shared.try_read(Errand, id=1) == Errand(1)
            assert await shared.count(Errand, id=1) == 1
            assert await shared.read_all(Errand, id=1) == [Errand(1)]
            assert [job async for job in shared.scan(Errand, id=1)] == [Errand(1)]
            assert await shared.swap(Errand, id=1, to=Errand(1, "done")) == Errand(1)
            assert await shared.try_swap(Errand, id=1, to=Errand(3)) == Errand(1, "done")
            assert await shared.put_if_absent(Errand(4), unless=like(Errand, id=4))
            assert await shared.take_many(Errand, n=2, status="ready") == [Errand(3), Errand(4)]
            await shared.wait_none(Errand, status="ready")
            assert (await shared.explain(Errand, id=1)).matches == 0
            later = [
                asyncio.create_task(call)
                for call in (
                    shared.take(Errand, id=5),
                    shared.read(Errand, id=5),
                    shared.swap(Errand, id=6, to=Errand(6, "seen")),
                    shared.take_many(Errand, id=7, n=1),
                )
            ]
            await asyncio.sleep(0)
            await shared.put_all([Errand(5), Errand(6), Errand(7)])
            assert await asyncio.gather(*later) == [Errand(5), Errand(5), Errand(6), [Errand(7)]]
            await shared.put(Errand(8))
            await shared.finish(Errand, id=8)
            assert [job async for job in shared.consume(Errand, id=8)] == [Errand(8)]

    run(main())


def test_a_put_with_a_timeout_waits_for_room(url):
    with ts.connect(url, tuples_max=1) as space:

        async def main():
            async with aio.connect(space.url) as shared:
                await shared.put("a", 1)
                with pytest.raises(ts.SpaceFull):
                    await shared.put("a", 2)
                with pytest.raises(ts.SpaceFull):
                    await shared.put("a", 2, timeout=0.01)
                later = asyncio.create_task(shared.put("a", 3, timeout=60))
                await asyncio.sleep(0)
                assert await shared.take("a", int) == ("a", 1)
                await later
                assert await shared.take("a", int) == ("a", 3)

        run(main())
        assert space.stat()["waiters"] == 0


SYNCHRONOUS_ALONE = {"take_future", "read_future"}  # a task is one
AWAITED_ALONE = {"blocking"}  # the other way round


def test_the_twin_has_the_names_and_the_options_of_the_synchronous_space():
    verbs = {name for name in vars(ts.Space) if not name.startswith("_")} - SYNCHRONOUS_ALONE
    names = {name for name in dir(aio.Space) if not name.startswith("_")}
    assert names - AWAITED_ALONE == verbs
    for name in verbs:
        if callable(getattr(ts.Space, name)):
            assert options(getattr(aio.Space, name)) == options(getattr(ts.Space, name)), name
    assert options(aio.connect) == options(ts.connect)
    for mine, other in ((aio.Claim, ts.Claim), (aio.Lease, ts.Lease)):
        names = {name for name in vars(other) if not name.startswith("_")}
        assert names <= set(vars(mine))


def test_what_a_verb_of_the_twin_does_is_told_where_its_help_says():
    for name in vars(ts.Space):
        if callable(getattr(aio.Space, name, None)) and not name.startswith("_"):
            assert f"see `tupelo.Space.{name}`." in getattr(aio.Space, name).__doc__
    assert "`tupelo.Space`" in aio.Space.__doc__
    assert "`tupelo.TransactionSpace`" in aio.TransactionSpace.__doc__


def options(function):
    """Return the keyword arguments of a function, with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}


def test_a_loop_that_was_closed_while_its_tasks_waited_is_in_nobodys_way(shm_url):
    space = aio.connect(shm_url)

    async def wait_for_nothing():
        asyncio.get_running_loop().create_task(space.take("never"))
        while not ts.connect(shm_url).stat()["waiters"]:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0)

    abandoned = asyncio.new_event_loop()
    abandoned.run_until_complete(wait_for_nothing())
    abandoned.close()

    async def wait_for_something():
        waiting = asyncio.create_task(space.take("something"))
        await asyncio.sleep(0)
        await space.put("something")
        return await waiting

    assert asyncio.run(wait_for_something()) == ("something",)
    space.close()


def test_a_connection_may_be_closed_by_another_thread_than_the_one_whose_loop_waits(new_url):
    space = aio.connect(new_url("shm"))
    begun = threading.Event()

    async def wait():
        task = asyncio.ensure_future(space.take("never"))
        while not space.blocking.stat()["waiters"]:  # noqa: ASYNC110 - the space tells nobody
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        begun.set()
        with pytest.raises(ts.SpaceClosed):
            await task

    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(asyncio.run, wait(), debug=True)
        begun.wait(60)
        space.close()
        waiting.result(60)


def test_a_space_is_pickled_as_its_url_also_once_something_has_waited(shm_url):
    shared = aio.connect(shm_url)

    async def waits():
        with pytest.raises(ts.Timeout):
            await shared.take("never", timeout=0.001)

    run(waits())
    again = pickle.loads(pickle.dumps(shared))
    assert (type(again), again.url) == (aio.Space, shm_url)
    assert again.blocking is not shared.blocking
    again.close()
    shared.close()
