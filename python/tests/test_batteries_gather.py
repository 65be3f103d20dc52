"""gather: so many results in one step, or none."""

import asyncio
import dataclasses
import io
import subprocess
import sys
import threading

import numpy as np
import pytest

import tupelo as ts
from tupelo import REST, aio
from tupelo.aio import batteries as awaited
from tupelo.batteries import Rows, gather


def test_the_results_are_taken_together_when_all_are_there(space):
    def work():
        for number in range(100):
            space.put("result", number, number / 2)

    thread = threading.Thread(target=work)
    thread.start()
    rows = gather(space, "result", int, float, n=100, timeout=60)
    thread.join()
    assert rows == [("result", number, number / 2) for number in range(100)]
    assert isinstance(rows, list)
    assert space.count(REST) == 0


@pytest.mark.parametrize("progress", [False, True])
def test_what_times_out_has_taken_nothing(space, progress):
    """T5."""
    space.put("result", 1)
    with pytest.raises(ts.Timeout, match="1 of 2 tuples matched"):
        gather(space, "result", int, n=2, timeout=0.05, progress=progress)
    assert space.count("result", int) == 1


GATHERS = """
import sys
import tupelo as ts
from tupelo.batteries import gather

space = ts.connect(sys.argv[1], create=False)
space.put("begun")
gather(space, "result", int, n=3, progress="results")
"""


def test_who_is_killed_while_it_gathers_has_taken_nothing(shm, shm_url):
    shm.put_all([("result", 1), ("result", 2)])
    child = subprocess.Popen([sys.executable, "-c", GATHERS, shm_url])
    shm.take("begun", timeout=60)
    child.kill()
    child.wait()
    assert shm.count("result", int) == 2


class Terminal(io.StringIO):
    """A terminal, as far as a bar can see."""

    def isatty(self):
        return True


def test_a_terminal_shows_how_many_are_there(space, monkeypatch, eventually):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    space.put_all(("result", number) for number in range(3))
    gathering = threading.Thread(
        target=lambda: gather(space, "result", int, n=4, timeout=60, progress="simulating")
    )
    gathering.start()
    eventually(lambda: "3 of 4" in terminal.getvalue())
    space.put("result", 3)
    gathering.join()
    assert "simulating" in terminal.getvalue()
    assert terminal.getvalue().endswith("4 of 4\n")
    space.put("result", 3)
    gather(space, "result", int, n=1, progress=True)
    assert "gathering" in terminal.getvalue()


def test_no_terminal_is_shown_nothing(space, capfd):
    space.put("result", 1)
    gather(space, "result", int, n=1, progress=True)
    assert capfd.readouterr() == ("", "")


def test_the_columns_are_the_fields_that_the_template_left_open(space):
    space.put_all([("result", 1, 0.5, "a"), ("result", 2, 0.25, "b")])
    rows = gather(space, "result", int, ..., str, n=2)
    assert rows.columns() == {"f1": [1, 2], "f2": [0.5, 0.25], "f3": ["a", "b"]}
    space.put("other", 1)
    assert gather(space, ts.like("other", int), n=1).columns() == {"f0": ["other"], "f1": [1]}
    assert gather(space, "none", int, n=0).columns() == {}


def test_the_columns_become_a_record_array(space):
    space.put_all([("result", 1, 0.5, "a"), ("result", 2, 0.25, "bc")])
    records = gather(space, "result", int, float, str, n=2).to_numpy()
    assert records.dtype.names == ("f1", "f2", "f3")
    assert records.f1.dtype == np.int64
    assert records["f2"].tolist() == [0.5, 0.25]
    assert records.f3.tolist() == ["a", "bc"]
    assert gather(space, "none", n=0).to_numpy().shape == (0,)


def test_what_is_no_number_and_no_text_becomes_an_object(space):
    space.put_all([("tile", np.zeros(2), [1], 2**70), ("tile", np.zeros(2), [1, 2], 1)])
    records = gather(space, "tile", np.ndarray, list, int, n=2).to_numpy()
    assert [type(value) for value in records.f1] == [np.ndarray] * 2
    assert records.f2.tolist() == [[1], [1, 2]]
    assert records.f3.tolist() == [2**70, 1]


@dataclasses.dataclass
class Result:
    number: int
    value: float


def test_a_condition_over_the_whole_tuple_chooses_what_is_gathered(space):
    """M9."""
    space.put_all(("result", number) for number in range(6))
    assert gather(space, "result", int, n=3, where="f[1] % 2 == 1").columns() == {"f1": [1, 3, 5]}


def test_entries_are_gathered_too_and_have_no_columns(space):
    space.put(Result(1, 0.5))
    space.put(Result(2, 0.5))
    rows = gather(space, Result, number=2, n=1)
    assert rows == [Result(2, 0.5)]
    with pytest.raises(TypeError, match="entries have no columns: make lists of the fields"):
        rows.columns()
    space.put_all([("a", 1), ("a", 1, 2)])
    with pytest.raises(TypeError, match="rows of different lengths have no columns"):
        gather(space, "a", REST, n=2).to_numpy()
    assert isinstance(rows, Rows)


def test_numpy_is_imported_by_those_who_ask_for_it_alone():
    code = (
        "import sys, tupelo; from tupelo.batteries import gather\n"
        "space = tupelo.connect('mem://a'); space.put('a', 1)\n"
        "gather(space, 'a', int, n=1).columns()\n"
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_tasks_gather(space):
    async def main():
        async with aio.connect(space.url) as shared:
            gathering = asyncio.create_task(
                awaited.gather(shared, "result", int, n=3, timeout=60, progress="x")
            )
            await asyncio.sleep(0)
            await shared.put_all([("result", number) for number in range(2)])
            cancelled = asyncio.create_task(awaited.gather(shared, "result", int, n=9))
            await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            await shared.put("result", 2)
            rows = await gathering
            assert rows.columns() == {"f1": [0, 1, 2]}
            with pytest.raises(ts.Timeout):
                await awaited.gather(shared, "result", int, n=1, timeout=0)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        ({"n": -1}, ValueError, "n is -1"),
        ({"n": 1.5}, TypeError, "n is 1.5"),
        ({"n": 1, "timeout": -1}, ValueError, "timeout"),
        ({"n": 1, "progress": 3}, TypeError, "progress has the type int: give a label, or True"),
    ],
)
def test_a_wrong_argument_is_refused(space, options, error, problem):
    with pytest.raises(error, match=problem):
        gather(space, "result", int, **options)


def test_an_unknown_field_of_an_entry_is_named(space):
    with pytest.raises(ts.UnknownField, match="stauts"):
        gather(space, Result, stauts=3, n=1, timeout=0)
