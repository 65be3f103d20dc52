"""A pool on another host than its server: two network namespaces, with a cable between them."""

import os
import shutil
import signal
import subprocess
import sys

import pytest
from serving import Restarted

import tupelo as ts

# The work of the tutorial (docs/tutorials/worker-pool.md), by a program that says how far it is.
PROGRAM = """
import sys
from tupelo.batteries import Pool

def simulate(seed):
    number = seed
    for _ in range(2_000):
        number = (1_103_515_245 * number + 12_345) % 2**31
    return number

if __name__ == "__main__":
    with Pool(sys.argv[1], workers=3) as pool:
        results = []
        for result in pool.map(simulate, range(1_000)):
            results.append(result)
            if len(results) % 300 == 0:
                print(pool.pids()[0], flush=True)
        print(len(results), max(results), flush=True)
"""
TUTORIALS_RESULT = "1000 2145253414\n"


def ip(*words):
    subprocess.run([shutil.which("ip"), *words], check=True, capture_output=True, text=True)


@pytest.fixture
def hosts():
    """Another network namespace, and the address of this one as it is seen from there."""
    if shutil.which("ip") is None:
        pytest.skip("there is no program `ip` (Debian: iproute2)")
    number = os.getpid()
    name, here, there = f"tupelo-{number}", f"tup{number}h", f"tup{number}t"
    subnet = f"10.213.{number % 256}"
    try:
        ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespace can be made here: {error.stderr.strip()}")
    try:
        try:
            ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no cable can be laid here: {error.stderr.strip()}")
        ip("addr", "add", f"{subnet}.1/30", "dev", here)
        ip("link", "set", here, "up")
        ip("-n", name, "addr", "add", f"{subnet}.2/30", "dev", there)
        ip("-n", name, "link", "set", there, "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield ["ip", "netns", "exec", name], f"{subnet}.1"
    finally:
        # The cable goes with it.
        ip("netns", "delete", name)


def test_a_pool_on_another_host_finishes_while_its_server_is_killed_twice_and_workers_are_killed(
    hosts, tmp_path
):
    elsewhere, address = hosts
    (tmp_path / "sweep.py").write_text(PROGRAM, "utf-8")
    served = Restarted(f"tcp://{address}:0", "--insecure")
    url = served.url(f"two-hosts-{os.getpid()}")
    try:
        with ts.connect(url) as space:
            space.put("keeps the space")
        with subprocess.Popen(
            [*elsewhere, sys.executable, "sweep.py", url],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        ) as program:
            for _ in range(2):
                worker = int(program.stdout.readline())
                served.kill()
                os.kill(worker, signal.SIGKILL)
                served.start()
            program.stdout.readline()
            assert program.stdout.readline() == TUTORIALS_RESULT
            assert program.wait() == 0
    finally:
        served.kill()
        ts.remove(f"shm://two-hosts-{os.getpid()}")
