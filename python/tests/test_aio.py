"""tupelo.aio: waiting tasks, and that cancelling one loses nothing (T5)."""

import asyncio
import random

import pytest

import tupelo as ts
from tupelo import aio


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


def test_a_thousand_tasks_wait_and_each_gets_its_own_tuple_t4(space):
    async def main():
        async with aio.connect(space.url) as shared:
            tasks = [asyncio.create_task(shared.take("reply", n, str)) for n in range(1_000)]
            await asyncio.sleep(0)
            assert (await shared.stat())["waiters"] == 1_000
            for n in random.sample(range(1_000), 1_000):
                await shared.put("reply", n, str(n))
            return await asyncio.gather(*tasks)

    assert run(main()) == [("reply", n, str(n)) for n in range(1_000)]


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


@pytest.mark.parametrize("moment", ["before it began", "while it waits", "when it is served"])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_cancellation_at_any_point_loses_nothing_t5(space, moment, is_there):
    async def main():
        async with aio.connect(space.url) as shared:
            if is_there:
                space.put("n", 1)
            take = shared.take("n", int)
            try:
                if moment != "before it began":
                    future = take.send(None)
                    if moment == "when it is served":
                        space.put("n", 1)
                        await asyncio.wait({future})
                take.throw(asyncio.CancelledError())
            except StopIteration as done:
                space.put(*done.value)
            except asyncio.CancelledError:
                pass
        assert space.count("n", int) == (is_there or moment == "when it is served")

    run(main())
    assert space.stat()["waiters"] == 0


def test_random_cancellations_lose_nothing_t5(space):
    """Takers are cancelled at random moments while tuples come and go; each tuple is had once."""
    rounds, random_ = 20_000, random.Random(7)

    async def main():
        got = []
        async with aio.connect(space.url) as shared:

            async def take():
                got.append((await shared.take("n", int))[1])

            waiting = []
            for n in range(rounds):
                waiting.append(asyncio.create_task(take()))
                if random_.random() < 0.5:
                    await shared.put("n", n)
                if random_.random() < 0.4:
                    await asyncio.sleep(0)
                if random_.random() < 0.5:
                    waiting.pop(random_.randrange(len(waiting))).cancel()
                if len(waiting) > 50:
                    await asyncio.sleep(0)
                    waiting = [task for task in waiting if not task.done()]
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            left = [n for _, n in await shared.take_all("n", int)]
        return got, left

    got, left = run(main())
    random_ = random.Random(7)
    assert len(set(got)) == len(got)
    assert not set(got) & set(left)
    assert space.count("n", int) == 0
    assert len(got) + len(left) > rounds // 3
