"""Asking and answering: `Service` and `call`.

A server claims a request to answer it. It puts the answer before the claim ends. If the server is
killed in between, the request is answered again, and nobody takes the second answer. So answers are
put with a lease, which also ends the answers of callers that have died. A request has a lease if
its caller waits for a limited time only.

The tuples:

* `("tupelo.request", service, mailbox, number, [argument])`: the request. `mailbox` is a unique
  text to which the answer goes, and the caller chooses `number`.
* `("tupelo.answer", mailbox, number, "done", value)`, or with `"failed"` and an error: the answer,
  like the answers of tasks (docs/tasks.md).
* `("tupelo.request.stop", service, run)`: wakes the loops of a run that is to end.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import Any

from tupelo import _native
from tupelo.batteries import checks
from tupelo.batteries.core.lasting import goes_on, pinned
from tupelo.batteries.core.runs import LOOK_S, Runs, unique
from tupelo.batteries.timeouts import Deadline, timed_out
from tupelo.batteries.verbs import awaited
from tupelo.errors import ClaimLost, LimitExceeded, SpaceFull, SpaceRemoved, Timeout
from tupelo.suggesting import suggests
from tupelo.tasks import failures
from tupelo.tasks.discarding import withdrawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tupelo._native import Claim, Seconds
    from tupelo.batteries.core.runs import Run
    from tupelo.batteries.verbs import Verbs

__all__ = ["Service", "call"]

REQUEST = "tupelo.request"
ANSWER = "tupelo.answer"

ANSWER_LEASE_S = 60.0
"""The lease of an answer that is never taken. A waiting caller has its answer at once."""

ROOM_S = ANSWER_LEASE_S
"""How long to wait for room in a full space: a service outlives a moment without any."""

REQUEST_GRACE_S = 1.0
"""How much longer a request lives than its caller waits."""

CONCURRENCY_MAX = 1024
"""Each is a thread, or a task."""

ATTEMPTS_MAX = 3
"""After so many dead servers a request is answered with an error."""


class Service:
    """Answers the requests under a name; see `tupelo.batteries.Service`."""

    @suggests
    def __init__(
        self,
        space: Verbs,
        name: str,
        handler: Callable[[Any], Any],
        *,
        concurrency: int = 1,
        ttl: Seconds = 30,
    ) -> None:
        """Make an object of the service; nothing happens in the space."""
        self._space = awaited(space)
        self.name = checks.text("name", name)
        if not callable(handler):
            message = f"handler has the type {type(handler).__name__}: give a function"
            raise TypeError(message)
        self._handler = handler
        self.concurrency = checks.number_of("concurrency", concurrency, CONCURRENCY_MAX)
        self._ttl_s = checks.time_to_live(ttl)
        self.runs = Runs(self._space, self.name)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return f"<Service {self.name!r} in {self._space.url}>"

    async def serve(self, run: Run) -> None:
        """Answer one request after the other until the run is over."""
        request = (REQUEST, self.name, str, int, list)
        work = _native.like(*request) | _native.like(*run.stop)
        while not run.is_over:
            try:
                claim = await self._next(work)
            except Timeout:
                continue
            if claim.tuple == run.stop:
                with suppress(ClaimLost):  # it is back already
                    claim.abort()
                return
            try:
                with claim:
                    await self._answer(claim)
            except ClaimLost:
                # This process was stopped for longer than the ttl: the request is answered by
                # another one, and the caller takes the first of the answers.
                continue
            except SpaceRemoved:
                # The caller was told. The next request comes in the next space.
                if self._space.blocking.on_removed == "error":
                    raise

    async def _next(self, work: _native.Template[Any]) -> Claim[Any]:
        """Claim a request, or what ends a run.

        If an argument cannot be read here, an exception with the reason stands in its place.
        Perhaps no server can read it, and the caller must be told.

        Raises:
            Timeout: none came for a while.
        """
        try:
            held = await self._space.claim(work, ttl=self._ttl_s, timeout=LOOK_S)
        except Exception as error:
            if not failures.is_of_value(error):
                raise
        else:
            return held.blocking
        # Another one may have it by now, and give it back: so this, too, is a wait.
        return await self._claim_partly(work)

    async def _claim_partly(self, work: _native.Template[Any]) -> Claim[Any]:
        """Claim a request that perhaps cannot be read, waiting for it."""
        return _native.claim_partly(self._space.blocking, work, ttl=self._ttl_s, timeout=LOOK_S)

    async def _answer(self, claim: Claim[Any]) -> None:
        """Put the answer to a request."""
        _, _, mailbox, number, asked = claim.tuple
        outcome = await self._outcome(asked, claim)
        try:
            await self._put(mailbox, number, *outcome)
        except Exception as error:
            if not is_for_good(error):
                raise
            # No server can give this answer: the caller is told, and this one goes on.
            await self._put(mailbox, number, *failed(error, claim))

    async def _outcome(self, asked: Any, claim: Claim[Any]) -> tuple[str, Any]:
        """Return the handler's result for a request."""
        if claim.attempt > ATTEMPTS_MAX:
            deaths = claim.attempt - 1
            error = failures.described_death(deaths)
            return "failed", {**error, "attempts": deaths, "attempts_max": ATTEMPTS_MAX}
        try:
            value = self._handler(argument_of(asked))
            if hasattr(value, "__await__"):
                value = await value
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            # In the main thread it may be a signal that is to end the program.
            is_signal = (
                isinstance(error, SystemExit)
                and threading.current_thread() is threading.main_thread()
            )
            if is_signal or is_cancelled(error):
                raise
            return failed(error, claim)  # the caller has it
        return "done", _native.Sent(value)

    async def _put(self, *answer: Any) -> None:
        await self._space.put(ANSWER, *answer, lease=ANSWER_LEASE_S, timeout=ROOM_S)


def argument_of(asked: Any) -> Any:
    """Return the argument of a request for the handler.

    Raises:
        ValueError: it is not one value in a list.
        Exception: the argument cannot be read here, and why.
    """
    if isinstance(asked, Exception):
        raise asked
    if len(asked) != 1:
        message = f"a request of {len(asked)} arguments: put one, in a list"
        raise ValueError(message)
    return asked[0]


def is_for_good(error: Exception) -> bool:
    """Whether an answer that raised this while it was stored would do so again."""
    if isinstance(error, SpaceFull):
        return not error.may_pass
    return isinstance(error, LimitExceeded) or failures.is_of_value(error)


def is_cancelled(error: BaseException) -> bool:
    """Whether the error cancels the serving task, and does not come from the handler."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop: a thread serves
        return False
    return task is not None and task.cancelling() > 0


def failed(error: BaseException, claim: Claim[Any]) -> tuple[str, Any]:
    """Return the answer for a request that raised."""
    described = failures.described(error, outside=__file__)
    return "failed", {**described, "attempts": claim.attempt, "attempts_max": claim.attempt}


async def call(
    space: Verbs, service: str, argument: Any = None, *, timeout: Seconds | None = None
) -> Any:
    """Ask a service, and wait for its answer; see `tupelo.batteries.call`."""
    space = awaited(space)
    asking = Asking(checks.text("service", service), argument, timeout)
    while True:
        used = pinned(space)  # without its request there would be no answer
        try:
            outcome, value = await asking.answer_in(used)
        except SpaceRemoved:
            # Before there was a request, nobody can have begun.
            if asking.has_asked or not goes_on(space, used):
                raise
        else:
            break
    if outcome == "done":
        return value
    shown = failures.shown_call(asking.service, (argument,), {})
    raise failures.remote_error(shown, value, url=space.url, hint=None)


class Asking:
    """One request, and the wait for its answer."""

    def __init__(self, service: str, argument: Any, timeout: Seconds | None) -> None:
        """Begin the time of the caller; nothing happens in a space."""
        self.service = service
        self._argument = argument
        self._deadline = Deadline(timeout)
        self._mailbox = unique()
        self.has_asked = False
        """Whether the request was put."""

    async def answer_in(self, space: Verbs) -> tuple[str, Any]:
        """Put the request, and wait for the answer; return whether it is one, and its value."""
        deadline, mailbox = self._deadline, self._mailbox
        request = (REQUEST, self.service, mailbox, 0, [_native.Sent(self._argument)])
        # Longer than the wait of the caller, which withdraws the request: the lease is for a caller
        # that is killed.
        lease = None if deadline.timeout_s is None else deadline.timeout_s + REQUEST_GRACE_S
        try:
            # Ctrl-C may come when the request is in the space already: so this is inside, too.
            await space.put(*request, lease=lease, timeout=deadline.left())
            self.has_asked = True
            answer = await space.take(ANSWER, mailbox, 0, str, ..., timeout=deadline.left())
        except Timeout:
            answer = self._late_answer(space)
        except BaseException:
            with suppress(SpaceRemoved):  # with all that was in it
                withdrawn(space.blocking, self._asked())
                withdrawn(space.blocking, self._answered())
            raise
        _, _, _, outcome, value = answer
        return outcome, value

    def _late_answer(self, space: Verbs) -> Any:
        """Withdraw the request; return an answer that came in the last moment.

        Raises:
            Timeout: there is none.
        """
        begun = not withdrawn(space.blocking, self._asked())
        late = space.blocking.try_take(self._answered())
        if late is None:
            state = "somebody works on it" if begun else "nobody has begun"
            message = f"service {self.service!r} did not answer{self._deadline}: {state}"
            raise timed_out(message, space.url) from None
        return late

    def _asked(self) -> _native.Template[Any]:
        return _native.like(REQUEST, self.service, self._mailbox, 0, list)

    def _answered(self) -> _native.Template[Any]:
        return _native.like(ANSWER, self._mailbox, 0, str, ...)
