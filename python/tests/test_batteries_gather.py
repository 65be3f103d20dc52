"""gather: so many results in one step, or none."""

import asyncio
import dataclasses
import io
import subprocess
import sys
import threading
import types
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tupelo as ts
from tupelo import REST, F, aio, like
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
    problem = r'1 of 2 tuples matched \("result", :int\) within 0\.15 s in '  # as it was given
    with pytest.raises(ts.Timeout, match=problem):
        gather(space, "result", int, n=2, timeout=0.15, progress=progress)
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


class Pair(NamedTuple):
    left: int
    right: str


def test_the_columns_of_entries_are_their_fields(space):
    space.put_all([Result(1, 0.5), Result(2, 0.25), Pair(1, "a")])
    rows = gather(space, Result, value=F > 0, n=2)
    assert rows == [Result(1, 0.5), Result(2, 0.25)]
    assert isinstance(rows, Rows)
    assert rows.columns() == {"number": [1, 2], "value": [0.5, 0.25]}
    assert rows.to_numpy().number.tolist() == [1, 2]
    assert gather(space, Pair, n=1).columns() == {"left": [1], "right": ["a"]}


def test_rows_of_several_shapes_have_no_columns(space):
    space.put_all([("a", 1), ("a", 1, 2)])
    rows = gather(space, "a", REST, n=2)
    problem = r"rows of different lengths \(2 and 3 fields\) have no columns: gather each shape"
    for make in (rows.columns, rows.to_numpy, rows.to_pandas, rows.to_arrow):
        with (
            pytest.MonkeyPatch.context() as patch,
            pytest.raises(TypeError, match=problem),
        ):
            pretend(patch, "pandas", DataFrame=pytest.fail)
            pretend(patch, "pyarrow", table=pytest.fail)
            make()
    space.put_all([Result(1, 0.5), Pair(1, "a")])
    rows = gather(space, like(Result) | like(Pair), n=2)
    with pytest.raises(
        TypeError, match=r"rows of several classes \(Pair, Result\) have no columns"
    ):
        rows.columns()


def pretend(patch, name, **members):
    """Have a library installed, or another one in its place, of which these are all."""
    library = types.ModuleType(name)
    vars(library).update(members)
    patch.setitem(sys.modules, name, library)


@pytest.mark.parametrize(
    ("method", "library", "maker"),
    [("to_pandas", "pandas", "DataFrame"), ("to_arrow", "pyarrow", "table")],
)
def test_the_columns_become_a_table_of_another_library(space, monkeypatch, method, library, maker):
    space.put_all([("result", 1, 0.5), ("result", 2, 0.25), Result(3, 0.5)])
    rows = gather(space, "result", int, float, n=2)
    entries = gather(space, Result, n=1)
    pretend(monkeypatch, library, **{maker: lambda columns: (maker, columns)})
    table = getattr(rows, method)()
    assert table == (maker, {"f1": [1, 2], "f2": [0.5, 0.25]})
    assert getattr(entries, method)() == (maker, {"number": [3], "value": [0.5]})
    assert getattr(gather(space, "none", n=0), method)() == (maker, {})


def test_the_columns_become_a_data_frame(space):
    space.put_all([("result", 1, 0.5), ("result", 2, 0.25)])
    frame = gather(space, "result", int, float, n=2).to_pandas()
    assert frame.to_dict("list") == {"f1": [1, 2], "f2": [0.5, 0.25]}


def test_the_columns_become_an_arrow_table(space):
    space.put_all([("result", 1, 0.5), ("result", 2, 0.25)])
    table = gather(space, "result", int, float, n=2).to_arrow()
    assert table.to_pydict() == {"f1": [1, 2], "f2": [0.5, 0.25]}
    space.put_all([("other", 1), ("other", "a")])
    with pytest.raises(ValueError, match=r".") as mixed:
        gather(space, "other", ..., n=2).to_arrow()
    assert isinstance(mixed.value, pa.ArrowInvalid | pa.ArrowTypeError)
    space.put("other", 1 << 70)
    with pytest.raises(OverflowError):
        gather(space, "other", int, n=1).to_arrow()


@pytest.mark.parametrize(
    ("method", "library"),
    [("to_numpy", "numpy"), ("to_pandas", "pandas"), ("to_arrow", "pyarrow")],
)
def test_who_has_not_the_library_is_told_what_to_install(space, monkeypatch, method, library):
    rows = gather(space, "none", n=0)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModuleNotFoundError) as missing:
        getattr(rows, method)()
    problem = f"{method}() needs {library}, which is not installed: pip install {library}"
    assert str(missing.value) == problem
    assert missing.value.name == library


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


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        ([1, 2], "i"),
        ([True, False], "b"),
        ([0.5, float("nan")], "f"),
        ([1, 0.5], "f"),
        (["a", "bc"], "U"),
        ([b"a", b"bc"], "S"),
        ([b"ab\0", b"cd\0"], "O"),
        (["ab\0", "cd"], "O"),
        ([1, "a"], "O"),
        ([True, 2], "O"),
        ([2**60 + 1, 0.5], "O"),
        ([None, 1], "O"),
    ],
)
def test_a_record_array_has_each_value_as_it_was(space, column, dtype):
    space.put_all(("h", row, value) for row, value in enumerate(column))
    array = gather(space, "h", int, ..., n=2).to_numpy().f2
    assert array.dtype.kind == dtype
    kept = map(float, column) if dtype == "f" else column
    assert sorted(map(repr, array.tolist())) == sorted(map(repr, kept))


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        ([2**53 + 1, None], "Int64"),
        ([1, 2], "int64"),
        ([2**64, None], "object"),
        ([2**53 + 1, 0.5], "object"),
        ([2**2000, 0.5, None], "object"),
        ([1, 0.5, None], "float64"),
    ],
)
def test_a_data_frame_rounds_no_int(space, column, dtype):
    space.put_all(("h", row, value) for row, value in enumerate(column))
    frame = gather(space, "h", int, ..., n=len(column)).to_pandas().set_index("f1").sort_index()
    assert str(frame.f2.dtype) == dtype
    for value, kept in zip(column, frame.f2, strict=True):
        assert pd.isna(kept) if value is None else kept == value


def test_a_terminal_that_is_gone_loses_no_results(space, monkeypatch):
    class Gone:
        def isatty(self):
            return True

        def write(self, _):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stderr", Gone())
    space.put("r", 1)
    assert gather(space, "r", int, n=1, progress=True) == [("r", 1)]


class Stopped(Terminal):
    """A terminal whose last line is what Ctrl-C is pressed at: it is slow, or was stopped."""

    def flush(self):
        if self.getvalue().endswith("\n"):
            raise KeyboardInterrupt


def test_who_is_interrupted_while_the_bar_ends_has_taken_nothing_t5(space, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Stopped())
    space.put_all(("result", number) for number in range(1000))
    with pytest.raises(KeyboardInterrupt):
        gather(space, "result", int, n=1000, progress=True)
    assert space.count("result", int) == 1000


@pytest.mark.parametrize("n", [-1, "2", True])
def test_what_is_no_number_of_results_is_refused_with_a_bar_as_without(space, n):
    problems = []
    for progress in (False, True):
        with pytest.raises((TypeError, ValueError)) as caught:
            gather(space, "result", int, n=n, timeout=0, progress=progress)
        problems.append(str(caught.value))
    assert problems[0] == problems[1]
