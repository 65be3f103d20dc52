"""Whether numbers that others have sorted are sorted, and are the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


def check_sorted(parts: Sequence[np.ndarray], together: np.ndarray, numbers: np.ndarray) -> None:
    """Compare what came back with what a sequential sort makes of the numbers.

    Args:
        parts: what each worker has sorted.
        together: what the master has made of them. It would be sorted if nobody else had done
            anything, so each part is looked at, too.
        numbers: what there was to sort.

    Raises:
        WrongResultError: a part is not sorted, or numbers are others.
    """
    import numpy as np

    unsorted = any(bool((part[1:] < part[:-1]).any()) for part in parts)
    if unsorted or not np.array_equal(together, np.sort(numbers)):
        message = f"the {numbers.size} numbers are not sorted, or not all there"
        raise WrongResultError(message)
