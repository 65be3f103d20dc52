"""Insertion sort: O(n²) on purpose, so that the work is large beside its numbers.

Compiled, where there is a C compiler, so that a column of another language can be compared; else in
Python, and then the record says so.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tupelo_bench.harness.folders import temporary_folder

if TYPE_CHECKING:
    import numpy as np

PROGRAMS = Path(__file__).parents[1] / "backends" / "native"
SOURCE = """
#include "insertion_sort.h"

void sort_numbers(int64_t *numbers, size_t count) { insertion_sort(numbers, count); }
"""
OPTIONS = ("-O2", "-shared", "-fPIC", f"-I{PROGRAMS}")


def is_compiled() -> bool:
    """Whether there is a compiler."""
    return shutil.which("cc") is not None


@cache
def _library() -> ctypes.CDLL | None:
    """The compiled function; each process makes its own, before it starts its clock."""
    if not is_compiled():
        return None
    with temporary_folder("compiler") as folder:
        source, library = folder / "sort.c", folder / "sort.so"
        source.write_text(SOURCE, encoding="ascii")
        subprocess.run(["cc", *OPTIONS, "-o", str(library), str(source)], check=True)
        return ctypes.CDLL(str(library))


def prepare() -> None:
    """Compile, if there is a compiler."""
    _library()


def insertion_sort(numbers: np.ndarray) -> np.ndarray:
    """Return the numbers (64-bit integers) in order, by insertion."""
    library = _library()
    copy = numbers.copy()
    if library is not None:
        library.sort_numbers(ctypes.c_void_p(copy.ctypes.data), ctypes.c_size_t(copy.size))
        return copy
    import numpy as np

    return np.array(_in_python(copy.tolist()), copy.dtype)


def _in_python(numbers: list[int]) -> list[int]:
    for next_place in range(1, len(numbers)):
        number = numbers[next_place]
        place = next_place
        while place > 0 and numbers[place - 1] > number:
            numbers[place] = numbers[place - 1]
            place -= 1
        numbers[place] = number
    return numbers
