"""Calls over several spaces, and calls of several steps, after a space was removed (C4)."""

import asyncio
import math
import subprocess
import sys

import pytest
from durable import Locked, forget_memory
from serving import server
from test_reconnecting import Result, in_the_next
from test_removed import in_a_thread

import tupelo as ts
from tupelo import REST, aio, stepping
from tupelo.aio import batteries as aio_batteries
from tupelo.batteries import Service, call

SCHEMES = pytest.mark.parametrize("scheme", ["mem", "shm", "unix"])
FIRST = pytest.mark.parametrize("first", ["reconnect", "error"])
"""What becomes of the first space of a call."""


async def until(condition):
    """Let the other tasks go on until a condition holds: the space tells nobody of that."""
    while not await condition():  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)


def transaction(here, there):
    with here.transaction(there) as t:
        t.on(there).put("job", 1)


BESIDE = pytest.mark.parametrize(
    "verb",
    [
        lambda here, there: here.move_to(there, "job", int),
        lambda here, there: here.copy_to(there, "job", int),
        transaction,
    ],
    ids=["move_to", "copy_to", "transaction"],
)


@SCHEMES
@FIRST
@BESIDE
def test_another_space_of_a_call_goes_on_whatever_the_first_does_c4(
    new_url, lasting, scheme, first, verb
):
    with ts.connect(new_url(scheme), size="64M", on_removed=first) as here:
        there = lasting(scheme)
        here.put("job", 1)
        ts.remove(there.url)
        verb(here, there)
        assert there.take("job", int, timeout=0) == ("job", 1)
        with ts.connect(there.url, create=False):
            pass


@BESIDE
def test_both_spaces_of_a_call_go_on_c4(lasting, verb):
    here, there = lasting("shm"), lasting("shm")
    ts.remove(here.url)
    ts.remove(there.url)
    in_the_next(here.url, "job", 1)
    verb(here, there)
    assert there.count("job", int) == 1


async def awaited_transaction(here, there):
    async with here.transaction(there) as t:
        await t.on(there).put("job", 1)


AWAITED_BESIDE = pytest.mark.parametrize(
    "verb",
    [
        lambda here, there: here.move_to(there, "job", int),
        lambda here, there: here.copy_to(there, "job", int),
        awaited_transaction,
    ],
    ids=["move_to", "copy_to", "transaction"],
)


@SCHEMES
@FIRST
@AWAITED_BESIDE
def test_another_space_of_an_awaited_call_goes_on_c4(new_url, scheme, first, verb):
    async def main():
        async with (
            aio.connect(new_url(scheme), size="64M", on_removed=first) as here,
            aio.connect(new_url(scheme), size="64M", on_removed="reconnect") as there,
        ):
            await here.put("job", 1)
            ts.remove(there.url)
            await verb(here, there)
            assert await there.take("job", int, timeout=0) == ("job", 1)
            if first == "reconnect":
                ts.remove(here.url)
                ts.remove(there.url)
                in_the_next(here.url, "job", 2)
                await verb(here, there)
                assert await there.count("job", int) == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    "verb",
    [
        lambda here, there: here.move_to(there, "job", int),
        lambda here, there: here.copy_to(there, "job", int),
        awaited_transaction,
        lambda here, there: aio.Search([here, there]).take("kept", int),
    ],
    ids=["move_to", "copy_to", "transaction", "search"],
)
def test_other_tasks_go_on_while_the_other_space_of_a_call_waits_for_the_disk_c4(new_url, verb):
    url = new_url("file")

    async def main():
        async with (
            aio.connect(new_url("shm"), size="64M") as here,
            aio.connect(url, on_removed="reconnect") as there,
        ):
            await here.put("job", 1)
            await there.put("kept", 1)
            with Locked(url) as locked:
                task = asyncio.ensure_future(verb(here, there))

                async def has_effect():
                    return not await there.count("kept", 1) or await there.count("job", 1)

                await until(has_effect)
                assert not task.done()
                locked.release()
                await task
        forget_memory(url)
        with ts.connect(url) as again:
            assert again.count("job", 1) or not again.count("kept", 1)

    asyncio.run(main())


@SCHEMES
def test_a_program_that_only_asks_a_service_goes_on_c4(new_url, scheme):
    url = new_url(scheme)
    with (
        ts.connect(url, size="64M", on_removed="reconnect") as served,
        ts.connect(url, size="64M", on_removed="reconnect") as space,
    ):
        service = Service(served, "double", lambda number: 2 * number)
        outcome = in_a_thread(service.run)
        try:
            for number in range(3):
                assert call(space, "double", number, timeout=60) == 2 * number
                ts.remove(url)
        finally:
            service.stop()
        assert outcome() == []


def test_a_task_that_only_asks_a_service_goes_on_c4(new_url):
    url = new_url("shm")

    async def main():
        async with (
            aio.connect(url, size="64M", on_removed="reconnect") as served,
            aio.connect(url, size="64M", on_removed="reconnect") as space,
        ):
            service = aio_batteries.Service(served, "double", lambda number: 2 * number)
            running = asyncio.ensure_future(service.run())
            for number in range(3):
                answer = await aio_batteries.call(space, "double", number, timeout=60)
                assert answer == 2 * number
                ts.remove(url)
            await service.stop()
            await running

    asyncio.run(main())


def test_a_call_in_vain_leaves_no_request_in_the_next_space_c4(lasting):
    space = lasting("shm")
    ts.remove(space.url)
    with pytest.raises(ts.Timeout, match=r"within 0.01 s: nobody has begun"):
        call(space, "double", 1, timeout=0.01)
    assert space.count(REST) == 0


@SCHEMES
def test_a_task_that_only_does_one_of_these_goes_on_c4(new_url, scheme):
    url = new_url(scheme)

    async def begun(space):
        async with space.transaction() as t:
            await t.put("done", 1)

    verbs = [
        begun,
        lambda space: space.eval("done", ts.call(math.sqrt, 1.0), on="threads"),
        lambda space: space.put_all((("done", n) for n in range(3)), atomic=False),
    ]

    async def main():
        for verb in verbs:
            async with aio.connect(url, size="64M", on_removed="reconnect") as space:
                for _ in range(2):
                    ts.remove(url)
                    await verb(space)
                    with ts.connect(url, create=False) as new:
                        assert new.count("done", REST) > 0

    asyncio.run(main())


def test_the_answer_of_a_task_of_the_old_space_is_told_and_the_next_task_goes_on_c4(new_url):
    url = new_url("shm")

    async def main():
        async with aio.connect(url, size="64M", on_removed="reconnect") as space:
            work = space.eval("root", ts.call(math.sqrt, 4.0), on="workers")
            old = asyncio.ensure_future(work)
            await until(lambda: space.count(REST))
            ts.remove(url)
            with pytest.raises(ts.SpaceRemoved):
                await old
            new = await space.eval("root", ts.call(math.sqrt, 9.0), on="threads")
            assert new == ("root", 3.0)

    asyncio.run(main())


def losing(url, number, after):
    """Yield so many tuples, and remove the space behind some of them."""
    for n in range(number):
        if n == after:
            ts.remove(url)
        yield "n", n


def test_the_steps_of_a_put_all_are_in_one_space_c4(lasting, monkeypatch):
    monkeypatch.setattr(stepping, "STEP", 2)
    space = lasting("shm")
    with pytest.raises(ts.SpaceRemoved) as told:
        space.put_all(losing(space.url, 6, after=4), atomic=False)
    assert told.value.__notes__[-1] == "4 tuples were put by the steps before"
    # The first step goes on, if the space is removed before its end.
    in_the_next(space.url, "other")
    assert space.put_all(losing(space.url, 6, after=1), atomic=False) == 6
    assert space.take_all("n", int) == [("n", n) for n in range(6)]


def test_the_steps_of_an_awaited_put_all_are_in_one_space_c4(new_url, monkeypatch):
    monkeypatch.setattr(stepping, "STEP", 2)
    url = new_url("shm")

    async def main():
        async with aio.connect(url, size="64M", on_removed="reconnect") as space:
            with pytest.raises(ts.SpaceRemoved) as told:
                await space.put_all(losing(url, 6, after=4), atomic=False)
            assert told.value.__notes__[-1] == "4 tuples were put by the steps before"
            in_the_next(url, "other")
            assert await space.put_all(losing(url, 6, after=1), atomic=False) == 6
            assert await space.take_all("n", int) == [("n", n) for n in range(6)]
            with pytest.raises(TypeError, match="atomic"):
                await space.put_all([("n", 1)], atomic=0)
            with pytest.raises(TypeError, match="tmeout"):
                await space.put_all([("n", 1)], atomic=False, tmeout=1)

    asyncio.run(main())


def test_the_time_of_a_first_step_is_not_begun_anew_c4(lasting, eventually):
    space = lasting("shm", tuples_max=1)
    space.put("full")
    result = Result(lambda: space.put_all([("n", 1)], atomic=False, timeout=3))
    eventually(lambda: space.stat()["waiting_for_room"] == 1)
    ts.remove(space.url)
    with ts.connect(space.url, size="64M", tuples_max=1) as new:
        new.put("full")
        with pytest.raises(ts.SpaceFull):
            result.get()


@SCHEMES
def test_a_search_goes_on_in_the_next_space_c4(lasting, eventually, scheme):
    here, there = lasting(scheme), lasting(scheme)
    search = ts.Search([here, there], order="success factor")
    for verb in (search.take, search.try_take, search.read, search.try_read):
        ts.remove(there.url)
        in_the_next(there.url, "job", 7)
        found = verb("job", int)
        assert (found.tuple, found.space) == (("job", 7), there)
    result = Result(lambda: search.take("late", int, timeout=60))
    eventually(lambda: there.stat()["waiters"] == 1)
    ts.remove(here.url)
    in_the_next(here.url, "late", 1)
    found = result.get()
    assert (found.tuple, found.space) == (("late", 1), here)
    assert search.spaces == (here, there)
    with pytest.raises(ts.Timeout):
        ts.search([here, there], "never", timeout=0)


def test_a_search_in_a_space_that_does_not_go_on_is_told_c4(lasting, shm):
    search = ts.Search([lasting("shm"), shm])
    ts.remove(shm.url)
    for _ in range(2):
        with pytest.raises(ts.SpaceRemoved):
            search.try_take("job", int)


@SCHEMES
def test_an_awaited_search_goes_on_in_the_next_space_c4(new_url, scheme):
    async def main():
        async with (
            aio.connect(new_url(scheme), size="64M", on_removed="reconnect") as here,
            aio.connect(new_url(scheme), size="64M", on_removed="reconnect") as there,
        ):
            search = aio.Search([here, there], order="success factor")
            for verb in (search.take, search.try_take, search.read, search.try_read):
                ts.remove(there.url)
                in_the_next(there.url, "job", 7)
                found = await verb("job", int)
                assert (found.tuple, found.space) == (("job", 7), there)
            tasks = [asyncio.ensure_future(search.take("late", int, timeout=60)) for _ in range(2)]

            async def are_waiting():
                return (await there.stat())["waiters"] == len(tasks)

            await until(are_waiting)
            ts.remove(here.url)
            in_the_next(here.url, "late", 1)
            await there.put("late", 2)
            found = await asyncio.gather(*tasks)
            assert {(each.tuple, each.space) for each in found} == {
                (("late", 1), here),
                (("late", 2), there),
            }
            with pytest.raises(ts.Timeout):
                await search.take("never", timeout=0.01)

    asyncio.run(main())


def test_what_the_function_of_an_update_raises_is_not_done_again_c4(lasting, new_url):
    space, calls = lasting("shm"), []
    with ts.connect(new_url("shm"), size="64M") as other:
        ts.remove(other.url)

        def look_at_another(old):
            calls.append(old)
            if len(calls) == 1:
                ts.remove(space.url)
                space.put("n", 2)  # by the connection to the next space
            other.count(REST)

        space.put("n", 1)
        with pytest.raises(ts.SpaceRemoved):
            space.update("n", int, to=look_at_another)
        assert calls == [("n", 1)]


def test_what_the_function_of_an_awaited_update_raises_is_not_done_again_c4(new_url):
    url, calls = new_url("shm"), []

    async def main():
        async with aio.connect(url, size="64M", on_removed="reconnect") as space:
            with ts.connect(new_url("shm"), size="64M") as other:
                ts.remove(other.url)

                def look_at_another(old):
                    calls.append(old)
                    if len(calls) == 1:
                        ts.remove(url)
                        space.blocking.put("n", 2)
                    other.count(REST)

                await space.put("n", 1)
                with pytest.raises(ts.SpaceRemoved):
                    await space.update("n", int, to=look_at_another)

    asyncio.run(main())
    assert calls == [("n", 1)]


COMMAND = [
    sys.executable,
    "-c",
    "import sys; from tupelo.command_line import main; sys.exit(main())",
]


@pytest.mark.parametrize("rights", ["put", "put, take, read"])
def test_whose_token_shows_no_figures_goes_on_c4(tmp_path, shm_url, monkeypatch, rights):
    name, tokens = shm_url.removeprefix("shm://"), str(tmp_path / "tokens.toml")
    add = [*COMMAND, "token", "add", "ci", "--tokens", tokens, "--rule", f"* : {rights}"]
    token = subprocess.run(add, check=True, capture_output=True, text=True).stdout.split()[0]
    ts.connect(shm_url, size="64M").close()
    with server("tcp://127.0.0.1:0", "--engine", "shm", "--tokens", tokens) as serving:
        monkeypatch.setenv("TUPELO_TOKEN", token)
        url = serving.url.replace("NAME", name)
        with ts.connect(url, create=False, on_removed="reconnect") as space:
            space.put("job", 1)
            ts.remove(shm_url)
            with ts.connect(shm_url, size="64M") as here:
                space.put("job", 2)
                with space.transaction() as t:
                    t.put("job", 3)
                assert here.take_all("job", int) == [("job", 2), ("job", 3)]
