"""Puts the trace on the verbs of this process: each writes down what it did.

A verb is recorded where the program calls it. The verbs that it is made of are not recorded again.
So a `consume` is not also its many looks. Such calls come from modules of ours, or from a task
whose verb is known to run.
"""

from __future__ import annotations

from functools import wraps
from inspect import iscoroutinefunction
from sys import _getframe

from tupelo import _native, futures
from tupelo.recording.calls import RUNNING, Call, SearchCall, note_of, running, without_harm
from tupelo.recording.ends import HISTORIES, NOTES
from tupelo.recording.verbs import IN_SPACES, IN_TASKS, IN_TRANSACTIONS, ON, PUT, SEARCHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any

    from tupelo.recording.calls import Note
    from tupelo.recording.verbs import Verb

__all__ = ["trace", "trace_tasks"]

INSIDE = frozenset({"tupelo.consuming", "tupelo.stepping", "tupelo.recording.verbs"})
"""The modules whose calls of verbs are parts of another verb."""
FUTURES = {"take_future": "take", "read_future": "read"}
"""The verbs that return futures, and the lines that record their results."""


def trace() -> None:
    """Let the verbs of all spaces record their calls."""
    for verb in IN_SPACES:
        _trace(_native.Space, verb, note_of)
    for verb in IN_TRANSACTIONS:
        _trace(_native.TransactionSpace, verb, NOTES.__getitem__)
    _trace(_native.Transaction, ON, NOTES.__getitem__)
    _trace(_native.Claim, PUT, NOTES.__getitem__)
    for verb in SEARCHING:
        _trace(_native.Search, verb, _note_of_search, SearchCall)
    for name in ("commit", "abort", "__exit__"):
        _trace_method(_native.Transaction, name, _told_end)
    for name in ("done", "abort", "_discard_puts", "__exit__"):
        _trace_method(_native.Claim, name, _told_end)
    for name in ("next", "try_next", "__next__"):
        _trace_method(_native.Subscription, name, _told_event)
    _trace_futures(futures.PromptFuture)


def trace_tasks() -> None:
    """Let the verbs of `tupelo.aio` that are made of several record their calls."""
    from tupelo import aio  # noqa: PLC0415 - which calls this at the end of its import

    for verb in IN_TASKS:
        _trace(aio.Space, verb, note_of)
        if not verb.name.startswith(("_", "finish")):
            _trace(aio.TransactionSpace, verb, lambda inside: NOTES[inside._plain])
    for verb in SEARCHING[:2]:
        _trace(aio.Search, verb, _note_of_search, SearchCall)
    _trace_stream(aio.Space, "consume")


def _note_of_search(search: Any) -> Note:
    return note_of(search.spaces[0])


def _trace(owner: Any, verb: Verb, note_of: Callable[[Any], Note], kind: type[Call] = Call) -> None:
    """Let a method of a class record its calls; that of a task is a coroutine."""
    plain = getattr(owner, verb.name)

    def begun(target: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Call:
        if verb.name == "put_all" and len(arguments) == 1 and hasattr(arguments[0], "__iter__"):
            arguments = (list(arguments[0]),)  # to be gone through twice
        call = kind(note_of(target), target, arguments, options, verb.name)
        if verb.waits:
            call.waits()
        return call

    def ended(call: Call, result: Any) -> Any:
        with without_harm():
            return verb.note(call, result) or result
        return result

    def method(target: Any, /, *arguments: Any, **options: Any) -> Any:
        if RUNNING.get() is not None or _getframe(1).f_globals.get("__name__") in INSIDE:
            return plain(target, *arguments, **options)
        call = begun(target, arguments, options)
        if verb.name in FUTURES:
            with running(call):
                return plain(target, *call.arguments, **options)
        # No such block here: the program's own signal handlers may run while a verb waits.
        return ended(call, plain(target, *call.arguments, **options))

    async def awaited(target: Any, /, *arguments: Any, **options: Any) -> Any:
        call = begun(target, arguments, options)
        with running(call):
            result = await plain(target, *call.arguments, **options)
        return ended(call, result)

    setattr(owner, verb.name, wraps(plain)(awaited if iscoroutinefunction(plain) else method))


def _trace_stream(owner: Any, name: str) -> None:
    """Let an asynchronous generator that takes record its finds."""
    plain = getattr(owner, name)

    @wraps(plain)
    async def method(target: Any, /, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        call = Call(note_of(target), target, arguments, options)
        call.waits()
        found = plain(target, *arguments, **options)
        while True:
            with running(call):
                fields = await anext(found, None)
            if fields is None:
                return
            call.found("take", fields)
            yield fields

    setattr(owner, name, method)


def _trace_method(owner: Any, name: str, tell: Callable[..., None]) -> None:
    """Let a method of something that goes on tell what has come of it."""
    plain = getattr(owner, name)

    @wraps(plain)
    def method(target: Any, /, *arguments: Any, **options: Any) -> Any:
        result, raised = None, None
        try:
            result = plain(target, *arguments, **options)
        except BaseException as error:
            raised = error
            raise
        finally:
            with without_harm():
                if target in HISTORIES:
                    tell(HISTORIES[target], name, arguments, result, raised)
        return result

    setattr(owner, name, method)


def _told_end(history: Any, name: str, arguments: Any, _: Any, raised: Any) -> None:
    history.told(name, arguments, raised)


def _told_event(call: Call, _: str, __: Any, event: Any, ___: Any) -> None:
    if event is not None:
        call.found("read", event.tuple)


def _trace_futures(owner: Any) -> None:
    """Let a future record its result before anybody can have it.

    A callback would be too late: it runs when the result is out, and the program may have ended by
    then.
    """
    begin, end = owner.__init__, owner.set_result

    @wraps(begin)
    def begun(future: Any, *arguments: Any, **options: Any) -> None:
        future._recorded = RUNNING.get()
        begin(future, *arguments, **options)

    @wraps(end)
    def ended(future: Any, result: Any) -> None:
        call = future._recorded
        if call is not None and call.verb in FUTURES:
            call.found(FUTURES[call.verb], result)
        end(future, result)

    owner.__init__, owner.set_result = begun, ended
