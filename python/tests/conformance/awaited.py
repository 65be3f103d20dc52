"""The cases over `tupelo.aio`: what the runner calls, awaited in one task of an event loop.

A step must not wait, so what it awaits has to end at once. The loop turns between two steps, and
tells those calls that are blocked what has happened.
"""

import asyncio
from inspect import isawaitable

import pytest

from conformance.run import Run
from tupelo import aio

TURNS = 4
"""How often the loop goes round until a blocked call has heard of a step: it finds that the
notifier was told, asks it for whom, and says so to that one. One more is to spare."""


def hold(case, new_url):
    """Run a case; an error says in which step."""
    asyncio.run(steps_of(case, new_url))


async def steps_of(case, new_url):
    run = Run(case, search=search, start=start)
    async with (
        opened(new_url(), run.opened_with) as main,
        opened(new_url(), run.opened_with) as other,
    ):
        run.entries.connected(main.blocking)
        for _ in run.steps(Awaited(main), Awaited(other)):
            for _ in range(TURNS):
                await asyncio.sleep(0)


class Awaited:
    """An object of `tupelo.aio` whose verbs return what they are awaited for."""

    def __init__(self, twin):
        """Stand in for the object."""
        self.twin = twin

    def __getattr__(self, name):
        """Return what the object has by this name."""
        attribute = getattr(self.twin, name)
        if not callable(attribute):
            return attribute

        def verb(*arguments, **options):
            return ended(attribute(*map(twin_of, arguments), **options))

        return verb


def twin_of(argument):
    return argument.twin if isinstance(argument, Awaited) else argument


def opened(url, options):
    """Connect. No step here waits for the disk: `test_durable_calls.py` has tasks that do."""
    on_disk_later = {"sync": "none"} if url.startswith("file:") else {}
    return aio.connect(url, **options, **on_disk_later)


def ended(result):
    """Return what a verb is awaited for, as the runner uses it."""
    return stand_in(at_once(result) if isawaitable(result) else result)


def stand_in(result):
    if type(result).__module__.startswith("tupelo.aio"):
        return Awaited(result)
    return items(result) if hasattr(result, "__anext__") else result


def items(generator):
    """Go through what an asynchronous generator yields."""
    while True:
        try:
            yield at_once(anext(generator))
        except StopAsyncIteration:
            return


def at_once(awaitable):
    """Return the result of what does not wait, without a turn of the loop."""
    try:
        next(awaitable.__await__())
    except StopIteration as end:
        return end.value
    message = "the step waits"
    raise AssertionError(message)


def search(spaces, *template, **options):
    return ended(aio.search(list(map(twin_of, spaces)), *template, **options))


def start(space, want, wanted, claim_terms):
    """Begin a call that is blocked; with terms of a claim it is one.

    A call that finds a match returns at once. Here it has to be in the wait queue first, so
    somebody has the matches in hands while it begins, and gives them back to their places.
    """
    if claim_terms is None:
        coroutine = getattr(space.twin, want)(wanted)
    else:
        coroutine = space.twin.claim(wanted, **claim_terms)
    with space.blocking.transaction() as somebody:
        somebody.take_all(wanted)
        call = Call(coroutine)
        somebody.abort()
    return call


class Call:
    """A blocked call that goes on when it is told to, and not as soon as it could.

    So there is time between the moment at which it is served and that at which it returns.
    """

    def __init__(self, coroutine):
        """Let it join the wait queue, and note what it awaits there."""
        self._coroutine = coroutine
        self._awaited = coroutine.send(None)

    def is_pending(self):
        if self._awaited.done():
            try:
                self._awaited = self._coroutine.send(None)  # it was told in vain, or it ends
            except StopIteration:
                return False
        return True

    def is_served(self):
        return self._awaited.done()

    def finish(self):
        with pytest.raises(StopIteration) as end:
            self._coroutine.send(None)
        return stand_in(end.value.value)

    def cancel(self):
        with pytest.raises(asyncio.CancelledError):
            self._coroutine.throw(asyncio.CancelledError())
