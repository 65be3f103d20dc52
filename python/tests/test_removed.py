"""A space that was removed, or another took the place of: everyone attached is told (C4)."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from serving import server

import tupelo as ts
import tupelo.aio
from tupelo import REST


def removed(url):
    ts.remove(url)


def replaced(url):
    ts.connect(url, fresh=True).close()


def in_a_thread(call):
    """Begin a call in a thread; return what waits for it and tells what it raised."""
    raised = []

    def run():
        try:
            call()
        except ts.TupeloError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def outcome():
        thread.join(60)
        assert not thread.is_alive(), "it waits for ever"
        return raised

    return outcome


def waits(space):
    return lambda: space.stat()["waiters"] == 1


@pytest.mark.parametrize("scheme", ["mem", "shm", "unix"])
@pytest.mark.parametrize("lose", [removed, replaced])
def test_a_call_that_waits_ends_when_its_space_is_gone_c4(new_url, eventually, scheme, lose):
    url = new_url(scheme)
    with ts.connect(url, size="64M") as space:
        outcome = in_a_thread(lambda: space.take("job", int))
        eventually(waits(space))
        lose(url)
        (error,) = outcome()
        assert isinstance(error, ts.SpaceRemoved)
        assert error.code == "TUP-026"
        assert error.hint.startswith("connect again")
        with pytest.raises(ts.SpaceRemoved):
            space.put("job", 1)
        with pytest.raises(ts.SpaceRemoved):
            space.try_take("job", int)
    with ts.connect(url) as new:
        assert new.count(REST) == 0
        new.put("job", 2)
        assert new.take("job", int) == ("job", 2)


def test_a_call_that_waits_ends_when_something_else_removes_the_file_c4(shm, eventually):
    outcome = in_a_thread(lambda: shm.take("job", int))
    eventually(waits(shm))
    Path(f"/dev/shm/tupelo.{os.geteuid()}.{shm.name}.v1").unlink()  # noqa: S108
    (error,) = outcome()
    assert isinstance(error, ts.SpaceRemoved)
    assert "the file of the space is gone" in str(error)
    assert "RemoveIPC" in str(error)
    with pytest.raises(ts.SpaceRemoved):
        shm.put("job", 1)


WRITER = """
import sys, tupelo as ts
with ts.connect(sys.argv[1]) as space:
    space.put("ready")
    sys.stdin.readline()
    try:
        space.put("job", 1)
    except ts.SpaceRemoved as error:
        print(error.code, f"process {sys.argv[2]}" in str(error))
"""


def test_another_process_that_puts_in_a_removed_space_is_told_by_whom_it_was_removed_c4(shm):
    command = [sys.executable, "-c", WRITER, shm.url, str(os.getpid())]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as writer:
        shm.take("ready")
        ts.remove(shm.url)
        output, _ = writer.communicate("go on\n", timeout=60)
    assert output == "TUP-026 True\n"


@pytest.mark.parametrize("scheme", ["mem", "shm", "unix"])
def test_what_waits_in_the_background_is_told_too_c4(new_url, scheme):
    url = new_url(scheme)
    with ts.connect(url, size="64M") as space:
        future = space.take_future("job", int)
        events = space.subscribe("job", int)
        ts.remove(url)
        with pytest.raises(ts.SpaceRemoved):
            future.result(60)
        with pytest.raises(ts.SpaceRemoved):
            events.next(timeout=60)


@pytest.mark.parametrize("scheme", ["mem", "shm", "unix"])
def test_tasks_of_an_event_loop_are_told_c4(new_url, scheme):
    url = new_url(scheme)

    async def main():
        async with tupelo.aio.connect(url, size="64M") as space:
            task = asyncio.ensure_future(space.take("job", int))
            await asyncio.sleep(0)
            ts.remove(url)
            with pytest.raises(ts.SpaceRemoved):
                await asyncio.wait_for(task, 60)

    asyncio.run(main())


@pytest.mark.parametrize("scheme", ["mem", "shm"])
def test_nothing_that_was_begun_in_a_removed_space_comes_to_an_end_c4(new_url, scheme):
    url = new_url(scheme)
    with ts.connect(url, size="64M") as space:
        space.put("job", 1)
        space.put("job", 2)
        claim = space.try_claim("job", int, ttl=30)
        with pytest.raises(ts.SpaceRemoved), space.transaction() as transaction:
            transaction.take("job", int)
            ts.remove(url)
        with pytest.raises(ts.SpaceRemoved):
            claim.done()


def test_a_space_that_is_removed_beside_its_server_is_one_space_again_c4(tmp_path, shm_url):
    name = shm_url.removeprefix("shm://")
    with server(tmp_path / "tupelo.sock", "--engine", "shm") as process:
        url = process.url.replace("NAME", name)
        url = url if name in url else f"unix://{tmp_path / 'tupelo.sock'}?space={name}"
        with ts.connect(url) as served:
            served.put("job", 1)
            outcome = in_a_thread(lambda: served.take("other"))
            ts.remove(shm_url)
            (error,) = outcome()
            assert isinstance(error, ts.SpaceRemoved)
        with ts.connect(url) as served, ts.connect(shm_url) as here:
            served.put("job", 2)
            assert here.take("job", int, timeout=60) == ("job", 2)
            here.put("job", 3)
            assert served.take("job", int, timeout=60) == ("job", 3)


BEGUN = """
import math, sys, tupelo as ts
if __name__ == "__main__":
    space = ts.connect(sys.argv[1])
    print(space.eval("root", ts.call(math.sqrt, 4.0), on="threads").result(60))
    ts.remove(sys.argv[1])
"""


@pytest.mark.parametrize("scheme", ["mem", "shm"])
def test_a_program_whose_space_was_removed_ends_without_a_word_c4(new_url, scheme):
    command = [sys.executable, "-c", BEGUN, new_url(scheme)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "('root', 2.0)\n", "")
