"""When calls that change a space of a file return: said by the call, and awaited (rules C4, T5)."""

import asyncio
import threading

import pytest
from durable import Locked, forget_memory, in_file, program

import tupelo as ts
from tupelo import REST, aio
from tupelo.aio.disk import Disk


@pytest.fixture
def url(new_url):
    return new_url("file")


PUTS = [
    lambda space, sync: space.put("job", 1, sync=sync),
    lambda space, sync: space.put("job", 1, lease=60, sync=sync),
    lambda space, sync: space.put_all([("job", 1), ("job", 2)], sync=sync),
    lambda space, sync: space.put_all([("job", 1), ("job", 2)], atomic=False, sync=sync),
    lambda space, sync: space.put_if_absent("job", 1, sync=sync),
]


@pytest.mark.parametrize("put", PUTS)
def test_a_put_says_itself_whether_it_waits_for_the_disk_c4(url, put):
    with ts.connect(url) as space, Locked(url) as locked:
        put(space, "none")  # it would wait for the lock
        count = space.count(REST)
        locked.release()
        space.flush()
        assert in_file(url) == count
    with ts.connect(url, sync="none") as space:
        put(space, "group")
        assert in_file(url) == space.count(REST)


CHANGES = [
    lambda space, **sync: space.take("job", 1, **sync),
    lambda space, **sync: space.try_take("job", 1, **sync),
    lambda space, **sync: space.take_all("job", 1, **sync),
    lambda space, **sync: space.discard("job", 1, **sync),
    lambda space, **sync: space.take_many("job", 1, n=1, **sync),
    lambda space, **sync: space.swap("job", 1, to=("job", 2), **sync),
    lambda space, **sync: space.try_swap("job", 1, to=("job", 2), **sync),
    lambda space, **sync: space.update("job", 1, to=lambda old: (*old, 2), **sync),
    lambda space, **sync: space.claim("job", 1, **sync).done(),
    lambda space, **sync: space.claim("job", 1).done(**sync),
    lambda space, **sync: space.try_claim("job", 1).abort("no paper", **sync),
    lambda space, **sync: space.put("job", 2, lease=60, sync="none").renew(70, **sync),
    lambda space, **sync: space.put("job", 2, lease=60, sync="none").cancel(**sync),
]


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_says_itself_whether_it_waits_for_the_disk_c4(url, change):
    with ts.connect(url) as space:
        space.put("job", 1)
        with Locked(url):
            change(space, sync="none")
        change_is_known(space)
    with ts.connect(url, fresh=True, sync="none") as space:
        space.put("job", 1)
        change(space, sync="group")
        change_is_known(space)


def change_is_known(space):
    """Look that the file has what memory has."""
    space.flush()
    before = sorted(space.read_all(REST), key=repr)
    space.close()
    forget_memory(space.url)
    with ts.connect(space.url) as again:
        assert sorted(again.read_all(REST), key=repr) == before


def test_a_transaction_says_when_its_commit_returns_c4_x1(url):
    with ts.connect(url) as space, Locked(url):
        with space.transaction(sync="none") as t:
            t.put("job", 1)
        with space.transaction() as t:
            t.put("job", 2)
            t.commit(sync="none")
        assert space.count("job", int) == 2


def test_a_space_in_no_file_refuses_to_say_when_a_call_returns(new_url):
    for kind in ("mem", "shm"):
        with ts.connect(new_url(kind)) as space:
            with pytest.raises(ValueError, match="is kept in no file: leave it out"):
                space.put("job", 1, sync="none")
            with pytest.raises(ValueError, match="is kept in no file: leave it out"):
                asyncio.run(aio.Space(space).take("job", sync="group"))
            assert space.count(REST) == 0
            assert space.sync is None


def test_a_word_that_says_nothing_is_refused_before_the_call_has_an_effect(url):
    with ts.connect(url) as space:
        for wrong, error in (("soon", ValueError), (1, TypeError)):
            with pytest.raises(error, match="sync"):
                space.put("job", 1, sync=wrong)
        assert (space.count(REST), space.sync) == (0, "group")


async def until(condition):
    """Let the other tasks go on until a condition holds: the space tells nobody of that."""
    while not await condition():  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)


async def done(space):
    claim = await space.claim("job", 1)
    await claim.done()


async def in_block(space):
    async with space.claim("job", 1) as fields:
        assert fields == ("job", 1)


async def committed(space):
    async with space.transaction() as t:
        await t.put("new", 1)


AWAITED = [
    lambda space: space.put("new", 1),
    lambda space: space.put_all([("new", 1)]),
    lambda space: space.put_if_absent("new", 1),
    lambda space: space.take("job", 1),
    lambda space: space.try_take("job", 1),
    lambda space: space.take_all("job", 1),
    lambda space: space.take_many("job", 1, n=1),
    lambda space: space.discard("job", 1),
    lambda space: space.swap("job", 1, to=("new", 1)),
    lambda space: space.try_swap("job", 1, to=("new", 1)),
    lambda space: space.update("job", 1, to=lambda old: ("new", *old)),
    done,
    in_block,
    committed,
    lambda space: anext(space.consume("job", 1)),
    lambda space: aio.Search([space]).take("job", 1),
]


@pytest.mark.parametrize("call", AWAITED)
def test_other_tasks_go_on_while_a_task_waits_for_the_disk_c4(url, call):
    async def work():
        async with aio.connect(url) as space:
            await space.put("job", 1)
            before = in_file(url), await space.count("job", int)
            with Locked(url) as locked:
                task = asyncio.ensure_future(call(space))
                # It has its effect at once, and returns when that is on disk.

                async def has_effect():
                    return not await space.count("job", 1) or await space.count(REST) > 1

                await until(has_effect)
                for _ in range(100):
                    await asyncio.sleep(0)
                assert not task.done()
                locked.release()
                await task
            assert before == (1, 1)
        forget_memory(url)
        with ts.connect(url) as again:
            assert again.count("job", 1) == 0 or again.count(REST) == 2

    asyncio.run(work())


def test_other_tasks_go_on_while_a_task_is_put_for_the_workers_of_eval_c4(url):
    async def work():
        async with aio.connect(url) as space:
            # The first one starts the workers, and makes a mark for them.
            await space.eval("warm", ts.call(abs, -1))
            with Locked(url) as locked:
                task = asyncio.ensure_future(space.eval("n", ts.call(abs, -2)))

                async def has_effect():
                    return await space.count("n", int) == 1

                await until(has_effect)
                assert not task.done()
                locked.release()
                assert await task == ("n", 2)

    asyncio.run(work())


def test_tasks_that_wait_together_share_a_sync_c4(url, monkeypatch):
    turns = []
    plain = Disk._turn  # noqa: SLF001 - what is counted

    def counted(self, *arguments):
        turn = plain(self, *arguments)
        if turn not in turns:
            turns.append(turn)
        return turn

    monkeypatch.setattr(Disk, "_turn", counted)

    async def work():
        async with aio.connect(url) as space:
            with Locked(url) as locked:
                puts = [asyncio.create_task(space.put("job", n)) for n in range(100)]

                async def are_there():
                    return await space.count("job", int) == 100

                await until(are_there)
                locked.release()
                await asyncio.gather(*puts)
            assert in_file(url) == 100

    asyncio.run(work())
    assert len(turns) <= 2


def test_a_task_that_is_cancelled_while_it_waits_for_the_disk_returns_and_then_is_cancelled_t5_c4(
    url,
):
    told = []

    async def take_all_jobs(space):
        while True:
            told.append(await space.take("job", int))

    async def work():
        async with aio.connect(url) as space:
            await space.put("job", 1)
            with Locked(url) as locked:
                task = asyncio.create_task(take_all_jobs(space))

                async def is_taken():
                    return await space.count("job", int) == 0

                await until(is_taken)
                task.cancel()
                await asyncio.sleep(0)
                assert not task.done()
                locked.release()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert told == [("job", 1)]

    asyncio.run(work())


@pytest.mark.parametrize("waits_after", [False, True])
def test_a_limit_of_time_that_passes_while_a_task_waits_for_the_disk_t5_c4(url, waits_after):
    async def work():
        async with aio.connect(url) as space:
            await space.put("job", 1)
            with Locked(url) as locked:
                loop = asyncio.get_running_loop()
                taken, is_late = None, False
                try:
                    async with asyncio.timeout(None) as limit:

                        def pass_now():
                            limit.reschedule(loop.time())
                            loop.call_later(0.01, locked.release)

                        loop.call_later(0.01, pass_now)
                        taken = await space.take("job", int)
                        if waits_after:
                            await asyncio.sleep(3600)
                except TimeoutError:
                    is_late = True
                # The take had its effect before, so it is told; what comes after it is cancelled.
                assert (taken, is_late) == (("job", 1), waits_after)
                await asyncio.sleep(0.01)  # no cancellation is left over
            assert await space.count(REST) == 0

    asyncio.run(work())


def test_an_awaited_call_says_itself_whether_it_waits_for_the_disk_c4(url):
    async def work():
        async with aio.connect(url) as space:
            assert (space.sync, space.blocking.sync) == ("group", "group")
            with Locked(url):
                await space.put("job", 1, sync="none")
                assert await space.take("job", int, sync="none") == ("job", 1)
                await space.put("job", 2, sync="none")
                claim = await space.claim("job", int)
                await claim.put("done", 2)
                await claim.done(sync="none")
                async with space.transaction(sync="none") as t:
                    await t.put("job", 3)
                with pytest.raises(ValueError, match=r"sync is .soon."):
                    await space.put("job", 4, sync="soon")
        async with aio.connect(url, sync="none") as space:
            with Locked(url):
                await space.put("job", 5)
            await space.put("job", 6, sync="group")
        forget_memory(url)
        with ts.connect(url) as again:
            assert again.count("job", int) == 3

    asyncio.run(work())


def test_a_disk_that_refuses_is_told_to_each_task_and_the_loop_goes_on_c4(url):
    text = """
import asyncio, resource, signal, sys
import tupelo as ts
from tupelo import aio

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

async def work():
    async with aio.connect(sys.argv[1]) as space:
        await space.put("job", 0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        ends = await asyncio.gather(*(space.put("job", n) for n in (1, 2)), return_exceptions=True)
        print([type(end).__name__ for end in ends])
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await space.put("job", 3)

asyncio.run(work())
"""
    with program(text, url) as limited:
        printed = limited.stdout.read()
    assert (limited.returncode, printed) == (0, "['DurabilityUnknown', 'DurabilityUnknown']\n")
    forget_memory(url)
    with ts.connect(url) as space:
        assert space.count("job", int) == 4


def test_several_loops_in_several_threads_wait_for_the_disk(url):
    space = aio.connect(url)

    async def put_some(begin):
        await asyncio.gather(*(space.put("job", n) for n in range(begin, begin + 50)))

    threads = [threading.Thread(target=asyncio.run, args=(put_some(n * 50),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert in_file(url) == 200
    space.close()
