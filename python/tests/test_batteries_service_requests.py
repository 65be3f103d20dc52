"""Service: a request that its servers can not make sense of is answered, and they go on."""

import asyncio
import threading
from contextlib import contextmanager

import pytest

import tupelo as ts
from tupelo import REST, aio
from tupelo.aio import batteries as awaited
from tupelo.batteries import Service, call

REFUSED = r"echo\(1j\) failed on .*\n.* field 4\[0\] is a pickled builtins\.complex, which this"


@contextmanager
def serving(space, **options):
    """Serve in threads."""
    service = Service(space, "echo", lambda argument: argument, **options)
    thread = threading.Thread(target=service.run)
    thread.start()
    try:
        yield
    finally:
        service.stop()
        thread.join()


def test_a_request_that_can_not_be_read_where_it_is_served_is_answered(url):
    """V3: two servers are handed it, one after the other."""
    with ts.connect(url, objects="pickle") as generous, ts.connect(url, objects="strict") as strict:
        with serving(strict, concurrency=2):
            for number in range(3):
                with pytest.raises(ts.RemoteError, match=REFUSED):
                    call(generous, "echo", 1j, timeout=60)
                assert call(generous, "echo", number, timeout=60) == number
        assert generous.count(REST) == 0


@pytest.mark.parametrize("arguments", [[], [1, 2]])
def test_a_request_without_its_one_argument_is_answered(space, arguments):
    with serving(space):
        space.put("tupelo.request", "echo", "mine", 0, arguments)
        answer = space.take("tupelo.answer", "mine", 0, "failed", dict, timeout=60)
        message = f"a request of {len(arguments)} arguments: put one, in a list"
        assert answer[4]["arguments"] == (message,)
        assert call(space, "echo", 7, timeout=60) == 7
    assert space.count(REST) == 0


def test_tasks_that_serve_answer_what_they_can_not_read(url):
    async def main():
        async with (
            aio.connect(url, objects="pickle") as generous,
            aio.connect(url, objects="strict") as strict,
        ):
            service = awaited.Service(strict, "echo", lambda argument: argument, concurrency=2)
            running = asyncio.create_task(service.run())
            for number in range(3):
                with pytest.raises(ts.RemoteError, match=REFUSED):
                    await awaited.call(generous, "echo", 1j, timeout=60)
                assert await awaited.call(generous, "echo", number, timeout=60) == number
            await service.stop()
            await running
            assert await generous.count(REST) == 0

    asyncio.run(main())
