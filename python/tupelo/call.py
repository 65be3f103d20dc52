"""`call`: an active field of `Space.eval`, which becomes the result of a function."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

__all__ = ["Call", "call"]


class Call:
    """A function with its arguments, to be called elsewhere. Made by `call`.

    Attributes:
        function: the function to call.
        arguments: its arguments by position.
        keywords: its arguments by name.
    """

    __slots__ = ("arguments", "function", "keywords")

    def __init__(
        self,
        function: "Callable[..., Any]",
        arguments: "tuple[Any, ...]",
        keywords: "dict[str, Any]",
    ) -> None:
        """Keep what to call."""
        self.function = function
        self.arguments = arguments
        self.keywords = keywords

    def __repr__(self) -> str:
        """Show the call."""
        name = getattr(self.function, "__qualname__", repr(self.function))
        shown = [*map(repr, self.arguments), *(f"{k}={v!r}" for k, v in self.keywords.items())]
        return f"<call {name}({', '.join(shown)})>"

    def __reduce__(self) -> "NoReturn":
        """Refuse to be stored: only `eval` makes a value of a call."""
        message = "a call is computed by space.eval(...), and stored by nothing"
        raise TypeError(message)


def call(function: "Callable[..., Any]", /, *arguments: "Any", **keywords: "Any") -> Call:
    """Make an active field for `Space.eval`: what `function(*arguments, **keywords)` returns.

    Args:
        function: a function of a module, or of the script that is run. Not a lambda.
        arguments: the arguments of the call; values that a space can hold.
        keywords: the same, by name.

    Raises:
        TypeError: `function` cannot be called.

    >>> import math
    >>> space.eval("root", ts.call(math.sqrt, 4.0)).result()
    ('root', 2.0)
    """
    if not callable(function):
        kind = type(function).__name__
        message = f"function has the type {kind}: give a function, then its arguments"
        raise TypeError(message)
    return Call(function, arguments, keywords)
