"""eval in processes of multiprocessing: they end when they have done their work."""

import subprocess
import sys

import pytest

PROGRAM = """
import math, multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import tupelo as ts

def work(url):
    with ts.connect(url, create=False) as space:
        space.eval("later", ts.call(math.sqrt, 9.0))  # nobody waits for it but the end
        return space.eval("root", ts.call(math.sqrt, 4.0)).result(60)

def check(url):
    assert work(url) == ("root", 2.0)

def process(context, url):
    child = context.Process(target=check, args=(url,))
    child.start()
    child.join()
    assert child.exitcode == 0

def pool(context, url):
    with context.Pool(1) as pool:
        assert pool.apply(work, (url,)) == ("root", 2.0)

def closed_pool(context, url):
    pool = context.Pool(1)
    assert pool.apply(work, (url,)) == ("root", 2.0)
    pool.close()
    pool.join()

def executor(context, url):
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        assert executor.submit(work, url).result() == ("root", 2.0)

def spawned(_, url):
    with ts.spawn(check, url):
        pass

if __name__ == "__main__":
    how, method, url = sys.argv[1:]
    globals()[how](multiprocessing.get_context(method), url)
    print("ended")
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.parametrize("how", ["process", "pool", "closed_pool", "executor", "spawned"])
def test_a_child_process_that_has_evaluated_ends(shm, shm_url, tmp_path, how, method):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), how, method, shm_url],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
    assert shm.take("root", float) == ("root", 2.0)
    if how != "pool":  # whose children are killed at its end
        assert shm.take("later", float, timeout=60) == ("later", 3.0)


ONCE = """
import math, sys
import tupelo as ts

if __name__ == "__main__":
    space = ts.connect(sys.argv[1])
    print(space.eval("root", ts.call(math.sqrt, 4.0)).result(60))
"""


def test_a_program_that_has_evaluated_ends_without_another_word(url, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ONCE)
    done = subprocess.run(
        [sys.executable, str(program), url],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "('root', 2.0)\n", "")
