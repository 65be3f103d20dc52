"""Programs that show a space at work: `tupelo demo password`, `tupelo demo sort FILE`.

Each is a complete program over the public API, with real processes and checked results, and does
the same work without a space beside it. They are written to be read.
"""
