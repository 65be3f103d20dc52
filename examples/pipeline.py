"""A pipeline: numbers flow through two stages, each with as many processes as it needs.

A stage takes one tag and puts the next; it knows neither who fed it nor who follows. A stage is
finished after the one before it has ended, so nothing is cut off.
"""

import tupelo as ts

URL = "shm://example-pipeline"
NUMBERS = 500
PRIMES = 95  # below 500, to check the result


def factor() -> None:
    """First stage: the smallest divisor of each number."""
    with ts.connect(URL) as space:
        for _, number in space.consume("number", int):
            divisor = next(d for d in range(2, number + 1) if number % d == 0)
            space.put("factored", number, divisor)


def judge() -> None:
    """Second stage: which of them are primes."""
    with ts.connect(URL) as space:
        for _, number, divisor in space.consume("factored", int, int):
            space.put("judged", number, number == divisor)


def main() -> None:
    """Feed the first stage, collect from the last."""
    with ts.connect(URL, fresh=True) as space, ts.spawn(judge, n=1):
        with ts.spawn(factor, n=3):
            space.put_all(("number", number) for number in range(2, NUMBERS))
            space.finish("number", int)
        space.finish("factored", int, int)
        judged = space.take_many("judged", int, bool, n=NUMBERS - 2, timeout=30)
    ts.remove(URL)

    primes = sorted(number for _, number, prime in judged if prime)
    assert primes[:5] == [2, 3, 5, 7, 11]
    assert len(primes) == PRIMES
    print(f"{len(primes)} primes below {NUMBERS}, the largest is {primes[-1]}")


if __name__ == "__main__":
    main()
