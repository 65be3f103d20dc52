"""How a function gets to a worker: by the name under which its module has it.

`"module:name"` can be read by a human, can be served by another language, and runs no code of a
stranger. What has no such name (`functools.partial(f, 2)`, a bound method) is sent as an object,
where the policy of the space (`connect(..., objects=)`) allows pickles.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path

from tupelo.suggesting import nearest_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["at", "has_path", "path_of", "public_path_of", "sendable"]


def sendable(function: Callable[..., Any]) -> Any:
    """Return what stands for a function in a task: its path, or else itself.

    Raises:
        TypeError: no worker could find it: it is a lambda, or inside of another function.
    """
    if not callable(function):
        message = f"function has the type {type(function).__name__}: give a function"
        raise TypeError(message)
    return path_of(function) if has_path(function) else function


def has_path(function: Callable[..., Any]) -> bool:
    """Whether a function is of a kind that has a name in a module, and no object that is bound."""
    named = all(
        isinstance(getattr(function, name, None), str) for name in ("__module__", "__qualname__")
    )
    bound_to = getattr(function, "__self__", None)
    return named and (bound_to is None or bound_to is sys.modules.get(function.__module__))


def path_of(function: Callable[..., Any]) -> str:
    """Return the path of a function, as in `"package.module:Class.method"`.

    Raises:
        TypeError: the worker cannot find it.
    """
    path = _path(_own_module(function), function)
    try:
        found = attrgetter(function.__qualname__)(sys.modules[function.__module__])
    except (KeyError, AttributeError):
        found = None
    if found is not function:
        message = f"function is not what {path} is: workers would call another one"
        raise TypeError(message)
    return path


def public_path_of(function: Callable[..., Any]) -> str:
    """Return the path by which other programs find a function, also one of a script.

    The module `__main__` of a script has the name of its file for every other program. The function
    itself is not looked up: a decorator asks before it is defined.

    Raises:
        TypeError: it has no name there, or is typed in.
    """
    if not has_path(function):
        message = (
            f"function is a {type(function).__name__}: workers find a function by its module and"
            " name, so define one with def at the top of a module that calls it"
        )
        raise TypeError(message)
    if function.__module__ != "__main__":
        return _path(function.__module__, function)
    name = _module_of_main(function)
    if name is not None:
        return _path(name, function)
    file = getattr(sys.modules["__main__"], "__file__", None)
    if file is None:
        message = f"function {function.__qualname__} was typed in: put it into a file"
        raise TypeError(message)
    stem = Path(file).stem
    if "." in stem:
        message = (
            f"function {function.__qualname__} is in {Path(file).name}, which no worker can import"
            " by that name: give the file one without a dot"
        )
        raise TypeError(message)
    return _path(stem, function)


def _own_module(function: Callable[..., Any]) -> str:
    """Return the module by which this program's own workers find a function.

    They have made a script their `__main__`, too, but not the `__main__` of a package.
    """
    if function.__module__ == "__main__":
        name = _module_of_main(function)
        if name is not None and name.endswith(".__main__"):
            return name
    return function.__module__


def _module_of_main(function: Callable[..., Any]) -> str | None:
    """Return the name under which other programs import what runs as `__main__`; None of a script.

    The name of a package's main module is `package.__main__`, also for programs that import it. So
    a function that is defined there has one name, by which the package may pass it on.

    Raises:
        TypeError: it is the `__main__` of an archive or a folder, which no other program can
            import.
    """
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is None:
        return None
    name: str = spec.name
    if name == "__main__":
        place = getattr(main, "__file__", None) or "an archive or a folder"
        message = (
            f"function {function.__qualname__} is in {place}, which runs as __main__ and which no"
            " worker can import: define it in a module beside, and import it"
        )
        raise TypeError(message)
    return name


def _path(module: str, function: Callable[..., Any]) -> str:
    name = function.__qualname__
    if "<lambda>" in name or "<locals>" in name:
        what = "a lambda" if name.endswith("<lambda>") else f"{name}, inside of another function"
        message = (
            f"function is {what}: workers find a function by its module and name, so define it"
            " with def at the top of a module"
        )
        raise TypeError(message)
    return f"{module}:{name}"


@cache
def at(path: str) -> Callable[..., Any]:
    """Return the function at a path.

    Raises:
        LookupError: there is none; it says which part is missing.
    """
    module, _, name = path.partition(":")
    if not (module and name):
        message = f"{path!r} is no path of a function: write module:function"
        raise LookupError(message)
    try:
        # Not `pkgutil.resolve_name`: that refuses a module whose file is `make-film.py`.
        found = attrgetter(name)(import_module(module))
    except ModuleNotFoundError as error:
        raise LookupError(_no_module(path, module, error)) from error
    except AttributeError as error:
        message = f"{path} is not there: {error}"
        nearest = nearest_to(str(error.name), dir(error.obj)) if error.name else None
        message += "" if nearest is None else f"; did you mean {module}:{nearest}?"
        raise LookupError(message) from error
    if not callable(found):
        message = f"{path} has the type {type(found).__name__}, which can not be called"
        raise LookupError(message)  # noqa: TRY004 - the path is wrong, not a type
    function: Callable[..., Any] = found
    return function


def _no_module(path: str, module: str, error: ModuleNotFoundError) -> str:
    """Say which module is missing: that of the function, or one that it imports."""
    if error.name not in {module, module.partition(".")[0]}:
        return f"{path} can not be imported: it imports {error.name}, which is not installed here"
    files = [place.stem for place in Path().glob("*.py")]
    nearest = nearest_to(module, files)
    meant = "" if nearest is None else f"; did you mean {nearest}:{path.partition(':')[2]}?"
    places = f"it was looked for in {_places()}"
    return f"there is no module {error.name} for {path}; {places}{meant}"


def _places() -> str:
    return ", ".join(repr(place or ".") for place in sys.path[:3]) + ", …"
