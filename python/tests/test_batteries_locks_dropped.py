"""Semaphore and RWLock in a space that drops its oldest tuples: what nobody holds may be gone."""

import pytest

import tupelo as ts
from tupelo.batteries import RWLock, Semaphore


@pytest.fixture
def dropping(url):
    """A space of ten tuples that drops what nobody holds."""
    with ts.connect(url, tuples_max=10, when_full="drop-oldest") as space:
        yield space


def drop_all(space):
    """Fill the space with tuples of the shapes of units and gates, which drop those."""
    for number in range(10):
        space.put("x", "y", number)
    for _ in range(10):
        space.put("x", "y")
    assert space.count("x", ...) + space.count("x", ..., int) == 10


def test_a_semaphore_whose_units_were_dropped_is_acquired_again(dropping):
    permits = Semaphore(dropping, "gpu", n=2)
    with permits:
        pass
    drop_all(dropping)
    with permits.acquire(timeout=60), permits.acquire(timeout=60):
        assert permits.try_acquire() is None


def test_an_rwlock_whose_gate_and_units_were_dropped_is_acquired_again(dropping):
    table = RWLock(dropping, "table", readers=2)
    with table.writer:
        pass
    drop_all(dropping)
    with table.reader.acquire(timeout=60), table.reader.acquire(timeout=60):
        assert table.writer.try_acquire() is None
    drop_all(dropping)
    with table.writer.acquire(timeout=60):
        assert table.reader.try_acquire() is None
