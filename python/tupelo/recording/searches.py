"""The record of a search: the space of its find, or that it asked several spaces together.

One line stands for all of its spaces (`spaces`): nothing is missing in one of them if the tuple is
in another.
"""

from __future__ import annotations

from dataclasses import dataclass

from tupelo.recording.lines import without_harm
from tupelo.recording.verbs import SEARCHING, Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["SearchCall"]


@dataclass(frozen=True)
class SearchCall:
    """One call of a verb of a search, of either API."""

    spaces: tuple[Any, ...]
    template: tuple[Any, ...]
    options: dict[str, Any]

    def begins(self, name: str) -> None:
        """Write down that it may wait, if it may."""
        if not name.startswith("try_"):
            with without_harm():
                self._together().waits(spaces=self._urls())

    def ended(self, name: str, found: Any) -> None:
        """Record the find and its space; None for nothing."""
        verb = SEARCHING[name]
        with without_harm():
            if found is None:
                self._together().found(verb, None, spaces=self._urls())
            else:
                Call(found.space._note, self.template, self.options).found(verb, found.tuple)

    def _together(self) -> Call:
        return Call(self.spaces[0]._note, self.template, self.options)

    def _urls(self) -> list[str]:
        return [space.url for space in self.spaces]
