"""Programs that close descriptors which are not their own, as daemons do, and open files."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, sys, tempfile
import tupelo as ts
import tupelo.aio

url, folder = sys.argv[1:]
with ts.connect(url) as space:
    block = b"x" * 65_000
    for number in range(400):
        space.put("block", number, block)

    async def waited():
        async with tupelo.aio.connect(url) as here:
            waiting = asyncio.create_task(here.take("answer", int))
            await asyncio.sleep(0)
            space.put("answer", 1)
            assert await waiting == ("answer", 1)

    asyncio.run(waited())
    future = space.take_future("later", int)

    os.closerange(3, 256)
    files = []
    for number in range(40):
        file = open(os.path.join(folder, str(number)), "w+b", buffering=0)
        file.write(b"mine" * 250_000)
        files.append(file)

    # It shrinks, and grows again.
    assert len(space.take_all("block", int, bytes)) == 400
    space.stat()
    for number in range(800):
        space.put("block", number, block)
    assert space.count("block", int, bytes) == 800
    space.put("later", 7)
    assert future.result(timeout=60) == ("later", 7)
    asyncio.run(waited())
    del future, waited

for file in files:
    assert os.pread(file.fileno(), 2_000_000, 0) == b"mine" * 250_000
print("whole")
"""


@pytest.mark.parametrize("scheme", ["shm", "mem"])
def test_no_file_of_the_program_is_touched_though_it_has_the_numbers_of_ours(scheme, shm, tmp_path):
    url = shm.url if scheme == "shm" else "mem://closed"
    words = [sys.executable, "-c", PROGRAM, url, tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "whole\n", "")
