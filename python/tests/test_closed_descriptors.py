"""What a space that was closed keeps of the process, while the program refers to it (L5)."""

import gc
import time
from pathlib import Path

import pytest
from durable import program

import tupelo as ts


def descriptors(of):
    """Return how many descriptors of this process are of something with `of` in its name."""
    names = []
    for number in Path("/proc/self/fd").iterdir():
        try:
            names.append(str(number.readlink()))
        except FileNotFoundError:  # closed meanwhile
            continue
    return sum(of in name for name in names)


@pytest.mark.parametrize("sync", ["group", "none"])
def test_a_closed_space_keeps_no_descriptor_of_its_file_l5(tmp_path, sync):
    url, file = f"file://{tmp_path}/jobs.tupelo", f"{tmp_path}/jobs.tupelo"
    first, second = (ts.connect(url, sync=sync) for _ in range(2))
    first.put("job", 1)
    first.close()
    second.put("job", 2)
    assert descriptors(file) > 0
    second.close()
    while descriptors(file) > 0:  # a thread brings to the file what no call has waited for
        time.sleep(0.001)
    for closed in (first, second):
        with pytest.raises(ts.SpaceClosed):
            closed.count("job", int)
        assert repr(closed) == f"<Space {url}>"
        closed.close()
    with ts.connect(url) as again:
        assert again.count("job", int) == 2
    ts.remove(url)


HOLDER = """
import sys
import tupelo as ts

with ts.connect(sys.argv[1]) as space, space.claim("job", int):
    print("claimed", flush=True)
    sys.stdin.read()
"""


def test_a_closed_space_keeps_no_descriptor_of_other_processes_l5(shm):
    gc.collect()  # of spaces that nothing refers to any more
    before = descriptors("pidfd")
    shm.put("job", 1)
    with program(HOLDER, shm.url) as holder:
        assert holder.stdout.readline() == "claimed\n"
        # A look that finds nothing asks whether the holder of the tuple lives.
        assert shm.try_take("job", int) is None
        assert descriptors("pidfd") > before
        shm.close()
        assert descriptors("pidfd") == before
        holder.stdin.close()
