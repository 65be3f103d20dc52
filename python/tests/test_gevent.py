"""After `gevent.monkey.patch_all()`: what needs a thread says so, and does not wait for ever."""

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import tupelo as ts
from tupelo import REST
from tupelo.batteries import Pool


@pytest.fixture
def patched(monkeypatch):
    """Let it look as if gevent had replaced `threading`: `is_module_patched` is what it tells."""
    monkey = SimpleNamespace(is_module_patched=lambda name: name == "threading")
    monkeypatch.setitem(sys.modules, "gevent.monkey", monkey)


def in_a_pool(space):
    with Pool(space.url, workers=1) as pool:
        return list(pool.map(math.sqrt, [4.0]))


CALLS = {
    "take_future": lambda space: space.take_future("job", int),
    "eval": lambda space: space.eval("root", ts.call(math.sqrt, 4.0), on="threads"),
    "Pool": in_a_pool,
}


@pytest.mark.usefixtures("patched")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_needs_a_thread_is_refused_and_has_left_nothing(new_url, name):
    with ts.connect(new_url("mem"), size="64M") as space:
        with pytest.raises(ts.Unsupported, match="gevent has replaced threading") as caught:
            CALLS[name](space)
        assert "threadpool.apply(space.take" in caught.value.hint
        assert space.count(REST) == 0
        assert space.stat()["waiters"] == 0


@pytest.mark.usefixtures("patched")
def test_verbs_wait_in_threads_of_the_system(space):
    with ThreadPoolExecutor(1) as threads:
        taken = threads.submit(space.take, "job", int, timeout=60)
        space.put("job", 1)
        assert taken.result(60) == ("job", 1)


def test_gevent_that_leaves_threads_alone_changes_nothing(space, monkeypatch):
    monkey = SimpleNamespace(is_module_patched=lambda name: name == "socket")
    monkeypatch.setitem(sys.modules, "gevent.monkey", monkey)
    future = space.take_future("job", int)
    space.put("job", 1)
    assert future.result(60) == ("job", 1)
