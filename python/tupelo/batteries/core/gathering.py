"""Waiting for so many results: `gather`.

They are taken in one step when all are there: a call that gives up, or whose process is killed, has
taken nothing. So the bar counts what waits in the space. It needs no tuples of its own.
"""

from __future__ import annotations

from typing import TypeVar

from tupelo import _native
from tupelo.batteries.progress import Bar
from tupelo.batteries.timeouts import Deadline
from tupelo.batteries.verbs import awaited
from tupelo.errors import Timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tupelo._native import Seconds
    from tupelo.batteries.verbs import Verbs

__all__ = ["Rows", "gather"]

T = TypeVar("T")

LOOK_EVERY_S = 0.1
"""How often the bar is drawn."""

PLAIN = (str, bytes, int, float, type(None))


class Rows(list[T]):
    """Tuples, and what they have in each field.

    >>> from tupelo.batteries import gather
    >>> space.put_all([("result", 1, 0.5), ("result", 2, 0.25)])
    2
    >>> rows = gather(space, "result", int, float, n=2)
    >>> rows
    [('result', 1, 0.5), ('result', 2, 0.25)]
    >>> rows.columns()
    {'f1': [1, 2], 'f2': [0.5, 0.25]}
    >>> float(rows.to_numpy().f2.sum())
    0.75
    """

    def __init__(self, tuples: list[T], plain: frozenset[int]) -> None:
        """Note which fields are the same in all."""
        super().__init__(tuples)
        self._plain = plain

    def columns(self) -> dict[str, list[Any]]:
        """Return the fields that the template left open, `f0` for the first field and so on.

        This is what `pandas.DataFrame(rows.columns())` and `pyarrow.table(rows.columns())` want.

        Raises:
            TypeError: the rows are entries, or have different lengths.
        """
        lengths = {len(row) if isinstance(row, tuple) else None for row in self}
        if None in lengths or len(lengths) > 1:
            what = "entries" if None in lengths else "rows of different lengths"
            message = f"{what} have no columns: make lists of the fields that you want"
            raise TypeError(message)
        length = lengths.pop() if lengths else 0
        fields = [index for index in range(length or 0) if index not in self._plain]
        return {f"f{index}": [row[index] for row in self] for index in fields}  # type: ignore[index]

    def to_numpy(self) -> np.recarray[Any, Any]:
        """Return the columns as one record array; `rows.to_numpy().f1` is one of them.

        Raises:
            ModuleNotFoundError: numpy is not installed.
            TypeError: as `columns`.
        """
        import numpy  # noqa: ICN001, PLC0415 - only who asks for it needs it

        columns = {name: _column(numpy, column) for name, column in self.columns().items()}
        dtype = [(name, array.dtype) for name, array in columns.items()]
        records: np.recarray[Any, Any] = numpy.recarray((len(self),), dtype=dtype)
        for name, array in columns.items():
            records[name] = array
        return records


def _column(numpy: Any, column: list[Any]) -> Any:
    """Return an array with a value for each row: of objects, if they are no numbers or texts."""
    try:
        array = numpy.asarray(column)
    except ValueError:  # arrays or lists of different shapes
        array = None
    if array is None or array.ndim != 1:
        array = numpy.empty(len(column), dtype=object)
        for index, value in enumerate(column):
            array[index] = value
    return array


async def gather(
    space: Verbs,
    *template: Any,
    n: int,
    timeout: Seconds | None = None,
    progress: str | bool = False,
    **fields: Any,
) -> Rows[Any]:
    """Wait for `n` matches and take them in one step; see `tupelo.batteries.gather`."""
    verbs = awaited(space)
    deadline = Deadline(timeout)
    if not isinstance(progress, str | bool):
        message = f"progress has the type {type(progress).__name__}: give a label, or True"
        raise TypeError(message)
    sought = _native.like(*template, **fields)
    if progress is False:
        taken = await verbs.take_many(sought, n=n, timeout=deadline.left())
    else:
        label = progress if isinstance(progress, str) else "gathering"
        taken = await _watched(verbs, sought, n, deadline, Bar(label, n))
    plain = (index for index, pattern in enumerate(template) if isinstance(pattern, PLAIN))
    return Rows(taken, frozenset(plain))


async def _watched(
    space: Verbs, sought: _native.Template[Any], n: int, deadline: Deadline, line: Bar
) -> list[Any]:
    """Wait in short turns, and draw the bar between them."""
    done = 0
    try:
        while True:
            left = deadline.left()
            turn = LOOK_EVERY_S if left is None else min(LOOK_EVERY_S, left)
            try:
                taken = await space.take_many(sought, n=n, timeout=turn)
            except Timeout:
                if left is not None and left <= LOOK_EVERY_S:
                    raise
                done = min(n, space.blocking.count(sought))
                line.show(done)
            else:
                done = n
                return taken
    finally:
        line.end(done)
