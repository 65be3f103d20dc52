"""A keyword that a function has not: which one was meant.

Python names the wrong keyword and nothing else; a class says even less. Our verbs name the valid
keywords, and the nearest one; so do functions that are decorated here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

__all__ = ["nearest_to", "suggests"]


def suggests(function: Callable[P, R]) -> Callable[P, R]:
    """Have a function, or a constructor, suggest the nearest keyword for an unknown one."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = frozenset(names)
    shown = [name for name in names[code.co_posonlyargcount :] if name != "self"]
    called, _, last = function.__qualname__.rpartition(".")
    name = called.rpartition(".")[2] if last == "__init__" else last

    def checked(*arguments: P.args, **keywords: P.kwargs) -> R:
        if not known.issuperset(keywords):
            raise TypeError(_told(name, shown, next(iter(keywords.keys() - known))))
        return function(*arguments, **keywords)

    # As `functools.wraps`, which is not as light as the rest.
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        setattr(checked, attribute, getattr(function, attribute))
    checked.__wrapped__ = function  # type: ignore[attr-defined]  # whose signature is shown
    return checked


def _told(name: str, known: list[str], wrong: str) -> str:
    meant = nearest_to(wrong, known)
    told = f"{name}() has no keyword argument {wrong!r}"
    told += "" if meant is None else f"; did you mean {meant!r}?"
    return f"{told} (it takes: {', '.join(known)})"


def nearest_to(wrong: str, known: list[str]) -> str | None:
    """Return the name that is most like a wrong one, if one is like it at all."""
    from difflib import get_close_matches  # noqa: PLC0415 - only where something is wrong

    matches = get_close_matches(wrong, known, 1)
    return matches[0] if matches else None
