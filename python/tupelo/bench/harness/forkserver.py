"""Imported by nobody but the process that forks all others: that one ends with the first process.

Else it would go on for as long as any of its children does, and each of these until it does.
"""

from tupelo.bench.harness.lifetime import die_with_parent

die_with_parent()
