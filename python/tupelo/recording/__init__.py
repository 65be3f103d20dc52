"""The trace of a program's calls, for `tupelo record`.

Where the variable TUPELO_RECORD names a folder, `tracing` lets the verbs of this process write a
line for each call. Where it is not set nothing of this is imported, and the verbs are as they are.
"""

VARIABLE = "TUPELO_RECORD"
"""Names the folder of the files; the native module knows it, too."""
NOWHERE = "mem://tupelo.discarded"
"""Where a record says that tuples went that were removed unread."""
LONG_BYTES = 64
"""A value that is longer is recorded as its digest, by the native module."""
