"""A work queue: one producer, four workers, and an end without poison pills.

Each worker takes whatever is there; `finish` ends them when nothing is left. The sum is checked.
Where a worker may be killed in the middle of its work, claim it: docs/how-to/claim.md.
"""

import tupelo as ts

URL = "shm://example-work-queue"
NUMBERS = 1_000


def worker() -> None:
    """Square numbers until there are no more."""
    with ts.connect(URL) as space:
        for _, number in space.consume("square", int):
            space.put("squared", number, number * number)


def main() -> None:
    """Hand out the numbers, collect the squares."""
    with ts.connect(URL, fresh=True) as space, ts.spawn(worker, n=4):
        space.put_all(("square", number) for number in range(NUMBERS))
        space.finish("square", int)
        squares = space.take_many("squared", int, int, n=NUMBERS, timeout=30)
    ts.remove(URL)

    total = sum(square for _, _, square in squares)
    assert total == sum(number * number for number in range(NUMBERS))
    print(f"the sum of {NUMBERS} squares is {total}")


if __name__ == "__main__":
    main()
