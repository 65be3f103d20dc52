"""A process that opens and removes spaces all day where addresses are limited."""

import subprocess
import sys

PROGRAM = """
import asyncio, resource, sys
import tupelo as ts
import tupelo.aio

resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
url = sys.argv[1]


async def waited(url):
    async with tupelo.aio.connect(url) as space:
        await space.put("job", 1)
        return await space.take("job", int)


for number in range(1000):
    for here in (f"mem://many-{number}", url):
        with ts.connect(here) as space:
            space.put("job", number)
            future = space.take_future("job", int)
            assert future.result(timeout=60) == ("job", number)
            if number % 50 == 0:
                assert asyncio.run(waited(here)) == ("job", 1)
        ts.remove(here)
print("done")
"""


def test_a_thousand_spaces_in_turn_fit_into_eight_gib_of_addresses(shm_url):
    words = [sys.executable, "-c", PROGRAM, shm_url]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
