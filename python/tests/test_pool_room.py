"""Pool: tasks and answers share the room, which may be scarce."""

import asyncio
import math
import sys
from pathlib import Path

import pytest

import tupelo as ts
from tupelo import REST
from tupelo.aio.batteries import Pool as AioPool
from tupelo.batteries import Pool

sys.path.insert(0, str(Path(__file__).parent))
import calls

TEXTS = [bytes([n]) * 100_000 for n in range(100)]
"""Five times what a space of 2 MiB can hold."""


@pytest.mark.parametrize("when_full", ["error", "wait"])
def test_tasks_leave_room_for_answers_that_are_larger(new_url, when_full):
    """B1: a space that is full by its bytes only slows it down."""
    url = new_url("shm")
    with ts.connect(url, size="2M", when_full=when_full), Pool(url, workers=2) as pool:
        assert list(pool.map(calls.double, TEXTS)) == [text + text for text in TEXTS]


def test_tasks_leave_room_for_answers_in_an_event_loop(shm_url):
    async def main():
        async with asyncio.timeout(60), AioPool(shm_url, workers=2) as pool:
            return [result async for result in pool.map(calls.double, TEXTS)]

    with ts.connect(shm_url, size="2M"):
        assert asyncio.run(main()) == [text + text for text in TEXTS]


def test_tasks_are_taken_back_where_others_leave_no_room_for_an_answer(shm_url):
    texts = [bytes([n]) * 33_000 for n in range(32)]
    with ts.connect(shm_url, size="4M") as space, Pool(shm_url, workers=1) as pool:
        first = pool.submit(calls.wait_for, shm_url, "slow")
        space.take("began", "slow", int, timeout=60)
        results = pool.map(calls.double, texts)
        with pytest.raises(ts.SpaceFull):
            while True:
                space.put("in the way", bytes(40_000), timeout=0)
        space.take("in the way", bytes)
        space.put("go on", "slow")
        assert list(results) == [text + text for text in texts]
        assert first.result(60) == "slow"


def test_a_result_that_does_not_fit_beside_its_task_is_a_failure(new_url):
    url = new_url("shm")
    with ts.connect(url, size="2M"), Pool(url, workers=1, retries=2) as pool:
        error = pool.submit(calls.double, bytes(800_000)).exception(60)
        assert error.kind == "tupelo.SpaceFull"
        assert error.attempts == 1
        assert "the claimed tuple, which goes only then" in str(error)
        assert pool.submit(calls.double, 2).result(60) == 4


def test_a_task_for_which_there_is_no_room_twice_fails_at_once(new_url):
    """Neither the task once more nor a dead letter fits beside it."""
    url = new_url("shm")
    with ts.connect(url, size="2M") as space:
        with Pool(url, workers=1, retries=2) as pool:
            again = pool.submit(math.sqrt, bytes(1_200_000)).exception(60)
        kept = space.eval("root", ts.call(math.sqrt, bytes(1_200_000))).exception(60)
        for error in (again, kept):
            assert error.kind == "builtins.TypeError"
            assert error.attempts == 1
            assert error.hint is None
            assert "it is neither tried again nor kept as a dead letter: what is put" in str(error)
        assert space.count("tupelo.dead", REST) == 0


def test_what_can_not_be_decoded_does_not_go_with_the_error(new_url):
    """It is an argument of the exception, as large as that of the task."""
    url = new_url("shm")
    bad = b"\xff" * 600_000
    with ts.connect(url, size="2M") as space, Pool(url, workers=1) as pool:
        errors = [pool.submit(str, data, "utf-8").exception(60) for data in (b"\xff", bad)]
        assert [error.kind for error in errors] == ["builtins.UnicodeDecodeError"] * 2
        assert isinstance(errors[0].__cause__, UnicodeDecodeError)
        assert "codec can't decode byte 0xff in position 0" in str(errors[1])
        kept = space.eval("text", ts.call(str, bad, "utf-8")).exception(60)
        assert kept.kind == "builtins.UnicodeDecodeError"
        (letter,) = space.take_all("tupelo.dead", REST)
        assert letter[-1]["arguments"] == ()
        assert pool.submit(calls.double, 2).result(60) == 4
