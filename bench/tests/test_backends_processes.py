"""Every backend that is installed, from several processes: who waits, who gets it, what is left."""

import os
import re
import tempfile
import time
from multiprocessing import util
from pathlib import Path

import pytest

from tupelo_bench.backends.base import Backend, Schema, Shape
from tupelo_bench.backends.queue import Queue
from tupelo_bench.backends.registry import PEERS
from tupelo_bench.harness.workers import run
from tupelo_bench.runner import started

SCHEMA = Schema((Shape("plain", 2),))
SPACES = ("one", "other")
MEMORY = Path("/dev/shm")  # noqa: S108 - it is looked at only
ROUNDS = 20
TUPLES = 400
PATIENCE_S = 120.0  # a backend that never waits, or never sees the other process, hangs

SHARED = [
    peer
    for peer in PEERS
    if issubclass(peer, Backend) and not peer.one_process and peer.missing() is None
]


@pytest.fixture(scope="module", params=SHARED, ids=lambda peer: peer.name)
def server(request):
    with started(request.param) as peer:
        yield peer


@pytest.fixture
def backend(server):
    server.create(SCHEMA, SPACES, 1 << 20)
    yield server
    server.drop()


def in_memory():
    """What peers of this process have in /dev/shm, by its number: others use it, too."""
    own = re.compile(rf"bench-(?:[a-z]+-)?{os.getpid()}-")
    return {path for path in MEMORY.iterdir() if own.search(path.name)}


def together(*targets):
    """Run the functions in processes of their own; what each returned."""
    return run(targets, deadline=time.monotonic() + PATIENCE_S)[0]


def asker(bench, backend):
    """Each answer is there only after the other process has taken the question."""
    questions, answers = map(backend.open, SPACES)
    bench.start.wait()
    got = []
    for number in range(ROUNDS):
        questions.put("plain", number)
        if not isinstance(backend, Queue):  # which can not be looked into
            assert answers.read("plain", int) == ("plain", -number)
        got.append(answers.take("plain", int)[1])
    questions.close()
    answers.close()
    return got


def answerer(bench, backend):
    questions, answers = map(backend.open, SPACES)
    bench.start.wait()
    for _ in range(ROUNDS):
        _, number = questions.take("plain", int)
        answers.put("plain", -number)
    questions.close()
    answers.close()


def test_takes_and_reads_wait_for_what_another_process_puts(backend):
    got, _ = together((asker, (backend,)), (answerer, (backend,)))
    assert got == [-number for number in range(ROUNDS)]


def taker(bench, backend):
    space = backend.open("one")
    bench.start.wait()
    got = []
    while (taken := space.try_take("plain", int)) is not None:
        got.append(taken[1])
    space.close()
    return got


def filler(bench, backend):
    space = backend.open("one")
    space.put_all(("plain", number) for number in range(TUPLES))
    bench.start.wait()
    space.close()


@pytest.mark.parametrize(
    "server", [peer for peer in SHARED if peer is not Queue], indirect=True, ids=lambda p: p.name
)
def test_of_two_processes_that_take_each_tuple_goes_to_one(backend):
    _, one, two = together((filler, (backend,)), (taker, (backend,)), (taker, (backend,)))
    assert sorted([*one, *two]) == list(range(TUPLES))


@pytest.mark.parametrize("peer", SHARED, ids=lambda peer: peer.name)
def test_nothing_is_left_when_it_has_been_stopped(peer, monkeypatch):
    util.get_temp_dir()  # multiprocessing's own, which it keeps to the end of this process
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # a server may run as another user
        monkeypatch.setattr(tempfile, "tempdir", folder)
        assert_nothing_is_left(peer, Path(folder))


def assert_nothing_is_left(peer, folder):
    with started(peer) as running:
        running.create(SCHEMA, SPACES, 1 << 20)
        assert peer.name not in {"tupelo-shm", "sqlite"} or in_memory(), "it is there that it looks"
        # In a process of its own: a virtual machine stays, with the classes of its first server.
        together((filler, (running,)))
        running.drop()
    assert not in_memory()
    assert not list(folder.iterdir())
