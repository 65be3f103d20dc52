"""stat and explain."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import tupelo as ts


def test_stat_counts_tuples_by_shape(space):
    space.put_all([("job", 1), ("job", 2), ("result", 1, 0.5)])
    stat = space.stat()
    assert stat["tuples"] == 3
    assert {shape["kinds"]: shape["count"] for shape in stat["shapes"]} == {
        ("str", "int"): 2,
        ("str", "int", "float"): 1,
    }
    assert 0 < stat["bytes_used"] <= stat["bytes_committed"] <= stat["bytes_max"] == 64 << 20


def test_stat_counts_what_went_through(space):
    space.put_all(("job", n) for n in range(5))
    space.take_all("job", int, limit=3)
    shape = space.stat()["shapes"][0]
    assert (shape["puts"], shape["takes"], shape["count"]) == (5, 3, 2)


def test_stat_names_the_processes(shm):
    shm.put("job")
    assert {"pid": os.getpid(), "alive": True} in shm.stat()["processes"]


def test_stat_shows_what_open_transactions_have(space):
    space.put_all(("job", n) for n in range(3))
    with space.transaction(ttl=60) as t:
        t.put("not to be seen")
        assert space.stat()["transactions"] == []
        t.take("job", int)
        t.read_all("job", int)
        (one,) = space.stat()["transactions"]
        assert (one["pid"], one["taken"], one["read"]) == (os.getpid(), 1, 2)  # X3
        assert 0 < one["expires_in_s"] <= 60
        (shape,) = space.stat()["shapes"]
        assert (shape["count"], shape["in_transactions"], shape["read_locks"]) == (2, 1, 2)
    assert space.stat()["transactions"] == []


def test_stat_counts_who_waits(space, eventually):
    space.put("job", "text")
    with ThreadPoolExecutor(1) as pool:
        blocked = pool.submit(space.take, "job", int)
        eventually(lambda: space.stat()["waiters"] == 1)
        space.put("job", 1)
        blocked.result()
    assert space.stat()["waiters"] == 0


def test_an_index_is_learned_for_the_fields_that_are_asked_for(space):
    space.put_all(("job", n, f"name{n}") for n in range(2_000))
    for n in range(300):
        assert space.try_read(..., ..., f"name{n}") == ("job", n, f"name{n}")
    assert [2] in space.stat()["shapes"][0]["indexes"]


def test_explain_names_the_field_that_differs(space):
    space.put_all([("job", "17"), ("job", "18"), ("other", 1, 2)])
    explanation = space.explain("job", int)
    assert explanation.matches == 0
    assert explanation.template == '("job", :int)'
    assert explanation.nearest == ("str", "str")
    assert explanation.differences == [(1, "str", ":int")]
    assert explanation.shapes == [(("str", "str"), 2), (("str", "int", "int"), 1)]
    assert "field 1 is str there, :int in the template" in str(explanation)
    assert repr(explanation) == f"<Explanation {explanation}>"


def test_explain_names_the_value_that_differs(space):
    space.put("job", 17)
    assert space.explain("Job", int).differences == [(0, '"job"', '"Job"')]


def test_explain_prefers_what_has_the_right_name_to_what_has_the_right_types(space):
    space.put_all([("task", 5), ("task", 6), ("job", "17")])
    explanation = space.explain("job", int)
    assert explanation.nearest == ("str", "str")
    assert explanation.differences == [(1, "str", ":int")]
    assert space.explain("task", str).differences == [(1, "int", ":str")]


def test_explain_of_an_empty_space(space):
    explanation = space.explain("job", int)
    assert explanation.nearest is None
    assert explanation.differences == explanation.shapes == []
    assert str(explanation) == "the space is empty"


def test_explain_of_what_matches_counts(space):
    space.put("job", 17)
    explanation = space.explain(ts.like("job", int) | ts.like("stop"))
    assert explanation.matches == 1
    assert explanation.nearest is None


def test_explain_names_who_holds_what_matches(space):
    space.put_all([("job", 17), ("job", 18), ("end",)])
    me = f"process {os.getpid()}"
    left = r", for [0-9.]+ s more unless that is extended$"
    with space.claim("job", 17, ttl=30), space.transaction(ttl=60) as transaction:
        transaction.take("job", 18)
        claimed = f"^1 tuple matches, and is claimed by {me}{left}"
        assert re.search(claimed, str(space.explain("job", 17)))
        taken = f"^1 tuple matches, and is taken by a transaction of {me}{left}"
        assert re.search(taken, str(space.explain("job", 18)))
        both = f"^2 tuples match, and are in somebody's hands: one is .* {me}{left}"
        assert re.search(both, str(space.explain("job", int)))
        with pytest.raises(ts.Timeout, match=f"claimed by {me}"):
            space.take("job", 17, timeout=0)
    assert str(space.explain("job", 17)).startswith("nearest: ")


WAITS = "import sys, tupelo as ts; ts.connect(sys.argv[1]).take('job', int)"


def test_stat_does_not_count_the_killed(shm, eventually):
    """Nobody else comes by: stat itself sees to it (L5)."""
    blocked = subprocess.Popen([sys.executable, "-c", WAITS, shm.url])
    eventually(lambda: shm.stat()["waiters"] == 1)
    blocked.kill()
    blocked.wait()
    eventually(lambda: shm.stat()["waiters"] == 0)
    assert shm.stat()["processes"] == [{"pid": os.getpid(), "alive": True}]


def test_a_tuple_of_the_same_name_and_another_length_is_nearer_than_one_of_another_name(space):
    space.put("job", 7, "cat.png")
    space.put("result", 7)
    nearest = space.explain("job", int).nearest
    assert nearest == ("str", "int", "str")
    with pytest.raises(ts.Timeout, match="the template has another number of fields"):
        space.take("job", int, timeout=0)
    # Without one of that name, another name is what is to be told.
    assert space.explain("task", int).differences == [(0, '"result"', '"task"')]
    # And a mistake behind the name is nearer still.
    space.put("job", "7")
    assert space.explain("job", int).nearest == ("str", "str")
