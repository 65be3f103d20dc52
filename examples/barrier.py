"""A barrier: no process begins the next round before all have ended this one.

The barrier of a round is one tuple, ("barrier", round, how many are still missing). Who arrives
takes it and puts it back with one less, and then reads the zero, which the last one puts.
"""

import os

import tupelo as ts

URL = "shm://example-barrier"
PARTIES = 3
ROUNDS = 5
PATIENCE_S = 30.0  # with a party that has died, the others would wait for ever


def wait(space: ts.Space, number: int) -> None:
    """Arrive at the barrier of a round and wait for the others; `Timeout` if one never comes."""
    _, _, missing = space.take("barrier", number, int, timeout=PATIENCE_S)
    space.put("barrier", number, missing - 1)
    space.read("barrier", number, 0, timeout=PATIENCE_S)


def party() -> None:
    """Work in rounds; write down who was in which round when."""
    with ts.connect(URL) as space:
        for number in range(ROUNDS):
            space.put("log", number, os.getpid())
            wait(space, number)


def main() -> None:
    """Run the parties; check that no round began before the one before it had ended."""
    with ts.connect(URL, fresh=True) as space:
        space.put_all(("barrier", number, PARTIES) for number in range(ROUNDS))
        with ts.spawn(party, n=PARTIES):
            pass  # leaving the block waits for them
        log = space.take_all("log", int, int)
    ts.remove(URL)

    rounds = [number for _, number, _ in log]
    assert rounds == sorted(rounds)
    assert len(rounds) == ROUNDS * PARTIES
    print(f"{PARTIES} processes went through {ROUNDS} rounds together")


if __name__ == "__main__":
    main()
