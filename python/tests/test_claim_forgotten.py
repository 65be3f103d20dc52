"""A claim that is forgotten goes back to the space, and a warning says so."""

import gc

import pytest

import tupelo as ts
from tupelo.batteries import Queue


def test_a_claim_that_is_forgotten_is_given_back_with_a_warning(space):
    space.put("job", 7)
    pattern = r"a claim on \('job', 7\) \(fence \d+\) was forgotten: its tuple goes back"
    with pytest.warns(ResourceWarning, match=pattern) as caught:
        space.claim("job", int)
    assert [warning.filename for warning in caught] == [__file__]
    with space.claim("job", int):
        pass


def test_a_delivery_that_is_forgotten_is_given_back_with_a_warning(space):
    numbers = Queue[int](space, "numbers")
    for number in range(3):
        numbers.put(number)
    with pytest.warns(ResourceWarning, match=r"a claim on \('tupelo.queue', 'numbers', 0, \[0\]\)"):
        assert numbers.get().item == 0
    for end in ("done", "abort"):
        getattr(numbers.get(), end)()
    with numbers.get() as number:
        assert number == 1


def test_a_warning_that_is_an_error_leaves_the_tuple_in_the_space(space, monkeypatch):
    """Also one that comes while something else is raised, which goes on."""
    unraisable = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    space.put("job", 7)

    def fails():
        claim = space.claim("job", int)
        raise ZeroDivisionError(claim.attempt)

    with pytest.raises(ZeroDivisionError):
        fails()
    gc.collect()
    assert [one.exc_type for one in unraisable] == [ResourceWarning]
    assert space.count("job", int) == 1


def test_the_claims_of_a_connection_that_was_closed_say_nothing(new_url):
    with ts.connect(new_url("mem")) as space:
        space.put("job", 7)
        claim = space.claim("job", int)
    del claim
