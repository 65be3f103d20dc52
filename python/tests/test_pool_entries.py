"""Entries as arguments and results of tasks."""

from test_pool import output_of

WITH_ENTRIES = """
import math, shutil, sys
from dataclasses import dataclass, make_dataclass
from tupelo.batteries import Pool

@dataclass
class Asked:
    n: int

@dataclass
class Answered:
    n: int

@dataclass
class Refused:
    n: int

    def __post_init__(self):
        if __name__ == "__main__":
            raise ValueError("not here")

@dataclass
class Picky:
    n: int

    def __post_init__(self):
        if __name__ != "__main__":
            raise ValueError("not in a worker")

def number(asked):
    return asked.n

def hidden(n):
    return make_dataclass("Hidden", [("n", int)])(n)

def outcome(results):
    try:
        return list(results)
    except Exception as error:
        return type(error).__name__

if __name__ == "__main__":
    with Pool(sys.argv[1], workers=1) as pool:
        print(list(pool.map(number, [Asked(3)])), list(pool.map(Answered, [1])))
        print(list(pool.map(shutil.disk_usage, ["/"]))[0].total > 0)
        error = pool.submit(number, Picky(1)).exception(60)
        print(error.kind, pool.submit(math.sqrt, 9.0).result(60))
        for bad in (hidden, Refused):
            print(outcome(pool.map(bad, [1])), type(pool.submit(bad, 1).exception(60)).__name__)
            print(list(pool.map(math.sqrt, [4.0])), pool.submit(math.sqrt, 9.0).result(60))
"""


def test_entries_are_arguments_and_results_and_one_that_can_not_be_made_fails_alone(
    shm_url, tmp_path
):
    """Of classes that neither process has used in a space before."""
    assert output_of(WITH_ENTRIES, tmp_path, shm_url).splitlines() == [
        "[3] [Answered(n=1)]",
        "True",
        "builtins.ValueError 3.0",
        "SchemaMismatch SchemaMismatch",
        "[2.0] 3.0",
        "ValueError ValueError",
        "[2.0] 3.0",
    ]
