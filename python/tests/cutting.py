"""An exception at every place where a call awaits, one after the other: what tests of T5 share."""

import asyncio
import itertools

import pytest

FAULTS = (asyncio.CancelledError, ZeroDivisionError, GeneratorExit)


class Cut:
    """Awaits a coroutine until it awaits for the n-th time, and raises there.

    `served`: what it waits for has happened by then, and the coroutine has not heard of it yet.
    """

    def __init__(self, coroutine, at, exception=asyncio.CancelledError, *, served):
        self.coroutine, self.at = coroutine, at
        self.exception, self.served = exception, served
        self.was_reached = False

    def __await__(self):
        for number in itertools.count():
            try:
                awaited = self.coroutine.send(None)
            except StopIteration as end:
                return end.value
            if number < self.at or self.served:
                yield awaited
            if number == self.at:
                self.was_reached = True
                try:
                    self.coroutine.throw(self.exception())
                except StopIteration as end:
                    return end.value
                pytest.fail("it went on waiting")


async def outcome(call):
    """Return the result, or the class of the exception, whatever it is."""
    try:
        return await call
    except BaseException as exception:  # noqa: BLE001 - it is the point
        return type(exception)


async def begun(call):
    """Make a task of a call, and return it when the call waits for the first time, or has ended."""
    task = asyncio.ensure_future(call)
    await asyncio.sleep(0)
    return task


def at_every_await(main):
    """Run `main(at)` with `at` from 0 on, until it returns that the call was not cut any more.

    Returns:
        How many times it was.
    """

    async def within_a_minute(at):
        # A wake-up that was lost is a failure then, not a test that never ends.
        async with asyncio.timeout(60):
            return await main(at)

    return next(at for at in itertools.count() if not asyncio.run(within_a_minute(at)))


def in_hands(space):
    """Return the figures of a space that are nothing once all calls have ended, as far as they are.

    Who is cut has no place in the wait queue any more, no claim, no transaction, no subscription.
    """
    stat = space.stat()
    of_all = ("waiters", "waiting_for_room", "subscriptions", "transactions")
    found = {key: stat[key] for key in of_all}
    for shape in stat["shapes"]:
        for key in ("waiting", "claims", "dead", "in_transactions", "read_locks"):
            found[(*shape["kinds"], key)] = shape[key]
    return {key: figure for key, figure in found.items() if figure}
