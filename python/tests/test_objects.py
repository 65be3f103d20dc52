"""Objects of no kind of ours: pickled by default, refused by a strict space."""

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import tupelo as ts
from tupelo import REST, F


class Job:
    """No entry: it says nothing about its fields."""

    def __init__(self, number, name="none"):
        self.number, self.name = number, name

    def __eq__(self, other):
        return (self.number, self.name) == (other.number, other.name)

    __hash__ = None


@pytest.mark.parametrize("given", [Job(1, "cat"), Fraction(1, 3), Path("/x"), os.getcwd], ids=type)
def test_an_object_comes_back_by_pickle(space, given):
    space.put("job", given)
    assert space.read("job", F.opaque) == ("job", given)
    _, back = space.take("job", ...)
    assert back == given
    assert type(back) is type(given)


def test_objects_may_stand_inside_containers(space):
    space.put("jobs", [Job(1), {"k": Job(2)}])
    assert space.take("jobs", list) == ("jobs", [Job(1), {"k": Job(2)}])


def test_an_object_can_not_be_compared_in_a_template(space):
    space.put("job", Job(1))
    with pytest.raises(ts.NotEncodable, match="field 1 is a Job, which is stored as a pickle"):
        space.take("job", Job(1))
    with pytest.raises(ts.TemplateError, match=r"field 1 is the class .*Job.*, which is no kind"):
        space.take("job", Job)
    assert space.count(REST) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: 1, "field 1 is a function, which can not be pickled"),
        (
            [1, Path(os.devnull).open("rb")],  # noqa: SIM115
            r"field 1\[1\] is a BufferedReader, which can not be pickled",
        ),
        ((n for n in [1]), "field 1 is a generator, which can not be pickled"),
    ],
    ids=["lambda", "file", "generator"],
)
def test_what_can_not_be_pickled_is_refused(space, given, message):
    with pytest.raises(ts.NotEncodable, match=message):
        space.put("job", given)
    assert space.count(REST) == 0
    if isinstance(given, list):
        given[1].close()


def test_a_strict_space_refuses_objects_both_ways(space):
    with ts.connect(space.url, objects="strict") as strict:
        with pytest.raises(ts.NotEncodable, match=r"field 1 is a Job, which this space refuses"):
            strict.put("job", Job(1))
        space.put("job", Job(1))
        for verb in (strict.take, strict.read, strict.try_take, strict.try_read):
            with pytest.raises(ts.NotEncodable, match=r"field 1 is a pickled test_objects.Job"):
                verb("job", ...)
        with pytest.raises(ts.NotEncodable):
            strict.take_all("job", ...)
        assert space.take("job", ...) == ("job", Job(1))  # V3: it was never removed


class Fragile:
    """Can be stored, but not brought back."""

    def __reduce__(self):
        return int, ("no number",)


def test_an_object_that_fails_to_come_back_stays_in_the_space_and_says_why(space):
    space.put("job", Fragile())
    for verb in (space.take, space.read, space.try_take, space.take_all, space.read_all):
        with pytest.raises(ts.NotEncodable, match="ValueError: invalid literal") as caught:
            verb("job", ...)
        assert "mend what the class does" in caught.value.hint
    assert space.count("job", ...) == 1  # V3


def test_a_dict_that_changes_while_it_is_stored_is_stored_as_it_was(space):
    changing = {}

    class Meddler:
        def __reduce__(self):
            changing.clear()
            return int, ()

    changing.update({number: Meddler() for number in range(5)})
    space.put("job", changing)
    assert space.take("job", dict) == ("job", dict.fromkeys(range(5), 0))


ELSEWHERE = """
import sys
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
try:
    space.take("job", ...)
except ts.NotEncodable as refusal:
    sys.exit(str(refusal))
"""


def test_an_object_that_can_not_be_loaded_stays_in_the_space(shm, shm_url, tmp_path):
    shm.put("job", Job(1))
    finished = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, shm_url],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "field 1 is a pickled test_objects.Job, which can not be loaded here" in finished.stderr
    assert "No module named 'test_objects'" in finished.stderr
    assert shm.take("job", ...) == ("job", Job(1))  # V3
