"""Spaces for tests and for the examples in docstrings."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from time import monotonic, sleep

import pytest

import tupelo as ts

# What runs the cases is no file of tests, but its assertions shall say as much as those do.
pytest.register_assert_rewrite("conformance")

NUMBERS = count()


def pytest_configure() -> None:
    """Let Ctrl-C interrupt: what a shell runs in the background begins with it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def new_url(request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """Return a function that makes up URLs; what was made there is removed at the end."""
    urls = []

    def new_url(scheme: str) -> str:
        name = f"test-{os.getpid()}-{next(NUMBERS)}"
        url = f"{scheme}://{name}"
        if scheme == "file":
            url = f"file:///dev/shm/{name}.tupelo"  # of memory: the disk is not waited for
        if scheme == "unix":
            url = f"unix://{request.getfixturevalue('socket')}?space={name}"
        urls.append(url)
        return url

    yield new_url
    for url in urls:
        with suppress(ts.SpaceNotFound):
            ts.remove(url)


@pytest.fixture
def url(request: pytest.FixtureRequest, new_url: Callable[[str], str]) -> str:
    """Return the URL of a space that does not exist yet, of each kind."""
    return new_url(request.param)


@pytest.fixture
def space(url: str) -> Iterator[ts.Space]:
    """Open an empty space of each kind."""
    with ts.connect(url, size="64M") as space:
        yield space


@pytest.fixture
def shm_url(new_url: Callable[[str], str]) -> str:
    """Return the URL of a space that other processes can connect to."""
    return new_url("shm")


@pytest.fixture
def shm(shm_url: str) -> Iterator[ts.Space]:
    """Open an empty space that other processes can connect to."""
    with ts.connect(shm_url, size="64M") as space:
        yield space


@pytest.fixture(autouse=True)
def names_for_examples(
    request: pytest.FixtureRequest, new_url: Callable[[str], str]
) -> Iterator[None]:
    """Give the examples in docstrings a space, and the package under its usual name."""
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    names = request.getfixturevalue("doctest_namespace")
    with ts.connect(new_url("mem")) as space:
        names.update(ts=ts, F=ts.F, space=space)
        yield


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Return a function that waits until a condition holds, looking again and again."""

    def eventually(condition: Callable[[], bool]) -> None:
        give_up_at = monotonic() + 60
        while not condition():
            assert monotonic() < give_up_at, "it never happened"
            sleep(0.001)

    return eventually
