"""A semaphore: of six processes, never more than two use the printer at once.

A permit is a tuple. Taking it waits until one is free, and who has waited longest gets it.
"""

import time

import tupelo as ts

URL = "shm://example-semaphore"
PERMITS = 2
USERS = 6


def user() -> None:
    """Use the printer once; write down how many used it then."""
    with ts.connect(URL) as space:
        permit = space.take("permit")
        space.put("printing")
        space.put("seen", space.count("printing"))
        time.sleep(0.05)
        space.take("printing")
        space.put(*permit)


def main() -> None:
    """Run the users; check that the permits held."""
    with ts.connect(URL, fresh=True) as space:
        space.put_all([("permit",)] * PERMITS)
        with ts.spawn(user, n=USERS):
            seen = space.take_many("seen", int, n=USERS, timeout=30)
        assert space.count("permit") == PERMITS
    ts.remove(URL)

    most = max(users for _, users in seen)
    assert most <= PERMITS
    print(f"{USERS} processes shared {PERMITS} permits, never more at once")


if __name__ == "__main__":
    main()
