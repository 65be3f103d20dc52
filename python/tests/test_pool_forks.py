"""Pools in the child of a fork: they are those of its parent."""

import math
import os
import sys
from pathlib import Path

import pytest

from tupelo.batteries import Pool

sys.path.insert(0, str(Path(__file__).parent))
import calls


def in_a_forked_child(work):
    """Run `work` in the child of a fork; return whether it succeeded."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def test_a_forked_child_that_leaves_the_block_takes_nothing_from_its_parent(shm_url):
    with Pool(shm_url, workers=2) as pool:
        results = pool.map(math.sqrt, range(100))
        assert in_a_forked_child(lambda: pool.__exit__(None, None, None))
        assert len(list(results)) == 100
        assert len(pool.pids()) == 2


def test_a_forked_child_that_leaves_a_loop_over_results_takes_nothing_from_its_parent(shm_url):
    with Pool(shm_url, workers=2) as pool:
        results = pool.map(math.sqrt, range(100))
        assert next(results) == 0.0
        assert in_a_forked_child(results.close)
        assert len(list(results)) == 99


def test_a_forked_child_that_gives_work_to_the_pool_of_its_parent_is_refused(shm_url):
    """Its tasks would have the numbers of those of its parent, and so would their answers."""

    def give():
        for begin in (lambda: pool.submit(math.sqrt, 4.0), lambda: pool.map(math.sqrt, [4.0])):
            with pytest.raises(RuntimeError, match="forked from: make another one"):
                begin()

    with Pool(shm_url, workers=1) as pool:
        assert in_a_forked_child(give)
        assert pool.submit(math.sqrt, 9.0).result(60) == 3.0
        assert list(pool.map(math.sqrt, [4.0])) == [2.0]


def test_a_forked_child_that_goes_on_with_a_loop_takes_no_results_from_its_parent(shm_url):
    def go_on():
        with pytest.raises(RuntimeError, match="forked from: make another one"):
            list(results)  # after those that were at hand

    with Pool(shm_url, workers=2) as pool:
        results = pool.map(math.sqrt, range(2000))
        assert next(results) == 0.0
        assert in_a_forked_child(go_on)
        assert len(list(results)) == 1999


def test_a_forked_child_can_not_withdraw_a_task_of_its_parent(shm, shm_url):
    def cancel():
        assert not waiting.cancel()

    with Pool(shm_url, workers=1) as pool:
        busy = pool.submit(calls.wait_for, shm_url, "slow")
        shm.take("began", "slow", int, timeout=60)
        waiting = pool.submit(math.sqrt, 9.0)
        assert in_a_forked_child(cancel)
        shm.put("go on", "slow")
        assert (busy.result(60), waiting.result(60)) == ("slow", 3.0)
