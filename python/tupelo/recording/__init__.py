"""Spaces that record the calls of a program, for `tupelo record`.

Where the variable TUPELO_RECORD names a folder, `connect` opens a `RecordingSpace`, also behind
`tupelo.aio`. Where it is not set nothing of this is even imported.
"""

from tupelo.recording.awaited import RecordingAioSearch, RecordingAioSpace
from tupelo.recording.lines import VARIABLE
from tupelo.recording.space import RecordingSearch, RecordingSpace

__all__ = [
    "VARIABLE",
    "RecordingAioSearch",
    "RecordingAioSpace",
    "RecordingSearch",
    "RecordingSpace",
]
