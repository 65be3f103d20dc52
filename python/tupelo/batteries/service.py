"""Asking and answering, for blocking programs: `Service` and `call`."""

from __future__ import annotations

import threading
from contextlib import suppress

from tupelo.batteries.core import service as core
from tupelo.batteries.verbs import AtOnce, run
from tupelo.errors import SpaceClosed
from tupelo.suggesting import suggests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tupelo._native import Seconds, Space
    from tupelo.batteries.core.runs import Run

__all__ = ["Service", "call"]


class Service:
    """Answers the requests under a name, in as many threads and processes as there are servers.

    If a server is killed or stopped, another one answers its request. So a request may be worked on
    more than once, and its caller gets one answer. Its tuples: docs/batteries.md.

    >>> import threading
    >>> from tupelo.batteries import Service, call
    >>> service = Service(space, "translate", {"guten Tag": "good day"}.__getitem__)
    >>> thread = threading.Thread(target=service.run)
    >>> thread.start()
    >>> call(space, "translate", "guten Tag", timeout=60)
    'good day'
    >>> service.stop()
    >>> thread.join()
    """

    @suggests
    def __init__(
        self,
        space: Space,
        name: str,
        handler: Callable[[Any], Any],
        *,
        concurrency: int = 1,
        ttl: Seconds = 30,
    ) -> None:
        """Make an object of the service; nothing happens in the space.

        Args:
            space: where it is asked.
            name: the name under which callers ask. All services of one name share the requests.
            handler: gives the answer to an argument. Its exceptions are raised in the caller.
            concurrency: how many requests are worked on at a time, up to 1024, each in a thread.
            ttl: after how many seconds without a sign of life a server has lost its request.

        Raises:
            TypeError: an argument of another type.
            ValueError: a number is out of range.
        """
        self._core = core.Service(AtOnce(space), name, handler, concurrency=concurrency, ttl=ttl)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return repr(self._core)

    @property
    def name(self) -> str:
        """The name under which callers ask."""
        return self._core.name

    def run(self) -> None:
        """Answer until `stop` is called, or something is raised (Ctrl-C; the space is closed).

        Requests that are being answered then are answered to the end.

        Raises:
            SpaceClosed: the connection was closed.
            SpaceFull: there was no room for an answer for a minute. The request is back.
        """
        problems: list[BaseException] = []
        with self._core.runs.begun() as begun:
            self._serve_in_threads(begun, problems)
        if problems:
            # Ctrl-C, if it was among them: it is for the whole program.
            raise min(problems, key=lambda problem: isinstance(problem, Exception))

    def stop(self) -> None:
        """End `run`, of this object alone; for another thread, or a handler of signals.

        Called before the first `run`, it ends that run as soon as it begins. So a thread that was
        started for `run`, and has not got there, ends too. Called later, it does nothing if nothing
        runs.
        In a space without any room, a few seconds may pass until the waiting loops notice.

        Raises:
            SpaceClosed: the connection was closed.
        """
        run(self._core.runs.stop())

    def _serve_in_threads(self, begun: Run, problems: list[BaseException]) -> None:
        """Answer in this thread and in others, until all of them have ended."""
        threads = [
            threading.Thread(
                target=self._serve, args=(begun, problems), name=f"{self.name} {number}"
            )
            for number in range(1, self._core.concurrency)
        ]
        try:
            for thread in threads:
                thread.start()
            self._serve(begun, problems)
        except BaseException:
            # Ctrl-C while they began: they have not been told to stop yet.
            self._end(begun)
            raise
        finally:
            for thread in threads:
                if thread.is_alive():
                    thread.join()

    def _serve(self, begun: Run, problems: list[BaseException]) -> None:
        """Answer until told to stop; what goes wrong stops the others, too."""
        try:
            run(self._core.serve(begun))
        except BaseException as problem:  # noqa: BLE001 - raised by `run`
            problems.append(problem)
            self._end(begun)

    def _end(self, begun: Run) -> None:
        with suppress(SpaceClosed):  # which the others meet by themselves
            run(self._core.runs.end(begun))


@suggests
def call(
    space: Space, service: str, argument: Any = None, *, timeout: Seconds | None = None
) -> Any:
    """Ask a service, and wait for its answer.

    Args:
        space: where it is asked.
        service: the name of the service.
        argument: what its handler gets: any value that a field can hold.
        timeout: the longest wait, in seconds. None waits for ever.

    Returns:
        The result of the handler.

    Raises:
        Timeout: there was no answer in time. If no server has begun the request, it is withdrawn;
            otherwise its answer is dropped.
        RemoteError: the handler raised; its exception is the cause, if it is one of Python's own.
        SpaceFull: there was no room for the request.
        NotEncodable: no field can hold the argument.

    >>> from tupelo.batteries import call
    >>> call(space, "nobody", timeout=0.01)
    Traceback (most recent call last):
    ...
    tupelo.Timeout: TUP-003: service 'nobody' did not answer within 0.01 s: nobody has begun
    """
    return run(core.call(AtOnce(space), service, argument, timeout=timeout))
