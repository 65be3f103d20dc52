"""Request and reply: three clients call two servers, and each gets its own answer.

A request carries a number that nobody else uses; the reply is the tuple with that number. Nobody
knows who serves, and a second server is just one more process that takes requests.
"""

import os

import tupelo as ts

URL = "shm://example-request-reply"
CALLS = 100


def server() -> None:
    """Answer requests until there will be no more."""
    with ts.connect(URL) as space:
        for _, request, text in space.consume("upper", str, str):
            space.put("reply", request, text.upper())


def client() -> None:
    """Call a hundred times and check each answer."""
    with ts.connect(URL) as space:
        for number in range(CALLS):
            request = f"{os.getpid()}-{number}"
            space.put("upper", request, f"call {number}")
            _, _, text = space.take("reply", request, str, timeout=30)
            assert text == f"CALL {number}"
        space.put("right answers", CALLS)


def main() -> None:
    """Run two servers and three clients."""
    with ts.connect(URL, fresh=True) as space, ts.spawn(server, n=2):
        with ts.spawn(client, n=3):
            answers = space.take_many("right answers", int, n=3, timeout=30)
        space.finish("upper", str, str)
    ts.remove(URL)

    total = sum(number for _, number in answers)
    assert total == 3 * CALLS
    print(f"{total} calls, every answer went to its caller")


if __name__ == "__main__":
    main()
