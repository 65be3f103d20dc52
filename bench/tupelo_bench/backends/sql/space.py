"""A space in a database: what is the same for both drivers."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Fields, Handle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.backends.base import Schema
    from tupelo_bench.backends.sql.statements import Statements, Texts


class SQLSpace(Handle):
    """One space, held by one process: a tuple is a row, its fields are pickled."""

    def __init__(self, schema: Schema, name: str, statements: Statements) -> None:
        self._schema, self.name, self._statements = schema, name, statements

    @abstractmethod
    def first_of(self, names: Sequence[str], template: Fields, *, take: bool) -> Any:
        """The row of a match in one of these spaces; None if there is none."""

    @abstractmethod
    def pause(self, names: Sequence[str], template: Fields, looks: int) -> None:
        """Wait until it may be worth while to look into these spaces again, after so many looks."""

    @abstractmethod
    def _one(self, texts: Texts, template: Fields) -> Any:
        """What the statement for this template answers; None if it finds no row."""

    def _look(self, texts: Texts, template: Fields) -> Fields | None:
        body = self._one(texts, template)
        return None if body is None else pickle.loads(body)

    def try_take(self, *template: Any) -> Fields | None:
        return self._look(self._statements.take, template)

    def try_read(self, *template: Any) -> Fields | None:
        return self._look(self._statements.read, template)

    def count(self, *template: Any) -> int:
        count: int = self._one(self._statements.count, template)
        return count
