"""The database of the password demo: MD5 digests of 7-digit numbers, and the numbers.

It is computed, not stored, so that every process makes its own part and no file is needed.
"""

import hashlib
from collections.abc import Iterator

FIRST = 1_000_000  # the smallest number of 7 digits
SIZE_MAX = 9_000_000  # and how many there are
STRIDE = 7_368_787  # shares no factor with SIZE_MAX, so that every number comes up exactly once


def password(index: int) -> str:
    """The password with this index, from 0 to SIZE_MAX - 1; they look shuffled and never repeat."""
    return str(FIRST + index * STRIDE % SIZE_MAX)


def digest(text: str) -> str:
    """The MD5 digest of a password, in hexadecimal."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def pairs(indexes: range) -> Iterator[tuple[str, str]]:
    """The (digest, password) pairs of these indexes."""
    for index in indexes:
        text = password(index)
        yield digest(text), text
