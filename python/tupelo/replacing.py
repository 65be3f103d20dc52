"""`replace`: an entry with other values, and with the fields that its class does not know."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    E = TypeVar("E")

__all__ = ["replace"]

CARRIED = "__tupelo_carried__"
"""The attribute of an instance with fields that its class has not, by their names."""


def replace(entry: E, /, **changes: Any) -> E:
    """Return a copy of an entry with other values in some fields.

    As `dataclasses.replace`, for every kind of entry. Where a newer version of the class has put
    the entry, the copy still has the fields that the class of this program does not know. They are
    in the space again when the copy is put. `NamedTuple`s, msgspec's structs and classes with slots
    have no place for such fields.

    Args:
        entry: an instance of a dataclass, a NamedTuple, an attrs or msgspec class.
        changes: the new values, by the names of the fields.

    Raises:
        TypeError: it is no entry, or there is no such field.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Job:
    ...     id: int
    ...     status: str = "ready"
    >>> ts.replace(Job(7), status="done")
    Job(id=7, status='done')
    """
    changed: E = _changed(entry, changes)
    carried = getattr(entry, CARRIED, None)
    if carried:
        # By way of `object`, since the class may be frozen.
        object.__setattr__(changed, CARRIED, dict(carried))
    return changed


def _changed(entry: Any, changes: dict[str, Any]) -> Any:
    """Return the copy, made as its kind of class does it."""
    cls: Any = type(entry)
    if hasattr(cls, "__dataclass_fields__"):
        from dataclasses import replace as replace_dataclass  # noqa: PLC0415 - as light as can be

        return replace_dataclass(entry, **changes)
    if hasattr(cls, "_field_defaults"):
        return _of_named_tuple(entry, changes)
    if hasattr(cls, "__attrs_attrs__"):
        from attr import evolve  # noqa: PLC0415 - only where it is loaded

        return evolve(entry, **changes)
    if hasattr(cls, "__struct_fields__"):
        from msgspec.structs import replace as replace_struct  # noqa: PLC0415 - as above

        return replace_struct(entry, **changes)
    message = (
        f"entry has the type {cls.__name__}: give an instance of a dataclass, a NamedTuple,"
        " an attrs or msgspec class"
    )
    raise TypeError(message)


def _of_named_tuple(entry: Any, changes: dict[str, Any]) -> Any:
    unknown = [name for name in changes if name not in entry._fields]
    if unknown:
        message = f"{type(entry).__name__} has no field {unknown[0]!r}"
        raise TypeError(message)
    return entry._replace(**changes)
