"""The numbers that a publication prints, beside those of this run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """A table: the first columns are printed in the publication, the others measured here."""

    key: str
    """By which the report finds it; unlike the title it is for nobody to read."""
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    columns_printed: int
    """How many columns, after the first, are the publication's."""
