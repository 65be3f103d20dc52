"""Tuples as a table: what `gather` returns.

The libraries that tables are made for are imported when one is asked for; none of them is needed
for anything else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

from tupelo import entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

__all__ = ["Rows"]

T = TypeVar("T")

ARRAYS = ({bool}, {int}, {float}, {int, float}, {str}, {bytes})
"""The types that NumPy has arrays of."""


class Rows(list[T]):
    """Tuples, and their columns.

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

        Of entries these are all fields, by their names.

        Returns:
            For each name a value for each row; nothing at all if there are no rows.

        Raises:
            TypeError: the rows have different lengths, or are entries of several classes.
        """
        classes = {type(row) for row in self}
        names = [_names(cls) for cls in classes]
        if len(classes) > 1 and any(names):
            listed = ", ".join(sorted(cls.__name__ for cls in classes))
            message = f"rows of several classes ({listed}) have no columns: gather each by itself"
            raise TypeError(message)
        if names and names[0]:
            return {name: [getattr(row, name) for row in self] for name in names[0]}
        lengths = sorted({len(row) for row in self})  # type: ignore[arg-type]
        if len(lengths) > 1:
            listed = " and ".join(map(str, lengths))
            message = (
                f"rows of different lengths ({listed} fields) have no columns: gather each shape "
                "by itself, or make lists of the fields that you want"
            )
            raise TypeError(message)
        fields = [index for index in range(*lengths) if index not in self._plain] if lengths else []
        return {f"f{index}": [row[index] for row in self] for index in fields}  # type: ignore[index]

    def to_numpy(self) -> np.recarray[Any, Any]:
        """Return the columns as one record array; `rows.to_numpy().f1` is one of them.

        Raises:
            ModuleNotFoundError: numpy is not installed.
            TypeError: as `columns`.
        """
        numpy = _library("to_numpy", "numpy")
        columns = {name: _column(numpy, column) for name, column in self.columns().items()}
        dtype = [(name, array.dtype) for name, array in columns.items()]
        records: np.recarray[Any, Any] = numpy.recarray((len(self),), dtype=dtype)
        for name, array in columns.items():
            records[name] = array
        return records

    def to_pandas(self) -> Any:
        """Return the columns as a `pandas.DataFrame`, whose index counts the rows from 0.

        A column of ints and `None` has the type `Int64`, whose missing values are `pandas.NA`. One
        with ints that no column of numbers holds exactly has the objects themselves.

        Raises:
            ModuleNotFoundError: pandas is not installed.
            TypeError: as `columns`.
        """
        pandas = _library("to_pandas", "pandas")
        columns = self.columns().items()
        return pandas.DataFrame({name: _series(pandas, column) for name, column in columns})

    def to_arrow(self) -> Any:
        """Return the columns as a `pyarrow.Table`, each of the type that its values have.

        Raises:
            ModuleNotFoundError: pyarrow is not installed.
            TypeError: as `columns`.
            ValueError: a column has values of several types, or of a type that Arrow has not.
            OverflowError: an int is not one of 64 bits.
        """
        return _library("to_arrow", "pyarrow").table(self.columns())


def _names(cls: type[Any]) -> list[str]:
    """Return the names of the fields of a class of entries; none for plain tuples."""
    described = entries.describe(cls)
    return [] if described is None else [name for name, _, _ in described[2]]


def _library(method: str, name: str) -> Any:
    """Return a library that is only needed for its own kind of table."""
    try:
        return import_module(name)
    except ModuleNotFoundError as why:
        if why.name != name:  # it is there, and something that it needs is not
            raise
        message = f"{method}() needs {name}, which is not installed: pip install {name}"
        raise ModuleNotFoundError(message, name=name) from None


def _series(pandas: Any, column: list[Any]) -> Any:
    """Return the data of a column of a `DataFrame`: pandas by itself makes floats of ints."""
    types = {type(value) for value in column}
    if int not in types or types == {int}:
        return column
    if types == {int, type(None)} and all(value is None or _is_int64(value) for value in column):
        return pandas.array(column, dtype="Int64")
    if types <= {int, float, type(None)} and all(
        type(value) is not int or _is_float(value) for value in column
    ):
        return column
    return pandas.Series(column, dtype=object)


def _is_int64(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _is_float(value: int) -> bool:
    """Whether a float is exactly this int."""
    return abs(value) <= 2**53 or (abs(value) < 2**1023 and int(float(value)) == value)


def _column(numpy: Any, column: list[Any]) -> Any:
    """Return an array with a value for each row: of objects, where another would change one."""
    if {type(value) for value in column} in ARRAYS:
        array = numpy.asarray(column)
        # An int may be too large for it; a text or bytes would lose zeros at its end. NaN is not
        # equal to itself.
        pairs = zip(column, array.tolist(), strict=True)
        if all(value == kept or type(value) is float for value, kept in pairs):
            return array
    array = numpy.empty(len(column), dtype=object)
    for index, value in enumerate(column):
        array[index] = value
    return array
